"""Selects the server-side tools for a request.

A request selects them by its model name (an agent), by the header `x-dragoman-tools`, or by its dialect's own format
for MCP servers. A server is identified by its name in the configuration; a URL in the request is never used. Tool names
in the configuration that match nothing are only logged as warnings, because a program that embeds the gateway may add
tools of its own.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct, structs

from dragoman.agent import Compaction, Limits, Model, summary_by
from dragoman.agent.config import Price
from dragoman.core.losses import Loss
from dragoman.core.parts import Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.dialects.record import RequestedServer
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.settings import AgentCompaction, AgentLimits, AgentTable
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.turn_functions import TurnFunction
from dragoman.tools import Registry
from dragoman.tools.handler import NAMESPACE_SEPARATOR, list_client_tools, qualify_name

TOOLS_HEADER = "x-dragoman-tools"
_ARTIFACT_TOOL = "read_artifact"
"""The tool that reads outputs that were too large; the output of any tool may be."""


class ToolOrigin(NamedTuple):
    """The server of a tool, and the tool's name there."""

    server: str
    tool: str


def parse_origin(name: str) -> ToolOrigin | None:
    """Parse the server and the tool from a qualified name; None if it names no server."""
    server, separator, tool = name.partition(NAMESPACE_SEPARATOR)
    return ToolOrigin(server, tool) if separator else None


class _SelectedTools(NamedTuple):
    """The tools that a request itself selects."""

    automatic: dict[str, None]
    needs_approval: dict[str, None]
    """Tools that run after the client's approval."""
    origins: dict[str, ToolOrigin]
    """The origins of tools from servers that the request names."""


class Toolset(Struct, frozen=True, kw_only=True):
    """A request and the server-side tools for it."""

    client_request: Request
    """The request as the client sent it."""
    request: Request
    """The request without its selection of server-side tools."""
    registry: Registry
    """Tools that run without approval."""
    approval_registry: Registry
    """Tools that run after the client's approval."""
    find_origins: Callable[[], Mapping[str, ToolOrigin]] = dict
    """Returns the origins of tools from servers that the client requested, by tool name."""
    shown_functions: Mapping[str, TurnFunction] = {}
    """The tools of the registry whose calls the client sees as those of its vendor's own tool, by name."""
    server_errors: Mapping[str, str] = {}
    """The servers that the client requested, each with the reason why it cannot be reached, or ""."""
    losses: tuple[Loss, ...] = ()
    """Requested servers that are not available."""
    limits: Limits = Limits()
    destinations: tuple[str, ...] = ()
    """Hosts to which tools may send data even after untrusted text was read."""
    price: Price | None = None
    compaction: AgentCompaction = AgentCompaction()

    @property
    def tool_origins(self) -> Mapping[str, ToolOrigin]:
        """The origins of tools from servers that the client requested, by tool name; the client sees these calls."""
        return self.find_origins()

    @property
    def client_tools(self) -> frozenset[str]:
        """The names of the tools that the client runs."""
        return list_client_tools(self.request)

    def find_shown(self, call: ToolCall) -> TurnFunction | None:
        """Return the function of a call that the client sees; None for any other call."""
        return self.shown_functions.get(qualify_name(call.namespace, call.name))


def _no_error(_name: str) -> str:
    return ""


class ToolServers(Struct, frozen=True):
    """The external servers that provide tools."""

    names: Collection[str] = ()
    """The names that a request may use."""
    find_origin: Callable[[str], tuple[str, str] | None] = parse_origin
    """Returns the server of a tool and the tool's name there; None if it is not from a server."""
    find_error: Callable[[str], str] = _no_error
    """Returns why a server cannot be reached; "" if it can."""


