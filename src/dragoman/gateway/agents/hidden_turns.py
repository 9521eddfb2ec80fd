"""Restores turns that a client did not receive when it continues the conversation, and marks tainted histories.

A reply of several turns ends for its client with calls to the client's own tools. The turns before, the server-side
calls in the same turn and their results are saved under the ids of those calls, unchanged, with every signature. When
such a call comes back in a history, the saved turns replace what the client sent, and the client's results are merged
with the server-side results in the order of the calls. Without saved turns the client's own version is used, which is a
valid history too. A call that comes back without its id is not matched by its content, because another conversation may
have the same call.

A client that keeps only the text of a reply sends back only that. So a reply that was generated after untrusted data
was read is recognised by its text, ignoring white space; a history that contains it counts as untrusted. Texts too
short to carry an instruction are not saved. If the store is unavailable, the history counts as untrusted.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.interpreter.pairing import add_ids
from dragoman.interpreter.signature_recorder import digest_call
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable

_HIDDEN_PREFIX = "hidden:"
_NO_CALL_ID = "the call has no id, so the server-side calls of that reply cannot be restored"


class HiddenTurns:
    """Saves the turns that a client did not receive, and restores them in its history."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def save(self, owner: str, messages: Sequence[Message], client_ids: Mapping[str, str]) -> None:
        """Save the messages of a run under the client's ids of its calls; `client_ids` maps the run's ids to these."""
        if not client_ids:
            return
        body = encode_messages(_use_client_ids(message, client_ids) for message in messages)
        blobs = dict.fromkeys(client_ids.values(), body)
        calls = [call for message in messages for call in _find_calls(message.parts)]
        if any(call.id not in client_ids for call in calls):
            blobs |= {_hidden_key(call): b"" for call in calls if call.id in client_ids}
        # If this fails, the client's own version of the history is used later; the reply is good all the same.
        with contextlib.suppress(Unavailable):
            await self._store.save_blobs(owner, blobs)

    async def find_unrestorable(self, owner: str, messages: Sequence[Message]) -> tuple[Loss, ...]:
        """Return a loss for each call without an id whose hidden turns cannot be restored."""
        calls = [call for message in messages for call in _find_calls(message.parts)]
        without_id = {_hidden_key(call): call for call in calls if not call.id}
        found: Mapping[str, bytes] = {}
        with contextlib.suppress(Unavailable):
            found = await self._store.find_blobs(owner, tuple(without_id)) if without_id else {}
        return tuple(Loss(call.where, _NO_CALL_ID, "dropped") for key, call in without_id.items() if key in found)

    async def restore(self, owner: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a history with the turns that its client did not receive."""
        ids = [call.id for message in messages for call in _find_calls(message.parts) if call.id]
        if not ids:
            return messages
        try:
            found = await self._store.find_blobs(owner, ids)
        except Unavailable:
            return messages
        return _merge_hidden(add_ids(messages), found) if found else messages


def _hidden_key(call: ToolCall) -> str:
    """Return the key under which a call with hidden turns can be recognised without its id."""
    return f"{_HIDDEN_PREFIX}{digest_call(call.name, call.arguments)}"


def _use_client_ids(message: Message, client_ids: Mapping[str, str]) -> Message:
    """Return a message with the client's ids for its calls."""
    return structs.replace(message, parts=tuple(_use_client_id(part, client_ids) for part in message.parts))


def _use_client_id(part: AnyPart, client_ids: Mapping[str, str]) -> AnyPart:
    match part:
        case ToolCall(id=call_id) if call_id in client_ids:
            return structs.replace(part, id=client_ids[call_id])
        case ToolResult(call_id=call_id) if call_id in client_ids:
            return structs.replace(part, call_id=client_ids[call_id])
        case _:
            return part


def _merge_hidden(messages: tuple[Message, ...], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    merged: list[Message] = []
    hidden: tuple[Message, ...] = ()
    for is_reply, run in groupby(messages, lambda message: message.role == "assistant"):
        group = tuple(run)
        if is_reply:
            hidden = _find_hidden(group, found)
            merged += hidden or group
        elif hidden:
            # Server-side results are at the end of the saved turns; the client's results are merged with them.
            own_results = merged.pop() if hidden[-1].role == "user" else None
            merged += _merge_results(merged[-1], own_results, group)
            hidden = ()
        else:
            merged += group
    return tuple(merged)


def _find_hidden(group: Sequence[Message], found: Mapping[str, bytes]) -> tuple[Message, ...]:
    """Return the saved turns for a client's version of a reply; empty if they belong to another reply."""
    calls = [call for message in group for call in _find_calls(message.parts)]
    body = next((found[call.id] for call in calls if call.id in found), None)
    if body is None:
        return ()
    try:
        hidden = decode_messages(body)
    except ValueError:
        return ()  # written by another version
    hidden_calls = {_call_key(call) for message in hidden for call in _find_calls(message.parts)}
    # An id may be reused for another call; then the saved turns do not belong to this one.
    return hidden if all(_call_key(call) in hidden_calls for call in calls if call.executor == "client") else ()


def _find_calls(parts: Iterable[AnyPart]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]


def _call_key(call: ToolCall) -> tuple[str, str]:
    return call.id, digest_call(call.name, call.arguments)


def _merge_results(assistant: Message, own_results: Message | None, group: Sequence[Message]) -> list[Message]:
    """Return the client's messages after a reply, its results merged with the server-side ones in call order."""
    call_ids = [call.id for call in _find_calls(assistant.parts)]
    client_parts = [part for message in group for part in message.parts]
    parts = (*(own_results.parts if own_results is not None else ()), *client_parts)
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult) and part.call_id in call_ids}
    merged: list[Message] = []
    if results:
        merged.append(Message(role="user", parts=tuple(results[call_id] for call_id in call_ids if call_id in results)))
    for message in group:
        rest = tuple(part for part in message.parts if not (isinstance(part, ToolResult) and part.call_id in results))
        if rest or not message.parts:
            merged.append(message if len(rest) == len(message.parts) else structs.replace(message, parts=rest))
    return merged


_TAINT_PREFIX = "untrusted:"
_MIN_CHARACTERS = 16
"""Characters, not counting white space, below which a text cannot carry an instruction."""


class TaintStore:
    """Remembers replies that may repeat untrusted text."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mark_tainted(self, owner: str, messages: Iterable[Message]) -> None:
        """Save the texts of a run that read untrusted data."""
        # For the client all turns of a run are one reply.
        replies = (message for message in messages if message.role == "assistant")
        blobs = dict.fromkeys(_taint_keys(replies), b"")
        if blobs:
            with contextlib.suppress(Unavailable):
                await self._store.save_blobs(owner, blobs)

    async def is_tainted(self, owner: str, messages: Iterable[Message]) -> bool:
        """Return whether a history has a text from such a run."""
        keys = tuple(dict.fromkeys(_taint_keys(messages)))
        try:
            return bool(keys) and bool(await self._store.find_blobs(owner, keys))
        except Unavailable:
            return True


def _taint_keys(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the keys of model texts: of each text, and of all texts of one reply together."""
    for role, group in groupby(messages, lambda message: message.role):
        if role != "assistant":
            continue
        parts = [part for message in group for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, Text) and not part.unread]
        for text in (*texts, "".join(texts)):
            compact = "".join(text.split())
            if len(compact) >= _MIN_CHARACTERS:
                yield _TAINT_PREFIX + sha256(compact.encode("utf-8", "surrogatepass")).hexdigest()
