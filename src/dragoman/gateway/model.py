"""A model as a function: a request of the core in, events of the core out, whichever upstream answers.

It retries like the gateway does for its clients, and holds events back until something is said. An error is a `Failed`
event, the first one if nothing was said; only cancellation is raised.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from msgspec import Struct, structs

from dragoman.core.events import Event, Failed, Finished, PartStarted, Started, UsageSeen
from dragoman.core.losses import Loss
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.stream import replay
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.errors import map_failure, map_rejection
from dragoman.gateway.record import Record
from dragoman.gateway.retry import Retries, RetryBudget, RetryPolicy
from dragoman.gateway.router import Routes, Target
from dragoman.gateway.upstream_call import UpstreamClient
from dragoman.http.client import Incoming
from dragoman.http.link import ConnectionFailure
from dragoman.http.message import Headers
from dragoman.interpreter.core_request import TranslationOptions, translate_core_request
from dragoman.interpreter.errors import adapt_error_reply
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signatures import find_unknown_ids, find_unsigned_calls
from dragoman.interpreter.text_calls.detector import CallDetector
from dragoman.interpreter.translation import Links, MissingLinks, Translation
from dragoman.interpreter.undo import ReplyPipeline, generate_id


class Asker(Struct, frozen=True, kw_only=True):
    """On whose behalf a model is asked."""

    owner: str = ""
    dialect: str = ""
    """The dialect that requests were read in; "" for those that nobody wrote."""
    document: bytes = b""
    """What they were read from, so that what is lost or refused is told by its place."""
    strict: bool = False
    headers: Headers = ()
    """Headers that an upstream of the same dialect may see."""

    @property
    def issuer(self) -> str:
        """Whose words the asker understands."""
        return dialect_named(self.dialect).issuer if self.dialect else ""


class UpstreamDeps(Struct, frozen=True):
    """What upstreams are asked with."""

    routes: Routes
    upstreams: UpstreamClient
    retry: RetryPolicy
    budget: RetryBudget


class UpstreamModel:
    """Any model that the routes know, for one asker. `record` is told who was asked, and what was lost."""

    def __init__(self, deps: UpstreamDeps, asker: Asker, record: Record | None = None) -> None:
        self._deps = deps
        self._asker = asker
        self._record = record or Record(owner=asker.owner, dialect=asker.dialect)
        self.last_dialect = ""
        """The dialect of the upstream that answered last."""

    def dialect_for(self, model: str) -> str:
        """Return the dialect of the upstream that answered last; of an answer known from before, that of the first."""
        return self.last_dialect or self._deps.routes.find_targets(model)[0].upstream.dialect

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Answer a request, streamed by the upstream or whole as it says."""
        means, begun = self._deps, False
        try:
            targets = means.routes.find_targets(request.model)
            target = targets[0]
            retries = Retries(targets, means.retry, means.budget, self._record)
            means.budget.requests += 1
            while True:
                try:
                    async with aclosing(self._call_target(request, target)) as events:
                        async for event in events:
                            begun = True
                            yield event
                except Problem as problem:
                    if begun:
                        raise
                    target = await retries.next_target(problem)
                else:
                    return
        except Problem as problem:
            yield Failed(problem)

    async def _call_target(self, request: Request, target: Target) -> AsyncGenerator[Event]:
        """Call one upstream, and yield its reply from its first real event on."""
        asker, record, upstreams, upstream = self._asker, self._record, self._deps.upstreams, target.upstream
        translation = await self._translate(request, target)
        record.note_attempt(upstream.name, target.model)
        headers = asker.headers if upstream.dialect == asker.dialect else ()
        outgoing = await upstream.generate(translation.call, headers, translated=True)
        incoming = await upstreams.send(outgoing, target)
        if not incoming.is_success:
            rejection = await upstreams.read_rejection(incoming, outgoing, target)
            raise map_rejection(rejection, target, translation, asker.dialect, asker.document)
        record.losses = tuple(dict.fromkeys((*record.losses, *translation.losses)))
        self.last_dialect = upstream.dialect
        reply = _ReplyReader(dialect_named(upstream.dialect), translation, request, asker.issuer)
        held: list[Event] | None = []
        try:
            with incoming:
                async for event in reply.read_stream(incoming) if request.stream else reply.read_whole(incoming):
                    if held is None:
                        yield event
                        continue
                    held.append(event)
                    if not isinstance(event, Started | UsageSeen):
                        for waiting in held:
                            yield waiting
                        held = None
        except ConnectionFailure as failure:
            raise map_failure(failure, upstream.name) from None
        record.reply_losses = tuple(dict.fromkeys((*record.reply_losses, *reply.losses)))

    async def _translate(self, request: Request, target: Target) -> Translation:
        upstream, asker = target.upstream, self._asker
        there = dialect_named(upstream.dialect)
        vault = (
            self._deps.upstreams.signature_store if target.signs_calls and upstream.dialect != asker.dialect else None
        )
        signer = vault.signer_for(asker.owner) if vault is not None else None
        if vault is not None and signer is not None:
            unknown = find_unknown_ids(find_unsigned_calls(request.messages), signer)
            if unknown:
                await vault.look_up(asker.owner, unknown)
        wish = TranslationOptions(
            source=asker.dialect,
            document=asker.document,
            strict=asker.strict,
            form=upstream.form,
            signer=signer,
            text_calls=target.text_calls,
        )

        def translate(links: Links | None) -> Translation:
            return translate_core_request(request, there.name, target.model, structs.replace(wish, links=links))

        if target.media_fetcher is None:
            return translate(None)
        try:
            return translate(Links(upstream_fetches=target.fetches_links))
        except MissingLinks as missing:
            return await target.media_fetcher.translate_with_media(
                translate, missing, upstream_fetches=target.fetches_links
            )


