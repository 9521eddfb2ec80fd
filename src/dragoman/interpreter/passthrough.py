"""Forward a request in its own dialect: the same bytes, except for signatures of other vendors and an envelope.

A signature envelope is only for the vendor that issued the signature, and models reject signature fields that they do
not know. Both are removed if the target is of another vendor, and reported. A body with neither is not parsed.
"""

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.ledger import Ledger, open_request_ledger
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.pairing import NO_LOSSES, pair_calls
from dragoman.interpreter.same_dialect import adapt_to_model
from dragoman.interpreter.signature_envelopes import ENVELOPE_MARKER, remove_foreign_envelopes
from dragoman.interpreter.tool_errors import build_problem, find_all_faults
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translation import Links, Translation, TranslationTask
from dragoman.interpreter.turns import sign_steps
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import set_member


class _WrappedBody(Struct):
    """The request inside an envelope, as far as its tools."""

    tools: Raw = Raw()


class _Body(_WrappedBody):
    """A request body as far as its tools, which are at the top or in the request inside an envelope."""

    request: _WrappedBody | None = None


_BODY_DECODER = msgspec.json.Decoder(_Body)


def require_readable(call: Call, dialect: Dialect, cache: ToolsCache) -> None:
    """Reject tools that cannot be parsed, in a request that is forwarded in its own dialect."""
    try:
        body = _BODY_DECODER.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # the parser reports what is wrong with the body
    raw, where = body.tools, "/tools"
    if not raw and body.request is not None:
        raw, where = body.request.tools, "/request/tools"
    tools = bytes(raw)
    if not tools or tools == b"null":
        return
    try:
        cache.read(dialect, tools, where)
    except (json.Malformed, Problem):
        faults = find_all_faults(call, dialect)
        if faults:
            # The vendor does not see a request that is rejected here, so report every error that it would have found.
            raise build_problem(faults) from None


def pair_request(call: Call, dialect: Dialect, model: str) -> tuple[Call, tuple[Loss, ...]]:
    """Return a request in which every call is followed by its result; the same request if that is so already.

    A client's own history is forwarded unchanged to an upstream of its dialect: the vendor validates it. A stored
    history may have calls without a result, or with a late one, which no vendor accepts.
    """
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model)
    ledger = open_request_ledger(dialect, call.body)
    messages = list(request.messages)
    found = pair_calls(messages, traits, ledger)
    if found is messages:
        return call, NO_LOSSES
    return dialect.render_request(structs.replace(request, messages=tuple(found)), traits), ledger.losses()


def pass_on(task: TranslationTask, cache: ToolsCache, _links: Links | None) -> Translation:
    """Forward a request in its own dialect: the same bytes, but for foreign signatures, an envelope and a new model."""
    call, dialect, model = task.call, task.source, task.model
    ledger = open_request_ledger(dialect, call.body)
    forwarded, request = adapt_own(task, ledger, cache), None
    unwrapped = dialect.unwrap(forwarded) if dialect.unwrap is not None else None
    if unwrapped is not None:
        request = dialect.parse_request(call)
        forwarded, dropped = unwrapped
        for where in dropped:
            ledger.report_dropped(where, "a field of the envelope: this upstream takes requests without one")
    losses = ledger.losses() if len(ledger) else ()
    if task.strict:
        reject_losses(losses, strict=task.strict)
    return Translation(
        call=_replace_model(forwarded, model, dialect) if model else forwarded, losses=losses, request=request
    )


def adapt_own(task: TranslationTask, ledger: Ledger, cache: ToolsCache) -> Call:
    """Return a request of the target's own dialect without foreign signatures, and as another model accepts it."""
    call, dialect, model = task.call, task.source, task.model
    call = remove_foreign_signatures(call, dialect, model, ledger)
    return adapt_to_model(call, dialect, model, ledger, cache) if model else call


def remove_foreign_signatures(call: Call, dialect: Dialect, model: str, ledger: Ledger) -> Call:
    """Return the request without signatures of other vendors; the same request if it has none."""
    in_envelopes = ENVELOPE_MARKER in call.body
    in_calls = bool(dialect.capabilities.call_issuers) and _find_signature_field(dialect) in call.body
    if not in_envelopes and not in_calls:
        return call
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model or request.model)
    messages = request.messages
    # Servers that accept any reasoning back are lenient with fields, and may forward the signature to Google.
    if in_calls and not traits.call_signatures and not traits.reasoning_text:
        messages = tuple(_remove_signatures(message, dialect, ledger) for message in messages)
    if in_envelopes:
        messages = sign_steps(remove_foreign_envelopes(messages, dialect.issuer, ledger), traits, ledger)
    elif not len(ledger):
        return call
    return dialect.render_request(structs.replace(request, messages=messages), traits)


def _find_signature_field(dialect: Dialect) -> bytes:
    """Return the name of the field on a call that holds another vendor's signature."""
    return dialect.pointers["part.signature"][0].rpartition("/")[2].encode()


def _remove_signatures(message: Message, dialect: Dialect, ledger: Ledger) -> Message:
    return structs.replace(message, parts=tuple(_remove_signature(part, dialect, ledger) for part in message.parts))


def _remove_signature(part: AnyPart, dialect: Dialect, ledger: Ledger) -> AnyPart:
    if not isinstance(part, ToolCall) or part.signature is None:
        return part
    if part.signature.issuer not in dialect.capabilities.call_issuers:
        return part
    ledger.report_dropped_signature(part, f"signed by {part.signature.issuer}: only its models can read it")
    return structs.replace(part, signature=None)


def _replace_model(call: Call, model: str, dialect: Dialect) -> Call:
    """Replace the model; every other byte of the body stays the same."""
    try:
        found = (pointer for pointer in dialect.pointers["model"] if lookup(call.body, pointer) is not None)
        pointer = next(found, None)
        body = call.body
        if pointer is not None:
            body = set_member(body, pointer.removeprefix("/"), json.encode(model))
        return Call(body, model, call.stream)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
