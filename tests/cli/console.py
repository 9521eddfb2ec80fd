"""The command in this process: bytes for standard input, bytes of standard output and error."""

import io
import os
import sys
from types import SimpleNamespace

from dragoman.cli import main


def run(monkeypatch, tmp_path, arguments, given=b""):
    """Run the command; return its exit code, its output, and its standard error."""
    source = tmp_path / "stdin"
    source.write_bytes(given)
    written, result = io.BytesIO(), io.StringIO()
    with source.open("rb") as pipe:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe, fileno=pipe.fileno, isatty=pipe.isatty))
        monkeypatch.setattr(
            sys,
            "stdout",
            SimpleNamespace(
                buffer=written,
                fileno=lambda: os.open(os.devnull, os.O_WRONLY),
                isatty=lambda: False,
                flush=lambda: None,
            ),
        )
        monkeypatch.setattr(sys, "stderr", result)
        code = main(arguments)
    return code, written.getvalue(), result.getvalue()
