"""Runs the agent loop for a request with server-side tools; calls to other tools go to the client.

A call that waited for the client's approval runs once, before the model is called. Its result is saved, so that a
repeated history does not run it again.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from uuid import uuid4

from msgspec import Struct, structs

from dragoman.agent import Agent as Loop
from dragoman.agent import JobRunner, RunEnded, Step, TurnEnded, Within
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.dialects.record import APPROVED, DENIED
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.event_writer import write_events
from dragoman.gateway.agents.hidden_turns import HiddenTurns, TaintStore
from dragoman.gateway.agents.reply import RunReply
from dragoman.gateway.agents.reply_texts import drop_interim_texts
from dragoman.gateway.agents.toolset import AgentRegistry, Toolset, build_compaction
from dragoman.gateway.client_request import ClientRequest, require_valid_tools
from dragoman.gateway.context import CallContext, RequestContext, build_program_context
from dragoman.gateway.conversations.runs import RunRecorder, hold_conversation
from dragoman.gateway.model import UpstreamModel
from dragoman.gateway.record import Record
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.tools import Executor


class Agents:
    """Handles requests that use server-side tools."""

    def __init__(self, agent_registry: AgentRegistry, executor: Executor, store: Store, job_runner: JobRunner) -> None:
        self._agent_registry = agent_registry
        self.models = agent_registry.models
        self.servers = agent_registry.servers
        self._job_runner = job_runner
        self._executor = executor
        self._store = store
        self._hidden_turns = HiddenTurns(store)
        self._taint = TaintStore(store)

    def uses_tools(self, request: ClientRequest) -> bool:
        """Return whether server-side tools run for a request."""
        return self._agent_registry.select_tools(request) is not None

    def start_answer(
        self, context: RequestContext, build_model: Callable[[CallContext], UpstreamModel]
    ) -> Awaitable[None] | None:
        """Return the awaitable that replies; None if the request uses no server-side tools."""
        toolset = self._agent_registry.select_tools(context.request)
        return self._answer(toolset, context, build_model) if toolset is not None else None

    async def _answer(
        self, toolset: Toolset, context: RequestContext, build_model: Callable[[CallContext], UpstreamModel]
    ) -> None:
        """Run the agent loop and send its reply; raise the `Problem` of a run that fails before the response starts."""
        client_request, record, runtime = context.request, context.record, context.runtime
        owner, dialect = client_request.owner, dialect_named(client_request.dialect)
        conversation = context.recorder.conversation if context.recorder is not None else None
        # The tool choice may name a server-side tool.
        tools = (*toolset.request.tools, *toolset.registry.definitions, *toolset.approval_registry.definitions)
        await require_valid_tools(client_request.call, dialect, structs.replace(toolset.request, tools=tools))
        if client_request.strict:
            reject_losses(toolset.losses, strict=client_request.strict)
        record.losses = (*record.losses, *toolset.losses)
        model = build_model(context)
        run = f"run_{uuid4().hex if runtime is None else runtime.run}"
        executor = self._executor.of(toolset.registry, owner)
        # A run is recorded only if the conversation is stored. Hidden turns are saved in any case.
        is_stored, replaces_ended = context.recorder is not None, runtime is not None
        recorder = RunRecorder(self._store.runs, owner, replaces_ended=replaces_ended) if is_stored else None
        # A summary has no client request, so its losses and errors have no pointers into one.
        summary_model = build_model(build_program_context(owner, Record(owner=owner, dialect=client_request.dialect)))
        loop = Loop(
            model,
            executor,
            # There is no user to ask, so calls that need approval are not run.
            limits=structs.replace(toolset.limits, approval=0.0),
            destinations=toolset.destinations,
            price=toolset.price,
            compaction=build_compaction(toolset.compaction, summary_model, toolset.request.model),
            recorder=recorder,
            runtime=self._job_runner.runtime if runtime is None else partial(Within, outer=runtime),
        )
        is_whole = not client_request.call.stream
        options = ReplyOptions(salt=run, is_whole=is_whole)
        reply = RunReply(dialect, toolset, options, lambda: model.dialect_for(toolset.request.model))
        async with AsyncExitStack() as stack:
            if conversation is not None:
                await stack.enter_async_context(hold_conversation(self._store, conversation))
            request, reply.approved_calls = await self._prepare_request(toolset, context)
            steps = await stack.enter_async_context(aclosing(self._run_steps(loop, request, run, owner)))
            wants_format = toolset.client_request.output is not None and toolset.client_request.output.kind != "text"
            shown_steps = drop_interim_texts(steps, is_stream=not is_whole) if wants_format else steps

            def note_losses() -> None:
                record.losses = (*record.losses, *reply.losses)

            events = self._render_events(shown_steps, reply, owner)
            await write_events(events, toolset.client_request, context, note_losses)

    async def _render_events(self, steps: AsyncIterator[Step], reply: RunReply, owner: str) -> AsyncIterator[Event]:
        """Yield the events for the client; turns that it does not receive are saved before the end."""
        async for step in steps:
            if isinstance(step, RunEnded):
                await self._hidden_turns.save(owner, reply.messages, reply.client_ids)
            for event in reply.feed(step):
                yield event

    async def _prepare_request(
        self, toolset: Toolset, context: RequestContext
    ) -> tuple[Request, Sequence[tuple[ToolCall, ToolResult]]]:
        """Return the request for the agent loop, and the approved calls that were run for it.

        Hidden turns are restored in its history. Tools that need approval are declared as if they were the client's.
        """
        client_request, request = context.request, toolset.request
        remote = dialect_named(client_request.dialect).remote
        messages = request.messages
        if remote is not None and toolset.server_errors:
            messages = remote.restore_calls(messages, self.servers)
        losses = await self._hidden_turns.find_unrestorable(client_request.owner, messages)
        if client_request.strict:
            reject_losses(losses, strict=client_request.strict)
        context.record.losses = (*context.record.losses, *losses)
        messages = await self._hidden_turns.restore(client_request.owner, messages)
        applied = await apply_approvals(
            messages,
            self._executor.of(toolset.approval_registry, client_request.owner),
            self._store,
            client_request.owner,
        )
        tools = (*request.tools, *toolset.approval_registry.definitions)
        return structs.replace(request, messages=applied.messages, tools=tools), applied.executed

    async def _run_steps(self, loop: Loop, request: Request, run: str, owner: str) -> AsyncGenerator[Step]:
        """Yield the steps of a run; save its texts as tainted if it read untrusted data."""
        is_tainted = await self._taint.is_tainted(owner, request.messages)
        messages: list[Message] = []
        async with aclosing(loop.steps(request, run=run, untrusted=is_tainted)) as steps:
            async for step in steps:
                match step:
                    case TurnEnded():
                        messages += step.messages
                    case RunEnded(untrusted=True):
                        await self._taint.mark_tainted(owner, messages)
                    case _:
                        pass
                yield step


_NOT_ALLOWED = "{name} was not run: the user did not allow it."


class AppliedApprovals(Struct, frozen=True):
    """A history in which every call that waited for approval has its result."""

    messages: tuple[Message, ...]
    executed: tuple[tuple[ToolCall, ToolResult], ...] = ()
    """The calls that were run, with their results."""


async def apply_approvals(
    messages: tuple[Message, ...], executor: Executor, store: Store, owner: str
) -> AppliedApprovals:
    """Run the calls that the client approved, and add an error result to those that it denied."""
    if not any(_is_approval_answer(part) for message in messages for part in message.parts):
        return AppliedApprovals(messages)
    calls = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolCall)}
    runner = _ApprovalRunner(calls, executor, store, owner)
    answered: list[Message] = []
    for message in messages:
        parts = [
            await runner.answer(part) if isinstance(part, ToolResult) and _is_approval_answer(part) else part
            for part in message.parts
        ]
        answered.append(structs.replace(message, parts=tuple(parts)))
    return AppliedApprovals(tuple(answered), tuple(runner.executed))


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
            message = f"no tool call is waiting for approval {approval.call_id!r}"
            raise Problem("invalid_request", message, where="/input")
        if approval.spelling == DENIED:
            reason = Text(text=_NOT_ALLOWED.format(name=call.name))
            return ToolResult(call_id=call.id, content=(reason, *approval.content), failed=True)
        key = f"approved {call.id}"
        result = await self._find_saved_result(key)
        if result is None:
            result = (await self._executor.perform(call, f"{self._owner}:{key}")).result
            with contextlib.suppress(Unavailable):
                body = encode_messages([Message(role="user", parts=(result,))])
                await self._store.save_blobs(self._owner, {key: body})
        self.executed.append((call, result))
        return result

    async def _find_saved_result(self, key: str) -> ToolResult | None:
        with contextlib.suppress(Unavailable, ValueError):
            found = await self._store.find_blobs(self._owner, [key])
            messages = decode_messages(found[key]) if key in found else ()
            parts = (part for message in messages for part in message.parts)
            return next((part for part in parts if isinstance(part, ToolResult)), None)
        return None
