"""What a request continues from, and what is new in it.

A client may send its history again, whole or from its last answer on. Clients write the same thing in many ways: they
leave out fields that they do not know, reasoning, and ids. So histories are compared by content: texts by their role,
calls by id, name and arguments, results by call and content.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import Raw, Struct, structs

from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.dialects.record import Call, Dialect
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.conversations.recorder import find_or_generate_id
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, History
from dragoman.wire import json

ContentKey = tuple[str, str, Any]
"""Role, kind, and what is said."""


class HistoryMatch(Struct, frozen=True):
    """Where what is new begins among the messages a client sent."""

    first_new: int
    is_repeat: bool = False
    """There is nothing new: the client asks again what was answered last."""
    new_systems: int = 0
    """How many messages at the head say anew who the model is, in place of what is kept there."""


class _KeyedContent(Struct, frozen=True):
    """A saying, and the messages it stands in: some clients keep a text in the pieces it was streamed in."""

    key: ContentKey
    first: int
    last: int


def match_history(
    sent: Sequence[Message], stored: Sequence[Message], last_turn_size: int, name: str, *, may_differ: bool = False
) -> HistoryMatch:
    """Return where the new messages begin; `of_last` of the kept ones are of the last turn, given and said.

    A history that the client tells otherwise than it was is a conflict, unless it may: then all of it is new.
    """
    if not stored:
        return HistoryMatch(0)
    head, kept_head = count_leading_systems(sent), count_leading_systems(stored)
    systems = head if _list_content_keys(sent[:head]) != _list_content_keys(stored[:kept_head]) else 0
    told, known = _key_contents(sent[head:]), _list_content_keys(stored[kept_head:])
    said = [one.key for one in told]
    for length in range(min(len(said), len(known)), 0, -1):
        is_whole = length == len(known)
        if said[:length] == known[-length:] and (is_whole or known[-length][0] == "assistant"):
            begins = told[length - 1].last + 1
            if length < len(told) and told[length].first >= begins:
                return HistoryMatch(head + begins + _count_empty(sent[head + begins :]), new_systems=systems)
    before = _list_content_keys(stored[kept_head : len(stored) - last_turn_size])
    asked = [saying for saying in known[len(before) :] if saying[0] != "assistant"]
    if before and said == [*before, *asked]:
        return HistoryMatch(len(sent), is_repeat=True)
    if any(role == "assistant" for role, _, _ in said):
        if may_differ:
            return HistoryMatch(0)
        words = f"the conversation {name!r} has another history: send what is new, or all of it as it was"
        raise Problem("conflict", words, code="conversation_diverged")
    return HistoryMatch(head, new_systems=systems)


def _count_empty(messages: Sequence[Message]) -> int:
    """Return how many messages of the model say nothing more: the end of a stream, kept as a piece of its own."""
    for at, message in enumerate(messages):
        if message.role != "assistant":
            return at
        if _list_content_keys([message]):
            break
    return 0


def count_leading_systems(messages: Sequence[Message]) -> int:
    """Return how many messages at the head say who the model is."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def _list_content_keys(messages: Sequence[Message]) -> list[ContentKey]:
    return [told.key for told in _key_contents(messages)]


def _key_contents(messages: Sequence[Message]) -> list[_KeyedContent]:
    """Return what messages say; texts of one side that follow each other are one."""
    told: list[_KeyedContent] = []
    for at, message in enumerate(messages):
        for part in message.parts:
            for saying in _build_content_keys(message.role, part):
                before = told[-1] if told else None
                if before is not None and before.key[:2] == saying[:2] == (message.role, "text"):
                    told[-1] = _KeyedContent((*saying[:2], before.key[2] + saying[2]), before.first, at)
                else:
                    told.append(_KeyedContent(saying, at, at))
    return told


def _build_content_keys(role: str, part: AnyPart) -> list[ContentKey]:
    match part:
        case Text(text=text) | Refusal(text=text):
            return [(role, "text", text)] if text else []
        case ToolCall():
            return [(role, "call", (part.id, part.name, _decode_value(part.arguments)))]
        case ToolResult():
            content = [(kind, said) for item in part.content for _, kind, said in _build_content_keys(role, item)]
            return [(role, "result", (part.call_id, content))]
        case Data(json=raw):
            return [(role, "data", _decode_value(raw))]
        case Media():
            return [(role, "media", part.source)]
        case Opaque():
            return [(role, "opaque", _decode_value(part.raw))]
        case Reasoning():
            return []
        case _:
            assert_never(part)


def _decode_value(text: str | bytes) -> Any:
    return json.decode(text) if json.is_json(text) else text


REFERENCE_TYPE = b'"item_reference"'
_IN_PROGRESS = "in_progress"
_MAX_REFERENCE = 512


class Continuation(Struct, frozen=True):
    """What was said before."""

    conversation: Conversation | None
    """The conversation as it is now; one that is not kept yet has no revision."""
    history: History


class NewItems(Struct, frozen=True):
    """What is new."""

    earlier_items: Sequence[bytes]
    """What was said before, as far as it holds."""
    items: Sequence[bytes]
    messages: Sequence[Message]
    is_repeat: bool
    """Nothing is: the client asks again what was answered last."""
    has_results: bool

    @property
    def calls(self) -> dict[str, str]:
        """The calls in it, which a client brings that had them elsewhere."""
        parts = (part for message in self.messages for part in message.parts)
        return {part.id: part.name for part in parts if isinstance(part, ToolCall)}


