"""Run a cell of the matrix: an official SDK, the gateway, and a strict simulator as one kind of upstream."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
from msgspec import Struct

from dragoman.simulator.runner import in_thread
from dragoman.simulator.state import Seen
from end_to_end.clients import chat as chat_client
from end_to_end.clients import gemini as gemini_client
from end_to_end.clients import messages as messages_client
from end_to_end.clients import responses as responses_client
from end_to_end.scenarios import Scenario, script
from end_to_end.talk import ReceivedRequest, Reply
from end_to_end.upstreams import chat as chat_upstream
from end_to_end.upstreams import gemini as gemini_upstream
from end_to_end.upstreams import messages as messages_upstream
from end_to_end.upstreams import responses as responses_upstream
from server.conftest import Gateway, run_server_gateway

CLIENTS: dict[str, Any] = {
    "chat": chat_client,
    "responses": responses_client,
    "messages": messages_client,
    "gemini": gemini_client,
}
UPSTREAMS: dict[str, tuple[str, Any]] = {
    "gemini": ("gem", gemini_upstream),
    "vertex-gemini": ("vgem", gemini_upstream),
    "code-assist": ("assist", gemini_upstream),
    "anthropic": ("claude", messages_upstream),
    "vertex-anthropic": ("vclaude", messages_upstream),
    "openai": ("gpt", chat_upstream),
    "openai-responses": ("resp", responses_upstream),
}
"""By kind: the model that leads there, and how to read what arrives."""
MANNERS = {"whole": False, "streamed": True}


class Cell(Struct, frozen=True):
    """What one cell came to; of two turns everything twice."""

    replies: tuple[Reply, ...]
    received: tuple[ReceivedRequest, ...]
    requests: tuple[Seen, ...]
    losses: tuple[tuple[str, ...], ...]
    """The losses as in `/v1/exchanges`."""
    headers: tuple[str, ...]
    """The values of `x-dragoman-losses`."""


class MatrixRun:
    """A gateway, and clients whose exchanges are noted."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._answers: list[httpx2.Response] = []
        self._http = gateway.open(httpx2.Client(event_hooks={"response": [self._answers.append]}))
        self._plain = gateway.open(httpx2.Client())

    def run(self, client: str, upstream: str, scenario: Scenario, *, streamed: bool) -> Cell:
        """Play a scenario."""
        scenario = scenario.select(client)
        self._answers.clear()
        base, seen = self._gateway.base_url, self._gateway.simulator.requests
        before = len(seen)
        model, reader = UPSTREAMS[upstream]
        talk = CLIENTS[client].Client(base, self._http, model, scenario)
        replies = [talk.turn(streamed=streamed)]
        if scenario.results:
            if scenario.forgets and client != reader.NAME:
                # A client of the vendor's own dialect sends back what the vendor requires.
                talk.forget()
            talk.answer(replies[0].calls, scenario.results)
            replies.append(talk.turn(streamed=streamed))
        arrived = [request for request in list(seen)[before:] if "loadCodeAssist" not in request.target]
        headers = [answer.headers for answer in self._answers]
        return Cell(
            tuple(replies),
            tuple(reader.parse_request(json.loads(request.body)) for request in arrived),
            tuple(arrived),
            tuple(self._losses(header["x-dragoman-exchange"]) for header in headers),
            tuple(header.get("x-dragoman-losses", "") for header in headers),
        )

    def _losses(self, exchange: str) -> tuple[str, ...]:
        """Return the losses of an exchange, which may be recorded a moment after its response."""
        url = f"{self._gateway.base_url}/v1/exchanges/{exchange}"
        deadline = time.monotonic() + 20
        while (result := self._plain.get(url)).status_code == 404 and time.monotonic() < deadline:
            time.sleep(0.002)
        return tuple(f"{loss['kind']} {loss['where']}: {loss['what']}" for loss in result.json()["losses"])


@contextmanager
def run_matrix() -> Generator[MatrixRun]:
    """A gateway over a simulator that plays the scenarios."""
    with in_thread(script=script) as simulator, run_server_gateway(simulator) as gateway:
        yield MatrixRun(gateway)
