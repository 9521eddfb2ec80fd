"""Loads the conversation that a request continues, and completes the request with it.

The stored and the new items are joined in the client's own dialect, byte for byte, and the stored settings are added.
After that it is an ordinary request, for any upstream.
"""

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import Request, Tool
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversation_recorder import (
    ConversationRecorder,
    Question,
    build_items,
    build_unavailable_error,
    generate_response_id,
)
from dragoman.gateway.conversations.history import REFERENCE_TYPE, find_continuation, find_new_items
from dragoman.gateway.conversations.options import ConversationOptions, read_body_options, read_header_options
from dragoman.gateway.conversations.repeats import digest_of, find_repeated_turn
from dragoman.gateway.errors import build_body_error
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.lookup import to_snake_case
from dragoman.wire.splice import remove_member, set_member

Members = Mapping[str, Raw]
_TOOLS = "tools"


def find_member(members: Members, name: str) -> Raw | None:
    """Return a field by its name in camelCase or snake_case."""
    found = members.get(name)
    return found if found is not None else members.get(to_snake_case(name))


def merge_settings(sent: Members, stored_settings: bytes, dialect: Dialect, *, has_results: bool) -> dict[str, Raw]:
    """Return the settings for a turn: those in the request, and the stored ones that it does not replace.

    A stored tool choice that forces a call is dropped in the turn with the call's result, because the model would call
    forever. One that names a tool that no longer exists is dropped too.
    """
    turns = dialect.turns
    stored = json.decode_object(stored_settings)
    merged = {name: raw for name in turns.lasting_members if (raw := find_member(sent, name)) is not None}
    for name in turns.lasting_members:
        if name not in merged and name in stored:
            merged[name] = stored[name]
    if (
        turns.choice_member in merged
        and find_member(sent, turns.choice_member) is None
        and not _is_choice_valid(merged, dialect, has_results=has_results)
    ):
        del merged[turns.choice_member]
    return merged


def select_saved_settings(settings: Members, sent: Members, stored_settings: bytes, dialect: Dialect) -> bytes:
    """Return the settings to save. A tool choice that was dropped only for this turn is kept if its tool exists."""
    turns = dialect.turns
    stored = json.decode_object(stored_settings)
    choice = stored.get(turns.choice_member)
    if choice is None or turns.choice_member in settings or find_member(sent, turns.choice_member) is not None:
        return json.encode(dict(settings))
    restored = {**settings, turns.choice_member: choice}
    return json.encode(restored if _is_choice_valid(restored, dialect, has_results=False) else dict(settings))


def _is_choice_valid(settings: Members, dialect: Dialect, *, has_results: bool) -> bool:
    request = _parse_settings(settings, dialect)
    choice = request.tool_choice
    if choice is None:
        return True
    tool_names = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not request.tools or not tool_names.issuperset(choice.names):
        return False
    return not (has_results and (choice.mode == "required" or choice.names))


def _parse_settings(settings: Members, dialect: Dialect) -> Request:
    """Parse settings with the dialect's parser, in a request without other content."""
    body = {name: raw for name, raw in settings.items() if name in {_TOOLS, dialect.turns.choice_member}}
    return dialect.parse_request(Call(json.encode({"model": "", dialect.history: [], **body})))


_STATE_MEMBERS = ("conversation", "previous_response_id", "store", "background")
_ENCRYPTED_REASONING = "reasoning.encrypted_content"
_NULL = Raw(b"null")


def complete_request(
    client_request: ClientRequest,
    members: Mapping[str, Raw],
    items: Sequence[bytes],
    settings: Mapping[str, Raw],
    dialect: Dialect,
) -> ClientRequest:
    """Build the request with all items and settings, without its fields about conversation state."""
    body = set_member(client_request.call.body, dialect.history, b"[" + b",".join(items) + b"]")
    for name, raw in settings.items():
        if find_member(members, name) is None:
            body = set_member(body, name, bytes(raw))
    for name in _STATE_MEMBERS:
        if name in members:
            body = remove_member(body, name)
    call = structs.replace(client_request.call, body=body)
    native = structs.replace(call, body=_disable_storage(body, members)) if dialect.turns.has_store_member else None
    return structs.replace(client_request, call=call, native=native, has_stored_history=True)


def _disable_storage(body: bytes, members: Mapping[str, Raw]) -> bytes:
    """Make an upstream of the same dialect store nothing and return its encrypted reasoning, which is saved here."""
    include = members.get("include", _NULL)
    listed = [] if include == _NULL else json.decode_array(include)
    if _ENCRYPTED_REASONING not in map(json.peek, listed):
        body = set_member(body, "include", json.encode([*listed, _ENCRYPTED_REASONING]))
    return set_member(body, "store", b"false")


def build_echo(options: ConversationOptions, dialect: Dialect) -> dict[str, bytes]:
    """Return the fields of a reply that describe its conversation, if the dialect or the path has any."""
    if not dialect.turns.has_store_member:
        return {"conversation": json.encode(options.conversation)} if options.echoes_conversation else {}
    echo = {"id": json.encode(generate_response_id())} if options.is_named else {}
    echo["store"] = json.encode(options.is_named)
    if options.is_background:
        echo["background"] = b"true"
    if options.previous:
        echo["previous_response_id"] = json.encode(options.previous)
    if options.conversation:
        echo["conversation"] = json.encode({"id": options.conversation})
    return echo


