"""`dragoman translate`: translate a request, response, stream or error to another dialect.

It reads standard input and writes standard output; losses go to standard error. Exit code 0 is success, 1 an invalid
or untranslatable document, 2 a wrong command line.
"""

import argparse
import os
import stat
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from dragoman.cli.parser import paint, read_dialect, read_status

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.cli.parser import Parser
    from dragoman.core.losses import Loss
    from dragoman.core.problems import Problem

_CHUNK = 65_536


def add_to(verbs: "_SubParsersAction[Parser]", *, chosen: bool) -> None:
    """Declare the verb; the dialects of other packages are looked up only if it is the `chosen` verb."""
    from dragoman.cli.choices import sources  # noqa: PLC0415  importing the command loads no dialect
    from dragoman.dialects.documents import DOCUMENTS, list_targets  # noqa: PLC0415

    dialects = sources(plugins=chosen)
    targets = list_targets(dialects)
    parser = verbs.add_parser(
        "translate",
        help="translate a document, or one on each line with --batch",
        examples=(
            "dragoman translate request --from chat --to gemini --model gemini-3-flash request.json",
            "curl -sN ... | dragoman translate stream --from messages --to chat",
            "dragoman translate response --from gemini --to messages --request asked.json reply.json -o out.json",
        ),
    )
    parser.add_argument("operation", nargs="?", choices=DOCUMENTS, help="the kind of document")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the document (default: standard input)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the result is written (default: standard output)")
    parser.add_argument(
        "--from",
        dest="source",
        type=partial(read_dialect, dialects),
        metavar=f"{{{','.join(dialects)}}}",
        help="the dialect of the input",
    )
    parser.add_argument(
        "--to",
        dest="target",
        type=partial(read_dialect, targets),
        metavar=f"{{{','.join(targets)}}}",
        help="the dialect of the output; `core` prints the core values",
    )
    parser.add_argument("--model", default="", help="the model at the target; its traits decide what is adapted")
    parser.add_argument("--status", type=read_status, default=500, help="HTTP status of an error (default 500)")
    parser.add_argument("--request", metavar="FILE", help="the client's request that the response or stream answers")
    parser.add_argument(
        "--strict", action="store_const", const=True, default=False, help="fail if the translation has a material loss"
    )
    parser.add_argument(
        "--strict-all", action="store_const", const="all", dest="strict", help="fail if the translation has any loss"
    )
    parser.add_argument(
        "--losses",
        choices=("text", "json", "leaves"),
        default="text",
        help="format of the losses on standard error: text (default), json, or leaves: text with every dropped leaf",
    )
    parser.add_argument("--batch", action="store_true", help="read and write one JSON object a line")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Translate standard input."""
    from dragoman.plugins import load_plugins  # noqa: PLC0415  kept light for --help and other verbs

    load_plugins()
    with ExitStack() as files:
        source, target = _open_files(options, files)
        if options.batch:
            from dragoman.cli.batch import run_batch  # noqa: PLC0415  kept light for --help

            _empty(target)
            return run_batch(source, target, strict=options.strict)
        if not (options.operation and options.source and options.target):
            options.parser.error("operation, --from and --to are required, unless --batch is used")
        return _translate(options, source, target)


def _open_files(options: argparse.Namespace, files: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Open the input, unbuffered so that a stream is read as it comes, and the output."""
    try:
        if options.file is not None:
            source = files.enter_context(open(options.file, "rb", buffering=0))  # noqa: PTH123, SIM115
        else:
            if sys.stdin.isatty():
                options.parser.error("name a file, or send the document to standard input")
            source = files.enter_context(os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0))
        if options.output is None:
            return source, sys.stdout.buffer
        # What the file has is kept until there is something to write: a wrong document must not cost an old result.
        target = files.enter_context(open(options.output, "ab"))  # noqa: PTH123, SIM115
    except OSError as error:
        name = error.filename or "''"
        return options.parser.error(f"{name}: cannot open the file: {error.strerror}")
    given, written = os.fstat(source.fileno()), os.fstat(target.fileno())
    if stat.S_ISREG(written.st_mode) and os.path.samestat(given, written):
        options.parser.error(f"argument -o/--output: {options.output} is also the input; name another file")
    return source, target


