"""Long runs as MCP tasks: the extension `io.modelcontextprotocol/tasks`.

Rules: the server decides what becomes a task, and only for a client that knows tasks. A task is kept before its client
hears of it, and is found by its owner alone. An error of the tool is a result; `failed` is for what went wrong around
it.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Extension, MethodBinding, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, RequestParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from dragoman.mcp.server.caller import caller_of
from dragoman.mcp.server.job import Job, Told, enter
from dragoman.mcp.server.shelf import Shelf

IDENTIFIER = "io.modelcontextprotocol/tasks"
Support = Literal["optional", "required"]
_MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)
_Context = ServerRequestContext[Any, Any]


class Named(RequestParams):
    """Which task is meant."""

    task_id: str


class Answered(Named):
    """Which task is meant, and what it asked."""

    input_responses: dict[str, Any]


class Tasks(Extension):
    """Lets calls of some tools go on while nobody waits for them."""

    identifier = IDENTIFIER

    def __init__(self, shelf: Shelf, tools: Mapping[str, Support]) -> None:
        self._shelf = shelf
        self._tools = tools

    def methods(self) -> Sequence[MethodBinding]:
        """The methods by which a client asks for a task."""
        return (
            MethodBinding("tasks/get", Named, self._get, _MODERN),
            MethodBinding("tasks/update", Answered, self._update, _MODERN),
            MethodBinding("tasks/cancel", Named, self._cancel, _MODERN),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: _Context, call_next: CallNext
    ) -> HandlerResult:
        """Run a call, and let go of it as soon as it becomes a job."""
        support = self._tools.get(params.name)
        if support is None or ctx.protocol_version not in _MODERN:
            return await call_next(ctx)
        if not _is_known(ctx):
            if support == "required":
                require_client_extension(ctx, IDENTIFIER)
            return await call_next(ctx)
        job = Job(caller_of(ctx).owner, self._shelf.ttl, self._shelf.add)
        job.task = asyncio.create_task(self._run(job, ctx, call_next))
        begun = asyncio.create_task(job.begun.wait())
        try:
            await asyncio.wait((job.task, begun), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Nobody has heard of the job, so nobody will ask for it.
            job.task.cancel()
            raise
        finally:
            begun.cancel()
        return {"resultType": "task", **_written(job.told)} if job.begun.is_set() else job.task.result()

    async def _run(self, job: Job, ctx: _Context, call_next: CallNext) -> HandlerResult:
        enter(job)
        try:
            result = await call_next(ctx)
        except asyncio.CancelledError:
            job.end("cancelled")
            raise
        except Exception as error:
            if not job.begun.is_set():
                raise
            job.end("failed", error=_error(error))
            return None
        else:
            if job.begun.is_set():
                job.end("completed", result=_dumped(result))
            return result
        finally:
            if job.begun.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(self._shelf.settle(job))

    async def _get(self, ctx: _Context, params: Named) -> HandlerResult:
        return _written(await self._found(ctx, params))

    async def _update(self, ctx: _Context, params: Answered) -> HandlerResult:
        await self._found(ctx, params)
        job = self._shelf.running(caller_of(ctx).owner, params.task_id)
        if job is not None:
            job.answer(params.input_responses)
        return {}

    async def _cancel(self, ctx: _Context, params: Named) -> HandlerResult:
        await self._found(ctx, params)
        await self._shelf.cancel(caller_of(ctx).owner, params.task_id)
        return {}

    async def _found(self, ctx: _Context, params: Named) -> Told:
        require_client_extension(ctx, IDENTIFIER)
        named = None if ctx.request is None else ctx.request.headers.get("mcp-name", "")
        if named is not None and named != params.task_id:
            raise MCPError(HEADER_MISMATCH, "the mcp-name header must be the taskId of the request")
        told = await self._shelf.find(caller_of(ctx).owner, params.task_id)
        if told is None:
            raise MCPError(INVALID_PARAMS, f"there is no task {params.task_id!r}")
        return told


def _is_known(ctx: _Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and IDENTIFIER in (capabilities.extensions or {})


def _written(told: Told) -> dict[str, Any]:
    return msgspec.to_builtins(told)


def _dumped(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


def _error(error: Exception) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {"code": INTERNAL_ERROR, "message": f"the run ended in an error: {type(error).__name__}"}