class LoadedRequest(Struct, frozen=True, kw_only=True):
    """A completed request, and how its reply is saved."""

    client_request: ClientRequest
    question: Question
    again: Turn | None = None
    """The earlier turn that this request repeats; its reply is sent again."""


async def load_request(
    store: Store, client_request: ClientRequest, members: Mapping[str, Raw], options: ConversationOptions
) -> LoadedRequest:
    """Complete a request; raises `Problem` if what it continues is missing or differs from the client's history."""
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
    continuation = await find_continuation(store, options, options.owner, client_request.dialect)
    new_items = await find_new_items(store, members.get(dialect.history), continuation, options, dialect)
    history = continuation.history
    settings = merge_settings(members, history.settings, dialect, has_results=new_items.has_results)
    earlier_ids = frozenset([item.id for item in history.items])
    digest = digest_of(client_request.call.model, new_items.items, {**members, **settings}, dialect.history)
    turn = Turn(
        owner=options.owner,
        dialect=client_request.dialect,
        parent=history.last.key if history.last is not None else "",
        conversation=continuation.conversation.id if continuation.conversation is not None else "",
        model=client_request.call.model,
        items=build_items(new_items.items, earlier_ids),
        settings=select_saved_settings(settings, members, history.settings, dialect),
        calls=new_items.calls,
        digest=digest,
        attempt=options.attempt,
    )
    question = Question(
        turn=turn,
        conversation=continuation.conversation,
        earlier_ids=earlier_ids,
        is_saved=options.is_saved,
        is_named=options.is_named,
        is_background=options.is_background,
        members=build_echo(options, dialect),
        reply_member=dialect.turns.reply_member,
    )
    return LoadedRequest(
        client_request=complete_request(
            client_request, members, [*new_items.earlier_items, *new_items.items], settings, dialect
        ),
        question=question,
        again=await find_repeated_turn(store, continuation, new_items, options, digest),
    )


class ConversationLoader:
    """Completes requests that continue from stored turns, or whose reply is to be stored."""

    def __init__(self, store: Store, *, keeps_responses: bool = True) -> None:
        self.store = store
        self._keeps_responses = keeps_responses

    def read_options(self, client_request: ClientRequest, headers: Mapping[str, str]) -> ConversationOptions | None:
        """Read the options in the headers; None if a request does not use the store."""
        options = read_header_options(headers)
        return options if options.conversation or self._is_stateful(dialect_named(client_request.dialect)) else None

    def _is_stateful(self, dialect: Dialect) -> bool:
        """Return whether requests of a dialect control storage themselves, and the gateway stores their replies."""
        return dialect.turns.has_store_member and self._keeps_responses

    async def load(self, client_request: ClientRequest, options: ConversationOptions) -> LoadedRequest | None:
        """Complete a request; None if it does not use the store."""
        dialect = dialect_named(client_request.dialect)
        is_stateful = self._is_stateful(dialect)
        members = _decode_members(client_request.call.body)
        if is_stateful:
            options = read_body_options(members, options)
        if not (options.is_saved or options.previous or (is_stateful and REFERENCE_TYPE in client_request.call.body)):
            return None
        if client_request.is_large:
            _require_few_items(members, dialect)
        if dialect.unwrap is not None and dialect.unwrap(client_request.call) is not None:
            raise Problem(
                "unsupported", "a Code Assist request cannot be part of a stored conversation; use the Gemini API"
            )
        return await load_request(
            self.store, client_request, members, structs.replace(options, owner=client_request.owner)
        )

    def build_recorder(self, loaded: LoadedRequest) -> ConversationRecorder:
        """Return the recorder for the reply to a loaded request."""
        return ConversationRecorder(self.store, loaded.question)


_MOST_ITEMS = 10_000
"""Items in one request of a stored conversation."""
_MOST_COLONS = 250_000
"""Colons in them: their members, and those of JSON in texts."""


def _require_few_items(members: Mapping[str, Raw], dialect: Dialect) -> None:
    """Raise a `Problem` for a history that cannot be stored at once without delaying other requests."""
    history = bytes(members.get(dialect.history, _NULL))
    count = len(json.decode_array(history)) if json.first_byte(history) == b"[" else 0
    reason = f"{count} items cannot be stored in one request; the limit is {_MOST_ITEMS}"
    if count <= _MOST_ITEMS:
        if (colons := history.count(b":")) <= _MOST_COLONS:
            return
        reason = f"items with {colons} colons cannot be stored in one request; the limit is {_MOST_COLONS}"
    hint = ' (set "store" to false)' if dialect.turns.has_store_member else ""
    raise Problem("invalid_request", reason + hint, where=f"/{dialect.history}")


def _decode_members(body: bytes) -> dict[str, Raw]:
    try:
        return json.decode_object(body)
    except json.Malformed as error:
        raise build_body_error(error) from None
