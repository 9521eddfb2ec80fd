"""A conversation with an agent, from turn to turn: who answers, what needs consent, what was said."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, cast
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from dragoman.agent import Agent, Decision, Limits, Recorder, RunEnded, Step, Wish
from dragoman.agent.admission import host_of
from dragoman.agent.equipment import Price
from dragoman.config import NOBODY, Config
from dragoman.core.parts import Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.gateway.agents.settings import AgentCompaction
from dragoman.gateway.agents.toolset import Roster, ToolServers, compaction_of, limits_of
from dragoman.gateway.conversations.runs import Unfinished, begun, in_conversation, kept, written
from dragoman.server import log
from dragoman.server.agent_services import Bench, open_bench
from dragoman.server.exchanges import Watch
from dragoman.server.services import agent_price
from dragoman.sessions.values import Unavailable
from dragoman.tools import Registry
from dragoman.tools.results import encodable

_ARTIFACTS = "read_artifact"
"""What reads outputs that were too large: every tool's may be."""

_USUAL = AgentCompaction(context=1 << 40)
"""Nobody knows how long a history a model takes: it is made shorter when the model says that it is too long."""
_WHO = "chat"
_LONG = 24 * 3600.0
"""Seconds that a person has to answer a question."""


class Role(Struct, frozen=True, kw_only=True):
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
    simulated: bool
    """No model answers, but the simulator."""


def role_of(bench: Bench, name: str, *, patient: bool) -> Role:
    """Return who answers to a name, or raise the `Problem` for which nobody does; `patient` if a person can stop it."""
    table, agent = bench.config.mcp, bench.config.agents.get(name)
    model = name if agent is None else agent.model
    if not model:
        raise Problem("invalid_request", "no model is configured: name one with --model")
    targets = bench.connected.gateway.routes.of(model)
    if agent is None:
        limits = Limits(turns=table.max_turns, seconds=None if patient else table.seconds)
    else:
        limits = limits_of(agent.limits)
    return Role(
        name=name,
        model=model,
        system=table.system_prompt if agent is None else agent.system,
        limits=structs.replace(limits, seconds=None) if patient else limits,
        destinations=table.destinations if agent is None else agent.destinations,
        compaction=_USUAL if agent is None or not agent.compaction.context else agent.compaction,
        price=agent_price(bench.config, name, bench.connected.gateway.routes) if agent is not None else None,
        tools=None if agent is None else agent.tools,
        simulated=any(bench.config.upstreams[target.upstream.name].kind == "simulator" for target in targets),
    )


def equipped(bench: Bench, wanted: tuple[str, ...] | None) -> Registry:
    """Return the tools that are meant by names, servers and patterns, as they come and go; all there are for None."""
    whole, roster = bench.toolbox.executor.registry, roster_of(bench)
    if wanted is None:
        return whole

    def chosen() -> tuple[str, ...]:
        names = dict.fromkeys(name for word in wanted for name in roster.meant(word))
        return (*names, _ARTIFACTS) if names else ()

    return whole.select(chosen)


def roster_of(bench: Bench) -> Roster:
    """Return what knows tools by the names of their servers, too."""
    return Roster(bench.toolbox.executor.registry, servers=ToolServers(origin=bench.toolbox.origin))


def require_known(bench: Bench, words: tuple[str, ...], option: str, servers: Iterable[str]) -> None:
    """Raise a `Problem` for a word that means no tool, with what would, also of servers that were not started."""
    roster = roster_of(bench)
    down = {status.name: status.error for status in bench.toolbox.status() if not status.connected}
    for word in words:
        server = word.partition("__")[0]
        if roster.meant(word):
            continue
        if server in down:
            raise Problem("not_found", f"{option}: the server {server!r} is not there: {down[server]}")
        near = roster.registry.nearest(word)
        there = dict.fromkeys((*sorted(servers), *roster.registry.names))
        known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(there)}"
        raise Problem("not_found", f"{option}: there is no tool or server {word!r}: {known}")


