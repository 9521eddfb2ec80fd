"""Ask `web_fetch` like a model does, with names and servers of the test's own."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.tools import Executor, Registry
from dragoman.tools.web import Settings, Web, web_fetch

CONNECTED: list[Any] = []
"""Where any socket of this process was connected to."""


def _record_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        CONNECTED.append(arguments[1])


sys.addaudithook(_record_event)


class Names:
    """A resolver with prepared answers, of which the last is repeated."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers) or [[]]
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def call_web_fetch(web: Web, url: str, **more: Any) -> ToolResult:
    """Return the result that a model gets for a URL."""
    executor = Executor(Registry(web_fetch(web=web)))
    return await executor.execute(ToolCall(id="1", name="web_fetch", arguments=json.dumps({"url": url, **more})))


def text_of(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.content if hasattr(part, "text"))


class Listener:
    """A server that sends the same response to every client, and records their requests."""

    def __init__(self, say: "bytes | Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]") -> None:
        self._say = say
        self.connections = 0
        self.heads: list[bytes] = []
        self.port = 0
        self._tasks: set[Any] = set()

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if isinstance(self._say, bytes):
                writer.write(self._say)
                await writer.drain()
            else:
                await self._say(head, writer)
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()

    async def end(self) -> None:
        """Cancel the responses in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)


@asynccontextmanager
async def listen(say: Any, *hosts: str) -> AsyncIterator[Listener]:
    listener = Listener(say)
    server = await asyncio.start_server(listener.hear, hosts or ["127.0.0.1"], 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await listener.end()


def reply(body: bytes | str, kind: str = "text/html", **headers: str) -> bytes:
    """Return a whole reply."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"content-type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, f"content-length: {len(data)}", "", ""]).encode() + data


def build_redirect(to: str, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(["HTTP/1.1 302 Found", f"location: {to}", *lines, "content-length: 0", "", ""]).encode()


def one_page(say: Any, path: str = "/", settings: dict[str, Any] | None = None, **more: Any) -> ToolResult:
    """Ask for a page of a server that says this."""

    async def steps() -> ToolResult:
        async with listen(say) as listener:
            place = f"127.0.0.1:{listener.port}"
            return await call_web_fetch(
                Web(Settings(private=(place,), **(settings or {}))), f"http://{place}{path}", **more
            )

    return asyncio.run(asyncio.wait_for(steps(), 20))
