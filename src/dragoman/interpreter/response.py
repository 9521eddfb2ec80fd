"""Translate a whole reply from one dialect to another."""

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart
from dragoman.core.response import Response
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.context import NO_CONTEXT, Context, is_wrapped_otherwise
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_plain import PlainReplies, shape_of, told_parts
from dragoman.interpreter.reply_whole import WholeFitter
from dragoman.interpreter.text_calls.hearing import heard
from dragoman.interpreter.translation import NO_UNDO
from dragoman.interpreter.undo import Restorer

PLAIN = PlainReplies()
"""What it remembers of what plain replies lose."""


class Rendered(Struct, frozen=True):
    """A translated reply and what it could not say."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    response: Response | None = None
    """The reply in the core; None when its bytes were passed on unread."""


def translate_response(body: bytes, source: str, target: str, context: Context = NO_CONTEXT) -> Rendered:
    """Say a whole reply of `source` in `target`, the client's dialect."""
    here, there = dialect_named(source), dialect_named(target)
    if here is there and context.passes and not is_wrapped_otherwise(here, body, context):
        return Rendered(body)
    plain = here.read_plain(body)
    parts = shape = None
    if plain is not None and here is not there:
        parts = told_parts(plain, there, context.undo, context.salt)
        if parts is not None:
            shape = shape_of(plain, here, there)
            known = PLAIN.losses_of(shape)
            if known is not None:
                response = _as_told(plain, parts, context)
                return Rendered(there.build_response(response, context.client_request()), known, response)
    ledger = Ledger(here.reply_pointers, body, exact=plain is not None)
    response = plain or here.parse_response(body)
    if response.created is None:
        response = structs.replace(response, created=context.now)
    hearing = context.hearing(there, ledger)
    if hearing is not None:
        response = heard(response, hearing)
    if here is not there or context.undo is not NO_UNDO:
        response = _fitted(response, here, there, context, ledger)
    losses = ledger.losses()
    if shape is not None:
        PLAIN.keep(shape, losses)
    return Rendered(there.build_response(response, context.client_request()), losses, response)


def _as_told(plain: Response, parts: tuple[AnyPart, ...], context: Context) -> Response:
    """Return a plain reply with what the client is told of it, and nothing else."""
    usage, created = plain.usage, plain.created
    return Response(
        id=plain.id,
        model=plain.model,
        parts=parts,
        finish=plain.finish,
        usage=structs.replace(usage, extras=None) if usage is not None and usage.extras is not None else usage,
        created=context.now if created is None else created,
    )


def _fitted(response: Response, here: Dialect, there: Dialect, context: Context, ledger: Ledger) -> Response:
    """Return a whole reply in the caller's terms, with only what its dialect can hold."""
    restored = structs.replace(response, parts=tuple(map(Restorer(context.undo).whole, response.parts)))
    if here is there:
        return restored
    return context.fitter(WholeFitter, here, there, ledger).fit(restored)