async def find_continuation(store: Store, options: ConversationOptions, owner: str, dialect: str) -> Continuation:
    """Find what a request goes on from, or raise the `Problem` that it is not there."""
    if options.previous:
        return Continuation(None, await _load_history_of(store, options.previous, owner))
    if not options.conversation:
        return Continuation(None, History())
    found = await store.load_conversation(owner, options.conversation)
    if found is None:
        return Continuation(Conversation(owner=owner, id=options.conversation, dialect=dialect), History())
    conversation, history = found
    if conversation.dialect != dialect and history.items:
        words = f"the conversation {conversation.id!r} was begun in {conversation.dialect}: go on with it there"
        raise Problem("conflict", words, code="conversation_diverged")
    return Continuation(structs.replace(conversation, dialect=dialect), history)


async def _load_history_of(store: Store, name: str, owner: str) -> History:
    turn = await store.find_turn(owner, name)
    where = "/previous_response_id"
    if turn is None:
        words = f"Previous response with id '{name}' not found."
        raise Problem("invalid_request", words, where=where, code="previous_response_not_found")
    if turn.status == _IN_PROGRESS:
        raise Problem("invalid_request", f"Response with id '{name}' is still in progress.", where=where)
    return await store.load_history(owner, turn)


async def find_new_items(
    store: Store, raw: Raw | None, continuation: Continuation, options: ConversationOptions, dialect: Dialect
) -> NewItems:
    """Find what is new among the items a client sent."""
    history = continuation.history
    sent = await _resolve_references(store, parse_items(raw, dialect), history, options.owner)
    messages = parse_messages(sent, dialect)
    bodies = [item.body for item in history.items]
    new = HistoryMatch(0)
    if options.conversation and history.last is not None:
        kept = parse_messages(bodies, dialect)
        of_last = len(parse_messages([item.body for item in history.last.items], dialect))
        new = match_history(messages, kept, of_last, options.conversation, may_differ=not options.may_resend_history)
        if new.new_systems:
            bodies = [*sent[: new.new_systems], *bodies[count_leading_systems(kept) :]]
    news = messages[new.first_new :]
    has_results = _has_results(news, history.calls, new.first_new)
    return NewItems(bodies, sent[new.first_new :], news, new.is_repeat, has_results)


def parse_items(raw: Raw | None, dialect: Dialect) -> list[bytes]:
    """Return the items of a history, which may be one alone, or a plain string."""
    if raw is None:
        return []
    match json.first_byte(raw):
        case b"[":
            return [bytes(item) for item in json.decode_array(raw)]
        case b'"':
            return [dialect.turns.render_user_item(bytes(raw))]
        case b"{":
            return [bytes(raw)]
        case b"n":
            return []
        case _:
            words = f"{dialect.history} must be a string or a list"
            raise Problem("invalid_request", words, where=f"/{dialect.history}")


def parse_messages(items: Sequence[bytes], dialect: Dialect) -> tuple[Message, ...]:
    """Read items as the dialect does, in a request that says nothing else."""
    if not items:
        return ()
    body = b'{"model":"","' + dialect.history.encode() + b'":[' + b",".join(items) + b"]}"
    return dialect.parse_request(Call(body)).messages


async def _resolve_references(store: Store, items: list[bytes], history: History, owner: str) -> list[bytes]:
    """Put items in the place of references to them."""
    wanted = {at: find_or_generate_id(body) for at, body in enumerate(items) if _is_reference(body)}
    if not wanted:
        return items
    found = {item.id: item.body for item in history.items}
    found |= await store.find_items(owner, [name for name in wanted.values() if name not in found])
    followed = list(items)
    for at, name in wanted.items():
        if name not in found:
            raise Problem("not_found", f"Item with id '{name}' not found.", where=f"/input/{at}/id")
        followed[at] = found[name]
    return followed


def _is_reference(body: bytes) -> bool:
    """Tell whether an item only names another, with its type or without."""
    if REFERENCE_TYPE in body:
        return json.decode(body).get("type") == "item_reference"
    return len(body) < _MAX_REFERENCE and json.is_object(body) and set(json.decode_object(body)) == {"id"}


def _has_results(new_messages: Sequence[Message], calls: Mapping[str, str], first_new: int) -> bool:
    """Tell whether there are results among what is new; each must be for a call that was made."""
    known, names = set(calls), set(calls.values())
    brings = False
    for at, message in enumerate(new_messages, first_new):
        for part in message.parts:
            if isinstance(part, ToolCall):
                known.add(part.id)
                names.add(part.name)
            elif isinstance(part, ToolResult):
                if part.call_id not in known and (part.call_id or part.name not in names):
                    raise _build_orphan_error(part, at)
                brings = True
    return brings


def _build_orphan_error(result: ToolResult, at: int) -> Problem:
    words = f"No tool call found for the tool output with call_id {result.call_id or result.name}."
    where = f"/{result.where.split('/')[1]}/{at}" if result.where else ""
    return Problem("invalid_request", words, where=where, code="invalid_tool_call")
