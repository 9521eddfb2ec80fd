"""Finds what a request continues from, and which of its items are new.

A client may send its history again, whole or from its last reply on. Clients write the same items in many ways: they
leave out fields that they do not know, reasoning, and ids. So histories are compared by content: texts by role, calls
by id, name and arguments, results by call and content.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import Raw, Struct, structs

from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, count_leading_systems
from dragoman.dialects.record import Dialect
from dragoman.gateway.conversation_recorder import find_or_generate_id, parse_messages
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, History
from dragoman.wire import json

ContentKey = tuple[str, str, Any]
"""Role, kind and content."""


class HistoryMatch(Struct, frozen=True):
    """Where the new messages start among those that a client sent."""

    first_new: int
    is_repeat: bool = False
    """Whether nothing is new: the client repeats the last request."""
    new_systems: int = 0
    """The number of leading system messages that replace the stored ones; 0 if they are the same."""


class _KeyedContent(Struct, frozen=True):
    """A content key with the first and last message that it is in: some clients store a text in its stream chunks."""

    key: ContentKey
    first: int
    last: int


def match_history(
    sent: Sequence[Message], stored: Sequence[Message], last_turn_size: int, name: str, *, may_differ: bool = False
) -> HistoryMatch:
    """Find the new messages in `sent`; the last `last_turn_size` messages of `stored` are the last turn, both sides.

    Raises a conflict if the client's history differs from the stored one. With `may_differ` all of it is new instead.
    """
    if not stored:
        return HistoryMatch(0)
    head, stored_head = count_leading_systems(sent), count_leading_systems(stored)
    systems = head if _list_content_keys(sent[:head]) != _list_content_keys(stored[:stored_head]) else 0
    sent_contents, stored_keys = _key_contents(sent[head:]), _list_content_keys(stored[stored_head:])
    sent_keys = [content.key for content in sent_contents]
    for length in range(min(len(sent_keys), len(stored_keys)), 0, -1):
        is_whole = length == len(stored_keys)
        if sent_keys[:length] == stored_keys[-length:] and (is_whole or stored_keys[-length][0] == "assistant"):
            start = sent_contents[length - 1].last + 1
            if length < len(sent_contents) and sent_contents[length].first >= start:
                return HistoryMatch(head + start + _count_empty(sent[head + start :]), new_systems=systems)
    earlier = _list_content_keys(stored[stored_head : len(stored) - last_turn_size])
    last_request = [key for key in stored_keys[len(earlier) :] if key[0] != "assistant"]
    if earlier and sent_keys == [*earlier, *last_request]:
        return HistoryMatch(len(sent), is_repeat=True)
    if any(role == "assistant" for role, _, _ in sent_keys):
        if may_differ:
            return HistoryMatch(0)
        message = (
            f"the history differs from the stored conversation {name!r}; send only new items or the unchanged history"
        )
        raise Problem("conflict", message, code="conversation_diverged")
    return HistoryMatch(head, new_systems=systems)


def _count_empty(messages: Sequence[Message]) -> int:
    """Return the number of leading assistant messages without content, such as a stream's end stored on its own."""
    for index, message in enumerate(messages):
        if message.role != "assistant":
            return index
        if _list_content_keys([message]):
            break
    return 0


def _list_content_keys(messages: Sequence[Message]) -> list[ContentKey]:
    return [content.key for content in _key_contents(messages)]


def _key_contents(messages: Sequence[Message]) -> list[_KeyedContent]:
    """Return the content keys of messages; consecutive texts of the same role are joined."""
    contents: list[_KeyedContent] = []
    for index, message in enumerate(messages):
        for part in message.parts:
            for key in _build_content_keys(message.role, part):
                previous = contents[-1] if contents else None
                if previous is not None and previous.key[:2] == key[:2] == (message.role, "text"):
                    contents[-1] = _KeyedContent((*key[:2], previous.key[2] + key[2]), previous.first, index)
                else:
                    contents.append(_KeyedContent(key, index, index))
    return contents


def _build_content_keys(role: str, part: AnyPart) -> list[ContentKey]:
    match part:
        case Text(text=text) | Refusal(text=text):
            return [(role, "text", text)] if text else []
        case ToolCall():
            return [(role, "call", (part.id, part.name, _decode_value(part.arguments)))]
        case ToolResult():
            content = [(kind, value) for item in part.content for _, kind, value in _build_content_keys(role, item)]
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
    """What a request continues from."""

    conversation: Conversation | None
    """The current conversation; its revision is 0 if it is not stored yet."""
    history: History


