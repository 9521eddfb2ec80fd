"""What an intercepted client lives among in tests: an upstream that notes what it hears, a simulator, a gateway."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.config import Config, ServerTable, SessionsTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.intercept.sessions import InterceptSession, SessionName
from dragoman.intercept.settings import InterceptTable
from dragoman.server.interception import Interception
from dragoman.server.runner import running

if TYPE_CHECKING:
    from dragoman.http.message import Request
    from dragoman.intercept.exchange import InterceptedExchange

Answer = Callable[[Exchange], Awaitable[None]]


class Upstream:
    """A server with prepared answers that records its requests."""

    def __init__(self) -> None:
        self.received: list[Request] = []
        self.answer: Answer = _do_nothing
        self.base_url = ""

    async def handle(self, exchange: Exchange) -> None:
        self.received.append(exchange.request)
        await self.answer(exchange)


async def _do_nothing(exchange: Exchange) -> None:
    await exchange.send(200, {"content-type": "application/json"}, b"{}")


@contextmanager
def upstream() -> Generator[Upstream]:
    """Run such a server."""
    one = Upstream()
    with run_in_thread(partial(listen, one.handle), "upstream") as server:
        one.base_url = server.base_url
        yield one


class Between:
    """An intercepting gateway, and the exchanges that passed through."""

    def __init__(self, base_url: str, interception: Interception) -> None:
        self.base_url = base_url
        self.interception = interception
        self._clients = ExitStack()
        self._made: dict[str, Any] = {}
        self.passed: list[InterceptedExchange] = []
        interception.observers.append(self.passed.append)

    def client(self, make: Callable[..., Any], path: str = "") -> Any:
        """Return an SDK's client of this gateway: one for all who ask, since making one takes long."""
        known = self._made.get(make.__module__)
        if known is None:
            made = make(base_url=self.base_url + path, api_key="any", max_retries=0, timeout=20)
            known = self._made[make.__module__] = self._clients.enter_context(made)
        return known

    def close(self) -> None:
        """Close the clients."""
        self._clients.close()


@contextmanager
def between(base_url: str, folder: Any, **more: Any) -> Generator[Between]:
    """Run a gateway between clients and a server of Google's forms."""
    config = Config(
        server=ServerTable(listen="127.0.0.1:0", log="off", **more.pop("server", {})),
        keys=more.pop("keys", ()),
        upstreams={
            "google": UpstreamTable(kind="gemini", base_url=base_url, api_key="gateways-own"),
            "assist": UpstreamTable(kind="code-assist", base_url=base_url, access_token="gateways-own"),  # noqa: S106
            "vertex": UpstreamTable(kind="vertex-gemini", base_url=base_url, project="p", access_token="gateways-own"),  # noqa: S106
            "claude": UpstreamTable(kind="anthropic", base_url=base_url, api_key="gateways-own"),
        },
        sessions=SessionsTable(url=f"sqlite:///{folder}/s.db"),
        intercept={name: InterceptTable(**table) for name, table in more.pop("intercept", {}).items()},
    )
    with run_in_thread(partial(running, config, grace=0.5), "gateway") as started:
        middle = Between(started.base_url, started.app.interception)
        try:
            yield middle
        finally:
            middle.close()


def until(is_so: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is so, which another thread brings about."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it was never so"
        time.sleep(0.005)


def session_of(middle: Between, entry: str, session: str = "", owner: str = "local") -> InterceptSession | None:
    """Return what is known of a session."""
    return middle.interception.sessions.find(SessionName(owner, entry, session))


def is_awaited(middle: Between, entry: str, session: str = "") -> bool:
    """Return whether a caller waits for a request of the program."""
    found = session_of(middle, entry, session)
    return found is not None and found.turn is not None and found.turn.is_followed and not found.turn.is_over


def start_caller(
    pool: Executor, middle: Between, entry: str, session: str, work: Callable[..., Any], *given: Any
) -> Future[Any]:
    """Start a caller in a thread, and return once it waits for the program."""
    waiting = pool.submit(work, *given)
    until(lambda: is_awaited(middle, entry, session) or waiting.done())
    return waiting


class Gates:
    """An upstream whose answers are held until they are released, each for its own prompt."""

    def __init__(self, server: Upstream, answers: dict[str, tuple[int, bytes, bytes]]) -> None:
        self._answers = answers
        self._gates = {name: asyncio.Event() for name in answers}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.begun: list[str] = []
        server.answer = self._answer

    async def _answer(self, exchange: Exchange) -> None:
        self._loop = asyncio.get_running_loop()
        name = json.loads(exchange.request.body)["contents"][-1]["parts"][0]["text"]
        status, first, last = self._answers[name]
        if first:
            exchange.start(status, {"content-type": "text/event-stream"}, first=first)
        self.begun.append(name)
        await self._gates[name].wait()
        if first:
            await exchange.end(last)
        else:
            await exchange.send(status, {"content-type": "application/json"}, last)

    def open(self, name: str) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._gates[name].set)
