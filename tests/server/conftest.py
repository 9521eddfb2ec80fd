"""A gateway over loopback, with simulators behind it."""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec import structs

from dragoman.config import Config, MediaTable, RetriesTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.gateway.record import Record
from dragoman.gateway.search_settings import SearchTable
from dragoman.http.server import run_in_thread
from dragoman.server.runner import running
from dragoman.simulator.runner import Running as Simulated
from dragoman.simulator.runner import in_thread
from dragoman.tools.web.fetch import WebTable


class Gateway:
    """A running gateway, the simulator behind it, and the records that its observers received."""

    def __init__(self, base_url: str, simulator: Simulated, records: list[Record]) -> None:
        self.base_url = base_url
        self.simulator = simulator
        self.records = records
        self._clients = ExitStack()

    def open(self, client: Any) -> Any:
        """Keep a client until the gateway is closed."""
        return self._clients.enter_context(client)

    def wait_for_records(self, count: int) -> list[Record]:
        """Return the records once there are `count`: the last may arrive a moment after its response."""
        deadline = time.monotonic() + 60
        while len(self.records) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.records

    def close(self) -> None:
        """Close every client."""
        self._clients.close()


def upstreams(base_url: str) -> dict[str, UpstreamTable]:
    """Every kind of upstream, played by one simulator."""
    return {
        "gemini": UpstreamTable(kind="gemini", base_url=base_url, api_key="k"),
        "anthropic": UpstreamTable(kind="anthropic", base_url=base_url, api_key="k"),
        "openai": UpstreamTable(kind="openai", base_url=f"{base_url}/v1", api_key="k"),
        "responses": UpstreamTable(kind="openai-responses", base_url=f"{base_url}/v1", api_key="k"),
        "vertex": UpstreamTable(kind="vertex-gemini", base_url=base_url, project="p", access_token="t"),  # noqa: S106
        "vertex-claude": UpstreamTable(kind="vertex-anthropic", base_url=base_url, project="p", access_token="t"),  # noqa: S106
        "assist": UpstreamTable(kind="code-assist", base_url=base_url, access_token="t"),  # noqa: S106
    }


@contextmanager
def run_server_gateway(simulator: Simulated, **server: Any) -> Generator[Gateway]:
    """Run a gateway whose upstream is a simulator."""
    records: list[Record] = []
    models = {
        "gem": ("gemini/gemini-3.8-flash",),
        "claude": ("anthropic/claude-opus-4-8",),
        "gpt": ("openai/gpt-5.2",),
        "resp": ("responses/gpt-5.2",),
        "vgem": ("vertex/gemini-3.8-flash",),
        "vclaude": ("vertex-claude/claude-opus-4-8",),
        "assist": ("assist/gemini-3.8-flash",),
    }
    models |= server.pop("models", {})
    given = server.pop("upstreams", {})
    tables = upstreams(simulator.base_url) | {
        name: structs.replace(table, base_url=table.base_url or simulator.base_url, api_key=table.api_key or "k")
        for name, table in given.items()
    }
    quick = RetriesTable(first_wait=0.01)
    keys = server.pop("keys", ())
    media, web = server.pop("media", MediaTable()), server.pop("web", WebTable())
    agents, tools, servers = server.pop("agents", {}), server.pop("tools", ()), server.pop("servers", {})
    intercept, prices = server.pop("intercept", {}), server.pop("prices", {})
    search = server.pop("search", SearchTable())
    server_sessions, more = server.pop("sessions", None), server.pop("more", {})
    table = ServerTable(**{"listen": "127.0.0.1:0", "retries": quick, **server})
    with ExitStack() as stack:
        sessions = server_sessions or SessionsTable(url=f"sqlite:///{stack.enter_context(TemporaryDirectory())}/s.db")
        config = Config(
            server=table,
            keys=keys,
            upstreams=tables,
            models=models,
            sessions=sessions,
            media=media,
            web=web,
            search=search,
            agents=agents,
            tools=servers,
            intercept=intercept,
            prices=prices,
        )
        yield stack.enter_context(_run(config, simulator, records, tools=tools, **more))


@contextmanager
def _run(config: Config, simulator: Simulated, records: list[Record], **more: Any) -> Generator[Gateway]:
    start = partial(running, config, observers=[records.append], grace=0.5, **more)
    with run_in_thread(start, "gateway") as started:
        gateway = Gateway(started.base_url, simulator, records)
        try:
            yield gateway
        finally:
            gateway.close()


@pytest.fixture(scope="session")
def gateway() -> Generator[Gateway]:
    """A gateway that runs as long as the tests do."""
    with in_thread() as simulator, run_server_gateway(simulator) as running_gateway:
        yield running_gateway


@pytest.fixture
def serve() -> Generator[Callable[..., Gateway]]:
    """Start gateways with settings of their own."""
    with ExitStack() as stack:

        def start(*, simulate: dict[str, Any] | None = None, **server: Any) -> Gateway:
            return stack.enter_context(run_server_gateway(stack.enter_context(in_thread(**(simulate or {}))), **server))

        yield start
