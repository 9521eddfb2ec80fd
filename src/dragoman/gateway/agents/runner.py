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
from dragoman.core.preserved import decode_messages, encode_messages
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.dialects.record import APPROVED, DENIED
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.hidden_turns import HiddenTurns, TaintStore
from dragoman.gateway.agents.reply import RunReply, drop_interim_texts
from dragoman.gateway.agents.toolset import AgentRegistry, Toolset, build_compaction
from dragoman.gateway.client_request import ClientRequest, require_valid_tools
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.runs import RunBook, hold_conversation
from dragoman.gateway.model import Asker, UpstreamModel
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import write_events
from dragoman.interpreter.ledger import reject_losses
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.tools import Executor


class Agents:
    """Answers what asks for tools of ours."""

    def __init__(self, agent_registry: AgentRegistry, executor: Executor, store: Store, carrier: Carrier) -> None:
        self.agent_registry = agent_registry
        self._carrier = carrier
        self._executor = executor
        self._store = store
        self._hidden_turns = HiddenTurns(store)
        self._taint = TaintStore(store)

    async def answer(
        self, toolset: Toolset, context: RequestContext, build_model: Callable[[Asker, Record], UpstreamModel]
    ) -> None:
        """Run the agent loop and send what it says; raise the `Problem` of a run that failed before that."""
        ask, record, runtime, keeper = context.request, context.record, context.runtime, context.recorder
        dialect = dialect_named(ask.dialect)
        # A choice may name a tool of ours.
        tools = (*toolset.request.tools, *toolset.registry.definitions, *toolset.approval_registry.definitions)
        await require_valid_tools(ask.call, dialect, structs.replace(toolset.request, tools=tools))
        if ask.strict:
            reject_losses(toolset.losses)
        record.losses = (*record.losses, *toolset.losses)
        asker = Asker(
            owner=ask.owner, dialect=ask.dialect, document=ask.call.body, strict=ask.strict, headers=ask.headers
        )
        asked = build_model(asker, record)
        run = f"run_{uuid4().hex if runtime is None else runtime.run}"
        executor = self._executor.of(toolset.registry, ask.owner)
        # What nobody asked to be kept is not written down, but for what has to be put back.
        book = RunBook(self._store.runs, ask.owner, replaces_ended=runtime is not None) if keeper is not None else None
        # A summary is nobody's request: nothing in it is told by its place in the client's.
        summing = build_model(Asker(owner=ask.owner), Record(owner=ask.owner, dialect=ask.dialect))
        loop = Loop(
            asked,
            executor,
            # Nobody can be asked: what needs somebody's word is not done.
            limits=structs.replace(toolset.limits, approval=0.0),
            destinations=toolset.destinations,
            price=toolset.price,
            compaction=build_compaction(toolset.compaction, summing, toolset.request.model),
            recorder=book,
            runtime=self._carrier.runtime if runtime is None else partial(Within, outer=runtime),
        )
        is_whole = context.heartbeat is None
        telling = RunReply(dialect, toolset, run, lambda: asked.dialect_for(toolset.request.model), is_whole=is_whole)
        async with AsyncExitStack() as stack:
            if keeper is not None and keeper.conversation is not None:
                await stack.enter_async_context(hold_conversation(self._store, keeper.conversation))
            request, telling.approved_calls = await self._prepare_request(toolset, ask, record)
            steps = await stack.enter_async_context(aclosing(self._run_steps(loop, request, run, ask.owner)))
            wants_format = toolset.client_request.output is not None and toolset.client_request.output.kind != "text"
            told = drop_interim_texts(steps) if wants_format else steps

            def note_losses() -> None:
                record.losses = (*record.losses, *telling.losses)

            await write_events(
                self._render_events(told, telling, ask.owner), toolset.client_request, context, note_losses
            )

    async def _render_events(self, steps: AsyncIterator[Step], reply: RunReply, owner: str) -> AsyncIterator[Event]:
        """Yield what the client receives of a run; what it does not receive is saved before the end."""
        async for step in steps:
            if isinstance(step, RunEnded):
                await self._hidden_turns.save(owner, reply.messages, reply.client_ids)
            for event in reply.feed(step):
                yield event

    async def _prepare_request(
        self, toolset: Toolset, client_request: ClientRequest, record: Record
    ) -> tuple[Request, Sequence[tuple[ToolCall, ToolResult]]]:
        """Return what the loop is asked, and the calls that were run for that.

        The history has what the client was not told of; tools that wait for its word stand among its own.
        """
        request, remote = toolset.request, dialect_named(client_request.dialect).remote
        messages = request.messages
        if remote is not None and toolset.server_errors:
            messages = remote.restore_calls(messages, self.agent_registry.servers)
        unfound = await self._hidden_turns.find_unrestorable(client_request.owner, messages)
        if client_request.strict:
            reject_losses(unfound)
        record.losses = (*record.losses, *unfound)
        messages = await self._hidden_turns.restore(client_request.owner, messages)
        settling = await apply_approvals(
            messages,
            self._executor.of(toolset.approval_registry, client_request.owner),
            self._store,
            client_request.owner,
        )
        tools = (*request.tools, *toolset.approval_registry.definitions)
        return structs.replace(request, messages=settling.messages, tools=tools), settling.executed

    async def _run_steps(self, loop: Loop, request: Request, run: str, owner: str) -> AsyncGenerator[Step]:
        """Iterate the steps of a run, and remember what it said if it read something untrusted."""
        doubted = await self._taint.is_tainted(owner, request.messages)
        said: list[Message] = []
        async with aclosing(loop.steps(request, run=run, untrusted=doubted)) as steps:
            async for step in steps:
                match step:
                    case TurnEnded():
                        said += step.messages
                    case RunEnded(untrusted=True):
                        await self._taint.mark_tainted(owner, said)
                    case _:
                        pass
                yield step


