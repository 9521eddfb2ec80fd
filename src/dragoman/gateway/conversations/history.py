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
from dragoman.gateway.conversations.recorder import item_id
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, History
from dragoman.wire import json

Saying = tuple[str, str, Any]
"""Role, kind, and what is said."""


class New(Struct, frozen=True):
    """Where what is new begins among the messages a client sent."""

    begins: int
    answered: bool = False
    """There is nothing new: the client asks again what was answered last."""
    systems: int = 0
    """How many messages at the head say anew who the model is, in place of what is kept there."""


class _Told(Struct, frozen=True):
    """A saying, and the messages it stands in: some clients keep a text in the pieces it was streamed in."""

    saying: Saying
    first: int
    last: int


def find_new(
    sent: Sequence[Message], kept: Sequence[Message], of_last: int, name: str, *, may_differ: bool = False
) -> New:
    """Return where the new messages begin; `of_last` of the kept ones are of the last turn, given and said.

    A history that the client tells otherwise than it was is a conflict, unless it may: then all of it is new.
    """
    if not kept:
        return New(0)
    head, kept_head = leading(sent), leading(kept)
    systems = head if _sayings(sent[:head]) != _sayings(kept[:kept_head]) else 0
    told, known = _told(sent[head:]), _sayings(kept[kept_head:])
    said = [one.saying for one in told]
    for length in range(min(len(said), len(known)), 0, -1):
        is_whole = length == len(known)
        if said[:length] == known[-length:] and (is_whole or known[-length][0] == "assistant"):
            begins = told[length - 1].last + 1
            if length < len(told) and told[length].first >= begins:
                return New(head + begins + _silent(sent[head + begins :]), systems=systems)
    before = _sayings(kept[kept_head : len(kept) - of_last])
    asked = [saying for saying in known[len(before) :] if saying[0] != "assistant"]
    if before and said == [*before, *asked]:
        return New(len(sent), answered=True)
    if any(role == "assistant" for role, _, _ in said):
        if may_differ:
            return New(0)
        words = f"the conversation {name!r} has another history: send what is new, or all of it as it was"
        raise Problem("conflict", words, code="conversation_diverged")
    return New(head, systems=systems)


def _silent(messages: Sequence[Message]) -> int:
    """Return how many messages of the model say nothing more: the end of a stream, kept as a piece of its own."""
    for at, message in enumerate(messages):
        if message.role != "assistant":
            return at
        if _sayings([message]):
            break
    return 0


