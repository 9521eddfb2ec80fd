"""Faults of a parser in its process, caused on purpose by a fake parser."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.tools.web import converter as module
from dragoman.tools.web.converter import ConversionError, Converter
from dragoman.tools.web.converter_worker import READY, REPLY, REQUEST

PARSER = """
import os

class ConversionOptions:
    def __init__(self, **options):
        self.options = options

class Result:
    def __init__(self, content):
        self.content = content

def convert(html, options):
    word, _, more = html.partition(" ")
    if word == "hang":
        while True:
            pass
    if word == "eat":
        return Result(str(len(bytearray(2 << 30))))
    if word == "crash":
        os.abort()
    if word == "fail":
        raise ValueError("as it says")
    if word == "write":
        with open(more, "w") as file:
            file.write("x")
    if word == "flood":
        return Result("x" * 50_000_000)
    if word == "environment":
        return Result(repr(sorted(os.environ)) + os.getcwd())
    return Result(html)
"""


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A library of that name that does as its input says."""
    (tmp_path / "html_to_markdown").mkdir()
    (tmp_path / "html_to_markdown" / "__init__.py").write_text(PARSER)
    monkeypatch.setattr(module, "_find_library", lambda: str(tmp_path))
    return str(tmp_path)


def convert(*pages: str, seconds: float = 1.0) -> list[str]:
    """Return the texts, or why there is none."""

    async def steps() -> list[str]:
        converter = Converter(seconds)
        collected = []
        for page in pages:
            try:
                collected.append((await converter.to_markdown(page, "https://a.example/")).text)
            except ConversionError as error:
                collected.append(f"! {error}")
        return collected

    return asyncio.run(asyncio.wait_for(steps(), 30))


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("hang", "! it could not be turned into Markdown within 1 seconds"),
        ("crash", "! turning it into Markdown took too much memory or failed"),
        ("fail", "! it could not be read as HTML"),
    ],
)
def test_a_page_that_crashes_its_process_is_reported_and_the_next_is_read(parser, page, why):
    assert convert("good", page, "good again") == ["good", why, "good again"]


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such limits")
def test_a_page_can_neither_take_all_memory_nor_write(parser, tmp_path):
    eaten, written, after = convert("eat", f"write {tmp_path}/file", "good")
    assert eaten == "! it could not be read as HTML"
    assert written.startswith("! ")
    assert after == "good"
    assert not (tmp_path / "file").exists() or not (tmp_path / "file").read_bytes()


def test_a_page_that_becomes_very_long_is_cut(parser):
    assert [len(text) for text in convert("flood")] == [2_000_000]


def test_nothing_of_our_environment_is_there(parser, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "canary")
    (result,) = convert("environment")
    assert "GEMINI_API_KEY" not in result
    assert result.endswith("/")


def start(parser: str) -> subprocess.Popen[bytes]:
    script, pipe = Path(module.__file__).with_name("converter_worker.py"), subprocess.PIPE
    command = [sys.executable, "-I", "-S", str(script), parser, str(script.parent)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe)  # noqa: S603  our own script
    assert process.stdout.read(len(READY)) == READY
    return process


def test_an_idle_process_ends(parser):
    with start(parser) as process:
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="the system has no alarm")
def test_a_hanging_process_ends_itself_if_its_parent_is_gone(parser):
    with start(parser) as process:
        process.stdin.write(REQUEST.pack(1, 0, 4) + b"hang")
        process.stdin.close()
        assert process.wait(60) == -signal.SIGALRM


def test_a_process_that_answers_with_too_much_is_not_believed(parser, monkeypatch):
    """A compromised process could announce more data than there is memory for."""
    script = Path(parser, "liar.py")
    script.write_text(
        "import sys, struct\n"
        f"sys.stdout.buffer.write({READY!r}); sys.stdout.flush()\n"
        "sys.stdin.buffer.read(1)\n"
        f"sys.stdout.buffer.write(struct.pack({REPLY.format!r}, True, 0, 4_000_000_000)); sys.stdout.flush()\n"
        "sys.stdin.buffer.read()\n"
    )
    monkeypatch.setattr(module, "_SCRIPT", script)
    assert convert("good") == ["! turning it into Markdown took too much memory or failed"]
