"""Answer a request that uses server-side tools: the model and these tools run in turns; other calls go to the client.

A call that waited for the client's approval runs once, before the model is called. Its result is saved, so that a
history that is sent again does not run it again.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from uuid import uuid4

from msgspec import Struct, structs

from dragoman.agent import Agent as Loop
from dragoman.agent import Carrier, RunEnded, Step, TurnEnded, Within
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.preserved import preserved, restored
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.dialects.record import APPROVED, DENIED
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.hidden_turns import Asides, Trust
from dragoman.gateway.agents.reply import RunReply, last_words
from dragoman.gateway.agents.toolset import Roster, Toolset, compaction_of
from dragoman.gateway.client_request import ClientRequest, require_valid_tools
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.runs import RunBook, held
from dragoman.gateway.model import Asker, UpstreamModel
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import write_events
from dragoman.interpreter.ledger import refuse
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.tools import Executor


class Agents:
    """Answers what asks for tools of ours."""

    def __init__(self, roster: Roster, executor: Executor, store: Store, carrier: Carrier) -> None:
        self.roster = roster
        self._carrier = carrier
        self._executor = executor
        self._store = store
        self._asides = Asides(store)
        self._trust = Trust(store)

    async def answer(
        self, crew: Toolset, context: RequestContext, model: Callable[[Asker, Record], UpstreamModel]
    ) -> None:
        """Run the agent loop and send what it says; raise the `Problem` of a run that failed before that."""
        ask, record, runtime, keeper = context.request, context.record, context.runtime, context.keeper
        dialect = dialect_named(ask.dialect)
        # A choice may name a tool of ours.
        tools = (*crew.request.tools, *crew.registry.definitions, *crew.waiting.definitions)
        await require_valid_tools(ask.call, dialect, structs.replace(crew.request, tools=tools))
        if ask.strict:
            refuse(crew.losses)
        record.losses = (*record.losses, *crew.losses)
        asker = Asker(
            owner=ask.owner, dialect=ask.dialect, document=ask.call.body, strict=ask.strict, headers=ask.headers
        )
        asked = model(asker, record)
        run = f"run_{uuid4().hex if runtime is None else runtime.run}"
        executor = self._executor.of(crew.registry, ask.owner)
        # What nobody asked to be kept is not written down, but for what has to be put back.
        book = RunBook(self._store.runs, ask.owner, anew=runtime is not None) if keeper is not None else None
        # A summary is nobody's request: nothing in it is told by its place in the client's.
        summing = model(Asker(owner=ask.owner), Record(owner=ask.owner, dialect=ask.dialect))
        loop = Loop(
            asked,
            executor,
            # Nobody can be asked: what needs somebody's word is not done.
            limits=structs.replace(crew.limits, approval=0.0),
            destinations=crew.destinations,
            price=crew.price,
            compaction=compaction_of(crew.compaction, summing, crew.request.model),
            recorder=book,
            runtime=self._carrier.runtime if runtime is None else partial(Within, outer=runtime),
        )
        is_whole = context.heartbeat is None
        telling = RunReply(dialect, crew, run, lambda: asked.speaker(crew.request.model), whole=is_whole)
        async with AsyncExitStack() as stack:
            if keeper is not None and keeper.conversation is not None:
                await stack.enter_async_context(held(self._store, keeper.conversation))
            request, telling.approved = await self._prepared(crew, ask, record)
            steps = await stack.enter_async_context(aclosing(self._steps(loop, request, run, ask.owner)))
            wants_format = crew.asked.output is not None and crew.asked.output.kind != "text"
            told = last_words(steps) if wants_format else steps

            def note_losses() -> None:
                record.losses = (*record.losses, *telling.losses)

            await write_events(self._events(told, telling, ask.owner), crew.asked, context, note_losses)

    async def _events(self, steps: AsyncIterator[Step], telling: RunReply, owner: str) -> AsyncIterator[Event]:
        """Yield what the client receives of a run; what it does not receive is saved before the end."""
        async for step in steps:
            if isinstance(step, RunEnded):
                await self._asides.keep(owner, telling.messages, telling.ids)
            for event in telling.feed(step):
                yield event

    async def _prepared(
        self, crew: Toolset, ask: ClientRequest, record: Record
    ) -> tuple[Request, Sequence[tuple[ToolCall, ToolResult]]]:
        """Return what the loop is asked, and the calls that were run for that.

        The history has what the client was not told of; tools that wait for its word stand among its own.
        """
        request, remote = crew.request, dialect_named(ask.dialect).remote
        messages = request.messages
        if remote is not None and crew.listed:
            messages = remote.recalled(messages, self.roster.servers)
        unfound = await self._asides.unfound(ask.owner, messages)
        if ask.strict:
            refuse(unfound)
        record.losses = (*record.losses, *unfound)
        messages = await self._asides.put_back(ask.owner, messages)
        settling = await settled(messages, self._executor.of(crew.waiting, ask.owner), self._store, ask.owner)
        tools = (*request.tools, *crew.waiting.definitions)
        return structs.replace(request, messages=settling.messages, tools=tools), settling.run

    async def _steps(self, loop: Loop, request: Request, run: str, owner: str) -> AsyncGenerator[Step]:
        """Iterate the steps of a run, and remember what it said if it read something untrusted."""
        doubted = await self._trust.is_doubted(owner, request.messages)
        said: list[Message] = []
        async with aclosing(loop.steps(request, run=run, untrusted=doubted)) as steps:
            async for step in steps:
                match step:
                    case TurnEnded():
                        said += step.messages
                    case RunEnded(untrusted=True):
                        await self._trust.doubt(owner, said)
                    case _:
                        pass
                yield step


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