class NewItems(Struct, frozen=True):
    """The new items of a request."""

    earlier_items: Sequence[bytes]
    """The stored items before the new ones, without replaced system messages."""
    items: Sequence[bytes]
    messages: Sequence[Message]
    is_repeat: bool
    """Whether nothing is new: the client repeats the last request."""
    has_results: bool

    @property
    def calls(self) -> dict[str, str]:
        """The calls in the new items, from a client that made them elsewhere."""
        parts = (part for message in self.messages for part in message.parts)
        return {part.id: part.name for part in parts if isinstance(part, ToolCall)}


async def find_continuation(store: Store, options: ConversationOptions, owner: str, dialect: str) -> Continuation:
    """Find what a request continues from; raises `Problem` if it does not exist."""
    if options.previous:
        return Continuation(None, await _load_history_of(store, options.previous, owner))
    if not options.conversation:
        return Continuation(None, History())
    found = await store.load_conversation(owner, options.conversation)
    if found is None:
        return Continuation(Conversation(owner=owner, id=options.conversation, dialect=dialect), History())
    conversation, history = found
    if conversation.dialect != dialect and history.items:
        message = f"the conversation {conversation.id!r} uses the {conversation.dialect} API; continue it there"
        raise Problem("conflict", message, code="conversation_diverged")
    return Continuation(structs.replace(conversation, dialect=dialect), history)


async def _load_history_of(store: Store, name: str, owner: str) -> History:
    turn = await store.find_turn(owner, name)
    where = "/previous_response_id"
    if turn is None:
        message = f"Previous response with id '{name}' not found."
        raise Problem("invalid_request", message, where=where, code="previous_response_not_found")
    if turn.status == _IN_PROGRESS:
        raise Problem("invalid_request", f"Response with id '{name}' is still in progress.", where=where)
    return await store.load_history(owner, turn)


async def find_new_items(
    store: Store, raw: Raw | None, continuation: Continuation, options: ConversationOptions, dialect: Dialect
) -> NewItems:
    """Find the new items among those that a client sent."""
    history = continuation.history
    sent = await _resolve_references(store, parse_items(raw, dialect), history, options.owner)
    messages = parse_messages(sent, dialect)
    bodies = [item.body for item in history.items]
    match = HistoryMatch(0)
    if options.conversation and history.last is not None:
        stored = parse_messages(bodies, dialect)
        last_turn_size = len(parse_messages([item.body for item in history.last.items], dialect))
        match = match_history(
            messages, stored, last_turn_size, options.conversation, may_differ=not options.may_resend_history
        )
        if match.new_systems:
            bodies = [*sent[: match.new_systems], *bodies[count_leading_systems(stored) :]]
    new_messages = messages[match.first_new :]
    has_results = _has_results(new_messages, history.calls, match.first_new)
    return NewItems(bodies, sent[match.first_new :], new_messages, match.is_repeat, has_results)


def parse_items(raw: Raw | None, dialect: Dialect) -> list[bytes]:
    """Return the items of a history field, which may also be a single item or a string."""
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
            message = f"`{dialect.history}` must be a string or a list"
            raise Problem("invalid_request", message, where=f"/{dialect.history}")


async def _resolve_references(store: Store, items: list[bytes], history: History, owner: str) -> list[bytes]:
    """Replace item references by the items."""
    references = {index: find_or_generate_id(body) for index, body in enumerate(items) if _is_reference(body)}
    if not references:
        return items
    found = {item.id: item.body for item in history.items}
    found |= await store.find_items(owner, [name for name in references.values() if name not in found])
    resolved = list(items)
    for index, name in references.items():
        if name not in found:
            raise Problem("not_found", f"Item with id '{name}' not found.", where=f"/input/{index}/id")
        resolved[index] = found[name]
    return resolved


def _is_reference(body: bytes) -> bool:
    """Return whether an item only references another by id, with or without a type."""
    if REFERENCE_TYPE in body:
        return json.decode(body).get("type") == "item_reference"
    return len(body) < _MAX_REFERENCE and json.is_object(body) and set(json.decode_object(body)) == {"id"}


def _has_results(new_messages: Sequence[Message], calls: Mapping[str, str], first_new: int) -> bool:
    """Return whether the new messages have results; raises `Problem` for a result without a call."""
    call_ids, names = set(calls), set(calls.values())
    has_results = False
    for index, message in enumerate(new_messages, first_new):
        for part in message.parts:
            if isinstance(part, ToolCall):
                call_ids.add(part.id)
                names.add(part.name)
            elif isinstance(part, ToolResult):
                if part.call_id not in call_ids and (part.call_id or part.name not in names):
                    raise _build_orphan_error(part, index)
                has_results = True
    return has_results


def _build_orphan_error(result: ToolResult, index: int) -> Problem:
    message = f"No tool call found for the tool output with call_id {result.call_id or result.name}."
    where = f"/{result.where.split('/')[1]}/{index}" if result.where else ""
    return Problem("invalid_request", message, where=where, code="invalid_tool_call")
