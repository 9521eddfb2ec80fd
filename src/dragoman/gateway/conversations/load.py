"""Load the conversation that a request continues, and complete the request with it.

The stored items and the new ones are joined in the client's own dialect, byte for byte, and the settings in force are
added. From there on it is a request like any other, for any upstream.
"""

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import Request, Tool
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversations.history import REFERENCE, find_before, find_said
from dragoman.gateway.conversations.options import ConversationOptions, asked_by_body, asked_by_headers
from dragoman.gateway.conversations.recorder import Keeper, Question, fresh_response, item_id, unavailable
from dragoman.gateway.conversations.repeats import digest_of, find_repeated
from dragoman.gateway.errors import malformed_body
from dragoman.sessions.store import Store
from dragoman.sessions.values import Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.splice import removed, spliced

Members = Mapping[str, Raw]
_TOOLS = "tools"


def member(members: Members, name: str) -> Raw | None:
    """Return a member by its name, which may be written in snake_case too."""
    found = members.get(name)
    return found if found is not None else members.get(_snake(name))


def in_force(sent: Members, kept: bytes, dialect: Dialect, *, has_results: bool) -> dict[str, Raw]:
    """Return the settings that hold for a turn: those it brings, and the kept ones that it does not replace.

    A kept choice that forces a call is not forced again on the turn that brings the call's result: that would never
    end. Neither is one that names a tool which is no longer there.
    """
    turns = dialect.turns
    stored = json.decode_object(kept)
    held = {name: raw for name in turns.settings if (raw := member(sent, name)) is not None}
    for name in turns.settings:
        if name not in held and name in stored:
            held[name] = stored[name]
    if (
        turns.choice in held
        and member(sent, turns.choice) is None
        and not _still_holds(held, dialect, has_results=has_results)
    ):
        del held[turns.choice]
    return held


def lasting(held: Members, sent: Members, kept: bytes, dialect: Dialect) -> bytes:
    """Return the settings to be kept: a choice that was only left out for this turn stays, its tool permitting."""
    turns = dialect.turns
    stored = json.decode_object(kept)
    choice = stored.get(turns.choice)
    if choice is None or turns.choice in held or member(sent, turns.choice) is not None:
        return json.encode(dict(held))
    again = {**held, turns.choice: choice}
    return json.encode(again if _still_holds(again, dialect, has_results=False) else dict(held))


def _still_holds(held: Members, dialect: Dialect, *, has_results: bool) -> bool:
    request = _read(held, dialect)
    choice = request.tool_choice
    if choice is None:
        return True
    named = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not request.tools or not named.issuperset(choice.names):
        return False
    return not (has_results and (choice.mode == "required" or choice.names))


def _read(held: Members, dialect: Dialect) -> Request:
    """Read settings as the dialect does, in a request that says nothing else."""
    body = {name: raw for name, raw in held.items() if name in {_TOOLS, dialect.turns.choice}}
    return dialect.parse_request(Call(json.encode({"model": "", dialect.history: [], **body})))


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


_STATE = ("conversation", "previous_response_id", "store", "background")
_ENCRYPTED = "reasoning.encrypted_content"


def made_whole(
    ask: ClientRequest, members: Mapping[str, Raw], items: Sequence[bytes], held: Mapping[str, Raw], dialect: Dialect
) -> ClientRequest:
    """Write the request with all items and the settings that hold, and without what is about the state."""
    body = spliced(ask.call.body, dialect.history, b"[" + b",".join(items) + b"]")
    for name, raw in held.items():
        if member(members, name) is None:
            body = spliced(body, name, bytes(raw))
    for name in _STATE:
        if name in members:
            body = removed(body, name)
    call = structs.replace(ask.call, body=body)
    native = structs.replace(call, body=_unstored(body, members)) if dialect.turns.keeps else None
    return structs.replace(ask, call=call, native=native, is_kept=True)


def _unstored(body: bytes, members: Mapping[str, Raw]) -> bytes:
    """ClientRequest an upstream of the same dialect to keep nothing, and to give us its thoughts to keep."""
    include: list[str] = (json.decode(members["include"]) if "include" in members else None) or []
    if _ENCRYPTED not in include:
        body = spliced(body, "include", json.encode([*include, _ENCRYPTED]))
    return spliced(body, "store", b"false")


def echoed(wanted: ConversationOptions, dialect: Dialect) -> dict[str, bytes]:
    """Return what the answer says of its conversation, where the dialect or the path has a place for that."""
    if not dialect.turns.keeps:
        return {"conversation": json.encode(wanted.conversation)} if wanted.is_told else {}
    told = {"id": json.encode(fresh_response())} if wanted.is_named else {}
    told["store"] = json.encode(wanted.is_named)
    if wanted.is_background:
        told["background"] = b"true"
    if wanted.previous:
        told["previous_response_id"] = json.encode(wanted.previous)
    if wanted.conversation:
        told["conversation"] = json.encode({"id": wanted.conversation})
    return told


class LoadedRequest(Struct, frozen=True, kw_only=True):
    """A request made whole, and what is to be kept of it."""

    ask: ClientRequest
    question: Question
    again: Turn | None = None
    """The turn that answered the same question before: it is not asked twice."""


async def open_request(
    store: Store, ask: ClientRequest, members: Mapping[str, Raw], wanted: ConversationOptions
) -> LoadedRequest:
    """Make a request whole; a `Problem` if what it goes on from is not there, or is not as the client thinks."""
    try:
        return await _opened(store, ask, members, wanted)
    except Unavailable:
        raise unavailable() from None
    except json.Malformed as error:
        raise malformed_body(error) from None


async def _opened(
    store: Store, ask: ClientRequest, members: Mapping[str, Raw], wanted: ConversationOptions
) -> LoadedRequest:
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
    return LoadedRequest(
        ask=made_whole(ask, members, [*said.before, *said.items], held, dialect),
        question=question,
        again=await find_repeated(store, before, said, wanted, digest),
    )


class ConversationLoader:
    """Opens requests that go on from what is kept, or whose answer is to be kept."""

    def __init__(self, store: Store, *, keeps_responses: bool = True) -> None:
        self.store = store
        self._keeps_responses = keeps_responses

    def wanted(self, ask: ClientRequest, headers: Mapping[str, str]) -> ConversationOptions | None:
        """Return what the headers ask for; None if a request has nothing to do with what is kept."""
        wanted = asked_by_headers(headers)
        return wanted if wanted.conversation or self._states(dialect_named(ask.dialect)) else None

    def _states(self, dialect: Dialect) -> bool:
        """Tell whether requests of a dialect say themselves what is to be kept, and we keep it."""
        return dialect.turns.keeps and self._keeps_responses

    async def open(self, ask: ClientRequest, wanted: ConversationOptions) -> LoadedRequest | None:
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

    def keeper(self, opened: LoadedRequest) -> Keeper:
        """Return what keeps the answer to an opened request."""
        return Keeper(self.store, opened.question)


def _members(body: bytes) -> dict[str, Raw]:
    try:
        return json.decode_object(body)
    except json.Malformed as error:
        raise malformed_body(error) from None