def _empty(target: BinaryIO) -> None:
    """Remove what a file had before the first result is written."""
    if target is not sys.stdout.buffer and stat.S_ISREG(os.fstat(target.fileno()).st_mode):
        target.truncate(0)


def _translate(options: argparse.Namespace, source: BinaryIO, target: BinaryIO) -> int:
    from dragoman.core.problems import Problem  # noqa: PLC0415  kept light for --help and other verbs

    translate = _translate_stream if options.operation == "stream" else _translate_document
    try:
        losses = translate(options, source, target)
    except Problem as problem:
        where = f" at {problem.where}" if problem.where else ""
        sys.stderr.write(f"{paint('dragoman:', 'red', sys.stderr)} {problem.kind}{where}: {problem.message}\n")
        return 1
    print_losses(losses, options.losses)
    return 0


def print_losses(losses: "tuple[Loss, ...]", form: str) -> None:
    """Write losses to standard error, as text or as JSON."""
    from dragoman.wire import json  # noqa: PLC0415  only needed here

    if form == "json":
        sys.stderr.write(json.encode(losses).decode() + "\n")
        return
    for loss in losses:
        leaves = f" ({loss.leaves} values)" if loss.leaves > 1 else ""
        grade = paint(loss.grade, "yellow", sys.stderr) if loss.grade == "material" else loss.grade
        sys.stderr.write(f"{grade} {loss.kind} {loss.where or '/'}{leaves}: {loss.what}\n")


def _translate_document(options: argparse.Namespace, source: BinaryIO, target: BinaryIO) -> "tuple[Loss, ...]":
    from dragoman.interpreter.job import TranslationJob, perform  # noqa: PLC0415  kept light for --help

    body = source.read()
    if not body.strip():
        raise _build_empty_problem(options)
    job = TranslationJob(
        operation=options.operation,
        source=options.source,
        target=options.target,
        model=options.model,
        status=options.status,
        strict=options.strict,
        body=body,
        request=_read_request(options),
        by_leaf=options.losses == "leaves",
    )
    done = perform(job)
    _empty(target)
    target.write(done.body + b"\n")
    return done.losses


def _build_empty_problem(options: argparse.Namespace) -> "Problem":
    from dragoman.core.problems import Problem  # noqa: PLC0415  kept light for --help

    given = options.file or "standard input"
    return Problem("invalid_request", f"the {options.operation} is empty: {given} has no text")


def _read_request(options: argparse.Namespace) -> bytes | None:
    if options.request is None:
        return None
    try:
        with open(options.request, "rb") as file:  # noqa: PTH123  a path as the user gave it
            return file.read()
    except OSError as error:
        return options.parser.error(f"argument --request: {options.request}: cannot open the file: {error.strerror}")


def _translate_stream(options: argparse.Namespace, source: BinaryIO, target: BinaryIO) -> "tuple[Loss, ...]":
    """Translate a stream and flush after each chunk."""
    from dragoman.interpreter.job import open_stream  # noqa: PLC0415  kept light for --help
    from dragoman.interpreter.loss_report import reject_losses  # noqa: PLC0415  kept light for --help

    by_leaf = options.losses == "leaves"
    stream = open_stream(options.source, options.target, options.model, _read_request(options), by_leaf=by_leaf)
    chunk = source.read(_CHUNK)
    if not chunk:
        raise _build_empty_problem(options)
    _empty(target)
    while chunk:
        target.write(stream.feed(chunk))
        target.flush()
        chunk = source.read(_CHUNK)
    target.write(stream.close())
    target.flush()
    if options.strict:
        reject_losses(stream.losses, "stream", strict=options.strict)
    return stream.losses
