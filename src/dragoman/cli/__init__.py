"""The command line: `dragoman VERB`. Each verb has its own module."""

import os
import sys
from collections.abc import Collection, Sequence
from io import TextIOWrapper

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
    _prepare_streams()
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe (`| head`).
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ImportError as error:
        if error.name is not None:
            raise
        # Ours have no module: they say which extra is missing.
        return configuration.report_error(str(error))
    except OSError as error:
        # A full disk behind standard output, for example.
        _discard_output()
        return configuration.report_error(error)


def _prepare_streams() -> None:
    """Replace closed standard streams, and print what the terminal's encoding lacks as escapes."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # In this order each gets the number of the closed one, so that no socket is taken for a standard stream.
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif name == "stdout" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """If standard output cannot be written, let Python write the buffered rest to nowhere when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
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
    _check_first_word(parser, words[:at], verbs.choices)
    options, unknown = parser.parse_known_args(words[:at])
    used = getattr(options, "parser", parser)
    if unknown and not any(word.startswith("-") for word in unknown) and hasattr(options, "file"):
        # argparse leaves a file after the options unparsed if another optional argument came before them.
        options.file, *unknown = unknown if options.file is None else (options.file, *unknown)
        if unknown:
            used.error(f"only one FILE can be given, which is {options.file}; remove {' '.join(unknown)}")
    if unknown:
        used.reject_unknown(unknown)
    options.command = words[at + 1 :]
    if at < len(words) and not getattr(options, "takes_command", False):
        used.error(f"this subcommand runs no other command; remove: -- {' '.join(options.command)}")
    if options.verb is None:
        parser.print_help()
        return 0
    return options.run(options)


def _check_first_word(parser: Parser, words: list[str], verbs: Collection[str]) -> None:
    if not words or words[0] in verbs:
        return
    word, own = words[0], ("-h", "--help", "-V", "--version")
    if not word.startswith("-"):
        hint = suggest(word, (*verbs, *own)) or f"; use {', '.join(verbs)}"
        parser.error(f"unknown command {word!r}{hint}")
    if len(words) > 1 and not any(name.startswith(word) for name in own):
        parser.error(f"unknown {word} before the command; write the command first, as in `dragoman serve {word} …`")
