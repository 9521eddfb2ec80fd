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
from dragoman.core.request import Message, Request, Tool, leading_systems
from dragoman.dialects.record import AskedServer
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.settings import AgentCompaction, AgentLimits, AgentTable
from dragoman.gateway.client_request import ClientRequest
from dragoman.tools import Registry
from dragoman.tools.handler import NAMESPACE_SEPARATOR, qualify_name

HEADER = "x-dragoman-tools"
_ARTIFACTS = "read_artifact"
"""What reads outputs that were too large: every tool's may be."""


class ToolOrigin(NamedTuple):
    """Where a tool is from."""

    server: str
    tool: str


def by_name(name: str) -> ToolOrigin | None:
    """Tell from its name where a tool is from."""
    server, joint, tool = name.partition(NAMESPACE_SEPARATOR)
    return ToolOrigin(server, tool) if joint else None


class _Wanted(NamedTuple):
    """What a request itself asks for."""

    free: dict[str, None]
    waiting: dict[str, None]
    """Tools that are run when the client has said so."""
    told: dict[str, ToolOrigin]
    """Tools of servers that it names, and where they are from."""


class Toolset(Struct, frozen=True, kw_only=True):
    """A request, and the tools that are run for it."""

    asked: Request
    """The request as its client wrote it."""
    request: Request
    """The same, without what is said of our tools in it."""
    registry: Registry
    """Tools that are run."""
    waiting: Registry
    """Tools that are run when the client has said so."""
    origins: Callable[[], Mapping[str, ToolOrigin]] = dict
    """Tells the servers that the client asked for tools, by the names of these, and their names there."""
    listed: Mapping[str, str] = {}
    """The servers that the client asked for by their names, and why one cannot be reached."""
    losses: tuple[Loss, ...] = ()
    """What was asked for and is not there."""
    limits: Limits = Limits()
    destinations: tuple[str, ...] = ()
    """Hosts to which something may be sent also after what anybody may have written was read."""
    price: Price | None = None
    compaction: AgentCompaction = AgentCompaction()

    @property
    def servers(self) -> Mapping[str, ToolOrigin]:
        """By the name of a tool, the server that the client asked for it, and its name there: so it is told of."""
        return self.origins()

    @property
    def theirs(self) -> frozenset[str]:
        """The names of the tools that the client runs."""
        return names_of(self.request)


def _no_trouble(_server: str) -> str:
    return ""


class ToolServers(Struct, frozen=True):
    """The external servers that tools are from."""

    names: Collection[str] = ()
    """Those that a request may name."""
    origin: Callable[[str], tuple[str, str] | None] = by_name
    """Returns the server of a tool, and the name of the tool there."""
    trouble: Callable[[str], str] = _no_trouble
    """Returns why a server cannot be reached; "" if it can."""


