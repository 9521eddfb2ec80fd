"""The parser of the command line: help with examples, and errors that say what to write instead."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TextIO


class Parser(argparse.ArgumentParser):
    """A parser with examples below its help; a wrong choice or option gets the nearest right one."""

    def __init__(self, *arguments: Any, examples: Iterable[str] = (), **options: Any) -> None:
        lines = "\n".join(f"  {example}" for example in examples)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, epilog=f"examples:\n{lines}" if lines else None, **options)
        self.parts: Mapping[str, Parser] = {}
        """The parsers of its subcommands."""

    def add_subparsers(self, **options: Any) -> "argparse._SubParsersAction[Parser]":  # pyright: ignore[reportPrivateUsage]
        """Add subcommands, and remember their parsers."""
        added = super().add_subparsers(parser_class=Parser, **options)
        self.parts = added.choices
        return added

    def error(self, message: str) -> NoReturn:
        """Print the usage and an error, and exit."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{paint(f'{self.prog}: error:', 'red', sys.stderr)} {message}\n")

    def list_options(self) -> list[str]:
        """Return the long options."""
        return sorted(name for name in self._option_string_actions if name.startswith("--"))

    def list_choices(self) -> list[str]:
        """Return the subcommands and the choices of other arguments without an option."""
        return [name for action in self._get_positional_actions() for name in action.choices or ()]

    def reject_unknown(self, words: list[str]) -> NoReturn:
        """Exit with an error about words that no option takes."""
        hints = [suggest(word.partition("=")[0], self.list_options()) for word in words if word.startswith("--")]
        return self.error(f"unknown {' '.join(words)}{next(filter(None, hints), '')}")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest known word, or nothing."""
    import difflib  # noqa: PLC0415  only for errors

    nearest = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def read_dialect(known: Iterable[str], word: str) -> str:
    """Return a dialect, or raise the error that names the nearest one."""
    names = tuple(known)
    if word in names:
        return word
    from dragoman.dialects import OTHER_NAMES  # noqa: PLC0415  importing the command loads no dialect

    meant = OTHER_NAMES.get(word.lower())
    hint = f"; did you mean {meant}?" if meant in names else suggest(word, names)
    raise argparse.ArgumentTypeError(f"unknown dialect {word!r}; use {', '.join(names)}{hint}")


def read_count(word: str) -> int:
    """Return a number of at least one."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, not {word!r}")
    return int(word)


def read_port(word: str) -> int:
    """Return a port number."""
    if not word.isdecimal() or int(word) > 65_535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, not {word!r}")
    return int(word)


def read_status(word: str) -> int:
    """Return an HTTP status."""
    if not word.isdecimal() or not 100 <= int(word) <= 599:
        raise argparse.ArgumentTypeError(f"must be an HTTP status from 100 to 599, not {word!r}")
    return int(word)


def read_seconds(word: str) -> float:
    """Return a positive number of seconds."""
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not {word!r}")
    return seconds


def add_config_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add `--config`; a subcommand whose parent has it too gives `argparse.SUPPRESS` as its default."""
    parser.add_argument(
        "--config",
        type=Path,
        default=default,
        metavar="FILE",
        help="configuration file (default: $DRAGOMAN_CONFIG, ./dragoman.toml, ~/.config/dragoman/dragoman.toml)",
    )


def paint(text: str, colour: Literal["green", "red", "yellow"], out: TextIO) -> str:
    """Return coloured text for a terminal, and the text itself elsewhere or with NO_COLOR."""
    if not out.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{31 + ('red', 'green', 'yellow').index(colour)}m{text}\x1b[0m"
