"""The process that handles large bodies: `python -m dragoman.server.large_body_process`, started by `LargeBodies`.

It reads calls from standard input and writes their results to standard output until its input ends.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from dragoman.core.problems import Problem
from dragoman.gateway.large_bodies import LENGTH_BYTES, MissingInputs, dump, load
from dragoman.plugins import load_plugins


def main() -> None:
    """Answer calls until the gateway closes standard input."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C in a terminal reaches every process; the gateway ends this one
    load_plugins()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything else prints is no answer
    answer_calls(sys.stdin.buffer, answers)


def answer_calls(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until there are no more."""
    while head := calls.read(LENGTH_BYTES):
        function, arguments = load(calls.read(int.from_bytes(head)))
        answer = dump(call(function, arguments))
        answers.write(len(answer).to_bytes(LENGTH_BYTES) + answer)
        answers.flush()


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Return the result of a function and the exception that it raises; of an unexpected one the text."""
    try:
        return function(*arguments), None
    except (Problem, MissingInputs) as expected:
        return None, expected.with_traceback(None)
    except Exception:  # noqa: BLE001  the gateway logs it
        return None, RuntimeError(traceback.format_exc())


if __name__ == "__main__":
    main()
