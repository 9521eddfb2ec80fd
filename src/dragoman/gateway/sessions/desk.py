"""Where requests that have to do with kept conversations are opened, and their answers kept."""

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.sessions.forms import FORMS
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.sessions.opening import Opened, Opener
from dragoman.gateway.sessions.wanted import Wanted, asked_by_body, asked_by_headers
from dragoman.http.message import Headers
from dragoman.sessions.store import Store
from dragoman.wire import json

_REFERENCE = b'"item_reference"'


class Desk:
    """Opens requests that go on from what is kept, or whose answer is to be kept."""

    def __init__(self, store: Store, *, keeps_responses: bool = True) -> None:
        self.store = store
        self._opener = Opener(store)
        self._keeps_responses = keeps_responses

    async def open(self, ask: Ask, headers: Headers, owner: str, wanted: Wanted | None = None) -> Opened | None:
        """Make a request whole; None for one that has nothing to do with what is kept."""
        wanted = wanted or asked_by_headers(headers)
        states = FORMS[ask.dialect].keeps and self._keeps_responses
        if not states and not wanted.conversation:
            return None
        members = _members(ask.call.body)
        if states:
            wanted = asked_by_body(members, wanted)
        if not (wanted.keeps or wanted.previous or (states and _REFERENCE in ask.call.body)):
            return None
        unwrap = dialect_named(ask.dialect).unwrap
        if unwrap is not None and unwrap(ask.call) is not None:
            raise Problem("unsupported", "a request in an envelope cannot be part of a kept conversation")
        return await self._opener.open(ask, members, wanted, owner)

    def keeper(self, opened: Opened) -> Keeper:
        """Return what keeps the answer to an opened request."""
        return Keeper(self.store, opened.question)


def _members(body: bytes) -> dict[str, Raw]:
    try:
        return json.decode_object(body)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
