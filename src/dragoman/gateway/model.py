"""A model as a function: it takes a core request and yields core events, from any upstream.

It retries as the gateway does for clients, and holds events back until the first event with content. An error is
yielded as a `Failed` event, alone if the reply had no content yet; only cancellation is raised.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from functools import partial

from msgspec import Struct, structs

from dragoman.core.events import Event, Failed, Finished, PartStarted, Started, UsageSeen
from dragoman.core.losses import Loss
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.stream import replay
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import CallContext
from dragoman.gateway.errors import map_failure
from dragoman.gateway.retry import RetryLoop
from dragoman.gateway.router import Routes, Target
from dragoman.gateway.signature_removal import rejects_signature, replace_rejected
from dragoman.gateway.upstream_call import UpstreamClient, choose_api, translate_with_stored
from dragoman.http.client import Incoming
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.interpreter.call_wrapper import CallExpander
from dragoman.interpreter.core_request import TranslationOptions, translate_core_request
from dragoman.interpreter.errors import adapt_error_reply
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import Ledger, open_reply_ledger
from dragoman.interpreter.parameters import disable_in_tool_loop
from dragoman.interpreter.signatures import find_unsigned_sections, remove_signatures
from dragoman.interpreter.text_call_detector import CallDetector
from dragoman.interpreter.translate import PendingRequest
from dragoman.interpreter.translation import Links, Translation
from dragoman.interpreter.undo import ReplyPipeline
from dragoman.wire.json import REPLY_NESTED_TOO_DEEPLY, is_nested_too_deeply


class UpstreamDeps(Struct, frozen=True):
    """Everything that is needed to call upstreams."""

    routes: Routes
    upstreams: UpstreamClient
    retry: RetryLoop


class UpstreamModel:
    """Calls any configured model for one client, or for the program. Attempts and losses are noted in the record."""

    def __init__(self, deps: UpstreamDeps, context: CallContext) -> None:
        self._deps = deps
        # Calls are retried whether or not the client has received a part of the response.
        self._context = CallContext(context.request, context.record)
        self.last_dialect = ""
        """The dialect of the upstream that replied last."""

    def dialect_for(self, model: str) -> str:
        """Return the dialect of the upstream that replied last; before any reply, of the first upstream to try."""
        return self.last_dialect or self._deps.routes.find_targets(model)[0].upstream.dialect

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the events of the reply to a request. `request.stream` selects a streamed or a whole upstream reply."""
        deps = self._deps
        try:
            targets = deps.routes.find_targets(request.model)
            held, following = await deps.retry.run(targets, partial(self._open_reply, request), self._context)
            async with aclosing(following):
                for event in held:
                    yield event
                async for event in following:
                    yield event
        except Problem as problem:
            yield Failed(problem)

    async def _open_reply(self, request: Request, target: Target) -> tuple[list[Event], AsyncGenerator[Event]]:
        """Call one upstream; return its events up to the first one with content, and those that follow."""
        client, record = self._context.request, self._context.record
        target, losses = choose_api(client, target, request)
        upstream = target.upstream
        translation = await self._translate(request, target)
        try:
            incoming = await self._send(target, translation)
        except Problem as problem:
            plain = await self._translate_unsigned(request, target, translation, problem)
            if plain is None:
                raise
            translation = plain
            incoming = await self._send(target, translation)
        record.losses = tuple(dict.fromkeys((*record.losses, *losses, *translation.losses)))
        self.last_dialect = upstream.dialect
        issuer = dialect_named(client.dialect).issuer if client.dialect else ""
        reply = _ReplyReader(dialect_named(upstream.dialect), translation, request, issuer)
        events = self._read_events(reply, incoming, upstream.name, stream=request.stream)
        held: list[Event] = []
        async for event in events:
            held.append(event)
            if not isinstance(event, Started | UsageSeen):
                return held, events
        return [], events

    async def _send(self, target: Target, translation: Translation) -> Incoming:
        client, upstream = self._context.request, target.upstream
        self._context.record.note_attempt(upstream.name, target.model)
        headers = client.headers if upstream.dialect == client.dialect else ()
        outgoing = await upstream.generate(translation.call, headers, translated=True)
        return await self._deps.upstreams.send(outgoing, target, translation, client)

    async def _translate_unsigned(
        self, request: Request, target: Target, rejected: Translation, problem: Problem
    ) -> Translation | None:
        """Return the translation without the saved reasoning or the signatures that `problem` rejects, or None."""
        if problem.status != 400:
            return None
        plain = replace_rejected(rejected, await self._translate(request, target, restores=False))
        if plain is not None or self._context.request.strict or not rejects_signature(problem, target):
            return plain
        messages, thinking = remove_signatures(request.messages), request.thinking
        if thinking is not None and thinking.mode == "enabled":
            thinking = disable_in_tool_loop(messages, thinking, request, Ledger({}))
        unsigned = structs.replace(request, messages=messages, thinking=thinking)
        return replace_rejected(rejected, await self._translate(unsigned, target, restores=False))

    async def _read_events(
        self, reply: "_ReplyReader", incoming: Incoming, upstream: str, *, stream: bool
    ) -> AsyncGenerator[Event]:
        """Yield the events of a reply, then note its losses."""
        record = self._context.record
        try:
            with incoming:
                async for event in reply.read_stream(incoming) if stream else reply.read_whole(incoming):
                    yield event
        except ConnectionFailure as failure:
            raise map_failure(failure, upstream) from None
        record.reply_losses = tuple(dict.fromkeys((*record.reply_losses, *reply.losses)))

    async def _translate(self, request: Request, target: Target, *, restores: bool = True) -> Translation:
        """Translate a request; `restores` adds what is saved of its history."""
        upstream, client, store = target.upstream, self._context.request, self._deps.upstreams.signature_store
        is_signed = restores and store is not None and target.signs and upstream.dialect != client.dialect
        signer = store.signer_for(client.owner) if store is not None and is_signed else None
        options = TranslationOptions(
            source=client.dialect,
            document=client.call.body,
            strict=client.strict,
            form=upstream.form,
            signer=signer,
            links=(
                Links(upstream_fetches=target.fetches_links, replaces_failed=True)
                if target.media_fetcher is not None
                else None
            ),
            text_calls=target.text_calls,
            cache_marks=target.cache_marks,
            server=target.server,
        )

        def translate(links: Links | None) -> Translation:
            completed = structs.replace(options, links=links)
            return translate_core_request(request, upstream.dialect, target.model, completed)

        def parse() -> PendingRequest:
            return PendingRequest(translate, find_unsigned_sections(request.messages) if signer is not None else ())

        return await translate_with_stored(parse(), parse, options, target, signer)


