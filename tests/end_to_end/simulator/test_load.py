"""Many streams at once, from one process on one core."""

import asyncio
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import Any

import pytest

STREAMS = 1000
SERVER = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from dragoman.cli import main
raise SystemExit(main(sys.argv[1:]))
"""
BODY = json.dumps(
    {"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "Say hello to a thousand people."}]}
).encode()
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: simulator\r\nauthorization: Bearer k\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


@contextmanager
def simulator(*options: str) -> Any:
    """A simulator in a process of its own, on one core; yields its port and the process."""
    command = [sys.executable, "-c", SERVER, "simulate", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield int(re.search(r":(\d+) ", process.stdout.readline())[1]), process
        finally:
            process.terminate()


async def read_stream(port: int, begun: asyncio.Barrier) -> bytes:
    """Read one stream; none continues before all have started."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    first = await reader.readuntil(b"data: ")
    await begun.wait()
    rest = await reader.read()
    writer.close()
    return first + rest


async def all_streams(port: int) -> list[bytes]:
    begun = asyncio.Barrier(STREAMS)
    async with asyncio.timeout(120):
        return await asyncio.gather(*(read_stream(port, begun) for _ in range(STREAMS)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be held to one core here")
def test_a_thousand_streams_at_once_come_whole_from_one_core():
    with simulator("--chunk", "4", "--delay", "0.05") as (port, process):
        result = asyncio.run(all_streams(port))
        assert {stream.partition(b"\r\n")[0] for stream in result} == {b"HTTP/1.1 200 OK"}
        assert all(stream.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for stream in result)
        process.terminate()
        assert (process.wait(10), process.stderr.read()) == (0, "")
