"""The command line: `dragoman VERB`. Each verb has its own module."""

import os
import sys
from collections.abc import Sequence

from dragoman import __version__
from dragoman.cli import chat, completion, configuration, doctor, intercept, mcp, serve, simulate, translate
from dragoman.cli.parser import Parser, suggest

_EXAMPLES = (
    "dragoman serve                     # the gateway on 127.0.0.1:8741; a simulator answers if no key is set",
    "dragoman doctor                    # are the keys and models right?",
    "dragoman chat --once 'What is on https://example.com/ ?'",
    "dragoman translate request --from chat --to gemini --model gemini-3-flash request.json",
)
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = Parser(prog="dragoman", description="Translate tool calling between LLM APIs.", examples=_EXAMPLES)
    parser.add_argument("-V", "--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    serve.add_to(verbs)
    mcp.add_to(verbs)
    translate.add_to(verbs, chosen=words[:1] == ["translate"])
    chat.add_to(verbs)
    intercept.add_to(verbs)
    simulate.add_to(verbs)
    doctor.add_to(verbs)
    configuration.add_to(verbs)
    completion.add_to(verbs)
    # The words after `--` are a command to run, with options of its own: argparse must not see them.
    at = words.index("--") if "--" in words else len(words)
    if at and not words[0].startswith("-") and words[0] not in verbs.choices:
        known = ", ".join(verbs.choices)
        parser.error(f"unknown command {words[0]!r}{suggest(words[0], verbs.choices) or f'; use {known}'}")
    options, unknown = parser.parse_known_args(words[:at])
    used = getattr(options, "parser", parser)
    if len(unknown) == 1 and not unknown[0].startswith("-") and getattr(options, "file", "") is None:
        # argparse gives a file after the options to nobody if another optional word came before them.
        options.file = unknown.pop()
    if unknown:
        used.reject_unknown(unknown)
    options.command = words[at + 1 :]
    if at < len(words) and not getattr(options, "takes_command", False):
        used.error(f"this subcommand runs no other command; remove: -- {' '.join(options.command)}")
    if options.verb is None:
        parser.print_help()
        return 0
    try:
        return options.run(options)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Python must not try to flush the buffered rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ImportError as error:
        if error.name is not None:
            raise
        # Ours have no module: they say which extra is missing.
        return configuration.report_error(str(error))