class _ReplyReader:
    """Reads one reply and adapts it to the request: original tool names, and a unique id for every call."""

    def __init__(self, dialect: Dialect, translation: Translation, request: Request, client_issuer: str) -> None:
        self._dialect = dialect
        self._client_issuer = client_issuer
        self._pipeline = ReplyPipeline(translation.undo)
        self._salt = str(len(request.messages))
        parts = (part for message in request.messages for part in message.parts)
        self._ids = {part.id for part in parts if isinstance(part, ToolCall)}
        self._call_count = 0
        self._reply_id = ""
        self._ledger = open_reply_ledger(dialect)
        self._expander = CallExpander(self._ledger)
        text_calls = translation.undo.text_calls
        self._call_detector = (
            CallDetector(text_calls, dialect.call_prefix, self._salt, self._ledger, runs_calls=True)
            if text_calls is not None
            else None
        )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost when calls were parsed from the model's text."""
        return self._ledger.losses() if self._call_detector is not None else ()

    async def read_whole(self, incoming: Incoming) -> AsyncIterator[Event]:
        body = await incoming.read()
        if is_nested_too_deeply(body):
            raise Problem("malformed_reply", REPLY_NESTED_TOO_DEEPLY)
        response = self._dialect.parse_response(body)
        for event in self._restore_events(replay(response)):
            yield event

    async def read_stream(self, incoming: Incoming) -> AsyncIterator[Event]:
        decoder = self._dialect.decoder()
        while chunk := await incoming.read_chunk():
            for event in self._restore_events(decoder.feed(chunk)):
                yield event
                if isinstance(event, Finished):
                    return
        for event in self._restore_events(decoder.close()):
            yield event

    def _restore_events(self, events: Iterable[Event]) -> Iterable[Event]:
        events = self._expander.feed(events)
        for event in events if self._call_detector is None else self._call_detector.feed(events):
            for restored in self._pipeline.feed(event):
                if isinstance(restored, Failed):
                    raise adapt_error_reply(restored.problem, self._dialect.issuer, self._client_issuer)
                yield self._assign_call_id(restored)

    def _assign_call_id(self, event: Event) -> Event:
        """Give a call an id that is unique in the conversation: some upstreams send none, or repeat one."""
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
