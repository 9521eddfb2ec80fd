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
from dragoman.gateway.conversations.history import REFERENCE_TYPE, find_continuation, find_new_items
from dragoman.gateway.conversations.options import ConversationOptions, read_body_options, read_header_options
from dragoman.gateway.conversations.recorder import (
    ConversationRecorder,
    Question,
    build_unavailable_error,
    find_or_generate_id,
    generate_response_id,
)
from dragoman.gateway.conversations.repeats import digest_of, find_repeated_turn
from dragoman.gateway.errors import build_body_error
from dragoman.sessions.store import Store
from dragoman.sessions.values import Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.splice import remove_member, set_member

Members = Mapping[str, Raw]
_TOOLS = "tools"


def find_member(members: Members, name: str) -> Raw | None:
    """Return a member by its name, which may be written in snake_case too."""
    found = members.get(name)
    return found if found is not None else members.get(_to_snake_case(name))


def merge_settings(sent: Members, stored_settings: bytes, dialect: Dialect, *, has_results: bool) -> dict[str, Raw]:
    """Return the settings that hold for a turn: those it brings, and the kept ones that it does not replace.

    A kept choice that forces a call is not forced again on the turn that brings the call's result: that would never
    end. Neither is one that names a tool which is no longer there.
    """
    turns = dialect.turns
    stored = json.decode_object(stored_settings)
    held = {name: raw for name in turns.lasting_members if (raw := find_member(sent, name)) is not None}
    for name in turns.lasting_members:
        if name not in held and name in stored:
            held[name] = stored[name]
    if (
        turns.choice_member in held
        and find_member(sent, turns.choice_member) is None
        and not _is_choice_valid(held, dialect, has_results=has_results)
    ):
        del held[turns.choice_member]
    return held


def select_saved_settings(settings: Members, sent: Members, stored_settings: bytes, dialect: Dialect) -> bytes:
    """Return the settings to be kept: a choice that was only left out for this turn stays, its tool permitting."""
    turns = dialect.turns
    stored = json.decode_object(stored_settings)
    choice = stored.get(turns.choice_member)
    if choice is None or turns.choice_member in settings or find_member(sent, turns.choice_member) is not None:
        return json.encode(dict(settings))
    again = {**settings, turns.choice_member: choice}
    return json.encode(again if _is_choice_valid(again, dialect, has_results=False) else dict(settings))


def _is_choice_valid(settings: Members, dialect: Dialect, *, has_results: bool) -> bool:
    request = _parse_settings(settings, dialect)
    choice = request.tool_choice
    if choice is None:
        return True
    named = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not request.tools or not named.issuperset(choice.names):
        return False
    return not (has_results and (choice.mode == "required" or choice.names))


def _parse_settings(settings: Members, dialect: Dialect) -> Request:
    """Read settings as the dialect does, in a request that says nothing else."""
    body = {name: raw for name, raw in settings.items() if name in {_TOOLS, dialect.turns.choice_member}}
    return dialect.parse_request(Call(json.encode({"model": "", dialect.history: [], **body})))


