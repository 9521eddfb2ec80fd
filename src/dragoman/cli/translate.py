"""`dragoman translate`: translate a request, response, stream or error to another dialect.

It reads standard input and writes standard output; losses go to standard error. Exit code 0 is success, 1 an invalid
or untranslatable document, 2 a wrong command line.
"""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from dragoman.core.losses import Loss

_CHUNK = 65_536


def add_to(verbs: "_SubParsersAction[ArgumentParser]", *, chosen: bool) -> None:
    """Declare the verb; the dialects of other packages are looked up only if it is the `chosen` verb."""
    from dragoman.cli.choices import OPERATIONS, sources, targets_of  # noqa: PLC0415  importing the command loads no dialect

    dialects = sources(plugins=chosen)
    parser = verbs.add_parser("translate", help="translate a document, or one on each line with --batch")
    parser.add_argument("operation", nargs="?", choices=OPERATIONS, help="the kind of document on standard input")
    parser.add_argument("--from", dest="source", choices=dialects, help="the dialect of the input")
    parser.add_argument(
        "--to",
        dest="target",
        choices=targets_of(dialects),
        help="the dialect of the output; `core` prints the core values",
    )
    parser.add_argument("--model", default="", help="the model at the target; its traits decide what is adapted")
    parser.add_argument("--status", type=int, default=500, help="HTTP status of an error (default 500)")
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
    if options.batch:
        from dragoman.cli.batch import run_batch  # noqa: PLC0415  kept light for --help

        return run_batch(sys.stdin.buffer, sys.stdout.buffer, strict=options.strict)
    if not (options.operation and options.source and options.target):
        options.parser.error("operation, --from and --to are required, unless --batch is used")
    from dragoman.core.problems import Problem  # noqa: PLC0415  kept light for --help and other verbs

    try:
        losses = _translate_stream(options) if options.operation == "stream" else _translate_document(options)
    except Problem as problem:
        where = f" at {problem.where}" if problem.where else ""
        sys.stderr.write(f"dragoman: {problem.kind}{where}: {problem.message}\n")
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
        sys.stderr.write(f"{loss.grade} {loss.kind} {loss.where or '/'}{leaves}: {loss.what}\n")


def _translate_document(options: argparse.Namespace) -> "tuple[Loss, ...]":
    from dragoman.cli.job import TranslationJob, perform  # noqa: PLC0415  kept light for --help

    job = TranslationJob(
        operation=options.operation,
        source=options.source,
        target=options.target,
        model=options.model,
        status=options.status,
        strict=options.strict,
        body=sys.stdin.buffer.read(),
        request=_read_request(options),
        by_leaf=options.losses == "leaves",
    )
    done = perform(job)
    sys.stdout.buffer.write(done.body + b"\n")
    return done.losses


def _read_request(options: argparse.Namespace) -> bytes | None:
    if options.request is None:
        return None
    try:
        with open(options.request, "rb") as file:  # noqa: PTH123  a path as the user gave it
            return file.read()
    except OSError as error:
        return options.parser.error(f"argument --request: {error}")


def _translate_stream(options: argparse.Namespace) -> "tuple[Loss, ...]":
    """Translate a stream from a pipe and flush after each chunk."""
    from dragoman.cli.job import open_stream  # noqa: PLC0415  kept light for --help

    by_leaf = options.losses == "leaves"
    stream = open_stream(options.source, options.target, options.model, _read_request(options), by_leaf=by_leaf)
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as pipe:
        while chunk := pipe.read(_CHUNK):
            write(stream.feed(chunk))
            flush()
    write(stream.close())
    flush()
    return stream.losses
