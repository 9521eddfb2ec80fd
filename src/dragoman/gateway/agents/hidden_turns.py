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
from dragoman.core.preserved import decode_messages, encode_messages
from dragoman.core.request import Message
from dragoman.interpreter.pairing import add_ids
from dragoman.interpreter.signatures import digest_call
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable

_HIDDEN_PREFIX = "hidden:"
_NO_CALL_ID = "the call has no id: what the gateway ran beside it cannot be put back"


class HiddenTurns:
    """Keeps what was left out, and puts it back."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def save(self, owner: str, messages: Sequence[Message], client_ids: Mapping[str, str]) -> None:
        """Keep the messages of a run under the ids by which its client knows calls in it; `told` has them by ours."""
        if not client_ids:
            return
        body = encode_messages(_use_client_ids(message, client_ids) for message in messages)
        kept = dict.fromkeys(client_ids.values(), body)
        calls = [call for message in messages for call in _find_calls(message.parts)]
        if any(call.id not in client_ids for call in calls):
            kept |= {_hidden_key(call): b"" for call in calls if call.id in client_ids}
        # Without it the client's own version stands: the answer is good all the same.
        with contextlib.suppress(Unavailable):
            await self._store.save_blobs(owner, kept)

    async def find_unrestorable(self, owner: str, messages: Sequence[Message]) -> tuple[Loss, ...]:
        """Return what cannot be put back because calls came back without their ids."""
        calls = [call for message in messages for call in _find_calls(message.parts)]
        nameless = {_hidden_key(call): call for call in calls if not call.id}
        found: Mapping[str, bytes] = {}
        with contextlib.suppress(Unavailable):
            found = await self._store.find_blobs(owner, tuple(nameless)) if nameless else {}
        return tuple(Loss(call.where, _NO_CALL_ID, "dropped") for mark, call in nameless.items() if mark in found)

    async def restore(self, owner: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a history with what its client was not told of."""
        ids = [call.id for message in messages for call in _find_calls(message.parts) if call.id]
        if not ids:
            return messages
        try:
            found = await self._store.find_blobs(owner, ids)
        except Unavailable:
            return messages
        return _merge_hidden(add_ids(messages), found) if found else messages


def _hidden_key(call: ToolCall) -> str:
    """Return the mark of a call beside which something was not told."""
    return f"{_HIDDEN_PREFIX}{digest_call(call.name, call.arguments)}"


def _use_client_ids(message: Message, client_ids: Mapping[str, str]) -> Message:
    """Return a message with the ids that the client has for its calls."""
    return structs.replace(message, parts=tuple(_use_client_id(part, client_ids) for part in message.parts))


def _use_client_id(part: AnyPart, client_ids: Mapping[str, str]) -> AnyPart:
    match part:
        case ToolCall(id=name) if name in client_ids:
            return structs.replace(part, id=client_ids[name])
        case ToolResult(call_id=name) if name in client_ids:
            return structs.replace(part, call_id=client_ids[name])
        case _:
            return part


def _merge_hidden(messages: tuple[Message, ...], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    whole: list[Message] = []
    kept: tuple[Message, ...] = ()
    for is_said, run in groupby(messages, lambda message: message.role == "assistant"):
        group = tuple(run)
        if is_said:
            kept = _find_hidden(group, found)
            whole += kept or group
        elif kept:
            # Our results stand at the end of what is kept: the client's belong among them.
            ours = whole.pop() if kept[-1].role == "user" else None
            whole += _merge_results(whole[-1], ours, group)
            kept = ()
        else:
            whole += group
    return tuple(whole)


def _find_hidden(group: Sequence[Message], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    """Return what is kept for what a client has of a reply; nothing if that is of another."""
    calls = [call for message in group for call in _find_calls(message.parts)]
    body = next((found[call.id] for call in calls if call.id in found), None)
    if body is None:
        return ()
    try:
        kept = decode_messages(body)
    except ValueError:
        return ()  # written by another version
    known = {_call_key(call) for message in kept for call in _find_calls(message.parts)}
    # An id may be used again, for another call: then nothing is known of this one.
    return kept if all(_call_key(call) in known for call in calls if call.executor == "client") else ()


def _find_calls(parts: Iterable[AnyPart]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]


def _call_key(call: ToolCall) -> tuple[str, str]:
    return call.id, digest_call(call.name, call.arguments)


def _merge_results(assistant: Message, own_results: Message | None, group: Sequence[Message]) -> list[Message]:
    """Return what the client says to a reply, its results among ours, in the order of the calls."""
    calls = [call.id for call in _find_calls(assistant.parts)]
    given = [part for message in group for part in message.parts]
    parts = (*(own_results.parts if own_results is not None else ()), *given)
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult) and part.call_id in calls}
    told: list[Message] = []
    if results:
        told.append(Message(role="user", parts=tuple(results[name] for name in calls if name in results)))
    for message in group:
        rest = tuple(part for part in message.parts if not (isinstance(part, ToolResult) and part.call_id in results))
        if rest or not message.parts:
            told.append(message if len(rest) == len(message.parts) else structs.replace(message, parts=rest))
    return told


_TAINT_PREFIX = "untrusted:"
_MIN_CHARACTERS = 16
"""Characters, white space aside, below which a text instructs nobody."""


class TaintStore:
    """Knows answers that may repeat a stranger's words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mark_tainted(self, owner: str, messages: Iterable[Message]) -> None:
        """Remember what was said in a run that read something untrusted."""
        # All turns of a run are one answer to its client.
        said = (message for message in messages if message.role == "assistant")
        marks = dict.fromkeys(_taint_keys(said), b"")
        if marks:
            with contextlib.suppress(Unavailable):
                await self._store.save_blobs(owner, marks)

    async def is_tainted(self, owner: str, messages: Iterable[Message]) -> bool:
        """Tell whether anything in a history was said in such a run."""
        marks = tuple(dict.fromkeys(_taint_keys(messages)))
        try:
            return bool(marks) and bool(await self._store.find_blobs(owner, marks))
        except Unavailable:
            return True


def _taint_keys(messages: Iterable[Message]) -> Iterator[str]:
    """Iterate the marks of what a model said: of each text, and of all texts of one answer together."""
    for role, group in groupby(messages, lambda message: message.role):
        if role != "assistant":
            continue
        parts = [part for message in group for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, Text) and not part.unread]
        for text in (*texts, "".join(texts)):
            bare = "".join(text.split())
            if len(bare) >= _MIN_CHARACTERS:
                yield _TAINT_PREFIX + sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()
