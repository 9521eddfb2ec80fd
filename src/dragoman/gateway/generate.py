"""Handles one request: finds its upstreams, calls them in turn and writes the reply to the client.

Before, `server/app.py` has read the request and loaded the conversation that it continues, if any.

Nothing is sent to the client before the first content of a reply, unless that takes too long. So an error before it has
its true status and can be retried, at the same upstream or the next. A later error is sent in the stream.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.gateway.catalogue import Catalogue
from dragoman.gateway.choices import ChoiceCalls
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import CallContext, RequestContext
from dragoman.gateway.errors import map_error_in_reply
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.model import UpstreamDeps, UpstreamModel
from dragoman.gateway.passthrough import PassthroughRequest, build_outgoing, forward_request
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import UpstreamStream, read_reply, send_whole
from dragoman.gateway.retry import RetryLoop, RetryPolicy
from dragoman.gateway.router import Routes, Target
from dragoman.gateway.signatures import SignatureStore
from dragoman.gateway.token_count import count_tokens
from dragoman.gateway.upstream_call import LargeTranslator, UpstreamClient, choose_api
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.interpreter.choices import SeveralChoices
from dragoman.interpreter.translation import TurnFunctionsNeeded


class GenerateSettings(Struct, frozen=True, kw_only=True):
    """The retry policy, the times after which a waiting client gets a heartbeat, and the limit of choices."""

    retry: RetryPolicy = RetryPolicy()
    hold: float = 10.0
    """Seconds that a stream waits for its first content before the response head is sent to the client."""
    heartbeat: float = 15.0
    """Seconds between the blank lines that keep a silent stream open."""
    max_choices: int = 8
    """The most choices of a request whose target generates one: it is sent once for each of them."""


class ToolAgents(Protocol):
    """Answers requests that use agents or server-side tools (`gateway/agents/runner.py`)."""

    @property
    def models(self) -> Mapping[str, str]:
        """The model of each agent, by agent name."""
        ...

    @property
    def servers(self) -> Collection[str]:
        """The names of tool servers that a request may use."""
        ...

    def uses_tools(self, request: ClientRequest) -> bool:
        """Return whether server-side tools run for a request."""
        ...

    def start_answer(
        self, context: RequestContext, build_model: Callable[[CallContext], UpstreamModel]
    ) -> Awaitable[None] | None:
        """Return the awaitable that replies; None if the request uses no server-side tools."""
        ...


class TurnAnswers(Protocol):
    """Answers requests with functions that run within the turn (`gateway/agents/turn_runner.py`)."""

    @property
    def purposes(self) -> frozenset[str]:
        """What the functions are for."""
        ...

    def answer(
        self, context: RequestContext, needed: TurnFunctionsNeeded, build_model: Callable[[CallContext], UpstreamModel]
    ) -> Awaitable[None]:
        """Reply to a request that no target can answer alone."""
        ...


class Gateway:
    """Handles requests by calling upstreams."""

    def __init__(  # noqa: PLR0913  its parts, each with its own default
        self,
        routes: Routes,
        client: Client,
        settings: GenerateSettings | None = None,
        signature_store: SignatureStore | None = None,
        agents: ToolAgents | None = None,
        *,
        turn_answers: TurnAnswers | None = None,
        large_translator: LargeTranslator | None = None,
    ) -> None:
        self.routes = routes
        self._agent_models: Mapping[str, str] = agents.models if agents is not None else {}
        self.catalogue = Catalogue(routes, client, self._agent_models)
        purposes = turn_answers.purposes if turn_answers is not None else frozenset[str]()
        self._upstreams = UpstreamClient(client, signature_store, purposes, large_translator)
        self._turn_answers = turn_answers
        self._settings = settings or GenerateSettings()
        self._retry = RetryLoop(self._settings.retry)
        # Functions cannot run in several choices at once.
        choice_upstreams = UpstreamClient(client, signature_store, large_translator=large_translator)
        choice_upstreams = choice_upstreams if purposes else self._upstreams
        self._choices = ChoiceCalls(choice_upstreams, self._retry, self._settings.max_choices)
        self._agents = agents
        self.has_tools = agents is not None
        """Whether there are server-side tools."""

    def model(self, context: CallContext) -> UpstreamModel:
        """Return the function with which agents call any model; attempts and losses are noted in the record."""
        return UpstreamModel(UpstreamDeps(self.routes, self._upstreams, self._retry), context)

    def runs_tools_for(self, request: ClientRequest) -> bool:
        """Return whether server-side tools run for a request."""
        return self._agents is not None and self._agents.uses_tools(request)

    async def generate(self, context: RequestContext) -> None:
        """Reply to a request; raises `Problem` if that fails before the response has started."""
        reply = self._start_answer(context)
        if context.request.call.stream:
            await Heartbeat(context, self._settings.hold, self._settings.heartbeat).run(reply)
        else:
            await reply

    def _start_answer(self, context: RequestContext) -> Awaitable[object]:
        """Return the awaitable that replies: from an upstream, from an agent, or from a step of a background job."""
        request, agents = context.request, self._agents
        if agents is not None and (request.tools or agents.servers or request.call.model in agents.models):
            answer = agents.start_answer(context, self.model)
            if answer is not None:
                return answer
        if context.runtime is None:
            return self._call_upstreams(context)
        # In the background the reply is one step: it is saved in the store, from which the client fetches it.
        return context.runtime.step("model:1", partial(self._run_as_step, context))

    async def _run_as_step(self, context: RequestContext) -> str:
        await self._call_upstreams(context)
        return ""

    async def _call_upstreams(self, context: RequestContext) -> None:
        """Call upstreams until one has replied."""
        targets, answer = self.routes.find_targets(context.request.call.model), partial(self._answer_from, context)
        try:
            await self._retry.run(targets, answer, context)
        except SeveralChoices as several:
            # Each target before the one that needs several requests was called once.
            await self._choices.answer(context, targets[context.record.tries :], several, answer)
        except TurnFunctionsNeeded as needed:
            if self._turn_answers is None:
                raise
            await self._turn_answers.answer(context, needed, self.model)

    async def _answer_from(self, context: RequestContext, target: Target) -> None:
        """Call one upstream and write its reply; return its connection to the pool, or close it after an error."""
        losses = ()
        if target.other_api is not None:
            target, losses = choose_api(context.request, target)
        translation = await self._upstreams.translate(context.request, target, losses)
        reply = await self._upstreams.send_translated(context, target, translation)
        try:
            if context.request.call.stream:
                await UpstreamStream(reply, context).write()
            else:
                body, response = await read_reply(reply, context)
                await send_whole(body, response, context)
            reply.incoming.drain()
        except Problem as problem:
            if context.exchange.started:
                raise
            raise map_error_in_reply(problem, context.request.dialect) from None
        finally:
            reply.incoming.close()

    async def count_tokens(self, request: ClientRequest, record: Record) -> tuple[bytes, bool]:
        """Count the tokens of a request at the first upstream for its model."""
        model = self._agent_models.get(request.call.model, request.call.model)
        return await count_tokens(request, self.routes.find_targets(model)[0], self._upstreams, record)

    async def forward(self, passthrough: PassthroughRequest, exchange: Exchange, record: Record) -> None:
        """Forward a request for another endpoint, without retries."""
        upstream = passthrough.target.upstream
        outgoing = build_outgoing(passthrough, exchange.request)
        if outgoing is None:
            raise Problem("not_found", f"upstream {upstream.name!r} has no {passthrough.path}", code="unknown_url")
        record.note_attempt(upstream.name, passthrough.target.model)
        await forward_request(outgoing, passthrough, self._upstreams.http, exchange, record)
