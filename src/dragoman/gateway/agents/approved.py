"""Calls that waited for their client's word: those that may be run are, once, before the model is asked.

What came of one is kept, so that a history that is sent again does not run it again.
"""

import contextlib
from collections.abc import Sequence

from msgspec import Struct, structs

from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.preserved import preserved, restored
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.dialects.record import APPROVED, DENIED
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.tools import Executor

_NOT_ALLOWED = "{name} was not run: the user did not allow it."


class Settled(Struct, frozen=True):
    """A history in which every call that waited has its result."""

    messages: tuple[Message, ...]
    run: tuple[tuple[ToolCall, ToolResult], ...] = ()
    """The calls that were run for it."""


async def settled(messages: tuple[Message, ...], executor: Executor, store: Store, owner: str) -> Settled:
    """Run what was allowed, and say of the rest that it was not."""
    if not any(_is_word(part) for message in messages for part in message.parts):
        return Settled(messages)
    calls = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolCall)}
    desk = _Desk(calls, executor, store, owner)
    told: list[Message] = []
    for message in messages:
        parts = [
            await desk.answered(part) if isinstance(part, ToolResult) and _is_word(part) else part
            for part in message.parts
        ]
        told.append(structs.replace(message, parts=tuple(parts)))
    return Settled(tuple(told), tuple(desk.run))


def _is_word(part: AnyPart) -> bool:
    return isinstance(part, ToolResult) and part.spelling in (APPROVED, DENIED)


class _Desk:
    def __init__(self, calls: dict[str, ToolCall], executor: Executor, store: Store, owner: str) -> None:
        self._calls = calls
        self._executor = executor
        self._store = store
        self._owner = owner
        self.run: list[tuple[ToolCall, ToolResult]] = []

    async def answered(self, word: ToolResult) -> ToolResult:
        call = self._calls.get(word.call_id)
        if call is None:
            raise Problem("invalid_request", f"no call waits for the approval {word.call_id!r}", where="/input")
        if word.spelling == DENIED:
            told = Text(text=_NOT_ALLOWED.format(name=call.name))
            return ToolResult(call_id=call.id, content=(told, *word.content), failed=True)
        key = f"approved {call.id}"
        result = await self._known(key)
        if result is None:
            result = (await self._executor.perform(call, f"{self._owner}:{key}")).result
            with contextlib.suppress(Unavailable):
                kept = preserved([Message(role="user", parts=(result,))])
                await self._store.keep_asides(self._owner, {key: kept})
        self.run.append((call, result))
        return result

    async def _known(self, key: str) -> ToolResult | None:
        with contextlib.suppress(Unavailable, ValueError):
            kept = await self._store.asides(self._owner, [key])
            parts = _parts(restored(kept[key])) if key in kept else []
            return next((part for part in parts if isinstance(part, ToolResult)), None)
        return None


def _parts(messages: Sequence[Message]) -> list[AnyPart]:
    return [part for message in messages for part in message.parts]
