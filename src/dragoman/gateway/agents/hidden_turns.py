"""Turns that a client did not receive, put back when it continues from there, and which of its histories are tainted.

A reply of several turns ends for its client with calls of its own. The turns before, our calls beside them and our
results are saved under the ids of those calls, as they were, with every signature. When such a call comes back in a
history, what is saved replaces what the client sent, and its results are put among ours, in the order of the calls.
Without it the client's own version is used, which is a valid history too. A call that comes back without its id is not
matched by its content: another conversation may have the same call.

A client that has only the text of an answer returns only that. So an answer that was generated after something
untrusted was read is recognised by its text, white space aside; a history with it counts as untrusted. Texts too short
to instruct anybody are not saved. What cannot be looked up counts as untrusted.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.preserved import preserved, restored
from dragoman.core.request import Message
from dragoman.interpreter.pairing import with_ids
from dragoman.interpreter.signatures import digest_of
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable

_HIDDEN = "hidden:"
_UNFOUND = "the call has no id: what the gateway ran beside it cannot be put back"


class Asides:
    """Keeps what was left out, and puts it back."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, owner: str, messages: Sequence[Message], told: Mapping[str, str]) -> None:
        """Keep the messages of a run under the ids by which its client knows calls in it; `told` has them by ours."""
        if not told:
            return
        body = preserved(_renamed(message, told) for message in messages)
        kept = dict.fromkeys(told.values(), body)
        calls = [call for message in messages for call in _calls(message.parts)]
        if any(call.id not in told for call in calls):
            kept |= {_hidden_beside(call): b"" for call in calls if call.id in told}
        # Without it the client's own version stands: the answer is good all the same.
        with contextlib.suppress(Unavailable):
            await self._store.keep_asides(owner, kept)

    async def unfound(self, owner: str, messages: Sequence[Message]) -> tuple[Loss, ...]:
        """Return what cannot be put back because calls came back without their ids."""
        calls = [call for message in messages for call in _calls(message.parts)]
        nameless = {_hidden_beside(call): call for call in calls if not call.id}
        found: Mapping[str, bytes] = {}
        with contextlib.suppress(Unavailable):
            found = await self._store.asides(owner, tuple(nameless)) if nameless else {}
        return tuple(Loss(call.where, _UNFOUND, "dropped") for mark, call in nameless.items() if mark in found)

    async def put_back(self, owner: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a history with what its client was not told of."""
        ids = [call.id for message in messages for call in _calls(message.parts) if call.id]
        if not ids:
            return messages
        try:
            found = await self._store.asides(owner, ids)
        except Unavailable:
            return messages
        return _whole(with_ids(messages), found) if found else messages


def _hidden_beside(call: ToolCall) -> str:
    """Return the mark of a call beside which something was not told."""
    return f"{_HIDDEN}{digest_of(call.name, call.arguments)}"


def _renamed(message: Message, told: Mapping[str, str]) -> Message:
    """Return a message with the ids that the client has for its calls."""
    return structs.replace(message, parts=tuple(_renamed_part(part, told) for part in message.parts))


def _renamed_part(part: AnyPart, told: Mapping[str, str]) -> AnyPart:
    match part:
        case ToolCall(id=name) if name in told:
            return structs.replace(part, id=told[name])
        case ToolResult(call_id=name) if name in told:
            return structs.replace(part, call_id=told[name])
        case _:
            return part


def _whole(messages: tuple[Message, ...], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    whole: list[Message] = []
    kept: tuple[Message, ...] = ()
    for is_said, run in groupby(messages, lambda message: message.role == "assistant"):
        group = tuple(run)
        if is_said:
            kept = _kept_for(group, found)
            whole += kept or group
        elif kept:
            # Our results stand at the end of what is kept: the client's belong among them.
            ours = whole.pop() if kept[-1].role == "user" else None
            whole += _answered(whole[-1], ours, group)
            kept = ()
        else:
            whole += group
    return tuple(whole)


def _kept_for(group: Sequence[Message], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    """Return what is kept for what a client has of a reply; nothing if that is of another."""
    calls = [call for message in group for call in _calls(message.parts)]
    body = next((found[call.id] for call in calls if call.id in found), None)
    if body is None:
        return ()
    try:
        kept = restored(body)
    except ValueError:
        return ()  # written by another version
    known = {_mark(call) for message in kept for call in _calls(message.parts)}
    # An id may be used again, for another call: then nothing is known of this one.
    return kept if all(_mark(call) in known for call in calls if call.executor == "client") else ()


def _calls(parts: Iterable[AnyPart]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]


def _mark(call: ToolCall) -> tuple[str, str]:
    return call.id, digest_of(call.name, call.arguments)


def _answered(said: Message, ours: Message | None, group: Sequence[Message]) -> list[Message]:
    """Return what the client says to a reply, its results among ours, in the order of the calls."""
    calls = [call.id for call in _calls(said.parts)]
    given = [part for message in group for part in message.parts]
    parts = (*(ours.parts if ours is not None else ()), *given)
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult) and part.call_id in calls}
    told: list[Message] = []
    if results:
        told.append(Message(role="user", parts=tuple(results[name] for name in calls if name in results)))
    for message in group:
        rest = tuple(part for part in message.parts if not (isinstance(part, ToolResult) and part.call_id in results))
        if rest or not message.parts:
            told.append(message if len(rest) == len(message.parts) else structs.replace(message, parts=rest))
    return told


_PREFIX = "untrusted:"
_FEWEST = 16
"""Characters, white space aside, below which a text instructs nobody."""


class Trust:
    """Knows answers that may repeat a stranger's words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def doubt(self, owner: str, messages: Iterable[Message]) -> None:
        """Remember what was said in a run that read something untrusted."""
        # All turns of a run are one answer to its client.
        said = (message for message in messages if message.role == "assistant")
        marks = dict.fromkeys(_marks(said), b"")
        if marks:
            with contextlib.suppress(Unavailable):
                await self._store.keep_asides(owner, marks)

    async def is_doubted(self, owner: str, messages: Iterable[Message]) -> bool:
        """Tell whether anything in a history was said in such a run."""
        marks = tuple(dict.fromkeys(_marks(messages)))
        try:
            return bool(marks) and bool(await self._store.asides(owner, marks))
        except Unavailable:
            return True


def _marks(messages: Iterable[Message]) -> Iterator[str]:
    """Iterate the marks of what a model said: of each text, and of all texts of one answer together."""
    for role, group in groupby(messages, lambda message: message.role):
        if role != "assistant":
            continue
        parts = [part for message in group for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, Text) and not part.unread]
        for text in (*texts, "".join(texts)):
            bare = "".join(text.split())
            if len(bare) >= _FEWEST:
                yield _PREFIX + sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()
