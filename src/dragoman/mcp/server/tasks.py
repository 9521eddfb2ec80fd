"""Long runs as MCP tasks: the extension `io.modelcontextprotocol/tasks`.

The server decides which calls become tasks, and only for a client that supports tasks. A call becomes a task when its
tool calls `begin`; until then it is an ordinary call. A task is a job of the job runner: it is saved before its client
gets its id, and only its owner can find it, in every process. An error of the tool is a result; `failed` is for errors
around it. Every change of a job is emitted as a complete state, so the last one is current. A question is open until it
is answered, or until the job no longer waits for it. A job ends once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from time import time
from typing import Any, Literal, assert_never
from uuid import uuid4

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Extension, MethodBinding, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, RequestParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field, structs
from pydantic import BaseModel

from dragoman.agent import Job, JobRunner, RunState, Runtime
from dragoman.guard import attempt_async
from dragoman.mcp.server.service import caller_of

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
POLL_MILLISECONDS = 1000
"""The polling interval recommended to clients, in milliseconds."""
IDENTIFIER = "io.modelcontextprotocol/tasks"
TTL = 86_400.0
"""Seconds for which a task can be queried."""
_KIND = "task"
_PREFIX = "task-"
_MAX_LOOKS = 5
_LOOK_SECONDS = 0.1
_END_STATUSES = frozenset({"completed", "failed", "cancelled"})
_MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)
_FAILURE_MESSAGES = {
    "interrupted": "the process that ran this task has exited",
    "failed": "the run failed",
}


def now() -> str:
    """Return the current time in the protocol's format."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TaskState(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The state of a job as sent to its client, in the protocol's format."""

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl_ms: int
    poll_interval_ms: int
    status_message: str = ""
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


def create_state(name: str, ttl: float, meta: Mapping[str, Any]) -> TaskState:
    """Return the state of a new job."""
    return TaskState(
        task_id=name,
        status="working",
        created_at=(created := now()),
        last_updated_at=created,
        ttl_ms=int(ttl * 1000),
        poll_interval_ms=POLL_MILLISECONDS,
        meta=dict(meta) or None,
    )


def update_state(state: TaskState, status: TaskStatus, **changes: Any) -> TaskState:
    """Return the state with a new status and timestamp."""
    return structs.replace(state, status=status, last_updated_at=now(), **changes)


def encode_state(state: TaskState) -> bytes:
    """Encode a state as one line of JSON."""
    return msgspec.json.encode(state) + b"\n"


def decode_state(lines: bytes) -> TaskState:
    """Decode the last line: the current state."""
    return msgspec.json.decode(lines.rstrip(b"\n").rpartition(b"\n")[2], type=TaskState)


class TaskJob:
    """A run whose state a client can query."""

    def __init__(self, owner: str, runtime: Runtime, state: TaskState) -> None:
        self.owner = owner
        self.runtime = runtime
        self.state = state
        self._questions: dict[str, Any] = {}
        self._answered_topics: set[str] = set()

    async def report_progress(self, message: str) -> None:
        """Report a progress message in the state."""
        await self._emit_state(structs.replace(self.state, last_updated_at=now(), status_message=message))

    async def add_question(self, topic: str, form: Any) -> None:
        """Ask the client a question; `wait` returns the answer."""
        if topic not in self._answered_topics:
            self._questions[topic] = form
            await self._emit_questions()

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  a durable engine measures the timeout
        """Return the answer to a question; raise `TimeoutError` if there is none."""
        try:
            answer = await self.runtime.wait(topic, timeout)
        except TimeoutError:
            await self._close_question(topic)
            raise
        await self._close_question(topic)
        return answer

    async def ask_all(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the client has answered every question; return the answers by key."""
        self._questions.update(questions)
        await self._emit_questions()
        return {topic: await self.wait(topic) for topic in questions}

    def encode_end(self, *, result: dict[str, Any] | None = None, error: dict[str, Any] | None = None) -> bytes:
        """Return the final state, with a result or an error."""
        status: TaskStatus = "completed" if error is None else "failed"
        return encode_state(update_state(self.state, status, result=result, error=error, input_requests=None))

    async def _close_question(self, topic: str) -> None:
        self._answered_topics.add(topic)
        if self._questions.pop(topic, None) is not None:
            await self._emit_questions()

    async def _emit_questions(self) -> None:
        status: TaskStatus = "input_required" if self._questions else "working"
        await self._emit_state(update_state(self.state, status, input_requests=dict(self._questions) or None))

    async def _emit_state(self, state: TaskState) -> None:
        self.state = state
        await self.runtime.emit(encode_state(state))


Support = Literal["optional", "required"]
_Context = ServerRequestContext[Any, Any]


class TaskTool(Struct, frozen=True):
    """How a tool runs as a task."""

    support: Support
    work: Callable[[TaskJob, bytes], Awaitable[HandlerResult]]
    """Runs the tool with the arguments passed to `begin`, and returns the result of the call."""


class TaskParams(RequestParams):
    """The task that a request is about."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """The task, and the client's answers to its questions."""

    input_responses: dict[str, Any]


class _Document(Struct, frozen=True):
    tool: str
    arguments: bytes
    state: TaskState