class Roster:
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
        self._origin = servers.origin
        self._trouble = servers.trouble
        self._prices = prices or {}
        """By the name of an agent, what its turns cost."""

    @property
    def _known(self) -> list[str]:
        """What a request may ask for: servers, and tools that are of none."""
        return [*sorted(self.servers), *(name for name in self.registry.names if NAMESPACE_SEPARATOR not in name)]

    @property
    def models(self) -> dict[str, str]:
        """The agents by their names, and the model of each."""
        return {name: agent.model for name, agent in self.agents.items()}

    def model(self, name: str) -> str:
        """Return the model that answers for a name: an agent's own, or the name itself."""
        agent = self.agents.get(name)
        return name if agent is None else agent.model

    def crew(self, ask: ClientRequest) -> Toolset | None:
        """Return who works on a request; None if it asks for none of our tools."""
        agent = self.agents.get(ask.call.model)
        if agent is None and not ask.tools and not self.servers:
            return None
        dialect = dialect_named(ask.dialect)
        remote = dialect.remote if self.servers else None
        is_marked = remote is not None and remote.mark in ask.call.body
        if agent is None and not ask.tools and not is_marked:
            return None
        asked = request = dialect.parse_request(ask.call)
        servers: tuple[AskedServer, ...] = ()
        if remote is not None and is_marked:
            request, servers = remote.asked(request, self.servers)
        if agent is None and not ask.tools and not servers:
            return None
        return self._gathered(ask, agent, asked, request, servers)

    def _gathered(
        self,
        ask: ClientRequest,
        agent: AgentTable | None,
        asked: Request,
        request: Request,
        servers: tuple[AskedServer, ...],
    ) -> Toolset:
        theirs = names_of(request)
        words = [word.strip() for word in ask.tools.split(",") if word.strip()]
        for said in words:
            self._require(said)
        listed = {server.name: self._away(server.name) for server in servers}
        wanted = self._wanted(words, servers)
        for name in (*wanted.free, *wanted.waiting):
            _require_allowed(name, ask)
        taken = theirs.intersection((*wanted.free, *wanted.waiting))
        if taken:
            told = f"the tool {min(taken)!r} is run by the gateway, as you ask: give your own another name"
            raise Problem("invalid_request", told, code="invalid_tool", where="/tools")
        if agent is not None:
            request = _instructed(structs.replace(request, model=agent.model), agent.system)

        seen = [(self.registry.handlers, wanted)]

        def wanted_now() -> _Wanted:
            if seen[0][0] is not self.registry.handlers:
                seen[0] = (self.registry.handlers, self._wanted(words, servers))
            return seen[0][1]

        def chosen() -> list[str]:
            now = wanted_now()
            named = [name for name in now.free if _is_allowed(name, ask)]
            named += [name for said in (agent.tools if agent is not None else ()) for name in self.meant(said)]
            named = [name for name in dict.fromkeys(named) if name not in theirs and name not in now.waiting]
            return [*named, _ARTIFACTS] if named and _ARTIFACTS not in theirs else named

        # Tools that come while it runs join in; those that wait for the client's word it has to be told of first.
        registry = self.registry.select(chosen)
        _require_choosable(request, listed, (*theirs, *registry.names, *wanted.waiting))
        return Toolset(
            asked=asked,
            request=request,
            registry=registry,
            waiting=self.registry.subset(wanted.waiting),
            origins=lambda: wanted_now().told,
            listed=listed,
            losses=tuple(
                Loss(server.where, listed[server.name], "dropped") for server in servers if listed[server.name]
            ),
            limits=limits_of(agent.limits) if agent is not None else Limits(),
            destinations=agent.destinations if agent is not None else (),
            price=self._prices.get(ask.call.model) if agent is not None else None,
            compaction=agent.compaction if agent is not None else AgentCompaction(),
        )

    def _wanted(self, words: Iterable[str], servers: Iterable[AskedServer]) -> _Wanted:
        """Return what a request itself asks for, of the tools that there are now."""
        wanted = _Wanted({name: None for said in words for name in self.meant(said)}, {}, {})
        for server in servers:
            for name, origin in self._of_server(server):
                wanted.told[name] = origin
                is_free = server.free is None or origin.tool in server.free
                (wanted.free if is_free else wanted.waiting)[name] = None
        return wanted

    def _require(self, said: str) -> None:
        """Raise a `Problem` that says why there is nothing of a name."""
        if self.meant(said):
            return
        if words := self._away(said.partition(NAMESPACE_SEPARATOR)[0]):
            raise Problem("unreachable", f"{HEADER}: {words}")
        close = self.registry.nearest(said)
        hint = f": did you mean {' or '.join(close)}?" if close else near(said, self._known)
        words = f"{HEADER}: there is no tool or server {said!r}{hint}"
        raise Problem("invalid_request", words, code="unknown_tool")

    def _away(self, server: str) -> str:
        """Say why a server has no tools here; "" if it has some, or nobody knows of it."""
        words = "" if any(self._from(server)) else self._trouble(server)
        return f"the server {server!r} is not reachable: {words}" if words else ""

    def meant(self, said: str) -> list[str]:
        """Return the tools that a name stands for: one, all of a server, or those that fit a pattern."""
        if self.registry.has(said):
            return [said]
        if "*" in said:
            return [name for name in self.registry.names if fnmatchcase(name, said)]
        return [name for name, _ in self._from(said)]

    def _from(self, server: str) -> Iterator[tuple[str, ToolOrigin]]:
        for name in self.registry.names:
            origin = self._origin(name)
            if origin is not None and origin[0] == server:
                yield name, ToolOrigin(*origin)

    def _of_server(self, server: AskedServer) -> Iterator[tuple[str, ToolOrigin]]:
        for name, origin in self._from(server.name):
            if origin.tool not in server.without and (server.only is None or origin.tool in server.only):
                yield name, origin