class Consent:
    """A policy of one conversation; `is_given` tells the tools that were named ahead."""

    def __init__(self, is_given: Callable[[str], bool]) -> None:
        self._is_given = is_given
        self._wishes: dict[str, Wish] = {}
        self._always: set[str] = set()
        self._places: set[tuple[str, str]] = set()

    def __call__(self, wish: Wish) -> Decision:
        """Decide about a call."""
        self._wishes[wish.call.id] = wish
        name = wish.handler.name
        if wish.egress:
            return "ask"
        return "ask" if wish.handler.side_effects and name not in self._always and not self._is_given(name) else "allow"

    def holds(self, call: ToolCall) -> bool:
        """Tell whether the user has said yes before to what is asked now."""
        wish = self._wishes[call.id]
        place = _place(wish)
        return bool(wish.egress) and place is not None and (wish.handler.name, place) in self._places

    def scope(self, call: ToolCall) -> str:
        """Say for what "always" would be an answer; "" if it would be for this call alone."""
        wish = self._wishes[call.id]
        name, place = wish.handler.name, _place(wish)
        if not wish.egress:
            return f"every call of {name} in this conversation"
        if place is None:
            return ""
        return f"every call of {name}{f' to {place}' if place else ''} in this conversation"

    def hold(self, call: ToolCall) -> None:
        """Take "always" for an answer."""
        wish = self._wishes[call.id]
        place = _place(wish)
        if not wish.egress:
            self._always.add(wish.handler.name)
        elif place is not None:
            self._places.add((wish.handler.name, place))


