"""The tool `query`: a model that works with tools until it has an answer.

Rules: the answer is text, and the same with its numbers is structured. What goes wrong is a failed result with words
that the host's model can act on. A host that knows tasks gets one; all others wait, and hear how far it is.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any
from uuid import uuid4

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, ContentBlock, TextContent, ToolAnnotations
from msgspec import structs
from pydantic import BaseModel, Field

from dragoman.agent import Agent, ApprovalAsked, Limits, RunEnded, Statistics, Step
from dragoman.core.parts import Media, Refusal, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Thinking
from dragoman.gateway.sessions.unfinished import Unfinished
from dragoman.mcp.bridge import content_to
from dragoman.mcp.server.approving import Approver
from dragoman.mcp.server.asking import Effort, Part, question
from dragoman.mcp.server.caller import Caller, caller_of
from dragoman.mcp.server.job import current_job
from dragoman.mcp.server.progress import Progress
from dragoman.mcp.server.service import Service
from dragoman.sessions.values import Unavailable

NAME = "query"
AnyContext = Context[Any, Any]
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


class Query:
    """Answers calls of the tool."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def mount(self, server: MCPServer[Any]) -> None:
        """Offer the tool."""
        hints = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
        server.add_tool(self.query, NAME, _TITLE, _DESCRIPTION, hints)

    async def query(  # noqa: PLR0913  the arguments of the tool
        self,
        *,
        ctx: AnyContext,
        prompt: Annotated[str, Field(description="what to ask", min_length=1)],
        session_id: Annotated[str | None, Field(description="continue this conversation", max_length=200)] = None,
        model: Annotated[str | None, Field(description="another model than the usual one")] = None,
        parts: Annotated[list[Part] | None, Field(description="images, documents, sounds and films beside")] = None,
        thinking: Annotated[Effort | None, Field(description="how much the model thinks")] = None,
        max_turns: Annotated[int | None, Field(description="how often the model may use tools", ge=1)] = None,
    ) -> Annotated[CallToolResult, Answer]:
        """Answer a call."""
        caller = caller_of(ctx.request_context)
        try:
            asked = Request(
                model=self._model(model, caller),
                messages=(Message(role="user", parts=question(prompt, parts)),),
                thinking=Thinking(effort=thinking) if thinking is not None else None,
                stream=True,
            )
            job = current_job()
            if job is not None:
                await job.begin()
            most = self._service.settings.max_turns
            turns = min(max_turns or most, most)
            async with self._service.conversations.lock(caller.owner, session_id or uuid4().hex):
                return await self._in_conversation(session_id or "", asked, turns, caller, ctx)
        except Problem as problem:
            return _failed(problem.message)
        except Unavailable:
            return _failed("the store of conversations cannot be reached now: ask again later")

    def _model(self, named: str | None, caller: Caller) -> str:
        model = named or self._service.settings.model
        if not model:
            raise Problem("invalid_request", "name a model: none is configured as the usual one ([mcp] model)")
        if not caller.allows(model):
            raise Problem("permission", f"this key may not ask for the model {model!r}")
        return model

    async def _in_conversation(
        self, name: str, asked: Request, turns: int, caller: Caller, ctx: AnyContext
    ) -> CallToolResult:
        service, approver = self._service, Approver(ctx)
        limits = Limits(turns=turns, seconds=service.settings.seconds, approval=approver.seconds)
        opened = await service.conversations.open(caller.owner, name)
        system = service.settings.system
        head = (Message(role="system", parts=(Text(text=system),)),) if system else ()
        model, destinations = service.model(caller.owner), service.settings.destinations
        unfinished = Unfinished(service.conversations.runs, opened)
        before = (*head, *await unfinished.found())
        executor = service.executor.of(owner=caller.owner)
        agent = Agent(model, executor, limits=limits, destinations=destinations, recorder=unfinished.recorder)
        request = structs.replace(asked, messages=(*before, *asked.messages))
        try:
            # What was cut off at the beginning may have been anything.
            steps = agent.steps(request, run=unfinished.run, untrusted=not opened.whole)
            ended = await _run(agent, steps, Progress(ctx, turns), approver)
            if ended.problem is not None and ended.stop == "failed":
                return _failed(ended.problem.message)
            await service.conversations.keep(opened, ended.history[len(head) :], asked.model)
        finally:
            await unfinished.close()
        return _answered(ended, opened.name, asked.model)


async def _run(agent: Agent, run: AsyncGenerator[Step], progress: Progress, approver: Approver) -> RunEnded:
    """Run to the end; who is asked for approval answers while the run is watched."""
    ended: RunEnded | None = None
    asking: list[asyncio.Task[None]] = []

    async def approve(asked: ApprovalAsked) -> None:
        agent.answer(asked.run, asked.topic, await approver.ask(asked))

    try:
        async with aclosing(run) as steps:
            async for step in steps:
                match step:
                    case RunEnded():
                        ended = step
                    case ApprovalAsked():
                        asking.append(asyncio.create_task(approve(step)))
                    case _:
                        await progress.tell(step)
    finally:
        for task in asking:
            task.cancel()
    if ended is None:
        raise Problem("internal", "the run ended without saying how")
    return ended


def _answered(ended: RunEnded, name: str, model: str) -> CallToolResult:
    """Return how a run ended, as text and media, and as numbers."""
    last = ended.history[-1]
    parts = last.parts if last.role == "assistant" else ()
    text = "".join(part.text for part in parts if isinstance(part, Text | Refusal))
    content: list[ContentBlock] = [TextContent(type="text", text=text)] if text else []
    content += content_to(part for part in parts if isinstance(part, Media))
    answer = Answer(
        answer=text, session_id=name, model=model, stop_reason=ended.stop, statistics=_numbers(ended.statistics)
    )
    return CallToolResult(content=content, structured_content=answer.model_dump(mode="json"))


def _numbers(statistics: Statistics) -> Numbers:
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


def _failed(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)
