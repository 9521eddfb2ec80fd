"""The MCP tool `query`: a model works with tools until it has an answer.

Rules: the result is text; the structured output has the same text and the statistics. An error is a failed result with
a message that the host's model can act on, and with the session id: the next call continues from what was done until
then. A host that supports tasks gets a task; all others wait, and get progress notifications.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Annotated, Any
from uuid import uuid4

import msgspec
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, ContentBlock, TextContent, ToolAnnotations
from msgspec import Struct, structs
from pydantic import BaseModel, Field

from dragoman.agent import Agent, ApprovalAsked, Limits, RunEnded, Statistics, Step
from dragoman.core.parts import Media, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Effort, Message, Request, Sampling, Thinking
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.gateway.agents.settings import AgentCompaction
from dragoman.gateway.agents.toolset import build_compaction
from dragoman.gateway.conversations.runs import (
    begin_turn,
    claim_conversation,
    decode_start,
    encode_start,
    save_turn,
    start_recording,
)
from dragoman.mcp.bridge import content_to
from dragoman.mcp.server.host import (
    APPROVAL_SECONDS,
    Host,
    Part,
    TaskHost,
    WaitingHost,
    build_prompt_parts,
    describe_step,
    supports_elicitation,
)
from dragoman.mcp.server.service import QueryAgent, Service, ToolCaller, caller_of
from dragoman.mcp.server.tasks import TaskJob, TaskTool, current_task_starter
from dragoman.sessions.values import Unavailable
from dragoman.tasks import TaskSet

NAME = "query"
AnyContext = Context[Any, Any]
_UNREACHABLE = "the conversation store is not available now; try again later"
_CUT_OFF = "[The answer is cut off: it has reached the limit of output tokens.]"
_TITLE = "Ask a model with tools"
_DESCRIPTION = (
    "Ask a model that can read web pages and use the tools configured here. It works in several turns until it has an "
    "answer. The session_id of the result continues the conversation."
)


class Numbers(BaseModel):
    """What an answer took."""

    turns: int
    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    seconds: float


class Answer(BaseModel):
    """What was answered."""

    answer: str
    session_id: str
    model: str
    stop_reason: Annotated[str, Field(description="why the run ended: finished, turns, seconds, …")]
    statistics: Numbers


class QueryRequest(Struct, frozen=True, kw_only=True):
    """The validated arguments of a call."""

    session: str
    model: str
    prompt: bytes
    """The new user message, encoded."""
    effort: Effort | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    turns: int
    seconds: float
    """Seconds to wait for the user's approval, if the call runs as a task."""


