"""A conversation with an agent, from turn to turn: who answers, what needs consent, what was said."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, cast
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from dragoman.agent import Agent, ApprovalRequest, Decision, Limits, Recorder, RunEnded, Step
from dragoman.agent.admission import host_of
from dragoman.agent.equipment import Price
from dragoman.config import ANONYMOUS_NAME, Config
from dragoman.core.parts import Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.gateway.agents.settings import AgentCompaction
from dragoman.gateway.agents.toolset import AgentRegistry, ToolServers, build_compaction, build_limits
from dragoman.gateway.conversations.runs import TurnStart, begin_turn, claim_conversation, save_turn, start_recording
from dragoman.server import log
from dragoman.server.agent_services import AgentServices, open_agent_services
from dragoman.server.exchanges import Observability
from dragoman.server.services import find_agent_price
from dragoman.sessions.values import Unavailable
from dragoman.tools import Registry
from dragoman.tools.results import replace_surrogates

_ARTIFACTS = "read_artifact"
"""What reads outputs that were too large: every tool's may be."""

_DEFAULT_COMPACTION = AgentCompaction(context=1 << 40)
"""Nobody knows how long a history a model takes: it is made shorter when the model says that it is too long."""
_CLIENT_NAME = "chat"
_APPROVAL_SECONDS = 24 * 3600.0
"""Seconds that a person has to answer a question."""


class Assistant(Struct, frozen=True, kw_only=True):
    """Whom the user talks to."""

    name: str
    """What the user calls it."""
    model: str
    system: str
    limits: Limits
    destinations: tuple[str, ...]
    compaction: AgentCompaction
    price: Price | None
    tools: tuple[str, ...] | None
    """Its tools, servers and patterns; None for all there are."""
    is_simulated: bool
    """No model answers, but the simulator."""


def find_assistant(services: AgentServices, name: str, *, interactive: bool) -> Assistant:
    """Return who answers to a name, or raise the `Problem` for which nobody does; `patient` if a person can stop it."""
    table, agent = services.config.mcp, services.config.agents.get(name)
    model = name if agent is None else agent.model
    if not model:
        raise Problem("invalid_request", "no model is configured: name one with --model")
    targets = services.gateway_services.gateway.routes.find_targets(model)
    if agent is None:
        limits = Limits(turns=table.max_turns, seconds=None if interactive else table.seconds)
    else:
        limits = build_limits(agent.limits)
    return Assistant(
        name=name,
        model=model,
        system=table.system_prompt if agent is None else agent.system,
        limits=structs.replace(limits, seconds=None) if interactive else limits,
        destinations=table.destinations if agent is None else agent.destinations,
        compaction=_DEFAULT_COMPACTION if agent is None or not agent.compaction.context else agent.compaction,
        price=find_agent_price(services.config, name, services.gateway_services.gateway.routes)
        if agent is not None
        else None,
        tools=None if agent is None else agent.tools,
        is_simulated=any(services.config.upstreams[target.upstream.name].kind == "simulator" for target in targets),
    )


def select_tools(services: AgentServices, patterns: tuple[str, ...] | None) -> Registry:
    """Return the tools that are meant by names, servers and patterns, as they come and go; all there are for None."""
    whole, roster = services.tool_services.executor.registry, roster_of(services)
    if patterns is None:
        return whole

    def choose() -> tuple[str, ...]:
        names = dict.fromkeys(name for word in patterns for name in roster.find_tools(word))
        return (*names, _ARTIFACTS) if names else ()

    return whole.select(choose)


def roster_of(services: AgentServices) -> AgentRegistry:
    """Return what knows tools by the names of their servers, too."""
    return AgentRegistry(
        services.tool_services.executor.registry, servers=ToolServers(find_origin=services.tool_services.find_origin)
    )


def require_known_tools(
    services: AgentServices, patterns: tuple[str, ...], option: str, servers: Iterable[str]
) -> None:
    """Raise a `Problem` for a word that means no tool, with what would, also of servers that were not started."""
    roster = roster_of(services)
    down = {status.name: status.error for status in services.tool_services.list_statuses() if not status.connected}
    for word in patterns:
        server = word.partition("__")[0]
        if roster.find_tools(word):
            continue
        if server in down:
            raise Problem("not_found", f"{option}: the server {server!r} is not there: {down[server]}")
        near = roster.registry.nearest(word)
        there = dict.fromkeys((*sorted(servers), *roster.registry.names))
        known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(there)}"
        raise Problem("not_found", f"{option}: there is no tool or server {word!r}: {known}")


