"""Selects the server-side tools for a request.

A request selects them by the name of its model (an agent), by the header `x-dragoman-tools`, or by its dialect's own
form for tools of MCP servers. A server is meant by its name in the configuration; an address in the request is never
used. Names of tools in the configuration that match nothing are logged as warnings; a program may bring tools of its
own, so nothing is rejected for that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct, structs

from dragoman.agent import Compaction, Limits, Model, summary_by
from dragoman.agent.equipment import Price
from dragoman.core.losses import Loss
from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Tool, count_leading_systems
from dragoman.dialects.record import RequestedServer
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.settings import AgentCompaction, AgentLimits, AgentTable
from dragoman.gateway.client_request import ClientRequest
from dragoman.tools import Registry
from dragoman.tools.handler import NAMESPACE_SEPARATOR, qualify_name

TOOLS_HEADER = "x-dragoman-tools"
_ARTIFACT_TOOL = "read_artifact"
"""What reads outputs that were too large: every tool's may be."""


class ToolOrigin(NamedTuple):
    """Where a tool is from."""

    server: str
    tool: str


def parse_origin(name: str) -> ToolOrigin | None:
    """Tell from its name where a tool is from."""
    server, joint, tool = name.partition(NAMESPACE_SEPARATOR)
    return ToolOrigin(server, tool) if joint else None


class _SelectedTools(NamedTuple):
    """What a request itself asks for."""

    automatic: dict[str, None]
    needs_approval: dict[str, None]
    """Tools that are run when the client has said so."""
    origins: dict[str, ToolOrigin]
    """Tools of servers that it names, and where they are from."""


class Toolset(Struct, frozen=True, kw_only=True):
    """A request, and the tools that are run for it."""

    client_request: Request
    """The request as its client wrote it."""
    request: Request
    """The same, without what is said of our tools in it."""
    registry: Registry
    """Tools that are run."""
    approval_registry: Registry
    """Tools that are run when the client has said so."""
    find_origins: Callable[[], Mapping[str, ToolOrigin]] = dict
    """Tells the servers that the client asked for tools, by the names of these, and their names there."""
    server_errors: Mapping[str, str] = {}
    """The servers that the client asked for by their names, and why one cannot be reached."""
    losses: tuple[Loss, ...] = ()
    """What was asked for and is not there."""
    limits: Limits = Limits()
    destinations: tuple[str, ...] = ()
    """Hosts to which something may be sent also after what anybody may have written was read."""
    price: Price | None = None
    compaction: AgentCompaction = AgentCompaction()

    @property
    def tool_origins(self) -> Mapping[str, ToolOrigin]:
        """By the name of a tool, the server that the client asked for it, and its name there: so it is told of."""
        return self.find_origins()

    @property
    def client_tools(self) -> frozenset[str]:
        """The names of the tools that the client runs."""
        return tool_names_of(self.request)


def _no_error(_name: str) -> str:
    return ""


class ToolServers(Struct, frozen=True):
    """The external servers that tools are from."""

    names: Collection[str] = ()
    """Those that a request may name."""
    find_origin: Callable[[str], tuple[str, str] | None] = parse_origin
    """Returns the server of a tool, and the name of the tool there."""
    find_error: Callable[[str], str] = _no_error
    """Returns why a server cannot be reached; "" if it can."""