class _ReplyReader:
    """One reply in the terms of the request: tools have the names they have there, and every call an id of its own."""

    def __init__(self, dialect: Dialect, translation: Translation, request: Request, client_issuer: str) -> None:
        self._dialect = dialect
        self._client_issuer = client_issuer
        self._pipeline = ReplyPipeline(translation.undo)
        self._salt = str(len(request.messages))
        parts = (part for message in request.messages for part in message.parts)
        self._ids = {part.id for part in parts if isinstance(part, ToolCall)}
        self._call_count = 0
        self._reply_id = ""
        self._ledger = Ledger(dialect.reply_pointers)
        spoken = translation.undo.text_calls
        self._call_detector = (
            CallDetector(spoken, dialect.call_prefix, self._salt, self._ledger, runs_calls=True)
            if spoken is not None
            else None
        )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What of calls in a model's text could not be told."""
        return self._ledger.losses() if self._call_detector is not None else ()

    async def read_whole(self, incoming: Incoming) -> AsyncIterator[Event]:
        body = await incoming.read()
        response = self._dialect.parse_response(body)
        for event in self._restore_events(replay(response)):
            yield event

    async def read_stream(self, incoming: Incoming) -> AsyncIterator[Event]:
        decoder = self._dialect.decoder()
        while piece := await incoming.read_chunk():
            for event in self._restore_events(decoder.feed(piece)):
                yield event
                if isinstance(event, Finished):
                    return
        for event in self._restore_events(decoder.close()):
            yield event

    def _restore_events(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events if self._call_detector is None else self._call_detector.feed(events):
            for restored in self._pipeline.feed(event):
                if isinstance(restored, Failed):
                    raise adapt_error_reply(restored.problem, self._dialect.issuer, self._client_issuer)
                yield self._assign_call_id(restored)

    def _assign_call_id(self, event: Event) -> Event:
        """Give a call an id unlike all others of the conversation: some upstreams give none, or the same again."""
        if isinstance(event, Started):
            self._reply_id = event.id
        if not isinstance(event, PartStarted) or not isinstance(event.part, ToolCall):
            return event
        call, self._call_count = event.part, self._call_count + 1
        call_id = call.id
        if not call_id or call_id in self._ids:
            call_id = generate_id(
                self._dialect.call_prefix, self._reply_id, self._salt, self._call_count, call.name, call_id
            )
        self._ids.add(call_id)
        return event if call_id == call.id else PartStarted(event.index, structs.replace(call, id=call_id))
