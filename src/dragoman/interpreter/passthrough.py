"""Forward a request in its own dialect: the same bytes, except for signatures of other vendors and an envelope.

A signature envelope is only for the vendor that issued the signature, and models reject signature fields that they do
not know. Both are removed if the target is of another vendor, and reported. A body with neither is not parsed. A
signature of unknown origin is sent; if the vendor rejects it, the request is sent again without its signatures.
Whatever is removed is cut out of the bytes; every other byte stays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.dialects.record import Call, Dialect, Tools
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.history_completion import complete_history
from dragoman.interpreter.ledger import Ledger, open_request_ledger
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.pairing import NO_LOSSES, pair_calls
from dragoman.interpreter.parameters import disable_in_tool_loop
from dragoman.interpreter.same_dialect import adapt_to_model, find_parameter_edits, is_own_model
from dragoman.interpreter.search_history import replace_generated
from dragoman.interpreter.server_edits import Edits
from dragoman.interpreter.signature_envelopes import ENVELOPE_MARKER, remove_foreign_envelopes
from dragoman.interpreter.tool_errors import build_problem, find_all_faults
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translation import Links, Translation, TranslationTask
from dragoman.interpreter.turns import sign_steps
from dragoman.wire import json
from dragoman.wire.lookup import Document, to_snake_case
from dragoman.wire.splice import edit, replace_member

_REJECTED = "not sent: the vendor rejected a signature of the history"


class _WrappedBody(Struct):
    """The request inside an envelope, as far as its tools."""

    tools: Raw = Raw()


class _Body(_WrappedBody):
    """A request body as far as its tools, which are at the top or in the request inside an envelope."""

    request: _WrappedBody | None = None


_BODY_DECODER = msgspec.json.Decoder(_Body)


def require_readable(call: Call, dialect: Dialect, cache: ToolsCache) -> Tools:
    """Return the tools of a request that is forwarded in its own dialect; reject tools that cannot be parsed."""
    try:
        body = _BODY_DECODER.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()  # the parser reports what is wrong with the body
    raw, where = body.tools, "/tools"
    if not raw and body.request is not None:
        raw, where = body.request.tools, "/request/tools"
    tools = bytes(raw)
    if not tools or tools == b"null":
        return ()
    try:
        return cache.read(dialect, tools, where).tools
    except (json.Malformed, Problem):
        faults = find_all_faults(call, dialect)
        if faults:
            # The vendor does not see a request that is rejected here, so report every error that it would have found.
            raise build_problem(faults) from None
        return ()


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
        call=_replace_model(forwarded, model, dialect) if model and forwarded.model != model else forwarded,
        losses=losses,
        request=request,
    )


def adapt_own(task: TranslationTask, ledger: Ledger, cache: ToolsCache) -> Call:
    """Return a request of the target's own dialect without foreign signatures, and as another model accepts it.

    Another vendor's model gets the missing call ids too, and tool results before the text of their turn.
    The request is returned unchanged if the target wants it exact.
    """
    call, dialect, model = task.call, task.source, task.model
    if task.exact:
        return call
    if model:
        call = complete_history(call, dialect, model, ledger, task.server)
    call = remove_foreign_signatures(call, dialect, model, ledger)
    return adapt_to_model(task, _sign_calls(call, dialect, model, ledger), ledger, cache) if model else call


def _sign_calls(call: Call, dialect: Dialect, model: str, ledger: Ledger) -> Call:
    """Return the request with the vendor's placeholder on calls that have no signature, if the model requires one.

    They were made by an older model, or come from a client that drops signatures.
    """
    traits, place = traits_for(dialect.name, model), dialect.call_place
    if not traits.signed_calls or place is None or not is_own_model(dialect.name, model):
        return call
    signature = _find_signature_field(dialect).decode()
    made, signed = (
        sum(call.body.count(b'"%b"' % name.encode()) for name in (field, to_snake_case(field)))
        for field in (place.member, signature)
    )
    if made <= signed:
        return call
    try:
        request = dialect.parse_request(call)
        return _change_history(call, request, sign_steps(request.messages, traits, ledger), dialect, ledger)
    except (Problem, json.Malformed):
        return call  # the vendor reports what is wrong with it


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
        messages = replace_generated(remove_foreign_envelopes(messages, dialect.issuer, ledger), ledger)
        messages = sign_steps(messages, traits, ledger)
    elif not len(ledger):
        return call
    return _change_history(call, request, messages, dialect, ledger)


def remove_rejected_signatures(call: Call, dialect: Dialect, model: str) -> tuple[Call, tuple[Loss, ...]] | None:
    """Return a request without the signatures in its history, and the losses; None if it has no signature.

    Its vendor rejected one of them. Reasoning that needs a signature is removed with it.
    """
    return _remove_matching(call, dialect, model, lambda _: _REJECTED)


def remove_recorded_signatures(
    call: Call, dialect: Dialect, model: str, issuers: Mapping[str, str]
) -> tuple[Call, tuple[Loss, ...]] | None:
    """Return a request without the signatures whose values are known to be of other vendors; None if it has none."""

    def find_reason(signature: Signature | None) -> str:
        issuer = issuers.get(signature.value) if signature is not None else None
        return f"signed by {issuer}: only its models can read it" if issuer is not None else ""

    return _remove_matching(call, dialect, model, find_reason)


def _remove_matching(
    call: Call, dialect: Dialect, model: str, find_reason: Callable[[Signature | None], str]
) -> tuple[Call, tuple[Loss, ...]] | None:
    """Return a request without the signatures for which `find_reason` returns one, and their reasoning."""
    ledger = open_request_ledger(dialect, call.body)
    if model != call.model:
        call = complete_history(call, dialect, model, ledger)
    completed = len(ledger)
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model)
    has_unsigned = traits.unsigned_reasoning or traits.reasoning_text
    document, more = Document(call.body), dict[str, None]()
    messages: list[Message] = []
    for message in request.messages:
        parts: list[AnyPart] = []
        for part in message.parts:
            reason = find_reason(part.signature) if isinstance(part, Reasoning | Text | ToolCall) else ""
            if isinstance(part, Reasoning) and reason and (part.signature is not None or not has_unsigned):
                ledger.report_dropped(part.where, reason)
            elif reason and isinstance(part, Text | ToolCall | Reasoning) and part.signature is not None:
                ledger.report_dropped_signature(part, reason)
                parts.append(structs.replace(part, signature=None))
            else:
                parts.append(part)
        signed = dialect.signed_member and find_reason(None) and document.find(message.where + dialect.signed_member)
        if signed:
            ledger.report_dropped(signed[0], _REJECTED)
            more[signed[0]] = None
        if parts or not message.parts:
            messages.append(message if parts == [*message.parts] else structs.replace(message, parts=tuple(parts)))
    if len(ledger) == completed:
        return None
    for where in _find_item_ids(request.messages, messages, document, dialect) if dialect.item_id else ():
        ledger.report_approximated(where, "sent without the id, because its reasoning is not sent", "informational")
        more[where] = None
    changed = _change_history(call, request, sign_steps(tuple(messages), traits, ledger), dialect, ledger, more=more)
    return changed, ledger.losses()


def _find_item_ids(
    before: Sequence[Message], after: Sequence[Message], document: Document, dialect: Dialect
) -> Iterator[str]:
    """Yield the pointers of item ids that the vendor accepts only after the reasoning that was removed."""
    kept = {id(part) for message in after for part in message.parts}
    is_bereft = False
    for message in before:
        is_bereft = is_bereft and message.role == "assistant"
        for part in message.parts:
            is_bereft = is_bereft or (isinstance(part, Reasoning) and id(part) not in kept)
            if is_bereft and id(part) in kept and document.find(message.where + dialect.item_id) is not None:
                yield message.where + dialect.item_id


def _change_history(  # noqa: PLR0913  a request before and after, and where to look and to report
    call: Call,
    request: Request,
    messages: tuple[Message, ...],
    dialect: Dialect,
    ledger: Ledger,
    *,
    more: Mapping[str, None] | None = None,
) -> Call:
    """Return the request with changed messages: spliced, or rendered if a change is more than a removal or signature.

    Claude's manual thinking is turned off in a tool loop whose thinking blocks were removed.
    """
    thinking = request.thinking
    if thinking is not None and thinking.mode == "enabled":
        thinking = disable_in_tool_loop(messages, thinking, request, ledger)
    changed = structs.replace(request, messages=messages, thinking=thinking)
    traits = traits_for(dialect.name, request.model)
    edits = _find_history_edits(call, request.messages, messages, dialect)
    if edits is None:
        return dialect.render_request(changed, traits)
    if thinking is not request.thinking:
        edits |= find_parameter_edits(request, changed, call, traits)
    return Call(edit(call.body, {**edits, **(more or {})}), call.model, call.stream)


def _find_history_edits(
    call: Call, before: tuple[Message, ...], after: tuple[Message, ...], dialect: Dialect
) -> Edits | None:
    """Return the edits that remove parts and messages and change signatures; None if other changes are needed."""
    parts = {part.where: part for message in after for part in message.parts}
    left = {message.where for message in after}
    if len(parts) != sum(len(message.parts) for message in after) or len(left) != len(after):
        return None  # a value that is several parts
    document, edits = Document(call.body), Edits()
    for message in before:
        if message.where not in left:
            edits[message.where] = None
            continue
        for part in message.parts:
            now = parts.get(part.where)
            if now is None:
                edits[part.where] = None
            elif now is not part:
                value = _find_new_signature(part, now)
                if value is None:
                    return None
                edits |= _write_signature(part.where, value, document, dialect)
    return edits


def _find_new_signature(before: AnyPart, now: AnyPart) -> str | None:
    """Return the new signature of a part, "" if it has none any more; None if more than the signature is new."""
    kinds = (Reasoning, Text, ToolCall)
    if not (isinstance(before, kinds) and isinstance(now, kinds)) or type(now) is not type(before):
        return None
    if structs.replace(now, signature=before.signature) != before:
        return None
    return now.signature.value if now.signature is not None else ""


def _write_signature(where: str, value: str, document: Document, dialect: Dialect) -> Edits:
    """Return the edits that set the signature of a part, or remove it if the value is empty."""
    pointers = [where + pointer for pointer in dialect.pointers["part.signature"]]
    found = [present[0] for pointer in pointers if (present := document.find(pointer)) is not None]
    if not value:
        return dict.fromkeys(found)
    return {(found or pointers)[0]: json.encode(value)}


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
        raw, body = json.encode(model), call.body
        for pointer in dialect.pointers["model"]:
            found = replace_member(body, pointer.removeprefix("/"), raw)
            if found is not None:
                return Call(found, model, call.stream)
        return Call(body, model, call.stream)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
