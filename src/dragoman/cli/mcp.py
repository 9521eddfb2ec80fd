"""`dragoman mcp`: run an MCP server on standard input and output."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]


def add_to(verbs: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = verbs.add_parser("mcp", help="run an MCP server on standard input and output")
    parser.add_argument("--config", type=Path, help="configuration file (default: $DRAGOMAN_CONFIG, ./dragoman.toml)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until the input ends and all requests are answered."""
    import asyncio  # noqa: PLC0415  only for this verb

    from dragoman.config import ConfigError, load  # noqa: PLC0415
    from dragoman.core.problems import Problem  # noqa: PLC0415

    try:
        config = load(options.config)
        from dragoman.server.runner import serve_mcp  # noqa: PLC0415  only for this verb

        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve_mcp(config))
    except (ConfigError, OSError, Problem) as error:
        sys.stderr.write(f"dragoman: {error}\n")
        return 2
    return 0