class AgentRegistry:
    """All agents and server-side tools."""

    def __init__(
        self,
        registry: Registry,
        agents: Mapping[str, AgentTable] | None = None,
        servers: ToolServers | None = None,
        prices: Mapping[str, Price | None] | None = None,
    ) -> None:
        self.registry = registry
        self.agents = agents or {}
        servers = servers or ToolServers()
        self.servers = servers.names
        """The names that a request may use."""
        self._find_origin = servers.find_origin
        self._find_error = servers.find_error
        self._prices = prices or {}
        """The price function of each agent."""

    @property
    def _selectable_names(self) -> list[str]:
        """The names that a request can select: servers, and tools that belong to no server."""
        return [*sorted(self.servers), *(name for name in self.registry.names if NAMESPACE_SEPARATOR not in name)]

    @property
    def models(self) -> dict[str, str]:
        """The model of each agent, by agent name."""
        return {name: agent.model for name, agent in self.agents.items()}

    def select_tools(self, client_request: ClientRequest) -> Toolset | None:
        """Return the server-side tools for a request; None if it uses none."""
        agent = self.agents.get(client_request.call.model)
        if agent is None and not client_request.tools and not self.servers:
            return None
        dialect = dialect_named(client_request.dialect)
        remote = dialect.remote if self.servers else None
        is_marked = remote is not None and remote.marker in client_request.call.body
        if agent is None and not client_request.tools and not is_marked:
            return None
        original = request = dialect.parse_request(client_request.call)
        servers: tuple[RequestedServer, ...] = ()
        if remote is not None and is_marked:
            request, servers = remote.take_servers(request, self.servers)
        if agent is None and not client_request.tools and not servers:
            return None
        return self._build_toolset(client_request, agent, original, request, servers)

    def _build_toolset(
        self,
        client_request: ClientRequest,
        agent: AgentTable | None,
        original: Request,
        request: Request,
        servers: tuple[RequestedServer, ...],
    ) -> Toolset:
        client_tools = list_client_tools(request)
        patterns = [pattern.strip() for pattern in client_request.tools.split(",") if pattern.strip()]
        for pattern in patterns:
            self._require_known(pattern)
        server_errors = {server.name: self._explain_missing(server.name) for server in servers}
        selected = self._select(patterns, servers)
        for name in (*selected.automatic, *selected.needs_approval):
            _require_allowed(name, client_request)
        taken = client_tools.intersection((*selected.automatic, *selected.needs_approval))
        if taken:
            message = f"the tool {min(taken)!r} is also a server-side tool that you selected; rename your own tool"
            raise Problem("invalid_request", message, code="invalid_tool", where="/tools")
        if agent is not None:
            request = _add_instructions(structs.replace(request, model=agent.model), agent.system)

        cached = [(self.registry.handlers, selected)]

        def current_selection() -> _SelectedTools:
            if cached[0][0] is not self.registry.handlers:
                cached[0] = (self.registry.handlers, self._select(patterns, servers))
            return cached[0][1]

        def choose() -> list[str]:
            selection = current_selection()
            names = [name for name in selection.automatic if _is_allowed(name, client_request)]
            agent_tools = agent.tools if agent is not None else ()
            names += [name for pattern in agent_tools for name in self.find_tools(pattern)]
            excluded = client_tools.union(selection.needs_approval)
            names = [name for name in dict.fromkeys(names) if name not in excluded]
            return [*names, _ARTIFACT_TOOL] if names and _ARTIFACT_TOOL not in client_tools else names

        # Tools that a server adds during the run are used too, unless they need approval, which the client must know.
        registry = self.registry.select(choose)
        _require_reachable_choice(request, server_errors, (*client_tools, *registry.names, *selected.needs_approval))
        return Toolset(
            client_request=original,
            request=request,
            registry=registry,
            approval_registry=self.registry.subset(selected.needs_approval),
            find_origins=lambda: current_selection().origins,
            server_errors=server_errors,
            losses=tuple(
                Loss(server.where, server_errors[server.name], "dropped")
                for server in servers
                if server_errors[server.name]
            ),
            limits=build_limits(agent.limits) if agent is not None else Limits(),
            destinations=agent.destinations if agent is not None else (),
            price=self._prices.get(client_request.call.model) if agent is not None else None,
            compaction=agent.compaction if agent is not None else AgentCompaction(),
        )

    def _select(self, patterns: Iterable[str], servers: Iterable[RequestedServer]) -> _SelectedTools:
        """Return the tools that a request itself selects, of those that exist now."""
        selected = _SelectedTools({name: None for pattern in patterns for name in self.find_tools(pattern)}, {}, {})
        for server in servers:
            for name, origin in self._iterate_allowed_tools(server):
                selected.origins[name] = origin
                is_free = server.approval_free is None or origin.tool in server.approval_free
                (selected.automatic if is_free else selected.needs_approval)[name] = None
        return selected

    def _require_known(self, pattern: str) -> None:
        """Raise a `Problem` if a name matches no tool or server."""
        if self.find_tools(pattern):
            return
        if reason := self._explain_missing(pattern.partition(NAMESPACE_SEPARATOR)[0]):
            raise Problem("unreachable", f"{TOOLS_HEADER}: {reason}")
        close = self.registry.nearest(pattern)
        hint = f": did you mean {' or '.join(close)}?" if close else suggest_names(pattern, self._selectable_names)
        message = f"{TOOLS_HEADER}: unknown tool or server {pattern!r}{hint}"
        raise Problem("invalid_request", message, code="unknown_tool")

    def _explain_missing(self, server: str) -> str:
        """Return why a configured server has no tools; "" if it has some or is unknown."""
        error = "" if any(self._tools_of(server)) else self._find_error(server)
        return f"the server {server!r} is not reachable: {error}" if error else ""

    def find_tools(self, pattern: str) -> list[str]:
        """Return the tools that a name selects: one tool, all tools of a server, or those that match a pattern."""
        if self.registry.has(pattern):
            return [pattern]
        if "*" in pattern:
            return [name for name in self.registry.names if fnmatchcase(name, pattern)]
        return [name for name, _ in self._tools_of(pattern)]

    def select_patterns(self, patterns: Collection[str]) -> Registry:
        """Return a live view of the tools that names, servers and patterns select."""

        def choose() -> tuple[str, ...]:
            names = dict.fromkeys(name for pattern in patterns for name in self.find_tools(pattern))
            return (*names, _ARTIFACT_TOOL) if names else ()

        return self.registry.select(choose)

    def _tools_of(self, server: str) -> Iterator[tuple[str, ToolOrigin]]:
        for name in self.registry.names:
            origin = self._find_origin(name)
            if origin is not None and origin[0] == server:
                yield name, ToolOrigin(*origin)

    def _iterate_allowed_tools(self, server: RequestedServer) -> Iterator[tuple[str, ToolOrigin]]:
        for name, origin in self._tools_of(server.name):
            if origin.tool not in server.excluded_tools and (
                server.allowed_tools is None or origin.tool in server.allowed_tools
            ):
                yield name, origin


