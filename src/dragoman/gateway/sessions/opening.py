"""Make a request whole that goes on from what was kept.

The stored items and the new ones are joined in the client's own dialect, byte for byte, and the settings that hold are
put beside them. From there on it is a request like any other, for any upstream.
"""

from collections.abc import Mapping

from msgspec import Raw, Struct

from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, malformed_body
from dragoman.gateway.sessions.before import find_before, find_said
from dragoman.gateway.sessions.keeping import Question, unavailable
from dragoman.gateway.sessions.naming import item_id
from dragoman.gateway.sessions.repeats import digest_of, find_repeated
from dragoman.gateway.sessions.settings import in_force, lasting
from dragoman.gateway.sessions.wanted import Wanted
from dragoman.gateway.sessions.whole import echoed, made_whole
from dragoman.sessions.store import Store
from dragoman.sessions.values import Item, Turn, Unavailable
from dragoman.wire import json


class Opened(Struct, frozen=True, kw_only=True):
    """A request made whole, and what is to be kept of it."""

    ask: ClientRequest
    question: Question
    again: Turn | None = None
    """The turn that answered the same question before: it is not asked twice."""


async def open_request(store: Store, ask: ClientRequest, members: Mapping[str, Raw], wanted: Wanted) -> Opened:
    """Make a request whole; a `Problem` if what it goes on from is not there, or is not as the client thinks."""
    try:
        return await _opened(store, ask, members, wanted)
    except Unavailable:
        raise unavailable() from None
    except json.Malformed as error:
        raise malformed_body(error) from None


async def _opened(store: Store, ask: ClientRequest, members: Mapping[str, Raw], wanted: Wanted) -> Opened:
    dialect = dialect_named(ask.dialect)
    before = await find_before(store, wanted, wanted.owner, ask.dialect)
    said = await find_said(store, members.get(dialect.history), before, wanted, dialect)
    history = before.history
    held = in_force(members, history.settings, dialect, has_results=said.has_results)
    digest = digest_of(ask.call.model, said.items, {**members, **held}, dialect.history)
    turn = Turn(
        owner=wanted.owner,
        dialect=ask.dialect,
        parent=history.last.key if history.last is not None else "",
        conversation=before.conversation.id if before.conversation is not None else "",
        model=ask.call.model,
        items=tuple(Item(item_id(body), body) for body in said.items),
        settings=lasting(held, members, history.settings, dialect),
        calls=said.calls,
        digest=digest,
        attempt=wanted.attempt,
    )
    question = Question(
        turn=turn,
        conversation=before.conversation,
        keeps=wanted.keeps,
        is_named=wanted.is_named,
        is_background=wanted.is_background,
        members=echoed(wanted, dialect),
        below=dialect.turns.below,
    )
    return Opened(
        ask=made_whole(ask, members, [*said.before, *said.items], held, dialect),
        question=question,
        again=await find_repeated(store, before, said, wanted, digest),
    )