class AgentRegistry:
    """Knows all agents and tools."""

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
        """Those that a request may name."""
        self._find_origin = servers.find_origin
        self._find_error = servers.find_error
        self._prices = prices or {}
        """By the name of an agent, what its turns cost."""

    @property
    def _known_names(self) -> list[str]:
        """What a request may ask for: servers, and tools that are of none."""
        return [*sorted(self.servers), *(name for name in self.registry.names if NAMESPACE_SEPARATOR not in name)]

    @property
    def models(self) -> dict[str, str]:
        """The agents by their names, and the model of each."""
        return {name: agent.model for name, agent in self.agents.items()}

    def resolve_model(self, name: str) -> str:
        """Return the model that answers for a name: an agent's own, or the name itself."""
        agent = self.agents.get(name)
        return name if agent is None else agent.model

    def select_tools(self, client_request: ClientRequest) -> Toolset | None:
        """Return who works on a request; None if it asks for none of our tools."""
        agent = self.agents.get(client_request.call.model)
        if agent is None and not client_request.tools and not self.servers:
            return None
        dialect = dialect_named(client_request.dialect)
        remote = dialect.remote if self.servers else None
        is_marked = remote is not None and remote.marker in client_request.call.body
        if agent is None and not client_request.tools and not is_marked:
            return None
        asked = request = dialect.parse_request(client_request.call)
        servers: tuple[RequestedServer, ...] = ()
        if remote is not None and is_marked:
            request, servers = remote.take_servers(request, self.servers)
        if agent is None and not client_request.tools and not servers:
            return None
        return self._build_toolset(client_request, agent, asked, request, servers)

    def _build_toolset(
        self,
        client_request: ClientRequest,
        agent: AgentTable | None,
        original: Request,
        request: Request,
        servers: tuple[RequestedServer, ...],
    ) -> Toolset:
        theirs = tool_names_of(request)
        words = [word.strip() for word in client_request.tools.split(",") if word.strip()]
        for said in words:
            self._require_known(said)
        listed = {server.name: self._explain_missing(server.name) for server in servers}
        wanted = self._select(words, servers)
        for name in (*wanted.automatic, *wanted.needs_approval):
            _require_allowed(name, client_request)
        taken = theirs.intersection((*wanted.automatic, *wanted.needs_approval))
        if taken:
            told = f"the tool {min(taken)!r} is run by the gateway, as you ask: give your own another name"
            raise Problem("invalid_request", told, code="invalid_tool", where="/tools")
        if agent is not None:
            request = _add_instructions(structs.replace(request, model=agent.model), agent.system)

        seen = [(self.registry.handlers, wanted)]

        def current_selection() -> _SelectedTools:
            if seen[0][0] is not self.registry.handlers:
                seen[0] = (self.registry.handlers, self._select(words, servers))
            return seen[0][1]

        def choose() -> list[str]:
            now = current_selection()
            named = [name for name in now.automatic if _is_allowed(name, client_request)]
            named += [name for said in (agent.tools if agent is not None else ()) for name in self.find_tools(said)]
            named = [name for name in dict.fromkeys(named) if name not in theirs and name not in now.needs_approval]
            return [*named, _ARTIFACT_TOOL] if named and _ARTIFACT_TOOL not in theirs else named

        # Tools that come while it runs join in; those that wait for the client's word it has to be told of first.
        registry = self.registry.select(choose)
        _require_reachable_choice(request, listed, (*theirs, *registry.names, *wanted.needs_approval))
        return Toolset(
            client_request=original,
            request=request,
            registry=registry,
            approval_registry=self.registry.subset(wanted.needs_approval),
            find_origins=lambda: current_selection().origins,
            server_errors=listed,
            losses=tuple(
                Loss(server.where, listed[server.name], "dropped") for server in servers if listed[server.name]
            ),
            limits=build_limits(agent.limits) if agent is not None else Limits(),
            destinations=agent.destinations if agent is not None else (),
            price=self._prices.get(client_request.call.model) if agent is not None else None,
            compaction=agent.compaction if agent is not None else AgentCompaction(),
        )

    def _select(self, patterns: Iterable[str], servers: Iterable[RequestedServer]) -> _SelectedTools:
        """Return what a request itself asks for, of the tools that there are now."""
        wanted = _SelectedTools({name: None for said in patterns for name in self.find_tools(said)}, {}, {})
        for server in servers:
            for name, origin in self._allowed_tools_of(server):
                wanted.origins[name] = origin
                is_free = server.approval_free is None or origin.tool in server.approval_free
                (wanted.automatic if is_free else wanted.needs_approval)[name] = None
        return wanted

    def _require_known(self, pattern: str) -> None:
        """Raise a `Problem` that says why there is nothing of a name."""
        if self.find_tools(pattern):
            return
        if words := self._explain_missing(pattern.partition(NAMESPACE_SEPARATOR)[0]):
            raise Problem("unreachable", f"{TOOLS_HEADER}: {words}")
        close = self.registry.nearest(pattern)
        hint = f": did you mean {' or '.join(close)}?" if close else suggest_names(pattern, self._known_names)
        words = f"{TOOLS_HEADER}: there is no tool or server {pattern!r}{hint}"
        raise Problem("invalid_request", words, code="unknown_tool")

    def _explain_missing(self, server: str) -> str:
        """Say why a server has no tools here; "" if it has some, or nobody knows of it."""
        words = "" if any(self._tools_of(server)) else self._find_error(server)
        return f"the server {server!r} is not reachable: {words}" if words else ""

    def find_tools(self, pattern: str) -> list[str]:
        """Return the tools that a name stands for: one, all of a server, or those that fit a pattern."""
        if self.registry.has(pattern):
            return [pattern]
        if "*" in pattern:
            return [name for name in self.registry.names if fnmatchcase(name, pattern)]
        return [name for name, _ in self._tools_of(pattern)]

    def _tools_of(self, server: str) -> Iterator[tuple[str, ToolOrigin]]:
        for name in self.registry.names:
            origin = self._find_origin(name)
            if origin is not None and origin[0] == server:
                yield name, ToolOrigin(*origin)

    def _allowed_tools_of(self, server: RequestedServer) -> Iterator[tuple[str, ToolOrigin]]:
        for name, origin in self._tools_of(server.name):
            if origin.tool not in server.excluded_tools and (
                server.allowed_tools is None or origin.tool in server.allowed_tools
            ):
                yield name, origin


