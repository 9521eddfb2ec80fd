"""The command: `dragoman VERB`. One file a verb."""

import argparse
from collections.abc import Sequence

from dragoman import __version__
from dragoman.cli import translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="dragoman", description="Interpret tool calling between LLM APIs.")
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    translate.add_to(verbs)
    options = parser.parse_args(arguments)
    return options.run(options)
