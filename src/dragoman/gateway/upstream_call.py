"""Calls one upstream once: translates the client's request and sends it.

Every error is raised as a `Problem` in the client's terms; see `errors`.
"""

from collections.abc import Callable, Collection, Coroutine
from functools import partial
from time import time
from typing import Any, Protocol

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, are_tools_validated, require_valid_tools
from dragoman.gateway.context import CallContext
from dragoman.gateway.errors import Rejection, map_failure, map_rejection
from dragoman.gateway.redact import credentials_of, redact_known
from dragoman.gateway.router import Target
from dragoman.gateway.signature_removal import (
    remove_recorded,
    remove_signatures,
    replace_rejected,
)
from dragoman.gateway.signatures import OwnerSigner, SignatureStore
from dragoman.http.client import Client, Incoming, Outgoing
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.core_request import TranslationOptions
from dragoman.interpreter.deferred_tools import FEWEST_TOOLS, require_room
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.other_api import call_needs_other_api, needs_other_api, report_other_api
from dragoman.interpreter.passthrough import pair_request, require_readable
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.signatures import find_unknown_ids
from dragoman.interpreter.tool_errors import explain_tools
from dragoman.interpreter.translate import CACHES, ParsedRequest, PendingRequest, parse_request
from dragoman.interpreter.translation import Links, MissingLinks, Translation, TranslationTask


class UpstreamReply(Struct, frozen=True):
    """A successful reply that has started."""

    target: Target
    translation: Translation
    incoming: Incoming
    signature_store: SignatureStore | None = None
    """Stores what is signed in the reply, if the client may not send that back."""

    @property
    def context(self) -> Context:
        """What the reply adapter needs to know about the request."""
        saves = self.signature_store is not None
        return Context(self.translation.request, self.translation.undo, now=int(time()), saves_signatures=saves)


class LargeTranslator(Protocol):
    """Translates requests with large bodies outside this process; see `large_bodies`."""

    def translate(
        self,
        request: ClientRequest,
        target: Target,
        store: SignatureStore | None = None,
        turn_functions: frozenset[str] = frozenset(),
        losses: tuple[Loss, ...] = (),
    ) -> Coroutine[Any, Any, Translation]:
        """Translate a request as `translate` does."""
        ...

    async def map_rejection(
        self, request: ClientRequest, target: Target, store: SignatureStore | None, rejection: Rejection
    ) -> Problem:
        """Return the error for a request that an upstream has rejected."""
        ...


