"""Neither a server nor a page takes more time or memory than it is given."""

import asyncio
import gc
import resource
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest

from dragoman.core.parts import ToolResult
from dragoman.tools.web import Settings, Web, documents
from dragoman.tools.web.converter import ConversionError, Converter, _Process
from tools.web.asking import call_web_fetch, listen, one_page, reply, text_of

PATIENCE = 60
"""Seconds within which a limit of one second takes effect, on a busy machine too."""
HOSTILE = {
    "attributes": "<div " + " ".join(f"a{at}=1" for at in range(100_000)) + ">x</div>",
    "deep": "<div>" * 400_000 + "x",
    "lists": "<ul><li>" * 200_000 + "x",
    "quotes": "<blockquote>" * 100_000 + "x",
    "tables": "<table><tr><td>" * 100_000 + "x",
    "formatting": "<b><p>" * 100_000 + "x",
    "links": "<a href=x>" * 150_000 + "x",
    "wide": "<table><tr><td colspan=1000000000>x</td></tr>" * 40_000,
    "brackets": "<" * 2_000_000,
    "comments": "<!--" * 500_000,
    "entities": "&amp;" * 400_000,
    "titles": "<title" * 300_000,
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_is_bounded_in_time_and_memory_and_the_next_one_is_read(page):
    async def steps() -> tuple[str, float, str]:
        converter = Converter(seconds=1.0)
        began = time.monotonic()
        try:
            first = (await converter.to_markdown(page, "https://evil.example/")).text
        except ConversionError as error:
            first = str(error)
        seconds = time.monotonic() - began
        return first, seconds, (await converter.to_markdown("<h1>next</h1>", "https://a.example/")).text

    first, seconds, following = asyncio.run(steps())
    assert len(first) <= 2_000_000
    assert seconds < PATIENCE
    assert following == "# next\n"


def test_a_page_that_takes_too_long_ends_its_process_and_no_other(monkeypatch):
    begun: list[_Process] = []
    begin = _Process.__init__

    def note(self: _Process) -> None:
        begin(self)
        begun.append(self)

    monkeypatch.setattr(_Process, "__init__", note)

    async def steps() -> list[object]:
        converter = Converter(seconds=0.001)
        big = "<p>" + "<b><p>x" * 150_000
        collected: list[object] = []
        with suppress(ConversionError):
            collected.append(await converter.to_markdown("<p>warm</p>", "https://a.example/"))
        try:
            await converter.to_markdown(big, "https://a.example/")
        except ConversionError as error:
            collected.append(str(error))
        return collected

    assert asyncio.run(steps())[-1] == "it could not be turned into Markdown within 0.001 seconds"
    assert not begun[-1].is_alive


def test_a_process_is_reused_and_replaced_when_it_was_killed(monkeypatch):
    begun: list[_Process] = []
    begin = _Process.__init__

    def note(self: _Process) -> None:
        begin(self)
        begun.append(self)

    monkeypatch.setattr(_Process, "__init__", note)

    async def steps() -> None:
        converter = Converter()
        for _ in range(3):
            assert (await converter.to_markdown("<i>a</i>", "https://a.example/")).text == "*a*\n"
        assert len(begun) == 1
        begun[0]._process.kill()
        assert (await converter.to_markdown("<i>b</i>", "https://a.example/")).text == "*b*\n"
        assert len(begun) == 2

    asyncio.run(steps())


def test_there_are_two_processes_at_most_and_they_end_with_their_converter():
    async def steps() -> list[_Process]:
        converter = Converter()
        await asyncio.gather(*(converter.to_markdown("<i>a</i>", "https://a.example/") for _ in range(8)))
        idle = list(converter._idle)
        assert all(process.is_alive for process in idle)
        converter.close()
        return idle

    idle = asyncio.run(steps())
    assert 1 <= len(idle) <= 2
    assert not any(process.is_alive for process in idle)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are read where Linux tells them")
def test_a_process_has_little_memory_no_files_and_nothing_of_our_environment(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "canary-in-the-environment")

    async def steps() -> tuple[int, bytes]:
        converter = Converter()
        await converter.to_markdown("<i>a</i>", "https://a.example/")
        number = converter._idle[0]._process.pid
        with open(f"/proc/{number}/environ", "rb") as file:  # noqa: ASYNC230, PTH123  nothing that waits
            environment = file.read()
        limits = [resource.prlimit(number, limit)[0] for limit in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
        assert limits == [1 << 30, 0]
        return number, environment

    _, environment = asyncio.run(steps())
    assert b"canary" not in environment


def test_without_the_extra_the_error_contains_advice(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = one_page(reply("<html>x"))
    assert result.failed
    assert "install dragoman[web]" in text_of(result)
    assert not one_page(reply("x", "text/plain")).failed


async def drip(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silent(_: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


async def endless(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def huge_head(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for at in range(2000):
        writer.write(f"x-{at}: {'y' * 1000}\r\n".encode())
        await writer.drain()


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", "content-type: text/plain", *lines, "", ""]).encode()


def bomb(size: int) -> Iterator[bytes]:
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(size >> 20):
        yield press.compress(bytes(1 << 20))
    yield press.flush()


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (drip, "within 0.5 seconds"),
        (silent, "within 0.5 seconds"),
        (endless, "larger than 1000000 bytes"),
        (huge_head, "reached"),
        (head("content-length: 999999999999"), "larger than 1000000 bytes"),
        (head("content-encoding: gzip") + b"".join(bomb(60 << 20)), "larger than 1000000 bytes"),
    ],
    ids=["dripping", "silent", "endless", "huge-head", "length", "bomb"],
)
def test_a_hostile_server_is_left(say, why):
    gc.collect()
    tracemalloc.start()
    try:
        result = one_page(say, settings={"seconds": 0.5, "max_bytes": 1_000_000})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.failed
    assert why in text_of(result)
    assert peak < 12 << 20


def test_a_page_with_too_much_html_is_marked_as_incomplete():
    page = "<p>first</p>" + "<!-- " + "x" * (2 << 20) + "--><p>last</p>"
    result = one_page(reply(page))
    assert "first" in text_of(result)
    assert "last\n" not in text_of(result)
    assert "too long to be read to its end" in text_of(result)


def test_only_the_start_of_a_very_long_text_is_read():
    result = one_page(reply("x" * 2_000_001, "text/plain"), start=1_999_990)
    assert "characters 1999990 to 2000000 of 2000000" in text_of(result)
    assert "too long to be read to its end" in text_of(result)


def test_many_pages_at_once_are_all_read():
    async def steps() -> list[ToolResult]:
        async with listen(reply("<h1>one of many</h1>")) as listener:
            place = f"127.0.0.1:{listener.port}"
            web = Web(Settings(private=(place,)))
            return await asyncio.gather(*(call_web_fetch(web, f"http://{place}/{at}") for at in range(40)))

    output = asyncio.run(steps())
    assert all("# one of many" in text_of(result) for result in output)


@pytest.mark.parametrize(
    "body", ["\x01" * 5_000_000, "a\r" * 2_500_000, "\u200b" * 1_600_000], ids=["unseen", "lines", "wide"]
)
def test_a_text_that_is_slow_to_clean_is_cleaned_in_another_thread_piece_by_piece(body, monkeypatch):
    cleaned: list[tuple[int, threading.Thread]] = []

    class Pattern:
        search = documents._INVISIBLE.search

        def sub(self, new: str, text: str) -> str:
            cleaned.append((len(text), threading.current_thread()))
            return invisible.sub(new, text)

    invisible = documents._INVISIBLE
    monkeypatch.setattr(documents, "_INVISIBLE", Pattern())
    result = one_page(reply(body, "text/plain"))
    assert not result.failed
    assert max(size for size, _ in cleaned) <= documents._CHUNK
    assert threading.current_thread() not in [thread for _, thread in cleaned]