def leading(messages: Sequence[Message]) -> int:
    """Return how many messages at the head say who the model is."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def _sayings(messages: Sequence[Message]) -> list[Saying]:
    return [told.saying for told in _told(messages)]


def _told(messages: Sequence[Message]) -> list[_Told]:
    """Return what messages say; texts of one side that follow each other are one."""
    told: list[_Told] = []
    for at, message in enumerate(messages):
        for part in message.parts:
            for saying in _saying(message.role, part):
                before = told[-1] if told else None
                if before is not None and before.saying[:2] == saying[:2] == (message.role, "text"):
                    told[-1] = _Told((*saying[:2], before.saying[2] + saying[2]), before.first, at)
                else:
                    told.append(_Told(saying, at, at))
    return told


def _saying(role: str, part: AnyPart) -> list[Saying]:
    match part:
        case Text(text=text) | Refusal(text=text):
            return [(role, "text", text)] if text else []
        case ToolCall():
            return [(role, "call", (part.id, part.name, _value(part.arguments)))]
        case ToolResult():
            content = [(kind, said) for item in part.content for _, kind, said in _saying(role, item)]
            return [(role, "result", (part.call_id, content))]
        case Data(json=raw):
            return [(role, "data", _value(raw))]
        case Media():
            return [(role, "media", part.source)]
        case Opaque():
            return [(role, "opaque", _value(part.raw))]
        case Reasoning():
            return []
        case _:
            assert_never(part)


def _value(text: str | bytes) -> Any:
    return json.decode(text) if json.is_json(text) else text


REFERENCE = b'"item_reference"'
_IN_PROGRESS = "in_progress"
_LONGEST_REFERENCE = 512


class Continuation(Struct, frozen=True):
    """What was said before."""

    conversation: Conversation | None
    """The conversation as it is now; one that is not kept yet has no revision."""
    history: History


class NewItems(Struct, frozen=True):
    """What is new."""

    before: Sequence[bytes]
    """What was said before, as far as it holds."""
    items: Sequence[bytes]
    messages: Sequence[Message]
    answered: bool
    """Nothing is: the client asks again what was answered last."""
    has_results: bool

    @property
    def calls(self) -> dict[str, str]:
        """The calls in it, which a client brings that had them elsewhere."""
        parts = (part for message in self.messages for part in message.parts)
        return {part.id: part.name for part in parts if isinstance(part, ToolCall)}


async def find_before(store: Store, wanted: ConversationOptions, owner: str, dialect: str) -> Continuation:
    """Find what a request goes on from, or raise the `Problem` that it is not there."""
    if wanted.previous:
        return Continuation(None, await _before_response(store, wanted.previous, owner))
    if not wanted.conversation:
        return Continuation(None, History())
    found = await store.opened(owner, wanted.conversation)
    if found is None:
        return Continuation(Conversation(owner=owner, id=wanted.conversation, dialect=dialect), History())
    conversation, history = found
    if conversation.dialect != dialect and history.items:
        words = f"the conversation {conversation.id!r} was begun in {conversation.dialect}: go on with it there"
        raise Problem("conflict", words, code="conversation_diverged")
    return Continuation(structs.replace(conversation, dialect=dialect), history)


async def _before_response(store: Store, name: str, owner: str) -> History:
    turn = await store.turn(owner, name)
    where = "/previous_response_id"
    if turn is None:
        words = f"Previous response with id '{name}' not found."
        raise Problem("invalid_request", words, where=where, code="previous_response_not_found")
    if turn.status == _IN_PROGRESS:
        raise Problem("invalid_request", f"Response with id '{name}' is still in progress.", where=where)
    return await store.history(owner, turn)


async def find_said(
    store: Store, raw: Raw | None, before: Continuation, wanted: ConversationOptions, dialect: Dialect
) -> NewItems:
    """Find what is new among the items a client sent."""
    history = before.history
    sent = await _followed(store, items_in(raw, dialect), history, wanted.owner)
    messages = read(sent, dialect)
    bodies = [item.body for item in history.items]
    new = New(0)
    if wanted.conversation and history.last is not None:
        kept = read(bodies, dialect)
        of_last = len(read([item.body for item in history.last.items], dialect))
        new = find_new(messages, kept, of_last, wanted.conversation, may_differ=not wanted.may_repeat)
        if new.systems:
            bodies = [*sent[: new.systems], *bodies[leading(kept) :]]
    news = messages[new.begins :]
    has_results = _brings_results(news, history.calls, new.begins)
    return NewItems(bodies, sent[new.begins :], news, new.answered, has_results)


def items_in(raw: Raw | None, dialect: Dialect) -> list[bytes]:
    """Return the items of a history, which may be one alone, or a plain string."""
    if raw is None:
        return []
    match json.first_byte(raw):
        case b"[":
            return [bytes(item) for item in json.decode_array(raw)]
        case b'"':
            return [dialect.turns.plain(bytes(raw))]
        case b"{":
            return [bytes(raw)]
        case b"n":
            return []
        case _:
            words = f"{dialect.history} must be a string or a list"
            raise Problem("invalid_request", words, where=f"/{dialect.history}")


def read(items: Sequence[bytes], dialect: Dialect) -> tuple[Message, ...]:
    """Read items as the dialect does, in a request that says nothing else."""
    if not items:
        return ()
    body = b'{"model":"","' + dialect.history.encode() + b'":[' + b",".join(items) + b"]}"
    return dialect.parse_request(Call(body)).messages


async def _followed(store: Store, items: list[bytes], history: History, owner: str) -> list[bytes]:
    """Put items in the place of references to them."""
    wanted = {at: item_id(body) for at, body in enumerate(items) if _is_reference(body)}
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
    if REFERENCE in body:
        return json.decode(body).get("type") == "item_reference"
    return len(body) < _LONGEST_REFERENCE and json.is_object(body) and set(json.decode_object(body)) == {"id"}


def _brings_results(news: Sequence[Message], calls: Mapping[str, str], begins: int) -> bool:
    """Tell whether there are results among what is new; each must be for a call that was made."""
    known, names = set(calls), set(calls.values())
    brings = False
    for at, message in enumerate(news, begins):
        for part in message.parts:
            if isinstance(part, ToolCall):
                known.add(part.id)
                names.add(part.name)
            elif isinstance(part, ToolResult):
                if part.call_id not in known and (part.call_id or part.name not in names):
                    raise _without_call(part, at)
                brings = True
    return brings


def _without_call(result: ToolResult, at: int) -> Problem:
    words = f"No tool call found for the tool output with call_id {result.call_id or result.name}."
    where = f"/{result.where.split('/')[1]}/{at}" if result.where else ""
    return Problem("invalid_request", words, where=where, code="invalid_tool_call")
