"""Translate a whole reply from one dialect to another."""

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.response import Response
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.context import NO_CONTEXT, Context, is_wrapped_otherwise
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_whole import adapt_reply
from dragoman.interpreter.text_calls.hearing import heard
from dragoman.interpreter.undo import restored


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
    response = here.parse_response(body)
    ledger = Ledger(here.reply_pointers, body, exact=not response.spelling)
    hearing = context.hearing(there, ledger)
    if hearing is not None:
        response = heard(response, hearing)
    parts = restored(response.parts, context.undo)
    created = context.now if response.created is None else response.created
    if parts is not response.parts or created != response.created:
        response = structs.replace(response, parts=parts, created=created)
    if here is not there:
        response = adapt_reply(response, here, there, context, ledger)
    return Rendered(there.build_response(response, context.client_request()), ledger.losses(), response)
