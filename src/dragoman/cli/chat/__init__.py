"""`dragoman chat`: chat with a model that uses tools: interactively, from a pipe, or with one prompt.

Exit code 0 is success, 1 a failed turn in non-interactive use, 2 a start-up error, 130 an interrupt.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]


def add_to(verbs: "_SubParsersAction[Any]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser(
        "chat",
        help="chat with a model that uses tools",
        examples=(
            "dragoman chat",
            "dragoman chat --model gemini-3-flash --session notes",
            "dragoman chat --once 'What is on https://example.com/ ?' --tools web_fetch",
        ),
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration file (default: $DRAGOMAN_CONFIG, ./dragoman.toml, ~/.config/dragoman/dragoman.toml)",
    )
    parser.add_argument(
        "--model", default="", metavar="NAME", help="a model or an agent (default: the first configured)"
    )
    parser.add_argument(
        "--once", metavar="PROMPT", help="send one prompt and print only the answer; - reads it from standard input"
    )
    tools = parser.add_mutually_exclusive_group()
    tools.add_argument("--tools", type=_split_names, metavar="A,B", help="use only these tools, servers or patterns")
    tools.add_argument("--no-tools", dest="tools", action="store_const", const=(), help="use no tools")
    parser.add_argument(
        "--yes", type=_split_names, default=(), metavar="A,B", help="run these tools without asking for approval"
    )
    parser.add_argument(
        "--session",
        default="",
        metavar="NAME",
        help="store the conversation under this name, and continue it if it exists",
    )
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object for each turn instead of the answer, for scripts"
    )
    parser.add_argument(
        "--no-history", dest="history", action="store_false", help="do not store typed lines for the arrow keys"
    )
    parser.add_argument("--verbose", action="store_true", help="show calls and results in full")
    parser.set_defaults(run=run, parser=parser)


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def run(options: argparse.Namespace) -> int:
    """Run the chat and return the exit code."""
    from dragoman.cli.chat.runner import run_chat  # noqa: PLC0415  only for this verb
    from dragoman.config import ConfigError  # noqa: PLC0415
    from dragoman.core.problems import Problem  # noqa: PLC0415

    try:
        return run_chat(options)
    except (ConfigError, Problem) as error:
        sys.stderr.write(f"dragoman: {error}\n")
        return 2
