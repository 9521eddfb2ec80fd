"""Make a request whole that goes on from what was kept.

The stored items and the new ones are joined in the client's own dialect, byte for byte, and the settings that hold are
put beside them. From there on it is a request like any other, for any upstream.
"""

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct, structs

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.sessions.forms import FORMS, Form
from dragoman.gateway.sessions.keeping import Question, unavailable
from dragoman.gateway.sessions.naming import fresh_response, item_id
from dragoman.gateway.sessions.resent import New, find_new
from dragoman.gateway.sessions.settings import in_force, lasting, member
from dragoman.gateway.sessions.wanted import Wanted
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, History, Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.splice import removed, spliced

_STATE = ("conversation", "previous_response_id", "store", "background")
_ENCRYPTED = "reasoning.encrypted_content"
_REFERENCE = b'"item_reference"'


class Opened(Struct, frozen=True, kw_only=True):
    """A request made whole, and what is to be kept of it."""

    ask: Ask
    question: Question
    again: Turn | None = None
    """The turn that answered the same question before: it is not asked twice."""


class Opener:
    """Makes requests whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self, ask: Ask, members: Mapping[str, Raw], wanted: Wanted, owner: str) -> Opened:
        """Make a request whole; a `Problem` if what it goes on from is not there, or is not as the client thinks."""
        try:
            conversation, history = await self._before(ask, wanted, owner)
            return await self._opened(ask, members, wanted, conversation, history, owner)
        except Unavailable:
            raise unavailable() from None
        except json.Malformed as error:
            raise Problem("invalid_request", error.message, where=error.where) from None

    async def _before(self, ask: Ask, wanted: Wanted, owner: str) -> tuple[Conversation | None, History]:
        if wanted.previous:
            turn = await self._store.turn(owner, wanted.previous)
            if turn is None:
                words = f"Previous response with id '{wanted.previous}' not found."
                code = "previous_response_not_found"
                raise Problem("invalid_request", words, where="/previous_response_id", code=code)
            if turn.status == "in_progress":
                words = f"Response with id '{wanted.previous}' is still in progress."
                raise Problem("invalid_request", words, where="/previous_response_id")
            return None, await self._store.history(owner, turn)
        if not wanted.conversation:
            return None, History()
        found = await self._store.opened(owner, wanted.conversation)
        if found is None:
            return Conversation(owner=owner, id=wanted.conversation, dialect=ask.dialect), History()
        conversation, history = found
        if conversation.dialect != ask.dialect and history.items:
            words = f"the conversation {conversation.id!r} was begun in {conversation.dialect}: go on with it there"
            raise Problem("conflict", words, code="conversation_diverged")
        return structs.replace(conversation, dialect=ask.dialect), history

    async def _opened(  # noqa: PLR0913, PLR0917  what was asked, and what was before
        self,
        ask: Ask,
        members: Mapping[str, Raw],
        wanted: Wanted,
        conversation: Conversation | None,
        history: History,
        owner: str,
    ) -> Opened:
        dialect = dialect_named(ask.dialect)
        sent = await self._followed(items_in(members.get(dialect.history), ask.dialect), history, owner)
        messages = _messages(sent, dialect)
        new = New(0)
        if wanted.may_repeat and history.last is not None:
            kept = [item.body for item in history.items]
            told = _messages(kept, dialect)
            of_last = len(_messages([item.body for item in history.last.items], dialect))
            new = find_new(messages, told, of_last, wanted.conversation)
        given, news = sent[new.begins :], messages[new.begins :]
        results = _checked(news, history.calls, new.begins)
        held = in_force(members, history.settings, dialect, has_results=bool(results))
        digest = _digest(ask.call.model, given, held)
        again = await self._again(wanted, history, digest, owner, is_same=new.answered, has_results=bool(results))
        turn = Turn(
            owner=owner,
            dialect=ask.dialect,
            parent=history.last.key if history.last is not None else "",
            conversation=conversation.id if conversation is not None else "",
            model=ask.call.model,
            items=tuple(Item(item_id(body), body) for body in given),
            settings=lasting(held, members, history.settings, dialect),
            calls={part.id: part.name for part in _parts(news) if isinstance(part, ToolCall)},
            digest=digest,
            attempt=wanted.attempt,
        )
        question = Question(
            turn=turn,
            conversation=conversation,
            keeps=wanted.keeps,
            is_named=wanted.is_named,
            is_background=wanted.is_background,
            members=_echoed(wanted, FORMS[ask.dialect]),
            below=FORMS[ask.dialect].below,
        )
        whole = b"[" + b",".join([*(item.body for item in history.items), *given]) + b"]"
        return Opened(ask=_whole(ask, members, whole, held, dialect), question=question, again=again)

    async def _followed(self, items: list[bytes], history: History, owner: str) -> list[bytes]:
        """Put items in the place of references to them."""
        wanted = {at: item_id(body) for at, body in enumerate(items) if _is_reference(body)}
        if not wanted:
            return items
        found = {item.id: item.body for item in history.items}
        found |= await self._store.find_items(owner, [name for name in wanted.values() if name not in found])
        followed = list(items)
        for at, name in wanted.items():
            if name not in found:
                raise Problem("not_found", f"Item with id '{name}' not found.", where=f"/input/{at}/id")
            followed[at] = found[name]
        return followed

    async def _again(  # noqa: PLR0913  each is a reason of its own
        self, wanted: Wanted, history: History, digest: str, owner: str, *, is_same: bool, has_results: bool
    ) -> Turn | None:
        """Return the turn that has answered the same already, if this is sent again and not said again."""
        last = history.last
        if wanted.conversation:
            if last is None:
                return None
            if is_same:
                return last
            earlier = last if last.digest == digest else None
        else:
            earlier = await self._store.same(owner, last.key if last is not None else "", digest)
        if earlier is None or not wanted.keeps or not earlier.reply:
            return None
        is_sent_again = wanted.is_repeated or (bool(wanted.attempt) and wanted.attempt == earlier.attempt)
        goes_on = bool(wanted.conversation or wanted.previous)
        is_again = is_sent_again or (goes_on and (has_results or not earlier.delivered))
        return earlier if is_again else None


def items_in(raw: Raw | None, dialect: str) -> list[bytes]:
    """Return the items of a history, which may be one alone, or a plain string."""
    if raw is None:
        return []
    match json.first_byte(raw):
        case b"[":
            return [bytes(item) for item in json.decode_array(raw)]
        case b'"':
            return [FORMS[dialect].plain(bytes(raw))]
        case b"{":
            return [bytes(raw)]
        case _:
            return []


def _messages(items: Sequence[bytes], dialect: Dialect) -> tuple[Message, ...]:
    """Read items as the dialect does, in a request that says nothing else."""
    if not items:
        return ()
    body = b'{"model":"","' + dialect.history.encode() + b'":[' + b",".join(items) + b"]}"
    return dialect.parse_request(Call(body)).messages


def _parts(messages: Sequence[Message]) -> list[ToolCall | ToolResult]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall | ToolResult)]


def _checked(news: Sequence[Message], calls: Mapping[str, str], begins: int) -> list[ToolResult]:
    """Return the results among what is new; each must be for a call that was made."""
    known, names = set(calls), set(calls.values())
    results: list[ToolResult] = []
    for at, message in enumerate(news, begins):
        for part in message.parts:
            match part:
                case ToolCall():
                    known.add(part.id)
                    names.add(part.name)
                case ToolResult() if part.call_id not in known and (part.call_id or part.name not in names):
                    called = part.call_id or part.name
                    words = f"No tool call found for the tool output with call_id {called}."
                    where = "/".join(["", part.where.split("/")[1], str(at)]) if part.where else ""
                    raise Problem("invalid_request", words, where=where, code="invalid_tool_call")
                case ToolResult():
                    results.append(part)
                case _:
                    pass
    return results


def _digest(model: str, given: Sequence[bytes], held: Mapping[str, Raw]) -> str:
    told = hashlib.sha256(model.encode())
    for body in (*given, *(bytes(raw) for raw in held.values())):
        told.update(b"%d:" % len(body) + body)
    return told.hexdigest()


def _is_reference(body: bytes) -> bool:
    return _REFERENCE in body and json.decode(body).get("type") == "item_reference"


def _echoed(wanted: Wanted, form: Form) -> dict[str, bytes]:
    """Return what the answer says of its conversation, where the dialect or the path has a place for that."""
    if not form.keeps:
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


def _whole(ask: Ask, members: Mapping[str, Raw], history: bytes, held: Mapping[str, Raw], dialect: Dialect) -> Ask:
    """Write the request with its whole history and the settings that hold, and without what is about the state."""
    body = spliced(ask.call.body, dialect.history, history)
    for name, raw in held.items():
        if member(members, name) is None:
            body = spliced(body, name, bytes(raw))
    for name in _STATE:
        if name in members:
            body = removed(body, name)
    call = structs.replace(ask.call, body=body)
    native = structs.replace(call, body=_unstored(body, members)) if FORMS[ask.dialect].keeps else None
    return structs.replace(ask, call=call, native=native)


def _unstored(body: bytes, members: Mapping[str, Raw]) -> bytes:
    """Ask an upstream of the same dialect to keep nothing, and to give us its thoughts to keep."""
    include: list[str] = (json.decode(members["include"]) if "include" in members else None) or []
    if _ENCRYPTED not in include:
        body = spliced(body, "include", json.encode([*include, _ENCRYPTED]))
    return spliced(body, "store", b"false")
