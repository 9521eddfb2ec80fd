"""The story of one request: find its upstreams, try them in turn, hand the reply to the client.

Nothing is sent to the client before the first real event of a reply, unless that is too long in coming; so a fault
before it has its true status and may be tried again, here or at the next upstream. After it an error is told in the
stream.
"""

import asyncio
from functools import partial
from typing import Protocol

from msgspec import Struct

from dragoman.agent import Runtime
from dragoman.core.problems import Problem
from dragoman.gateway.agents.answering import Agents
from dragoman.gateway.ask import Ask
from dragoman.gateway.attempt import Reached, reach, told_for_an_answer
from dragoman.gateway.catalogue import Catalogue
from dragoman.gateway.counting import count
from dragoman.gateway.delivery import Stream, send_whole
from dragoman.gateway.model import Asker, Means, UpstreamModel
from dragoman.gateway.passage import Passage, outgoing_of, pass_on
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.retries import Budget, Patience, may_pass_elsewhere, wait_before
from dragoman.gateway.route import Routes, Target
from dragoman.gateway.sessions.keeping import Keeper
from dragoman.gateway.vault import Vault
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange


class Work(Protocol):
    """A way to answer a request."""

    async def __call__(
        self, ask: Ask, exchange: Exchange, record: Record, keeper: Keeper | None, *, pulse: Pulse | None
    ) -> None:
        """Answer it, or raise the `Problem` for which that cannot be done."""
        ...


class Manner(Struct, frozen=True, kw_only=True):
    """How upstreams are waited for."""

    patience: Patience = Patience()
    hold: float = 10.0
    """Seconds a stream waits for its first event before the client is told that it begins."""
    heartbeat: float = 15.0


class Relay:
    """Answers requests by asking upstreams."""

    def __init__(
        self,
        routes: Routes,
        client: Client,
        manner: Manner | None = None,
        vault: Vault | None = None,
        agents: Agents | None = None,
    ) -> None:
        self.routes = routes
        self.catalogue = Catalogue(routes, client, agents.roster.models if agents is not None else {})
        self._client = client
        self._vault = vault
        self._manner = manner or Manner()
        self._budget = Budget()
        self._agents = agents

    @property
    def runs_tools(self) -> bool:
        """Tell whether there are tools that are run here."""
        return self._agents is not None

    def model(self, asker: Asker, record: Record | None = None) -> UpstreamModel:
        """Return every model there is as one function, for an asker; `record` is told who was asked, and of losses."""
        means = Means(self.routes, self._client, self._manner.patience, self._budget, self._vault)
        return UpstreamModel(means, asker, record)

    def runs(self, ask: Ask) -> bool:
        """Tell whether tools are run here for a request."""
        return self._agents is not None and self._agents.roster.crew(ask) is not None

    async def answer(
        self,
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """Answer a request, or raise the `Problem` for which that cannot be done.

        An answer that is made while nobody waits is made in steps of a runtime.
        """
        work = self._work(ask, runtime)
        if not ask.call.stream:
            await work(ask, exchange, record, keeper, pulse=None)
            return
        pulse = Pulse(ask, exchange, record)
        told = work(ask, exchange, record, keeper, pulse=pulse)
        await pulse.during(told, self._manner.hold, self._manner.heartbeat, keeper)

    def _work(self, ask: Ask, runtime: Runtime | None) -> Work:
        """Return who answers: an upstream, or those who run tools of ours beside it."""
        crew = self._agents.roster.crew(ask) if self._agents is not None else None
        if self._agents is None or crew is None:
            return self._try if runtime is None else partial(self._try_once, runtime)
        return partial(self._agents.answer, crew, model=self.model, runtime=runtime)

    async def _try_once(  # noqa: PLR0913  what is passed on is what a request has
        self,
        runtime: Runtime,
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None,
        *,
        pulse: Pulse | None,
    ) -> None:
        """Answer in one step: it is kept where the client will ask for it."""

        async def work() -> str:
            await self._try(ask, exchange, record, keeper, pulse=pulse)
            return ""

        await runtime.step("model:1", work)

    async def _try(
        self, ask: Ask, exchange: Exchange, record: Record, keeper: Keeper | None, *, pulse: Pulse | None
    ) -> None:
        """Try as often as patience and budget allow, until the client has seen a byte."""
        targets = self.routes.of(ask.call.model)
        self._budget.earn()
        tried = 0
        while True:
            tried += 1
            try:
                await self._round(targets, ask, exchange, record, keeper, pulse=pulse)
            except Problem as problem:
                wait = None if exchange.started else wait_before(problem, tried, self._manner.patience)
                if wait is None:
                    raise
                if not self._budget.spend():
                    record.is_spent = True
                    raise
                await asyncio.sleep(wait)
            else:
                return

    async def count(self, ask: Ask, record: Record) -> tuple[bytes, bool]:
        """Count the tokens of a request where it would be answered first."""
        named = ask.call.model if self._agents is None else self._agents.roster.model(ask.call.model)
        target = self.routes.of(named)[0]
        return await count(ask, target, self._client, record)

    async def pass_on(self, passage: Passage, exchange: Exchange, record: Record) -> None:
        """Pass a request for another endpoint on, once."""
        upstream = passage.target.upstream
        outgoing = outgoing_of(passage, exchange.request)
        if outgoing is None:
            raise Problem("not_found", f"the upstream {upstream.name} has no {passage.path}", code="unknown_url")
        record.note_asked(upstream.name, passage.target.model)
        await pass_on(outgoing, passage, self._client, exchange, record)

    async def _round(  # noqa: PLR0913  what is passed on is what a request has
        self,
        targets: tuple[Target, ...],
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None,
        *,
        pulse: Pulse | None,
    ) -> None:
        """Try each upstream once; raise what the last one said."""
        for at, target in enumerate(targets):
            try:
                reached = await reach(ask, target, self._client, record, self._vault)
                await self._deliver(reached, ask, exchange, record, keeper, pulse=pulse)
            except Problem as problem:
                if exchange.started or at + 1 == len(targets) or not may_pass_elsewhere(problem):
                    raise
            else:
                return

    async def _deliver(  # noqa: PLR0913  what is passed on is what a request has
        self,
        reached: Reached,
        ask: Ask,
        exchange: Exchange,
        record: Record,
        keeper: Keeper | None,
        *,
        pulse: Pulse | None,
    ) -> None:
        try:
            if pulse is not None:
                await Stream(reached, ask, exchange, record, keeper, pulse=pulse).send()
            else:
                await send_whole(reached, ask, exchange, record, keeper)
        except Problem as problem:
            reached.incoming.close()
            raise problem if exchange.started else told_for_an_answer(problem, ask.dialect) from None
        except BaseException:
            reached.incoming.close()
            raise
        reached.incoming.leave()
