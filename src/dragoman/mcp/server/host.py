"""The host (MCP client) of a `query` call: its prompt, its progress notifications, and its user's approval.

A call that runs as a task asks the user through the status of the task. During a call that a host of the older protocol
revision waits for, the question is sent by elicitation, if the host supports it. On other hosts approval is impossible,
and the model gets to know that. Only an explicit yes is an approval. The agent loop of a task runs as steps of the
task's run.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Protocol, cast

import msgspec
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from dragoman.agent import (
    Agent,
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    JobRunner,
    Step,
    TurnEnded,
    WatchedRuntime,
    Within,
)
from dragoman.core.parts import AnyPart, Inline, Link, Media, Text, media_kind_of
from dragoman.core.problems import Problem
from dragoman.mcp.server.tasks import TaskJob
from dragoman.tasks import TaskSet
from dragoman.tools import Progress as ToolProgress

_SCHEMES = ("https://", "http://", "gs://", "data:")
APPROVAL_SECONDS = 300.0
"""The timeout in seconds for the user's answer."""


class InlineData(BaseModel):
    """Media in the call itself."""

    mimeType: Annotated[str, Field(description="the media type, like image/png")]  # noqa: N815  the Gemini API's field name
    data: Annotated[str, Field(description="the bytes in base64")]


class FileData(BaseModel):
    """Media behind an address."""

    fileUri: Annotated[str, Field(description="https, http, gs or data")]  # noqa: N815  the Gemini API's field name
    mimeType: Annotated[str, Field(description="the media type, if it is known")] = ""  # noqa: N815  the Gemini API's field name


class Part(BaseModel):
    """One part of the question, in Gemini's form: exactly one of the three."""

    text: str | None = None
    inlineData: InlineData | None = None  # noqa: N815  the Gemini API's field name
    fileData: FileData | None = None  # noqa: N815  the Gemini API's field name


def build_prompt_parts(prompt: str, extra_parts: list[Part] | None) -> tuple[AnyPart, ...]:
    """Return the parts of the user message: `extra_parts`, then the prompt."""
    parts = [_to_part(part, f"/parts/{at}") for at, part in enumerate(extra_parts or [])]
    return (*parts, Text(text=prompt))


def _to_part(part: Part, where: str) -> AnyPart:
    match part:
        case Part(text=str(text), inlineData=None, fileData=None):
            return Text(text=text)
        case Part(text=None, inlineData=InlineData() as inline, fileData=None):
            return _build_media(inline.mimeType, Inline(inline.data))
        case Part(text=None, inlineData=None, fileData=FileData() as file):
            return _build_file_media(file, where)
        case _:
            raise Problem("invalid_request", f"{where}: pass exactly one of text, inlineData and fileData", where=where)


def _build_file_media(file: FileData, where: str) -> Media:
    uri = file.fileUri
    if not uri.lower().startswith(_SCHEMES):
        raise Problem(
            "invalid_request", f"{where}/fileData/fileUri: the URI must start with one of {', '.join(_SCHEMES)}"
        )
    if not uri.startswith("data:"):
        return _build_media(file.mimeType, Link(uri))
    head, comma, data = uri.removeprefix("data:").partition(",")
    media_type, _, coding = head.partition(";")
    if not comma or coding != "base64":
        raise Problem("invalid_request", f"{where}/fileData/fileUri: a data: URI needs a media type and base64")
    return _build_media(media_type, Inline(data))


def _build_media(media_type: str, source: Inline | Link) -> Media:
    return Media(kind=media_kind_of(media_type), media_type=media_type, source=source)


def format_arguments(arguments: str, limit: int = 80) -> str:
    """Return the arguments of a call as one short line."""
    try:
        decoded: Any = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        decoded = arguments
    members = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {"": decoded}
    text = ", ".join(f"{key}={value}" if key else str(value) for key, value in members.items())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def describe_step(step: Step, turns: int) -> str:
    """Return the progress message for a step, or "" for a step that is not reported."""
    match step:
        case CallStarted(call):
            return f"{call.name}({format_arguments(call.arguments)})"
        case CallProgressed(progress):
            return f"{progress.call.name}: {_format_progress(progress)} {progress.message}".rstrip()
        case CallEnded(call, execution):
            return f"{call.name}: {execution.outcome}"
        case TurnEnded(number):
            return f"turn {number} of at most {turns + 1}"
        case _:
            return ""