class UpstreamClient:
    """Calls upstreams."""

    def __init__(
        self,
        client: Client,
        signature_store: SignatureStore | None = None,
        turn_functions: frozenset[str] = frozenset(),
        large_translator: LargeTranslator | None = None,
    ) -> None:
        self.http = client
        self.signature_store = signature_store
        self._turn_functions = turn_functions
        """What the gateway can run within a turn; a request that needs it raises `TurnFunctionsNeeded`."""
        self._large_translator = large_translator

    def translate(
        self, request: ClientRequest, target: Target, losses: tuple[Loss, ...] = ()
    ) -> Coroutine[Any, Any, Translation]:
        """Translate a request with what is saved of it; `losses` are those of choosing the target."""
        run = self._find_translator(request)
        return run(request, target, self.signature_store, self._turn_functions, losses)

    def translate_unsigned(
        self, request: ClientRequest, target: Target, losses: tuple[Loss, ...] = ()
    ) -> Coroutine[Any, Any, Translation]:
        """Translate a request without what is saved of it."""
        return self._find_translator(request)(request, target, losses=losses)

    def _find_translator(self, request: ClientRequest) -> Callable[..., Coroutine[Any, Any, Translation]]:
        if request.is_large and self._large_translator is not None:
            return self._large_translator.translate
        return translate

    async def send_translated(self, context: CallContext, target: Target, translation: Translation) -> UpstreamReply:
        """Send a translated request; return when a successful reply has started.

        If the upstream rejects signatures or saved reasoning in the history, it is sent once more without them.
        """
        request, record, upstream = context.request, context.record, target.upstream
        is_translated = upstream.dialect != request.dialect
        # A client of the same dialect sends the signatures back itself.
        store = self.signature_store if target.signs and is_translated else None
        headers = () if is_translated else request.headers
        is_plain = False
        while True:
            record.note_attempt(upstream.name, target.model)
            outgoing = await upstream.generate(translation.call, headers, translated=is_translated)
            if request.target:
                outgoing = _add_query(outgoing, request.target)
            try:
                incoming = await self.send(outgoing, target, translation, request)
            except Problem as problem:
                plain = (
                    None if is_plain else await self._translate_rejected(request, target, translation, store, problem)
                )
                if plain is None:
                    raise
                record.note_attempt_end("failed", problem)
                translation, is_plain = plain, True
            else:
                record.losses = (*request.losses, *translation.losses) if request.losses else translation.losses
                return UpstreamReply(target, translation, incoming, store)

    async def _translate_rejected(
        self,
        request: ClientRequest,
        target: Target,
        rejected: Translation,
        store: SignatureStore | None,
        problem: Problem,
    ) -> Translation | None:
        """Return the translation without the signatures or the saved reasoning that `problem` rejects, or None."""
        if store is not None:
            if problem.status != 400:
                return None
            return replace_rejected(rejected, await self.translate_unsigned(request, target))
        unsigned = remove_signatures(request, target, problem)
        return await self.translate_unsigned(unsigned[0], target, unsigned[1]) if unsigned is not None else None

    async def send(
        self,
        outgoing: Outgoing,
        target: Target,
        translation: Translation,
        request: ClientRequest,
        accepted: Collection[int] = (),
    ) -> Incoming:
        """Send a translated request; return when a successful reply, or one with an `accepted` status, has started."""
        try:
            incoming = await self.http.send(outgoing, target.deadlines)
        except ConnectionFailure as failure:
            raise map_failure(failure, target.upstream.name) from None
        if incoming.is_success or incoming.status in accepted:
            return incoming
        body = redact_credentials(await read_body(incoming, target), outgoing)
        rejection = Rejection(incoming.status, incoming.headers, body)
        if request.is_large and self._large_translator is not None:
            problem = await self._large_translator.map_rejection(request, target, self.signature_store, rejection)
        else:
            problem = map_rejection(rejection, target, translation, request.dialect, request.call.body)
        problem.cause = f"status {incoming.status}"
        raise problem


async def read_body(incoming: Incoming, target: Target) -> bytes:
    """Read the whole body of a reply."""
    try:
        return await incoming.read()
    except ConnectionFailure as failure:
        raise map_failure(failure, target.upstream.name) from None


def _add_query(outgoing: Outgoing, target: str) -> Outgoing:
    """Add the client's query string if the upstream's path is the path that the client used."""
    path = target.partition("?")[0]
    if not outgoing.target.endswith(path):
        return outgoing
    return structs.replace(outgoing, target=outgoing.target.removesuffix(path) + target)


def redact_credentials(body: bytes, outgoing: Outgoing) -> bytes:
    """Return an error body without the gateway's credentials: some upstreams quote the key that they reject."""
    return redact_known(body.decode("latin-1"), credentials_of(outgoing)).encode("latin-1")


def choose_api(request: ClientRequest, target: Target, turn: Request | None = None) -> tuple[Target, tuple[Loss, ...]]:
    """Return the target that takes a request, and the loss if that is the other API of the upstream.

    `turn` is what is sent to the model if that is a turn of a run, not the client's own request.
    """
    other = target.other_api
    if other is None:
        return target, ()
    traits = traits_for(target.upstream.dialect, target.model)
    if turn is not None:
        is_needed = needs_other_api(turn, traits)
    else:
        is_needed = call_needs_other_api(request.call, dialect_named(request.dialect), traits)
    if not is_needed:
        return target, ()
    if not request.dialect:
        return other, ()  # the program's own request, which has no fields to report
    loss = report_other_api(request.call.body, dialect_named(request.dialect), traits, other.upstream.dialect)
    if request.strict:
        reject_losses([loss], strict=request.strict)
    return other, (loss,)