_NOT_ALLOWED = "{name} was not run: the user did not allow it."


class AppliedApprovals(Struct, frozen=True):
    """A history in which every call that waited has its result."""

    messages: tuple[Message, ...]
    executed: tuple[tuple[ToolCall, ToolResult], ...] = ()
    """The calls that were run for it."""


async def apply_approvals(
    messages: tuple[Message, ...], executor: Executor, store: Store, owner: str
) -> AppliedApprovals:
    """Run what was allowed, and say of the rest that it was not."""
    if not any(_is_approval_answer(part) for message in messages for part in message.parts):
        return AppliedApprovals(messages)
    calls = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolCall)}
    desk = _ApprovalRunner(calls, executor, store, owner)
    told: list[Message] = []
    for message in messages:
        parts = [
            await desk.answer(part) if isinstance(part, ToolResult) and _is_approval_answer(part) else part
            for part in message.parts
        ]
        told.append(structs.replace(message, parts=tuple(parts)))
    return AppliedApprovals(tuple(told), tuple(desk.executed))


def _is_approval_answer(part: AnyPart) -> bool:
    return isinstance(part, ToolResult) and part.spelling in (APPROVED, DENIED)


class _ApprovalRunner:
    def __init__(self, calls: dict[str, ToolCall], executor: Executor, store: Store, owner: str) -> None:
        self._calls = calls
        self._executor = executor
        self._store = store
        self._owner = owner
        self.executed: list[tuple[ToolCall, ToolResult]] = []

    async def answer(self, approval: ToolResult) -> ToolResult:
        call = self._calls.get(approval.call_id)
        if call is None:
            raise Problem("invalid_request", f"no call waits for the approval {approval.call_id!r}", where="/input")
        if approval.spelling == DENIED:
            told = Text(text=_NOT_ALLOWED.format(name=call.name))
            return ToolResult(call_id=call.id, content=(told, *approval.content), failed=True)
        key = f"approved {call.id}"
        result = await self._find_saved_result(key)
        if result is None:
            result = (await self._executor.perform(call, f"{self._owner}:{key}")).result
            with contextlib.suppress(Unavailable):
                kept = encode_messages([Message(role="user", parts=(result,))])
                await self._store.save_blobs(self._owner, {key: kept})
        self.executed.append((call, result))
        return result

    async def _find_saved_result(self, key: str) -> ToolResult | None:
        with contextlib.suppress(Unavailable, ValueError):
            kept = await self._store.find_blobs(self._owner, [key])
            parts = _all_parts(decode_messages(kept[key])) if key in kept else []
            return next((part for part in parts if isinstance(part, ToolResult)), None)
        return None


def _all_parts(messages: Sequence[Message]) -> list[AnyPart]:
    return [part for message in messages for part in message.parts]