def _to_snake_case(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


_STATE_MEMBERS = ("conversation", "previous_response_id", "store", "background")
_ENCRYPTED_REASONING = "reasoning.encrypted_content"


def complete_request(
    client_request: ClientRequest,
    members: Mapping[str, Raw],
    items: Sequence[bytes],
    settings: Mapping[str, Raw],
    dialect: Dialect,
) -> ClientRequest:
    """Write the request with all items and the settings that hold, and without what is about the state."""
    body = set_member(client_request.call.body, dialect.history, b"[" + b",".join(items) + b"]")
    for name, raw in settings.items():
        if find_member(members, name) is None:
            body = set_member(body, name, bytes(raw))
    for name in _STATE_MEMBERS:
        if name in members:
            body = remove_member(body, name)
    call = structs.replace(client_request.call, body=body)
    native = structs.replace(call, body=_disable_storage(body, members)) if dialect.turns.has_store_member else None
    return structs.replace(client_request, call=call, native=native, is_kept=True)


def _disable_storage(body: bytes, members: Mapping[str, Raw]) -> bytes:
    """ClientRequest an upstream of the same dialect to keep nothing, and to give us its thoughts to keep."""
    include: list[str] = (json.decode(members["include"]) if "include" in members else None) or []
    if _ENCRYPTED_REASONING not in include:
        body = set_member(body, "include", json.encode([*include, _ENCRYPTED_REASONING]))
    return set_member(body, "store", b"false")


def build_echo(options: ConversationOptions, dialect: Dialect) -> dict[str, bytes]:
    """Return what the answer says of its conversation, where the dialect or the path has a place for that."""
    if not dialect.turns.has_store_member:
        return {"conversation": json.encode(options.conversation)} if options.echoes_conversation else {}
    told = {"id": json.encode(generate_response_id())} if options.is_named else {}
    told["store"] = json.encode(options.is_named)
    if options.is_background:
        told["background"] = b"true"
    if options.previous:
        told["previous_response_id"] = json.encode(options.previous)
    if options.conversation:
        told["conversation"] = json.encode({"id": options.conversation})
    return told


class LoadedRequest(Struct, frozen=True, kw_only=True):
    """A request made whole, and what is to be kept of it."""

    ask: ClientRequest
    question: Question
    again: Turn | None = None
    """The turn that answered the same question before: it is not asked twice."""


async def load_request(
    store: Store, client_request: ClientRequest, members: Mapping[str, Raw], options: ConversationOptions
) -> LoadedRequest:
    """Make a request whole; a `Problem` if what it goes on from is not there, or is not as the client thinks."""
    try:
        return await _load_request(store, client_request, members, options)
    except Unavailable:
        raise build_unavailable_error() from None
    except json.Malformed as error:
        raise build_body_error(error) from None


async def _load_request(
    store: Store, client_request: ClientRequest, members: Mapping[str, Raw], options: ConversationOptions
) -> LoadedRequest:
    dialect = dialect_named(client_request.dialect)
    before = await find_continuation(store, options, options.owner, client_request.dialect)
    said = await find_new_items(store, members.get(dialect.history), before, options, dialect)
    history = before.history
    held = merge_settings(members, history.settings, dialect, has_results=said.has_results)
    digest = digest_of(client_request.call.model, said.items, {**members, **held}, dialect.history)
    turn = Turn(
        owner=options.owner,
        dialect=client_request.dialect,
        parent=history.last.key if history.last is not None else "",
        conversation=before.conversation.id if before.conversation is not None else "",
        model=client_request.call.model,
        items=tuple(Item(find_or_generate_id(body), body) for body in said.items),
        settings=select_saved_settings(held, members, history.settings, dialect),
        calls=said.calls,
        digest=digest,
        attempt=options.attempt,
    )
    question = Question(
        turn=turn,
        conversation=before.conversation,
        keeps=options.is_saved,
        is_named=options.is_named,
        is_background=options.is_background,
        members=build_echo(options, dialect),
        below=dialect.turns.reply_member,
    )
    return LoadedRequest(
        ask=complete_request(client_request, members, [*said.earlier_items, *said.items], held, dialect),
        question=question,
        again=await find_repeated_turn(store, before, said, options, digest),
    )


class ConversationLoader:
    """Opens requests that go on from what is kept, or whose answer is to be kept."""

    def __init__(self, store: Store, *, keeps_responses: bool = True) -> None:
        self.store = store
        self._keeps_responses = keeps_responses

    def read_options(self, client_request: ClientRequest, headers: Mapping[str, str]) -> ConversationOptions | None:
        """Return what the headers ask for; None if a request has nothing to do with what is kept."""
        wanted = read_header_options(headers)
        return wanted if wanted.conversation or self._is_stateful(dialect_named(client_request.dialect)) else None

    def _is_stateful(self, dialect: Dialect) -> bool:
        """Tell whether requests of a dialect say themselves what is to be kept, and we keep it."""
        return dialect.turns.has_store_member and self._keeps_responses

    async def load(self, client_request: ClientRequest, options: ConversationOptions) -> LoadedRequest | None:
        """Make a request whole; None for one that has nothing to do with what is kept."""
        dialect = dialect_named(client_request.dialect)
        states = self._is_stateful(dialect)
        members = _decode_members(client_request.call.body)
        if states:
            options = read_body_options(members, options)
        if not (options.is_saved or options.previous or (states and REFERENCE_TYPE in client_request.call.body)):
            return None
        if dialect.unwrap is not None and dialect.unwrap(client_request.call) is not None:
            raise Problem("unsupported", "a request in an envelope cannot be part of a kept conversation")
        return await load_request(
            self.store, client_request, members, structs.replace(options, owner=client_request.owner)
        )

    def build_recorder(self, loaded: LoadedRequest) -> ConversationRecorder:
        """Return what keeps the answer to an opened request."""
        return ConversationRecorder(self.store, loaded.question)


def _decode_members(body: bytes) -> dict[str, Raw]:
    try:
        return json.decode_object(body)
    except json.Malformed as error:
        raise build_body_error(error) from None
