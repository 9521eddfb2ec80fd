"""What a request goes on from, and what is new in it."""

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct, structs

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.dialects.record import Call, Dialect
from dragoman.gateway.sessions.naming import item_id
from dragoman.gateway.sessions.resent import New, find_new, leading
from dragoman.gateway.sessions.wanted import Wanted
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, History
from dragoman.wire import json

REFERENCE = b'"item_reference"'
_IN_PROGRESS = "in_progress"
_LONGEST_REFERENCE = 512


class Before(Struct, frozen=True):
    """What was said before."""

    conversation: Conversation | None
    """The conversation as it is now; one that is not kept yet has no revision."""
    history: History


class Said(Struct, frozen=True):
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


async def find_before(store: Store, wanted: Wanted, owner: str, dialect: str) -> Before:
    """Find what a request goes on from, or raise the `Problem` that it is not there."""
    if wanted.previous:
        return Before(None, await _before_response(store, wanted.previous, owner))
    if not wanted.conversation:
        return Before(None, History())
    found = await store.opened(owner, wanted.conversation)
    if found is None:
        return Before(Conversation(owner=owner, id=wanted.conversation, dialect=dialect), History())
    conversation, history = found
    if conversation.dialect != dialect and history.items:
        words = f"the conversation {conversation.id!r} was begun in {conversation.dialect}: go on with it there"
        raise Problem("conflict", words, code="conversation_diverged")
    return Before(structs.replace(conversation, dialect=dialect), history)


async def _before_response(store: Store, name: str, owner: str) -> History:
    turn = await store.turn(owner, name)
    where = "/previous_response_id"
    if turn is None:
        words = f"Previous response with id '{name}' not found."
        raise Problem("invalid_request", words, where=where, code="previous_response_not_found")
    if turn.status == _IN_PROGRESS:
        raise Problem("invalid_request", f"Response with id '{name}' is still in progress.", where=where)
    return await store.history(owner, turn)


async def find_said(store: Store, raw: Raw | None, before: Before, wanted: Wanted, dialect: Dialect) -> Said:
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
    return Said(bodies, sent[new.begins :], news, new.answered, has_results)


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
