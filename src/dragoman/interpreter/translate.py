"""Translate a request or an error from one dialect to another.

The same dialect on both sides means the same bytes. Otherwise: parse, adapt (losses are reported there), render.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect, ErrorReply
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.cleaned import cleaned
from dragoman.interpreter.faults import as_fault, is_envelope, losses_of
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.links import Links
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.signing import Signer
from dragoman.interpreter.text_calls.translation import translated_in_words
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translation import Asked, Caches, ParsedRequest, Translation
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced

CACHES = Caches(ToolsCache(), PrefixCache())
"""What this process keeps of the requests that went through it."""


class PendingRequest(Struct, frozen=True):
    """A request that is parsed, and can be translated when media is fetched for it."""

    translate: Callable[[Links | None], Translation]
    """Translate it, with the links that were fetched for it; raises `Unfetched` for those that must be fetched."""
    unknown_ids: Sequence[str] = ()
    """Calls that it takes for unsigned, and that nobody has looked up; if one is signed, it must be parsed again."""


def translate_request(  # noqa: PLR0913  a call, two dialects, and independent options
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
    is asked for signatures that the target demands and the caller did not bring. With `links` media that the target
    does not fetch is replaced by what was fetched for it; `Unfetched` if it must be. With `text_calls` the target has
    no tools of its own: they are told to it in words, and it calls them in its text.
    """
    here, there = dialect_named(source), dialect_named(target)
    asked = Asked(call, here, there, model, form, strict, signer, links, text_calls)
    return parse_request(asked).translate(links)


def parse_request(asked: Asked, caches: Caches | None = None) -> PendingRequest:
    """Parse a request, so that it can be translated as soon as all it needs is known."""
    if asked.text_calls:
        return PendingRequest(partial(_translate_in_words, asked))
    if asked.here is asked.there and not asked.form:
        return PendingRequest(partial(_pass_on, asked))
    parsed = ParsedRequest(asked, caches or CACHES)
    return PendingRequest(parsed.translate, parsed.unknown_ids)


def _translate_in_words(asked: Asked, links: Links | None) -> Translation:
    translation = translated_in_words(structs.replace(asked, links=links))
    if translation is not None:
        return translation
    return parse_request(structs.replace(asked, text_calls="")).translate(links)


def _pass_on(asked: Asked, _links: Links | None) -> Translation:
    return _passed(asked.call, asked.here, asked.model, strict=asked.strict)


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
