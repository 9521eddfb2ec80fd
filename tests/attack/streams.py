"""Very many open streams: their memory."""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Generator

from attack.gateway import Gateway, Measure, render_head, run_gateway

_MOST = 10_000
_MOST_MEMORY = 600
"""MB for the gateway with that many streams."""
_SPARE_FILES = 200
_AT_ONCE = 50
_PATIENCE = 240
_EVENT = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}],
}
_EVENTS = f"data: {json.dumps(_EVENT)}\n\n" * 20
_UPSTREAM = f"""
import asyncio
class Stream(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write({_EVENTS!r}.join(["HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n\\r\\n", ""]).encode())
async def main():
    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
_CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
_REQUESTS = {
    "passed through": ("/v1/chat/completions", _CHAT),
    "translated": ("/v1/messages", {**_CHAT, "max_tokens": 9}),
}


@contextlib.contextmanager
def run_upstream() -> Generator[int]:
    """Run an upstream, in a process of its own, whose streams begin and never end; yield its port."""
    with subprocess.Popen([sys.executable, "-c", _UPSTREAM], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


class Client(asyncio.Protocol):
    """A client that reads its stream; `begun` gets True at the first bytes of one, False if it is rejected."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.begun.done():
            self.begun.set_result(data.startswith(b"HTTP/1.1 200"))


async def open_streams(gateway: Gateway, request: bytes, count: int) -> int:
    """Open streams, and once more those that are rejected because the machine is busy; return the memory with them."""
    loop, streams = asyncio.get_running_loop(), list[Client]()

    async def open_stream() -> None:
        _, client = await loop.create_connection(lambda: Client(request), *gateway.address)
        if await client.begun:
            streams.append(client)
        else:
            client.transport.abort()

    async with asyncio.timeout(_PATIENCE):
        while len(streams) < count:
            before = len(streams)
            await asyncio.gather(*(open_stream() for _ in range(min(_AT_ONCE, count - before))))
            await asyncio.sleep(0.5 if len(streams) == before else 0)
    await asyncio.sleep(1)
    memory = gateway.memory
    for client in streams:
        client.transport.abort()
    await asyncio.sleep(1)
    return memory


def attack(scale: int) -> list[Measure]:
    """Open up to 10,000 streams, as far as the limit of open files allows, and compute the memory for 10,000."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    count, measures = min(2500 * scale, _MOST, (files - _SPARE_FILES) // 2), list[Measure]()
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    for name, (path, members) in _REQUESTS.items():
        body = json.dumps(members).encode()
        with run_upstream() as port:
            tables = f'[upstreams.upstream]\nkind = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
            with run_gateway(tables=tables, models='m = "upstream/m"') as gateway:
                request, before = render_head(gateway, len(body), path) + body, gateway.memory
                memory = asyncio.run(open_streams(gateway, request, count))
        each = (memory - before) / count
        whole = (before + each * _MOST) / 1e6
        measures.append(
            Measure(f"memory for {_MOST} streams that are {name} ({count} opened)", whole, _MOST_MEMORY, "MB")
        )
    return measures