class TaskStarter:
    """Lets a tool call become a task."""

    def __init__(self, job_runner: JobRunner, tool: str, owner: str, ttl: float) -> None:
        self._job_runner = job_runner
        self._tool = tool
        self._owner = owner
        self._ttl = ttl
        self.state: TaskState | None = None

    async def begin(self, arguments: bytes, **meta: Any) -> None:
        """Start a task with these arguments; the return value of the call itself is then ignored."""
        state = create_state(uuid4().hex, self._ttl, meta)
        document = msgspec.json.encode(_Document(self._tool, arguments, state))
        run = _PREFIX + state.task_id
        job = Job(owner=self._owner, run=run, kind=_KIND, document=document, first_output=encode_state(state))
        await self._job_runner.start(job)
        self.state = state


_TASK_STARTER: ContextVar[TaskStarter | None] = ContextVar("dragoman_mcp_task_starter", default=None)


def current_task_starter() -> TaskStarter | None:
    """Return the object that turns this call into a task; None if the client does not support tasks."""
    return _TASK_STARTER.get()


class Tasks(Extension):
    """Lets calls of some tools run as tasks, without a waiting client."""

    identifier = IDENTIFIER

    def __init__(self, job_runner: JobRunner, tools: Mapping[str, TaskTool], ttl: float = TTL) -> None:
        self._job_runner = job_runner
        self._tools = tools
        self._ttl = ttl
        job_runner.serve(_KIND, self._run_job)

    def methods(self) -> Sequence[MethodBinding]:
        """Return the protocol methods for tasks."""
        return (
            MethodBinding("tasks/get", TaskParams, self._get, _MODERN),
            MethodBinding("tasks/update", UpdateTaskParams, self._update, _MODERN),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, _MODERN),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: _Context, call_next: CallNext
    ) -> HandlerResult:
        """Run a call; if it becomes a task, return the state of the task."""
        tool = self._tools.get(params.name)
        if tool is None or ctx.protocol_version not in _MODERN:
            return await call_next(ctx)
        if not _supports_tasks(ctx):
            if tool.support == "required":
                require_client_extension(ctx, IDENTIFIER)
            return await call_next(ctx)
        starter = TaskStarter(self._job_runner, params.name, caller_of(ctx).owner, self._ttl)
        before = _TASK_STARTER.set(starter)
        try:
            result = await call_next(ctx)
        finally:
            _TASK_STARTER.reset(before)
        return result if starter.state is None else {"resultType": "task", **msgspec.to_builtins(starter.state)}

    async def _run_job(self, job: Job, runtime: Runtime) -> bytes:
        document = msgspec.json.decode(job.document, type=_Document)
        task_job = TaskJob(job.owner, runtime, document.state)
        done = await attempt_async(lambda: self._tools[document.tool].work(task_job, document.arguments))
        # A failed tool also has an outcome: clients poll until there is one.
        return (
            task_job.encode_end(result=_dump_result(done.value))
            if done.error is None
            else task_job.encode_end(error=_dump_error(done.error))
        )

    async def _get(self, ctx: _Context, params: TaskParams) -> HandlerResult:
        return msgspec.to_builtins(await self._find_task(ctx, params))

    async def _update(self, ctx: _Context, params: UpdateTaskParams) -> HandlerResult:
        answers = params.input_responses
        # Answers to questions that the task did not ask are ignored.
        for topic in await find_requested_topics(lambda: self._find_task(ctx, params), answers):
            await self._job_runner.tell(caller_of(ctx).owner, _PREFIX + params.task_id, topic, answers[topic])
        return {}

    async def _cancel(self, ctx: _Context, params: TaskParams) -> HandlerResult:
        await self._find_task(ctx, params)
        await self._job_runner.cancel(caller_of(ctx).owner, _PREFIX + params.task_id)
        return {}

    async def _find_task(self, ctx: _Context, params: TaskParams) -> TaskState:
        require_client_extension(ctx, IDENTIFIER)
        named = None if ctx.request is None else ctx.request.headers.get("mcp-name", "")
        if named is not None and named != params.task_id:
            raise MCPError(HEADER_MISMATCH, "the mcp-name header must equal the taskId of the request")
        state = await self._job_runner.state(caller_of(ctx).owner, _PREFIX + params.task_id)
        if state is None or time() - state.created > self._ttl:
            raise MCPError(INVALID_PARAMS, f"unknown task {params.task_id!r}")
        return build_state(state)


async def find_requested_topics(read_state: Callable[[], Awaitable[TaskState]], topics: Iterable[str]) -> set[str]:
    """Return the topics that a task has asked about.

    A client may answer a question in another process before the state with the question is visible there: read it
    again.
    """
    answered, state = set(topics), await read_state()
    for _ in range(_MAX_LOOKS):
        if answered <= (state.input_requests or {}).keys() or state.status in _END_STATUSES:
            break
        await asyncio.sleep(_LOOK_SECONDS)
        state = await read_state()
    return answered & (state.input_requests or {}).keys()


def build_state(state: RunState) -> TaskState:
    """Return the task state for the state of its run."""
    match state.status:
        case "completed":
            return decode_state(state.outcome)
        case "running":
            return decode_state(state.last_output)
        case "cancelled":
            return structs.replace(decode_state(state.last_output), status="cancelled", input_requests=None)
        case "interrupted" | "failed":
            error = {"code": INTERNAL_ERROR, "message": _FAILURE_MESSAGES[state.status]}
            return structs.replace(decode_state(state.last_output), status="failed", input_requests=None, error=error)
        case _:
            assert_never(state.status)


def _supports_tasks(ctx: _Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and IDENTIFIER in (capabilities.extensions or {})


def _dump_result(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


def _dump_error(error: BaseException) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {"code": INTERNAL_ERROR, "message": f"the run failed: {type(error).__name__}"}