async def translate(
    request: ClientRequest,
    target: Target,
    signature_store: SignatureStore | None = None,
    turn_functions: frozenset[str] = frozenset(),
    losses: tuple[Loss, ...] = (),
) -> Translation:
    """Translate a request for an upstream; every attempt starts from the client's own bytes.

    `losses` are those of choosing the target.
    """
    upstream, client_dialect = target.upstream, dialect_named(request.dialect)
    upstream_dialect = dialect_named(upstream.dialect)
    call, signer = request.call, None
    if client_dialect is upstream_dialect:
        call = request.native or call
        tools = require_readable(call, client_dialect, CACHES.tools)
        if len(tools) > FEWEST_TOOLS and not target.is_exact:
            traits = traits_for(upstream.dialect, target.model, "", target.server)
            require_room(tools, traits, turn_functions)
        if request.has_stored_history:
            call, repairs = pair_request(call, client_dialect, target.model)
            losses += repairs
        if signature_store is not None and not target.is_exact and await signature_store.has_recorded(request.owner):
            call, removed = await remove_recorded(call, request, target, signature_store)
            losses += removed
    elif signature_store is not None and target.signs:
        signer = signature_store.signer_for(request.owner)
    task = TranslationTask(
        call,
        client_dialect,
        upstream_dialect,
        target.model if target.model != request.call.model else "",
        upstream.form,
        request.strict,
        signer,
        Links(upstream_fetches=target.fetches_links) if target.media_fetcher is not None else None,
        target.text_calls,
        target.cache_marks,
        target.is_exact,
        server=target.server,
        turn_functions=turn_functions,
    )
    try:
        pending = parse_request(task)
        if client_dialect is not upstream_dialect or task.text_calls:
            parsed = pending.request or client_dialect.parse_request(call)
            if not are_tools_validated(parsed, pending.tool_set):
                await require_valid_tools(call, client_dialect, parsed, pending.tool_set)
        translation = await translate_with_stored(pending, partial(parse_request, task), task, target, signer)
    except Problem as problem:
        raise explain_tools(problem, call, client_dialect) from None
    return structs.replace(translation, losses=(*losses, *translation.losses)) if losses else translation


async def translate_with_stored(
    pending: ParsedRequest | PendingRequest,
    parse: Callable[[], ParsedRequest | PendingRequest],
    options: TranslationTask | TranslationOptions,
    target: Target,
    signer: OwnerSigner | None,
) -> Translation:
    """Translate a parsed request, with its saved signatures and reasoning and the fetched media of its links.

    Most sections without a signature never had one. So a request is translated first, and unknown sections are looked
    up afterwards; it is parsed and translated again only if one is signed. In strict mode they are looked up first,
    because a missing signature is a loss and strict mode rejects losses.
    """
    unknown = ()
    if signer is not None and (pending.has_answers or not signer.is_empty):
        unknown = await _find_unknown_ids(pending, signer)
        if options.strict and unknown:
            await signer.look_up(unknown)
            pending, unknown = parse(), ()
    try:
        translation = pending.translate(options.links)
    except MissingLinks as missing:
        if target.media_fetcher is None or options.links is None:
            raise
        translation = await target.media_fetcher.translate_with_media(pending.translate, missing, options.links)
    if unknown and signer is not None and await signer.look_up(unknown):
        # The signatures are cached now; a call that could not be looked up is reported as a loss.
        return await translate_with_stored(parse(), parse, options, target, None)
    return translation


async def _find_unknown_ids(pending: ParsedRequest | PendingRequest, signer: OwnerSigner) -> list[str]:
    """Return the ids of sections that must be looked up: none for an owner of whom nothing is saved."""
    if signer.is_empty and not await signer.has_any():
        return []
    unsigned, unconfirmed = pending.unsigned, pending.unconfirmed
    return [*unconfirmed, *find_unknown_ids(unsigned, signer)] if unsigned or unconfirmed else []
