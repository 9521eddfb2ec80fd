"""Translate a request or an error from one dialect to another.

The same dialect on both sides means the same bytes. Otherwise: parse, fit (losses are booked there), write.
"""

from collections.abc import Mapping

from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect, ErrorReply
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.cleaned import cleaned
from dragoman.interpreter.faults import as_fault, is_envelope, losses_of
from dragoman.interpreter.frames import Frames, translated_in_frame
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.links import Links
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.signing import Signer
from dragoman.interpreter.text_calls.translation import translated_in_words
from dragoman.interpreter.translation import Asked, Translation, translated
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced

RECALL = Recall()
"""What this process remembers of the long conversations that went through it."""
FRAMES = Frames()
"""What it remembers of what stands around the others."""


def translate_request(  # noqa: PLR0913  a call, two dialects, and three independent wishes
    call: Call,
    source: str,
    target: str,
    *,
    model: str = "",
    strict: bool = False,
    form: str = "",
    signer: Signer | None = None,
    links: Links | None = None,
    text_calls: TextCalls = "",
) -> Translation:
    """Say a request of `source` in `target`, for `model` there (the caller's own name for it when empty).

    `form` names a variant of the target's envelope, such as Gemini's "code_assist". Strict refuses any loss. `signer`
    is asked for signatures that the target demands and the caller did not bring; `Missing` if it must look them up.
    With `links` media that the target does not fetch is replaced by what was fetched for it; `Unfetched` if it must be.
    With `text_calls` the target has no tools of its own: they are told to it in words, and it calls them in its text.
    """
    here, there = dialect_named(source), dialect_named(target)
    if text_calls:
        told = translated_in_words(Asked(call, here, there, model, form, strict, None, links, text_calls))
        if told is not None:
            return told
    if here is there and not form:
        return _passed(call, here, model, strict=strict)
    asked = Asked(call, here, there, model, form, strict, signer, links)
    if here is there or form or len(call.body) >= 2 * RECALL.least:
        return translated(asked, RECALL)
    return translated_in_frame(asked, FRAMES, RECALL)


def _passed(call: Call, dialect: Dialect, model: str, *, strict: bool) -> Translation:
    """Pass a request on in its own dialect: the same bytes, but for another vendor's signatures and an envelope."""
    ledger = Ledger(dialect.pointers, call.body)
    passed, request = cleaned(call, dialect, model, ledger), None
    unwrapped = dialect.unwrap(passed) if dialect.unwrap is not None else None
    if unwrapped is not None:
        request = dialect.parse_request(call)
        passed, left = unwrapped
        for where in left:
            ledger.dropped(where, "only the envelope has a place for it")
    losses = ledger.losses() if len(ledger) else ()
    if strict:
        refuse(losses)
    return Translation(call=_with_model(passed, model, dialect) if model else passed, losses=losses, request=request)


def _with_model(call: Call, model: str, dialect: Dialect) -> Call:
    """Change the model and nothing else: every other byte of the body stays."""
    try:
        place = next((place for place in dialect.pointers["model"] if lookup(call.body, place) is not None), None)
        body = spliced(call.body, place.removeprefix("/"), json.encode(model)) if place is not None else call.body
        return Call(body, model, call.stream)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def translate_error(status: int, headers: Mapping[str, str], body: bytes, source: str, target: str) -> ErrorReply:
    """Say an upstream's error in the client's dialect; an error in its own dialect keeps its body."""
    here, there = dialect_named(source), dialect_named(target)
    problem = here.parse_error(status, headers, body)
    if here is there:
        reply = there.build_error(problem)
        return structs.replace(reply, body=body) if is_envelope(body) else reply
    reply = there.build_error(as_fault(problem, here.issuer, there.issuer))
    return structs.replace(reply, losses=losses_of(problem, body, here, reply))