def _place(wish: Wish) -> str | None:
    """Return the host that a call would send to, "" where a tool does not say; None where it is not beyond doubt."""
    argument = wish.handler.destination
    if not argument:
        return ""
    try:
        arguments = cast("dict[str, Any]", msgspec.json.decode(wish.call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None
    value = arguments.get(argument)
    return (host_of(value) or None) if isinstance(value, str) else None


class Wants(Struct, frozen=True, kw_only=True):
    """What the user wants of a conversation."""

    model: str = ""
    tools: tuple[str, ...] | None = None
    """Only these; None for all that the role has."""
    yes: tuple[str, ...] = ()
    """Tools that are run without a question."""
    session: str = ""
    can_ask: bool = False
    """Somebody is there who can answer questions, and end what takes too long."""


class Talk:
    """What was said so far, and with whom."""

    def __init__(self, bench: Bench, wants: Wants) -> None:
        self._wants = wants
        self.bench = bench
        self.role = role_of(bench, wants.model or bench.usual, patient=wants.can_ask)
        self.history: tuple[Message, ...] = ()
        self.consent = Consent(self._is_given)
        self._conversations = bench.conversations(0)
        self._model = bench.model(NOBODY, _WHO)
        self._agent: Agent | None = None
        self._run = ""
        self._stopped = False
        self._anew = False

    def _is_given(self, name: str) -> bool:
        roster = roster_of(self.bench)
        return any(name in roster.meant(word) for word in self._wants.yes)

    @property
    def registry(self) -> Registry:
        """The tools that can be used now."""
        return equipped(self.bench, self.role.tools if self._wants.tools is None else self._wants.tools)

    def ask(self, name: str) -> None:
        """Talk to another model from now on."""
        self.role = role_of(self.bench, name, patient=self._wants.can_ask)

    def forget(self) -> None:
        """Begin anew."""
        self.history, self._anew = (), True

    async def models(self) -> list[str]:
        """Return the names of all models and agents."""
        return sorted({*await self.bench.connected.gateway.catalogue.entries(), *self.bench.config.agents})

    async def load(self) -> None:
        """Read what was said before in a conversation that is kept."""
        if self._wants.session:
            with _reaching_store():
                self.history = (await self._conversations.open(NOBODY, self._wants.session)).messages

    async def turn(self, prompt: str, tell: Callable[[Step], None]) -> RunEnded | None:
        """Say something and tell what happens then; None if it was stopped before it began."""
        self._stopped = False
        try:
            with _reaching_store():
                return await self._turn(Message(role="user", parts=(Text(text=encodable(prompt)),)), tell)
        finally:
            self._agent = None

    async def _turn(self, said: Message, tell: Callable[[Step], None]) -> RunEnded | None:
        if not self._wants.session:
            request = self._request(self.history, said)
            ended = await self._run_agent(self._agent_for(None), request, tell, f"run_{uuid4().hex}")
            self.history = self._after(ended, self.history, said)
            return ended
        async with in_conversation(self._conversations, NOBODY, self._wants.session):
            return await self._turn_kept(said, tell)

    async def _turn_kept(self, said: Message, tell: Callable[[Step], None]) -> RunEnded | None:
        unfinished = await begun(self._conversations, NOBODY, self._wants.session)
        if self._anew:
            unfinished = Unfinished(structs.replace(unfinished.opened, messages=()), ())
        opened, before = unfinished.opened, unfinished.before
        recorder = await written(self._conversations, unfinished)
        agent, request = self._agent_for(recorder), self._request(before, said)
        ended = await self._run_agent(agent, request, tell, unfinished.run, untrusted=not opened.whole)
        self.history = self._after(ended, before, said)
        if self.history != opened.messages:
            await kept(self._conversations, unfinished, self.history, self.role.model)
            self._anew = False
        else:
            await self._conversations.runs.forget(NOBODY, unfinished.run)
        return ended

    def _after(self, ended: RunEnded | None, before: tuple[Message, ...], said: Message) -> tuple[Message, ...]:
        """Return the history after a run; as it was before if nothing came."""
        if ended is None or ended.history[-1:] == (said,):
            return before
        return ended.history[1 if self.role.system else 0 :]

    def _request(self, before: tuple[Message, ...], said: Message) -> Request:
        """Return the request that continues a history."""
        system = self.role.system
        head = (Message(role="system", parts=(Text(text=system),)),) if system else ()
        return Request(model=self.role.model, messages=(*head, *before, said), stream=True)

    async def _run_agent(
        self, agent: Agent, request: Request, tell: Callable[[Step], None], run: str, *, untrusted: bool = False
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
                    tell(step)
        return ended

    def _agent_for(self, recorder: Recorder | None) -> Agent:
        role = self.role
        return Agent(
            self._model,
            self.bench.toolbox.executor.of(self.registry),
            limits=structs.replace(role.limits, approval=_LONG if self._wants.can_ask else 0.0),
            approve=self.consent,
            destinations=role.destinations,
            recorder=recorder,
            price=role.price,
            compaction=compaction_of(role.compaction, self._model, role.model),
            runtime=self.bench.connected.carrier.runtime,
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
def _reaching_store() -> Generator[None]:
    try:
        yield
    except Unavailable as error:
        words = f"the store of conversations cannot be reached: {error}"
        raise Problem("unreachable", words, code="sessions") from None


@asynccontextmanager
async def open_talk(config: Config, wants: Wants) -> AsyncGenerator[Talk]:
    """Open what a conversation needs, as long as the block runs."""
    with log.opened(config) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.loop_failed)
        async with open_bench(_needed(config, wants), Watch(config, [lines.ended]).observers) as bench:
            require_known(bench, wants.tools or (), "--tools", config.tools)
            require_known(bench, wants.yes, "--yes", config.tools)
            talk = Talk(bench, wants)
            await talk.load()
            yield talk


def _needed(config: Config, wants: Wants) -> Config:
    """Return the configuration without servers that are not wanted: each would be started."""
    if wants.tools is None:
        return config
    words = wants.tools
    needed = {
        name: server
        for name, server in config.tools.items()
        if any(word == name or "*" in word or word.startswith(f"{name}__") for word in words)
    }
    return structs.replace(config, tools=needed)