class ConsentPolicy:
    """A policy of one conversation; `is_given` tells the tools that were named ahead."""

    def __init__(self, is_preapproved: Callable[[str], bool]) -> None:
        self._is_preapproved = is_preapproved
        self._requests: dict[str, ApprovalRequest] = {}
        self._always: set[str] = set()
        self._granted_hosts: set[tuple[str, str]] = set()

    def __call__(self, request: ApprovalRequest) -> Decision:
        """Decide about a call."""
        self._requests[request.call.id] = request
        name = request.handler.name
        if request.egress_reason:
            return "ask"
        return (
            "ask"
            if request.handler.side_effects and name not in self._always and not self._is_preapproved(name)
            else "allow"
        )

    def is_granted(self, call: ToolCall) -> bool:
        """Tell whether the user has said yes before to what is asked now."""
        wish = self._requests[call.id]
        place = _find_host(wish)
        return bool(wish.egress_reason) and place is not None and (wish.handler.name, place) in self._granted_hosts

    def describe_scope(self, call: ToolCall) -> str:
        """Say for what "always" would be an answer; "" if it would be for this call alone."""
        wish = self._requests[call.id]
        name, place = wish.handler.name, _find_host(wish)
        if not wish.egress_reason:
            return f"every call of {name} in this conversation"
        if place is None:
            return ""
        return f"every call of {name}{f' to {place}' if place else ''} in this conversation"

    def grant_always(self, call: ToolCall) -> None:
        """Take "always" for an answer."""
        wish = self._requests[call.id]
        place = _find_host(wish)
        if not wish.egress_reason:
            self._always.add(wish.handler.name)
        elif place is not None:
            self._granted_hosts.add((wish.handler.name, place))


