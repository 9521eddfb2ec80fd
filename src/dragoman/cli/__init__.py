"""The command: `dragoman VERB`. One file a verb."""

import argparse
import os
import sys
from collections.abc import Sequence

from dragoman import __version__
from dragoman.cli import chat, configuration, doctor, intercept, mcp, serve, simulate, translate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    said = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="dragoman", description="Interpret tool calling between LLM APIs.")
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    serve.add_to(verbs)
    translate.add_to(verbs, chosen=said[:1] == ["translate"])
    chat.add_to(verbs)
    mcp.add_to(verbs)
    intercept.add_to(verbs)
    simulate.add_to(verbs)
    doctor.add_to(verbs)
    configuration.add_to(verbs)
    # What stands behind `--` is somebody else's command: its words are none of ours.
    at = said.index("--") if "--" in said else len(said)
    options = parser.parse_args(said[:at])
    options.command = said[at + 1 :]
    if at < len(said) and not getattr(options, "takes_command", False):
        parser.error(f"nothing can stand behind -- here: {' '.join(options.command)}")
    try:
        return options.run(options)
    except BrokenPipeError:
        # The reader has seen enough (`| head`). What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