def _format_progress(progress: ToolProgress) -> str:
    return f"{progress.done:g}" if progress.total is None else f"{progress.done:g} of {progress.total:g}"


class Approval(BaseModel):
    """The user's decision about a call."""

    approve: bool = Field(default=False, description="Run it?")


def format_question(event: ApprovalAsked) -> str:
    """Return the question to the user about a call."""
    return f"{event.call.name}({format_arguments(event.call.arguments, 500)}): {event.reason}."


def build_approval_form(event: ApprovalAsked) -> dict[str, Any]:
    """Return the same question as an elicitation request, for the status of a task."""
    params = ElicitRequestFormParams(message=format_question(event), requested_schema=Approval.model_json_schema())
    return ElicitRequest(params=params).model_dump(by_alias=True, mode="json", exclude_none=True)


def is_approved(answer: Any) -> bool:
    """Check whether the answer to the approval form is an explicit yes."""
    match answer:
        case {"action": "accept", "content": {"approve": True}}:
            return True
        case _:
            return False


class Host(Protocol):
    """The MCP client that sent a `query` call."""

    seconds: float
    """Seconds to wait for the user's approval; 0 if the user cannot be asked."""

    def runtime(self, run: str) -> WatchedRuntime:
        """Return the runtime that the agent loop runs on."""
        ...

    async def step(self, key: str, work: Callable[[], Awaitable[str]], /) -> str:
        """Run some work outside the loop, once."""
        ...

    async def report_progress(self, message: str, /) -> None:
        """Report the progress of the run."""
        ...

    async def request_approval(self, agent: Agent, event: ApprovalAsked, /) -> None:
        """Ask the user for approval; the loop waits for the answer, but its observers do not."""
        ...

    async def close(self) -> None:
        """Stop asking the user: the run has ended."""
        ...


class WaitingHost:
    """A host that waits for the response of its call."""

    def __init__(self, ctx: Context[Any, Any], job_runner: JobRunner) -> None:
        self._ctx = ctx
        self.runtime = job_runner.runtime
        older = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.request_context.request is None
        self.seconds = APPROVAL_SECONDS if supports_elicitation(ctx) and older else 0.0
        self._progress_count = 0
        self._questions = TaskSet()

    async def step(self, _key: str, work: Callable[[], Awaitable[str]]) -> str:
        """Run the work; if the call is lost, the work is not repeated."""
        return await work()

    async def report_progress(self, message: str) -> None:
        """Send a progress notification; the number only increases, and has no total because the end is unknown."""
        self._progress_count += 1
        await self._ctx.report_progress(self._progress_count, None, message)

    async def request_approval(self, agent: Agent, event: ApprovalAsked) -> None:
        """Ask the user during the call, by elicitation."""

        async def answer() -> None:
            try:
                reply = await self._ctx.elicit(format_question(event), Approval)
            except MCPError:
                agent.answer(event.run, event.topic, value=False)
            else:
                agent.answer(event.run, event.topic, reply.action == "accept" and reply.data.approve)

        self._questions.start(answer(), "ask the user")

    async def close(self) -> None:
        """Cancel the open questions."""
        await self._questions.stop()


class TaskHost:
    """A host that polls a task for its result."""

    def __init__(self, job: TaskJob, seconds: float) -> None:
        self._job = job
        self.seconds = seconds
        self.step = job.runtime.step
        self.report_progress = job.report_progress

    def runtime(self, run: str) -> WatchedRuntime:
        """Return the run of the task as the runtime of the agent loop."""
        return _TaskRuntime(run, self._job)

    async def request_approval(self, _agent: Agent, event: ApprovalAsked) -> None:
        """Put the question into the status of the task."""
        await self._job.add_question(event.topic, build_approval_form(event))

    async def close(self) -> None:
        """Do nothing: a task that has ended has no open questions."""


class _TaskRuntime(Within):
    def __init__(self, run: str, job: TaskJob) -> None:
        super().__init__(run, job.runtime)
        self._job = job

    async def wait(self, topic: str, timeout: float | None = None) -> bool:  # noqa: ASYNC109  part of the protocol
        """Wait for the user's approval."""
        return is_approved(await self._job.wait(topic, timeout))


def supports_elicitation(ctx: Context[Any, Any]) -> bool:
    """Check whether a host can ask its user questions."""
    capabilities = ctx.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None
