"""The command line: `dragoman VERB`. Each verb has its own module."""

import argparse
import os
import sys
from collections.abc import Sequence

from dragoman import __version__
from dragoman.cli import chat, configuration, doctor, intercept, mcp, serve, simulate, translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="dragoman", description="Translate tool calling between LLM APIs.")
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    serve.add_to(verbs)
    mcp.add_to(verbs)
    translate.add_to(verbs, chosen=words[:1] == ["translate"])
    chat.add_to(verbs)
    intercept.add_to(verbs)
    simulate.add_to(verbs)
    doctor.add_to(verbs)
    configuration.add_to(verbs)
    # The words after `--` are a command to run, with options of its own: argparse must not see them.
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.command = words[at + 1 :]
    if at < len(words) and not getattr(options, "takes_command", False):
        parser.error(f"this subcommand runs no other command; remove: -- {' '.join(options.command)}")
    try:
        return options.run(options)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Python must not try to flush the buffered rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