def _require_reachable_choice(request: Request, server_errors: Mapping[str, str], names: Collection[str]) -> None:
    """Raise a `Problem` if the tool choice requires a call that only an unreachable server could handle."""
    choice, unreachable = request.tool_choice, [(server, error) for server, error in server_errors.items() if error]
    if choice is None or not unreachable:
        return
    for server, error in unreachable:
        if any(name.startswith(server + NAMESPACE_SEPARATOR) for name in choice.names):
            raise Problem("unreachable", error, where="/tool_choice")
    if choice.mode == "required" and not names:
        raise Problem("unreachable", unreachable[0][1], where="/tool_choice")


def _is_allowed(name: str, client_request: ClientRequest) -> bool:
    return not client_request.allowed or any(fnmatchcase(name, pattern) for pattern in client_request.allowed)


def _require_allowed(name: str, client_request: ClientRequest) -> None:
    if not _is_allowed(name, client_request):
        raise Problem("permission", f"this API key is not allowed to use the tool {name!r}")


def build_limits(limits: AgentLimits) -> Limits:
    """Convert the configured limits of an agent."""
    return Limits(
        turns=limits.turns,
        seconds=limits.seconds or None,
        tokens=limits.tokens or None,
        calls=limits.calls or None,
        cost=limits.cost or None,
    )


def build_compaction(settings: AgentCompaction, model: Model, default_model: str) -> Compaction | None:
    """Return how a long history is compacted, None for never; `default_model` summarises if no model is configured."""
    if not settings.context:
        return None
    summarise = summary_by(model, settings.model or default_model)
    return Compaction(summarise=summarise, context=settings.context, share=settings.share, keep=settings.keep)


def _add_instructions(request: Request, system: str) -> Request:
    """Put an agent's instructions before those of the client."""
    if not system:
        return request
    leading = count_leading_systems(request.messages)
    client_parts = tuple(part for message in request.messages[:leading] for part in message.parts)
    first = Message(role="system", parts=(Text(text=system), *client_parts))
    return structs.replace(request, messages=(first, *request.messages[leading:]))


BUILT_IN_TOOLS = ("web_fetch", "read_artifact")
"""Tools that are always available."""


def find_unknown_tools(agents: Mapping[str, AgentTable], servers: Collection[str]) -> Iterable[tuple[str, str]]:
    """Yield the tool names of agents that match no tool or server: the configuration key and the warning."""
    for name, agent in agents.items():
        for pattern in agent.tools:
            if not _can_match(pattern, servers):
                yield f"agents.{name}.tools", f"unknown tool or server {pattern!r}{suggest_names(pattern, servers)}"


def suggest_names(name: str, servers: Collection[str]) -> str:
    """Return the end of an error message that suggests the closest names, or lists the known names."""
    names = list(dict.fromkeys((*servers, *BUILT_IN_TOOLS)))
    close = get_close_matches(name.partition(NAMESPACE_SEPARATOR)[0], names, 2)
    return f": did you mean {' or '.join(close)}?" if close else f"; known names are {', '.join(names[:20])}"


def _can_match(pattern: str, servers: Collection[str]) -> bool:
    if "*" not in pattern:
        return pattern in BUILT_IN_TOOLS or pattern.partition(NAMESPACE_SEPARATOR)[0] in servers
    if any(fnmatchcase(tool, pattern) for tool in BUILT_IN_TOOLS):
        return True
    prefix = pattern.partition("*")[0]
    server_prefixes = [f"{server}{NAMESPACE_SEPARATOR}" for server in servers]
    return any(known.startswith(prefix) or prefix.startswith(known) for known in server_prefixes)