def _find_host(request: ApprovalRequest) -> str | None:
    """Return the host that a call would send to, "" where a tool does not say; None where it is not beyond doubt."""
    argument = request.handler.destination
    if not argument:
        return ""
    try:
        arguments = cast("dict[str, Any]", msgspec.json.decode(request.call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None
    value = arguments.get(argument)
    return (host_of(value) or None) if isinstance(value, str) else None


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What the user wants of a conversation."""

    model: str = ""
    tools: tuple[str, ...] | None = None
    """Only these; None for all that the role has."""
    yes: tuple[str, ...] = ()
    """Tools that are run without a question."""
    session: str = ""
    can_ask: bool = False
    """Somebody is there who can answer questions, and end what takes too long."""


class ChatSession:
    """What was said so far, and with whom."""

    def __init__(self, services: AgentServices, options: ChatOptions) -> None:
        self._options = options
        self.services = services
        self.assistant = find_assistant(services, options.model or services.default_model, interactive=options.can_ask)
        self.history: tuple[Message, ...] = ()
        self.consent = ConsentPolicy(self._is_preapproved)
        self._conversations = services.build_conversations(0)
        self._model = services.build_model(ANONYMOUS_NAME, _CLIENT_NAME)
        self._agent: Agent | None = None
        self._run = ""
        self._stopped = False
        self._is_new = False

    def _is_preapproved(self, name: str) -> bool:
        roster = roster_of(self.services)
        return any(name in roster.find_tools(word) for word in self._options.yes)

    @property
    def registry(self) -> Registry:
        """The tools that can be used now."""
        return select_tools(self.services, self.assistant.tools if self._options.tools is None else self._options.tools)

    def switch_model(self, name: str) -> None:
        """Talk to another model from now on."""
        self.assistant = find_assistant(self.services, name, interactive=self._options.can_ask)

    def start_over(self) -> None:
        """Begin anew."""
        self.history, self._is_new = (), True

    async def list_models(self) -> list[str]:
        """Return the names of all models and agents."""
        return sorted(
            {*await self.services.gateway_services.gateway.catalogue.list_entries(), *self.services.config.agents}
        )

    async def load(self) -> None:
        """Read what was said before in a conversation that is kept."""
        if self._options.session:
            with _map_store_errors():
                self.history = (await self._conversations.open(ANONYMOUS_NAME, self._options.session)).messages

    async def run_turn(self, prompt: str, on_step: Callable[[Step], None]) -> RunEnded | None:
        """Say something and tell what happens then; None if it was stopped before it began."""
        self._stopped = False
        try:
            with _map_store_errors():
                return await self._run_turn(
                    Message(role="user", parts=(Text(text=replace_surrogates(prompt)),)), on_step
                )
        finally:
            self._agent = None

    async def _run_turn(self, message: Message, on_step: Callable[[Step], None]) -> RunEnded | None:
        if not self._options.session:
            request = self._build_request(self.history, message)
            ended = await self._run_agent(self._build_agent(None), request, on_step, f"run_{uuid4().hex}")
            self.history = self._history_after(ended, self.history, message)
            return ended
        async with claim_conversation(self._conversations, ANONYMOUS_NAME, self._options.session):
            return await self._run_saved_turn(message, on_step)

    async def _run_saved_turn(self, message: Message, on_step: Callable[[Step], None]) -> RunEnded | None:
        unfinished = await begin_turn(self._conversations, ANONYMOUS_NAME, self._options.session)
        if self._is_new:
            unfinished = TurnStart(structs.replace(unfinished.opened, messages=()), ())
        opened, before = unfinished.opened, unfinished.history
        recorder = await start_recording(self._conversations, unfinished)
        agent, request = self._build_agent(recorder), self._build_request(before, message)
        ended = await self._run_agent(agent, request, on_step, unfinished.run_id, untrusted=not opened.is_whole)
        self.history = self._history_after(ended, before, message)
        if self.history != opened.messages:
            await save_turn(self._conversations, unfinished, self.history, self.assistant.model)
            self._is_new = False
        else:
            await self._conversations.runs.delete(ANONYMOUS_NAME, unfinished.run_id)
        return ended

    def _history_after(
        self, ended: RunEnded | None, before: tuple[Message, ...], message: Message
    ) -> tuple[Message, ...]:
        """Return the history after a run; as it was before if nothing came."""
        if ended is None or ended.history[-1:] == (message,):
            return before
        return ended.history[1 if self.assistant.system else 0 :]

    def _build_request(self, before: tuple[Message, ...], message: Message) -> Request:
        """Return the request that continues a history."""
        system = self.assistant.system
        head = (Message(role="system", parts=(Text(text=system),)),) if system else ()
        return Request(model=self.assistant.model, messages=(*head, *before, message), stream=True)

    async def _run_agent(
        self, agent: Agent, request: Request, on_step: Callable[[Step], None], run: str, *, untrusted: bool = False
    ) -> RunEnded | None:
        """Run an agent and report its steps; None if the user has stopped the turn before."""
        if self._stopped:
            return None
        self._agent, self._run = agent, run
        ended: RunEnded | None = None
        async with aclosing(agent.steps(request, run=run, untrusted=untrusted)) as steps:
            async for step in steps:
                if isinstance(step, RunEnded):
                    ended = step
                else:
                    on_step(step)
        return ended

    def _build_agent(self, recorder: Recorder | None) -> Agent:
        role = self.assistant
        return Agent(
            self._model,
            self.services.tool_services.executor.of(self.registry),
            limits=structs.replace(role.limits, approval=_APPROVAL_SECONDS if self._options.can_ask else 0.0),
            approve=self.consent,
            destinations=role.destinations,
            recorder=recorder,
            price=role.price,
            compaction=build_compaction(role.compaction, self._model, role.model),
            runtime=self.services.gateway_services.carrier.runtime,
        )

    def answer(self, topic: str, *, yes: bool) -> None:
        """Answer what the turn waits for."""
        if self._agent is not None:
            self._agent.answer(self._run, topic, "allow" if yes else "deny")

    def stop(self) -> None:
        """Stop the turn that is under way."""
        self._stopped = True
        if self._agent is not None:
            self._agent.cancel(self._run, "now")


@contextmanager
def _map_store_errors() -> Generator[None]:
    try:
        yield
    except Unavailable as error:
        words = f"the store of conversations cannot be reached: {error}"
        raise Problem("unreachable", words, code="sessions") from None


@asynccontextmanager
async def open_session(config: Config, options: ChatOptions) -> AsyncGenerator[ChatSession]:
    """Open what a conversation needs, as long as the block runs."""
    with log.open_log(config) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with open_agent_services(
            _drop_unused_servers(config, options), Observability(config, [lines.on_end]).observers
        ) as bench:
            require_known_tools(bench, options.tools or (), "--tools", config.tools)
            require_known_tools(bench, options.yes, "--yes", config.tools)
            talk = ChatSession(bench, options)
            await talk.load()
            yield talk


def _drop_unused_servers(config: Config, options: ChatOptions) -> Config:
    """Return the configuration without servers that are not wanted: each would be started."""
    if options.tools is None:
        return config
    words = options.tools
    needed = {
        name: server
        for name, server in config.tools.items()
        if any(word == name or "*" in word or word.startswith(f"{name}__") for word in words)
    }
    return structs.replace(config, tools=needed)