def _require_reachable_choice(request: Request, server_errors: Mapping[str, str], names: Collection[str]) -> None:
    """Raise a `Problem` where a call must be made that only a server could answer which is not there."""
    choice, away = request.tool_choice, [(server, words) for server, words in server_errors.items() if words]
    if choice is None or not away:
        return
    for server, words in away:
        if any(name.startswith(server + NAMESPACE_SEPARATOR) for name in choice.names):
            raise Problem("unreachable", words, where="/tool_choice")
    if choice.mode == "required" and not names:
        raise Problem("unreachable", away[0][1], where="/tool_choice")


def _is_allowed(name: str, client_request: ClientRequest) -> bool:
    return not client_request.allowed or any(fnmatchcase(name, pattern) for pattern in client_request.allowed)


def _require_allowed(name: str, client_request: ClientRequest) -> None:
    if not _is_allowed(name, client_request):
        raise Problem("permission", f"this key may not use the tool {name!r}")


def tool_names_of(request: Request) -> frozenset[str]:
    """Return the names of the tools that a request declares."""
    return frozenset(qualify_name(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool))


def build_limits(limits: AgentLimits) -> Limits:
    """Return how far a run of an agent may go."""
    return Limits(
        turns=limits.turns,
        seconds=limits.seconds or None,
        tokens=limits.tokens or None,
        calls=limits.calls or None,
        cost=limits.cost or None,
    )


def build_compaction(settings: AgentCompaction, model: Model, default_model: str) -> Compaction | None:
    """Return how a history that grows is made shorter; `usual` is the model that is asked where none is named."""
    if not settings.context:
        return None
    summarise = summary_by(model, settings.model or default_model)
    return Compaction(summarise=summarise, context=settings.context, share=settings.share, keep=settings.keep)


def _add_instructions(request: Request, system: str) -> Request:
    """Let an agent's instructions stand before those of its client."""
    if not system:
        return request
    leading = count_leading_systems(request.messages)
    theirs = tuple(part for message in request.messages[:leading] for part in message.parts)
    first = Message(role="system", parts=(Text(text=system), *theirs))
    return structs.replace(request, messages=(first, *request.messages[leading:]))


BUILT_IN_TOOLS = ("web_fetch", "read_artifact")
"""Tools that are always there."""


def find_unknown_tools(agents: Mapping[str, AgentTable], servers: Collection[str]) -> Iterable[tuple[str, str]]:
    """Iterate the words of agents that mean no tool and no server: the key that has one, and what to say of it."""
    for name, agent in agents.items():
        for word in agent.tools:
            if not _can_match(word, servers):
                yield f"agents.{name}.tools", f"{word!r} means no tool and no server{suggest_names(word, servers)}"


def suggest_names(name: str, servers: Collection[str]) -> str:
    """Say what may be meant, or else what there is."""
    known = list(dict.fromkeys((*servers, *BUILT_IN_TOOLS)))
    close = get_close_matches(name.partition(NAMESPACE_SEPARATOR)[0], known, 2)
    return f": did you mean {' or '.join(close)}?" if close else f": there are {', '.join(known[:20])}"


def _can_match(pattern: str, servers: Collection[str]) -> bool:
    if "*" not in pattern:
        return pattern in BUILT_IN_TOOLS or pattern.partition(NAMESPACE_SEPARATOR)[0] in servers
    if any(fnmatchcase(tool, pattern) for tool in BUILT_IN_TOOLS):
        return True
    begins = pattern.partition("*")[0]
    beginnings = [f"{server}{NAMESPACE_SEPARATOR}" for server in servers]
    return any(known.startswith(begins) or begins.startswith(known) for known in beginnings)