class Query:
    """Implements the tool `query`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks = TaskSet()

    def mount(self, server: MCPServer[Any]) -> None:
        """Register the tool with a server."""
        hints = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
        server.add_tool(self.query, NAME, _TITLE, _DESCRIPTION, hints)

    @property
    def task(self) -> TaskTool:
        """Return how the tool runs as a task."""
        return TaskTool("optional", self._run_task)

    async def query(  # noqa: PLR0913  the arguments of the tool
        self,
        *,
        ctx: AnyContext,
        prompt: Annotated[str, Field(description="the question or task", min_length=1)],
        session_id: Annotated[str | None, Field(description="continue this conversation", max_length=200)] = None,
        model: Annotated[str | None, Field(description="model or agent to use instead of the default")] = None,
        parts: Annotated[
            list[Part] | None, Field(description="images, documents, audio and video for the prompt")
        ] = None,
        thinking: Annotated[Effort | None, Field(description="how much the model thinks")] = None,
        max_turns: Annotated[int | None, Field(description="maximum number of turns with tools", ge=1)] = None,
        temperature: Annotated[float | None, Field(description="how random the answer is", ge=0)] = None,
        max_output_tokens: Annotated[
            int | None, Field(description="maximum length of an answer in tokens", ge=1)
        ] = None,
    ) -> Annotated[CallToolResult, Answer]:
        """Answer a call of the tool."""
        caller, settings = caller_of(ctx.request_context), self._service.settings
        most = self._find_assistant(model or settings.model).limits.turns
        try:
            message = Message(role="user", parts=build_prompt_parts(prompt, parts))
            query = QueryRequest(
                session=session_id or uuid4().hex,
                model=self._choose_model(model, caller),
                prompt=encode_messages([message]),
                effort=thinking,
                temperature=settings.temperature if temperature is None else temperature,
                max_output_tokens=max_output_tokens or settings.max_output_tokens,
                turns=min(max_turns or most, most),
                seconds=APPROVAL_SECONDS if supports_elicitation(ctx) else 0.0,
            )
            starter = current_task_starter()
            if starter is not None:
                await starter.begin(msgspec.json.encode(query), session_id=query.session)
                return CallToolResult(content=[], is_error=True)
        except Problem as problem:
            return _build_error(problem.message)
        except Unavailable:
            return _build_error(_UNREACHABLE)
        return await self._run_shielded(
            self._answer_query(query, caller.owner, WaitingHost(ctx, self._service.job_runner))
        )

    async def _run_shielded(self, answer: Coroutine[Any, Any, CallToolResult]) -> CallToolResult:
        """Run in a separate task: the SDK may cancel a call at any await, and cleanup must still finish."""
        answering = self._tasks.start(answer, "mcp query", awaited=True)
        try:
            return await asyncio.shield(answering)
        except asyncio.CancelledError:
            answering.cancel()
            raise

    async def close(self) -> None:
        """Cancel the calls that are still running."""
        await self._tasks.stop()

    async def _run_task(self, job: TaskJob, document: bytes) -> CallToolResult:
        query = msgspec.json.decode(document, type=QueryRequest)
        return await self._answer_query(query, job.owner, TaskHost(job, query.seconds))

    def _choose_model(self, name: str | None, caller: ToolCaller) -> str:
        model = name or self._service.settings.model
        if not model:
            raise Problem("invalid_request", "no model: pass `model`, or set `model` in [mcp]")
        if not caller.allows(model):
            raise Problem("permission", f"this API key is not allowed to use the model {model!r}")
        return model

    def _find_assistant(self, name: str) -> QueryAgent:
        """Return the agent with a name, else the model with that name, all tools and the settings of `query`."""
        service, settings = self._service, self._service.settings
        return service.find_agent(name) or QueryAgent(
            model=name,
            system=settings.system_prompt,
            registry=service.executor.registry,
            limits=Limits(turns=settings.max_turns, seconds=settings.seconds),
            destinations=settings.destinations,
            price=None,
            compaction=AgentCompaction(),
        )

    async def _answer_query(self, query: QueryRequest, owner: str, host: Host) -> CallToolResult:
        conversations, patience = self._service.conversations, self._service.settings.seconds
        try:
            async with claim_conversation(conversations, owner, query.session, wait=patience):
                ended = await self._run_in_conversation(query, owner, host)
        except Problem as problem:
            return _build_failure(problem.message, query)
        except Unavailable:
            return _build_failure(_UNREACHABLE, query)
        finally:
            await host.close()
        if ended.problem is not None:
            return _build_failure(ended.problem.message, query, ended)
        return _build_answer(ended, query)

    async def _run_in_conversation(self, query: QueryRequest, owner: str, host: Host) -> RunEnded:
        service, conversations = self._service, self._service.conversations

        async def open_run() -> str:
            return encode_start(await begin_turn(conversations, owner, query.session))

        unfinished = decode_start(await host.step("open", open_run))
        assistant, model = self._find_assistant(query.model), service.model(owner)
        head = (Message(role="system", parts=(Text(text=assistant.system),)),) if assistant.system else ()
        seconds = min(assistant.limits.seconds or service.settings.seconds, service.settings.seconds)
        agent = Agent(
            model,
            service.executor.of(assistant.registry, owner),
            limits=structs.replace(assistant.limits, turns=query.turns, seconds=seconds, approval=host.seconds),
            destinations=assistant.destinations,
            price=assistant.price,
            compaction=build_compaction(assistant.compaction, model, assistant.model),
            recorder=await start_recording(conversations, unfinished),
            runtime=host.runtime,
        )
        request = Request(
            model=assistant.model,
            messages=(*head, *unfinished.history, *decode_messages(query.prompt)),
            thinking=Thinking(effort=query.effort) if query.effort is not None else None,
            sampling=Sampling(temperature=query.temperature, max_tokens=query.max_output_tokens),
            stream=True,
        )
        # The start of the conversation was cut off, and may have been untrusted.
        steps = agent.steps(request, run=unfinished.run_id, untrusted=not unfinished.opened.is_whole)
        ended = await _follow_run(agent, steps, host, query.turns)
        if ended.problem is None:

            async def keep() -> str:
                await save_turn(conversations, unfinished, ended.history[len(head) :], query.model)
                return ""

            await host.step("keep", keep)
        return ended


async def _follow_run(agent: Agent, run: AsyncGenerator[Step], host: Host, turns: int) -> RunEnded:
    """Run to the end, report progress, and pass approval requests to the host without blocking."""
    ended: RunEnded | None = None
    async with aclosing(run) as steps:
        async for step in steps:
            match step:
                case RunEnded():
                    ended = step
                case ApprovalAsked():
                    await host.request_approval(agent, step)
                case _:
                    message = describe_step(step, turns)
                    if message:
                        await host.report_progress(message)
    if ended is None:
        raise Problem("internal", "the run ended without a result")
    return ended


def _build_answer(ended: RunEnded, query: QueryRequest) -> CallToolResult:
    """Return the end of a run as text and media, and as structured output with statistics."""
    last = ended.history[-1]
    parts = last.parts if last.role == "assistant" else ()
    text = ended.text
    content: list[ContentBlock] = [TextContent(type="text", text=text)] if text else []
    content += content_to(part for part in parts if isinstance(part, Media))
    if ended.stop == "finished" and ended.finish.reason == "length":
        content.append(TextContent(type="text", text=_CUT_OFF))
    return CallToolResult(content=content, structured_content=_build_structured(text, query, ended))


def _build_structured(text: str, query: QueryRequest, ended: RunEnded | None) -> dict[str, Any]:
    answer = Answer(
        answer=text,
        session_id=query.session,
        model=query.model,
        stop_reason="failed" if ended is None else ended.stop,
        statistics=_build_numbers(Statistics() if ended is None else ended.statistics),
    )
    return answer.model_dump(mode="json")


def _build_numbers(statistics: Statistics) -> Numbers:
    usage = statistics.usage
    return Numbers(
        turns=statistics.turns,
        calls=statistics.calls,
        failed_calls=statistics.failed,
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
        total_tokens=statistics.tokens,
        seconds=round(statistics.seconds, 3),
    )


def _build_failure(message: str, query: QueryRequest, ended: RunEnded | None = None) -> CallToolResult:
    """Return a failed result with the session id, under which the conversation continues from what was done."""
    text = f"{message} (session_id: {query.session})"
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, structured_content=_build_structured("", query, ended), is_error=True)


def _build_error(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
