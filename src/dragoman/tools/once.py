"""Remembers what came of calls by their idempotency key, so that a tool with side effects is run once for each key.

Rules: who asks while the call is under way waits for it. A call that was interrupted is remembered as such: whether it
had its effect is not known, so it is not run again. A call that was never begun is not remembered. The memory is
bounded in calls and in bytes; the oldest is forgotten first.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from dragoman.core.parts import ToolCall
from dragoman.tools.execution import Execution, refused, repeated_for
from dragoman.tools.handler import Handler
from dragoman.tools.results import size_of

Said = tuple[str, str]


class Once:
    """The memory of one executor."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[Said, Execution]] = OrderedDict()
        self._under_way: dict[str, tuple[Said, asyncio.Future[Execution]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def run(
        self, key: str, call: ToolCall, handler: Handler, work: Callable[[], Awaitable[Execution]]
    ) -> Execution:
        """Return what came of the call with this key; run it if there was none."""
        said = (handler.name, call.arguments)
        earlier = self._known.get(key) or self._under_way.get(key)
        if earlier is None:
            return await self._first(key, said, call, handler, work)
        if earlier[0] != said:
            words = f"the idempotency key of this call was used before for another call of {earlier[0][0]!r}"
            return refused(call, handler, "conflict", words)
        ended = earlier[1]
        return repeated_for(call, ended if isinstance(ended, Execution) else await asyncio.shield(ended))

    async def _first(
        self, key: str, said: Said, call: ToolCall, handler: Handler, work: Callable[[], Awaitable[Execution]]
    ) -> Execution:
        future: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._under_way[key] = (said, future)
        words = "this call was interrupted; whether it had its effect is not known. Look before you try again."
        execution = refused(call, handler, "error", words)
        try:
            execution = await work()
        finally:
            del self._under_way[key]
            future.set_result(execution)
            if execution.ran:
                self._remember(key, said, execution)
        return execution

    def _remember(self, key: str, said: Said, execution: Execution) -> None:
        self._known[key] = (said, execution)
        self._bytes += _weight(said, execution)
        while self._known and (len(self._known) > self._most or self._bytes > self._most_bytes):
            _, forgotten = self._known.popitem(last=False)
            self._bytes -= _weight(*forgotten)


def _weight(said: Said, execution: Execution) -> int:
    return len(said[1]) + sum(map(size_of, execution.result.content))
