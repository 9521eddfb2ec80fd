"""A chat session: the model or agent, its tools, approvals, and the message history."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, cast
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from dragoman.agent import Agent, ApprovalRequest, Decision, Limits, Recorder, RunEnded, Step
from dragoman.agent.admission import host_of
from dragoman.agent.config import Price
from dragoman.config import ANONYMOUS_NAME, Config
from dragoman.core.parts import Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.gateway.agents.settings import AgentCompaction, build_price
from dragoman.gateway.agents.toolset import build_compaction, build_limits
from dragoman.gateway.conversations.runs import TurnStart, begin_turn, claim_conversation, save_turn, start_recording
from dragoman.server import log
from dragoman.server.agent_services import AgentServices, open_agent_services
from dragoman.server.exchanges import Observability
from dragoman.server.services import find_agent_price
from dragoman.sessions.values import Unavailable
from dragoman.tools import Registry
from dragoman.tools.results import replace_surrogates

_DEFAULT_COMPACTION = AgentCompaction(context=1 << 40)
"""The context window is not known, so the history is compacted only when the model reports that it is too long."""
_CLIENT_NAME = "chat"
_APPROVAL_SECONDS = 24 * 3600.0
"""Seconds that the user has to answer an approval question."""


class Assistant(Struct, frozen=True, kw_only=True):
    """The model or agent that answers, with its settings."""

    name: str
    """The name that the user chose: a model or an agent."""
    model: str
    system: str
    limits: Limits
    destinations: tuple[str, ...]
    compaction: AgentCompaction
    price: Price | None
    tools: tuple[str, ...] | None
    """Names of its tools and servers, and patterns; None for all tools."""
    is_simulated: bool
    """Whether the simulator answers instead of a model."""


def find_assistant(services: AgentServices, name: str, *, interactive: bool) -> Assistant:
    """Return the model or agent of a name; raises `Problem`. An `interactive` one has no time limit."""
    table, agent = services.config.mcp, services.config.agents.get(name)
    model = name if agent is None else agent.model
    if not model:
        raise Problem("invalid_request", "no model is configured: choose one with --model")
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
        else build_price(services.config.prices, name, *(target.model for target in targets)),
        tools=None if agent is None else agent.tools,
        is_simulated=any(services.config.upstreams[target.upstream.name].kind == "simulator" for target in targets),
    )


def select_tools(services: AgentServices, patterns: tuple[str, ...] | None) -> Registry:
    """Return a live view of the tools that match names, servers or patterns; all tools for None."""
    if patterns is None:
        return services.tool_services.executor.registry
    return services.build_agent_registry().select_patterns(patterns)


def require_known_tools(
    services: AgentServices, patterns: tuple[str, ...], option: str, servers: Iterable[str]
) -> None:
    """Raise a `Problem` with suggestions for a name that matches no tool; `servers` are all that are configured."""
    agent_registry = services.build_agent_registry()
    down = {status.name: status.error for status in services.tool_services.list_statuses() if not status.connected}
    for word in patterns:
        server = word.partition("__")[0]
        if agent_registry.find_tools(word):
            continue
        if server in down:
            raise Problem("not_found", f"{option}: tool server {server!r} is not available: {down[server]}")
        near = agent_registry.registry.nearest(word)
        names = dict.fromkeys((*sorted(servers), *agent_registry.registry.names))
        suggestion = f"did you mean {' or '.join(near)}?" if near else f"known names are {', '.join(names)}"
        raise Problem("not_found", f"{option}: unknown tool or server {word!r}: {suggestion}")


class ConsentPolicy:
    """The approval policy of one chat; `is_preapproved` returns whether --yes lists a tool."""

    def __init__(self, is_preapproved: Callable[[str], bool]) -> None:
        self._is_preapproved = is_preapproved
        self._requests: dict[str, ApprovalRequest] = {}
        self._always: set[str] = set()
        self._granted_hosts: set[tuple[str, str]] = set()

    def __call__(self, request: ApprovalRequest) -> Decision:
        """Decide whether a call is allowed or the user must be asked."""
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
        """Return whether an earlier "always" covers this call."""
        request = self._requests[call.id]
        host = _find_host(request)
        return bool(request.egress_reason) and host is not None and (request.handler.name, host) in self._granted_hosts

    def describe_scope(self, call: ToolCall) -> str:
        """Return which calls "always" would allow; "" if it cannot cover more than this call."""
        request = self._requests[call.id]
        name, host = request.handler.name, _find_host(request)
        if not request.egress_reason:
            return f"every call of {name} in this conversation"
        if host is None:
            return ""
        return f"every call of {name}{f' to {host}' if host else ''} in this conversation"

    def grant_always(self, call: ToolCall) -> None:
        """Allow this call and all later ones of the same scope."""
        request = self._requests[call.id]
        host = _find_host(request)
        if not request.egress_reason:
            self._always.add(request.handler.name)
        elif host is not None:
            self._granted_hosts.add((request.handler.name, host))


def _find_host(request: ApprovalRequest) -> str | None:
    """Return the host that a call would send data to, "" if its tool has no such argument, None if it is unclear."""
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
    """The command-line options of a chat."""

    model: str = ""
    tools: tuple[str, ...] | None = None
    """Only these tools; None for all tools of the model or agent."""
    yes: tuple[str, ...] = ()
    """Tools that are run without approval."""
    session: str = ""
    can_ask: bool = False
    """Whether a user is present who can answer approval questions and stop a turn that takes too long."""


class ChatSession:
    """The state of a chat: the model or agent, the message history and the approvals."""

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
        agent_registry = self.services.build_agent_registry()
        return any(name in agent_registry.find_tools(word) for word in self._options.yes)

    @property
    def registry(self) -> Registry:
        """The tools that are available at present."""
        return select_tools(self.services, self.assistant.tools if self._options.tools is None else self._options.tools)

    def switch_model(self, name: str) -> None:
        """Use another model or agent for the next turns."""
        self.assistant = find_assistant(self.services, name, interactive=self._options.can_ask)

    def start_over(self) -> None:
        """Start a new conversation."""
        self.history, self._is_new = (), True

    async def list_models(self) -> list[str]:
        """Return the names of all models and agents."""
        return sorted(
            {*await self.services.gateway_services.gateway.catalogue.list_entries(), *self.services.config.agents}
        )

    async def load(self) -> None:
        """Load the history of a stored conversation."""
        if self._options.session:
            with _map_store_errors():
                self.history = (await self._conversations.open(ANONYMOUS_NAME, self._options.session)).messages

    async def run_turn(self, prompt: str, on_step: Callable[[Step], None]) -> RunEnded | None:
        """Send a prompt, pass each step to `on_step` and return the end; None if it was stopped before it began."""
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
        """Return the history after a run; unchanged if the run added nothing to the prompt."""
        if ended is None or ended.history[-1:] == (message,):
            return before
        return ended.history[1 if self.assistant.system else 0 :]

    def _build_request(self, before: tuple[Message, ...], message: Message) -> Request:
        """Return a request with the system prompt, the history and a new message."""
        system = self.assistant.system
        head = (Message(role="system", parts=(Text(text=system),)),) if system else ()
        return Request(model=self.assistant.model, messages=(*head, *before, message), stream=True)

    async def _run_agent(
        self, agent: Agent, request: Request, on_step: Callable[[Step], None], run: str, *, untrusted: bool = False
    ) -> RunEnded | None:
        """Run an agent, pass its steps to `on_step` and return the end; None if the turn was stopped before."""
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
            runtime=self.services.gateway_services.job_runner.runtime,
        )

    def answer(self, topic: str, *, yes: bool) -> None:
        """Answer the approval question that the turn waits for."""
        if self._agent is not None:
            self._agent.answer(self._run, topic, "allow" if yes else "deny")

    def stop(self) -> None:
        """Cancel the current turn."""
        self._stopped = True
        if self._agent is not None:
            self._agent.cancel(self._run, "now")


@contextmanager
def _map_store_errors() -> Generator[None]:
    try:
        yield
    except Unavailable as error:
        message = f"cannot reach the session store: {error}"
        raise Problem("unreachable", message, code="sessions") from None


@asynccontextmanager
async def open_session(config: Config, options: ChatOptions) -> AsyncGenerator[ChatSession]:
    """Start the services of a chat and yield its session; they stop at the end of the block."""
    with log.open_log(config) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with open_agent_services(
            _drop_unused_servers(config, options), Observability(config, [lines.on_end]).observers
        ) as services:
            require_known_tools(services, options.tools or (), "--tools", config.tools)
            require_known_tools(services, options.yes, "--yes", config.tools)
            session = ChatSession(services, options)
            await session.load()
            yield session


def _drop_unused_servers(config: Config, options: ChatOptions) -> Config:
    """Return the configuration without the tool servers that --tools does not need, so that they are not started."""
    if options.tools is None:
        return config
    patterns = options.tools
    needed = {
        name: server
        for name, server in config.tools.items()
        if any(word == name or "*" in word or word.startswith(f"{name}__") for word in patterns)
    }
    return structs.replace(config, tools=needed)
