"""Where requests that have to do with kept conversations are opened, and their answers kept."""

from msgspec import Raw, structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, malformed_body
from dragoman.gateway.sessions.before import REFERENCE
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.sessions.opening import Opened, open_request
from dragoman.gateway.sessions.wanted import Wanted, asked_by_body, asked_by_headers
from dragoman.http.message import Request
from dragoman.sessions.store import Store
from dragoman.wire import json


class Desk:
    """Opens requests that go on from what is kept, or whose answer is to be kept."""

    def __init__(self, store: Store, *, keeps_responses: bool = True) -> None:
        self.store = store
        self._keeps_responses = keeps_responses

    def wanted(self, ask: ClientRequest, request: Request) -> Wanted | None:
        """Return what the headers ask for; None if a request has nothing to do with what is kept."""
        wanted = asked_by_headers(request.named)
        return wanted if wanted.conversation or self._states(dialect_named(ask.dialect)) else None

    def _states(self, dialect: Dialect) -> bool:
        """Tell whether requests of a dialect say themselves what is to be kept, and we keep it."""
        return dialect.turns.keeps and self._keeps_responses

    async def open(self, ask: ClientRequest, wanted: Wanted) -> Opened | None:
        """Make a request whole; None for one that has nothing to do with what is kept."""
        dialect = dialect_named(ask.dialect)
        states = self._states(dialect)
        members = _members(ask.call.body)
        if states:
            wanted = asked_by_body(members, wanted)
        if not (wanted.keeps or wanted.previous or (states and REFERENCE in ask.call.body)):
            return None
        if dialect.unwrap is not None and dialect.unwrap(ask.call) is not None:
            raise Problem("unsupported", "a request in an envelope cannot be part of a kept conversation")
        return await open_request(self.store, ask, members, structs.replace(wanted, owner=ask.owner))

    def keeper(self, opened: Opened) -> Keeper:
        """Return what keeps the answer to an opened request."""
        return Keeper(self.store, opened.question)


def _members(body: bytes) -> dict[str, Raw]:
    try:
        return json.decode_object(body)
    except json.Malformed as error:
        raise malformed_body(error) from None
