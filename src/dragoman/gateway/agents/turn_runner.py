"""Answers a request with functions of the gateway that the model calls in the middle of its reply.

The agent loop runs them with its executor and its limits. The client gets one reply of all turns: the gateway's calls
and their results as the parts that the functions render, calls of the client's own tools as they are. If a turn calls
both, the gateway's functions run first and the client's calls come after their results, in the same reply.

A client whose dialect has no blocks for the gateway's calls does not send them back. The turns with these calls are
saved and restored, so that the model gets the history that it had, and each request starts with the one before.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from uuid import uuid4

from msgspec import structs

from dragoman.agent import Agent as Loop
from dragoman.agent import Limits, RunEnded, Step
from dragoman.core.events import Event
from dragoman.core.request import Request
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.event_writer import write_events
from dragoman.gateway.agents.hidden_turns import HiddenTurns
from dragoman.gateway.agents.reply import RunReply
from dragoman.gateway.agents.reply_texts import drop_interim_texts
from dragoman.gateway.agents.toolset import Toolset
from dragoman.gateway.context import CallContext, RequestContext
from dragoman.gateway.model import UpstreamModel
from dragoman.gateway.signatures import SignatureStore
from dragoman.gateway.turn_functions import FunctionProvider, PreparedRequest, prepare_request
from dragoman.interpreter.link_citations import LinkCitations
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.signature_recorder import SignatureRecorder
from dragoman.interpreter.translation import TurnFunctionsNeeded
from dragoman.tools import Executor, Registry

MAX_TURNS = 16
"""Model turns with functions in one reply; after them the model is called once more, without tools."""


class TurnRunner:
    """Answers requests with functions that run within the turn."""

    def __init__(
        self,
        providers: Mapping[str, FunctionProvider],
        executor: Executor,
        signature_store: SignatureStore | None,
        hidden_turns: HiddenTurns | None = None,
    ) -> None:
        self._providers = providers
        self.purposes = frozenset(providers)
        """What the functions are for."""
        self._executor = executor
        self._signature_store = signature_store
        self._hidden_turns = hidden_turns

    async def answer(
        self, context: RequestContext, needed: TurnFunctionsNeeded, build_model: Callable[[CallContext], UpstreamModel]
    ) -> None:
        """Run the agent loop and send its reply; raise the `Problem` of a run that fails before the response starts."""
        client_request, record = context.request, context.record
        dialect = dialect_named(client_request.dialect)
        original = dialect.parse_request(client_request.call)
        # Clients of other dialects send the blocks of a search back.
        hidden_turns = None if dialect.capabilities.tool_search else self._hidden_turns
        restored = original
        if hidden_turns is not None:
            messages = await hidden_turns.restore(client_request.owner, original.messages)
            restored = structs.replace(original, messages=messages)
        prepared = prepare_request(self._providers, needed.purposes, restored, client_request)
        if client_request.strict:
            reject_losses(prepared.losses, strict=client_request.strict)
        record.losses = (*client_request.losses, *prepared.losses)
        model, run = build_model(context), f"run_{uuid4().hex}"
        registry = Registry(*(function.handler for function in prepared.functions))
        toolset = Toolset(
            client_request=original,
            request=prepared.request,
            registry=registry,
            approval_registry=Registry(),
            shown_functions={function.handler.name: function for function in prepared.functions},
        )
        loop = Loop(
            _ShapedModel(model, prepared),
            self._executor.of(registry, client_request.owner),
            limits=Limits(turns=MAX_TURNS, approval=0.0),
        )
        options = ReplyOptions(
            salt=run, is_whole=not client_request.call.stream, saves_signatures=self._signature_store is not None
        )
        reply = RunReply(dialect, toolset, options, lambda: model.dialect_for(prepared.request.model))

        def note_losses() -> None:
            record.losses = (*record.losses, *reply.losses)

        async with aclosing(loop.steps(prepared.request, run=run)) as steps:
            wants_format = original.output is not None and original.output.kind != "text"
            shown_steps = drop_interim_texts(steps, is_stream=client_request.call.stream) if wants_format else steps
            if hidden_turns is not None:
                shown_steps = _save_hidden(shown_steps, reply, hidden_turns, client_request.owner)
            events = self._render_events(shown_steps, reply, model, client_request.owner, client_request.dialect)
            await write_events(events, original, context, note_losses)

    async def _render_events(
        self, steps: AsyncIterator[Step], reply: RunReply, model: UpstreamModel, owner: str, dialect: str
    ) -> AsyncIterator[Event]:
        """Yield the events for the client; save what is signed in them, as for a reply of one turn."""
        recorder, store, citations = SignatureRecorder(), self._signature_store, LinkCitations()
        async for step in steps:
            for event in (cited for fed in reply.feed(step) for cited in citations.feed(fed)):
                recorder.record_event(event)
                if store is not None and recorder.ended:
                    sections, recorder.ended = recorder.ended, []
                    if model.last_dialect != dialect:
                        await store.save(owner, sections)
                yield event


async def _save_hidden(
    steps: AsyncIterator[Step], reply: RunReply, hidden_turns: HiddenTurns, owner: str
) -> AsyncIterator[Step]:
    """Yield the steps of a run; before its end save the turns that the client does not receive."""
    async for step in steps:
        if isinstance(step, RunEnded):
            await hidden_turns.save(owner, reply.messages, reply.client_ids)
        yield step


class _ShapedModel:
    """A model whose requests are shaped before they are sent."""

    def __init__(self, model: UpstreamModel, prepared: PreparedRequest) -> None:
        self._model = model
        self._prepared = prepared

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the events of the reply to a request."""
        async with aclosing(self._model(self._prepared.shape_request(request))) as events:
            async for event in events:
                yield event
