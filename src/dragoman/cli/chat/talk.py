"""A conversation with an agent, from turn to turn.

Rules: the history is valid whenever a turn is over, however it ended. A prompt to which nothing came is forgotten, so
that asking again is asking once. A conversation with a name is read from the store before each turn and kept after it;
while a turn runs it is written down, so that one whose process is killed is known to the next.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from uuid import uuid4

from msgspec import Struct, structs

from dragoman.agent import Agent, Recorder, RunEnded, Step
from dragoman.cli.chat.consent import Consent
from dragoman.cli.chat.role import equipped, require_known, role_of, roster_of
from dragoman.config import NOBODY, Config
from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.gateway.agents.toolset import compaction_of
from dragoman.gateway.conversations.runs import Unfinished, begun, in_conversation, kept, written
from dragoman.server import log
from dragoman.server.agent_services import Bench, open_bench
from dragoman.server.exchanges import Watch
from dragoman.sessions.values import Unavailable
from dragoman.tools import Registry
from dragoman.tools.results import encodable

_WHO = "chat"
_LONG = 24 * 3600.0
"""Seconds that a person has to answer a question."""


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
            ended = await self._ran(self.history, said, tell, f"run_{uuid4().hex}")
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
        ended = await self._ran(before, said, tell, unfinished.run, recorder, untrusted=not opened.whole)
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

    async def _ran(  # noqa: PLR0913  what a run needs
        self,
        before: tuple[Message, ...],
        said: Message,
        tell: Callable[[Step], None],
        run: str,
        recorder: Recorder | None = None,
        *,
        untrusted: bool = False,
    ) -> RunEnded | None:
        system = self.role.system
        head = (Message(role="system", parts=(Text(text=system),)),) if system else ()
        request = Request(model=self.role.model, messages=(*head, *before, said), stream=True)
        if self._stopped:
            return None
        self._agent, self._run = self._made(recorder), run
        ended: RunEnded | None = None
        async with aclosing(self._agent.steps(request, run=run, untrusted=untrusted)) as steps:
            async for step in steps:
                if isinstance(step, RunEnded):
                    ended = step
                else:
                    tell(step)
        return ended

    def _made(self, recorder: Recorder | None) -> Agent:
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