def _require_choosable(request: Request, listed: Mapping[str, str], names: Collection[str]) -> None:
    """Raise a `Problem` where a call must be made that only a server could answer which is not there."""
    choice, away = request.tool_choice, [(server, words) for server, words in listed.items() if words]
    if choice is None or not away:
        return
    for server, words in away:
        if any(name.startswith(server + NAMESPACE_SEPARATOR) for name in choice.names):
            raise Problem("unreachable", words, where="/tool_choice")
    if choice.mode == "required" and not names:
        raise Problem("unreachable", away[0][1], where="/tool_choice")


def _is_allowed(name: str, ask: ClientRequest) -> bool:
    return not ask.allowed or any(fnmatchcase(name, pattern) for pattern in ask.allowed)


def _require_allowed(name: str, ask: ClientRequest) -> None:
    if not _is_allowed(name, ask):
        raise Problem("permission", f"this key may not use the tool {name!r}")


def names_of(request: Request) -> frozenset[str]:
    """Return the names of the tools that a request declares."""
    return frozenset(qualify_name(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool))


def limits_of(said: AgentLimits) -> Limits:
    """Return how far a run of an agent may go."""
    return Limits(
        turns=said.turns,
        seconds=said.seconds or None,
        tokens=said.tokens or None,
        calls=said.calls or None,
        cost=said.cost or None,
    )


def compaction_of(said: AgentCompaction, model: Model, usual: str) -> Compaction | None:
    """Return how a history that grows is made shorter; `usual` is the model that is asked where none is named."""
    if not said.context:
        return None
    summarise = summary_by(model, said.model or usual)
    return Compaction(summarise=summarise, context=said.context, share=said.share, keep=said.keep)


def _instructed(request: Request, system: str) -> Request:
    """Let an agent's instructions stand before those of its client."""
    if not system:
        return request
    leading = leading_systems(request.messages)
    theirs = tuple(part for message in request.messages[:leading] for part in message.parts)
    first = Message(role="system", parts=(Text(text=system), *theirs))
    return structs.replace(request, messages=(first, *request.messages[leading:]))


BUILT_IN = ("web_fetch", "read_artifact")
"""Tools that are always there."""


def unmeant(agents: Mapping[str, AgentTable], servers: Collection[str]) -> Iterable[tuple[str, str]]:
    """Iterate the words of agents that mean no tool and no server: the key that has one, and what to say of it."""
    for name, agent in agents.items():
        for word in agent.tools:
            if not _can_mean(word, servers):
                yield f"agents.{name}.tools", f"{word!r} means no tool and no server{near(word, servers)}"


def near(word: str, servers: Collection[str]) -> str:
    """Say what may be meant, or else what there is."""
    known = list(dict.fromkeys((*servers, *BUILT_IN)))
    close = get_close_matches(word.partition(NAMESPACE_SEPARATOR)[0], known, 2)
    return f": did you mean {' or '.join(close)}?" if close else f": there are {', '.join(known[:20])}"


def _can_mean(word: str, servers: Collection[str]) -> bool:
    if "*" not in word:
        return word in BUILT_IN or word.partition(NAMESPACE_SEPARATOR)[0] in servers
    if any(fnmatchcase(tool, word) for tool in BUILT_IN):
        return True
    begins = word.partition("*")[0]
    beginnings = [f"{server}{NAMESPACE_SEPARATOR}" for server in servers]
    return any(known.startswith(begins) or begins.startswith(known) for known in beginnings)
