"""The dependencies of the MCP tools (models, tools, pages, conversations), and the caller of a request."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from msgspec import Struct

from dragoman.agent import JobRunner, Limits, Model
from dragoman.agent.config import Price
from dragoman.core.request import NativeTool
from dragoman.core.response import Response
from dragoman.gateway.agents.settings import AgentCompaction
from dragoman.mcp.settings import McpTable
from dragoman.sessions.conversations import Conversations
from dragoman.tools import Executor, Registry
from dragoman.tools.web.documents import WebDocument

CALLER_KEY = "dragoman.caller"
"""The key of the caller in the ASGI scope of a request."""


def _allow_any_model(_model: str) -> bool:
    return True


class ToolCaller(Struct, frozen=True, kw_only=True):
    """The caller of a tool: the owner of the API key, and its allowed models."""

    owner: str = "local"
    allows: Callable[[str], bool] = _allow_any_model
    """Returns whether the caller is allowed to use a model."""


LOCAL_CALLER = ToolCaller()
"""The caller on standard input: the user who started the process."""


def caller_of(ctx: ServerRequestContext[Any, Any]) -> ToolCaller:
    """Return the caller of a request; on standard input, the user who started the process."""
    return LOCAL_CALLER if ctx.request is None else ctx.request.scope.get(CALLER_KEY, LOCAL_CALLER)


class QueryAgent(Struct, frozen=True, kw_only=True):
    """An agent of the configuration, with its tools."""

    model: str
    system: str
    registry: Registry
    limits: Limits
    destinations: tuple[str, ...]
    price: Price | None
    compaction: AgentCompaction


class Service(Struct, frozen=True, kw_only=True):
    """The dependencies of the MCP tools."""

    settings: McpTable
    """Defaults of tool calls; without a `model`, none is configured."""
    model: Callable[[str], Model]
    """Returns the function that sends model requests for an owner."""
    search_tool: Callable[[str], NativeTool | None]
    """Returns the native tool with which a model searches the web; None for a model without one."""
    list_pages: Callable[[Response], list[tuple[str, str]]]
    """Returns the URL and title of each page that a search found, whether the answer cites it or not."""
    find_agent: Callable[[str], QueryAgent | None]
    """Returns the agent with a name; None if there is none."""
    executor: Executor
    """Runs the tools that are available at the moment: external servers connect and disconnect."""
    read_page: Callable[[str, str], Awaitable[WebDocument]]
    """Fetches a page by URL for an owner, or raises `Refused`."""
    conversations: Conversations
    job_runner: JobRunner
    """Runs `query` calls as jobs."""
