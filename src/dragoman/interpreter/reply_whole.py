"""Adapt a whole reply to the client's dialect.

Texts, reasoning and whole calls are adapted directly. A reply with any other part, or with one that is left out or
takes another form, is replayed through `ReplyFitter` as events and collected again; both ways report the same.
"""

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.response import Response
from dragoman.core.stream import collect, replay
from dragoman.dialects.record import Dialect, Holds
from dragoman.interpreter.carry import carried_item, sealed
from dragoman.interpreter.context import Context
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_fields import UNKNOWN, book_usage, reason_to_drop
from dragoman.interpreter.reply_steps import (
    CallIds,
    adapt_finish,
    drop_signature,
    held_signature,
    is_carried,
    report_order,
    unsigned_mark,
)
from dragoman.wire import json


def adapt_reply(response: Response, here: Dialect, there: Dialect, context: Context, ledger: Ledger) -> Response:
    """Return a reply as the client's dialect can say it; raise the `Problem` of one that it cannot."""
    parts = _adapt_parts(response, here, there, context, ledger)
    if parts is None:
        # What was reported of the parts before is reported again, and counts once.
        fitter = context.fitter(here, there, ledger, whole=True)
        return collect([fitted for event in replay(response) for fitted in fitter.feed(event)])
    sequence, blocked = False, b""
    if response.extras is not None:
        sequence, blocked = _report_fields(response.extras.fields, here, ledger)
    usage = response.usage
    if usage is not None and (usage.extras is not None or usage.cache_written):
        book_usage(usage, there.holds, ledger)
        usage = structs.replace(usage, extras=None)
    return Response(
        id=response.id,
        model=response.model,
        parts=tuple(parts),
        finish=adapt_finish(response.finish, here, there, ledger, sequence=sequence, blocked=blocked),
        usage=usage,
        created=response.created,
    )


def _adapt_parts(
    response: Response, here: Dialect, there: Dialect, context: Context, ledger: Ledger
) -> list[AnyPart] | None:
    """Return the parts of a reply at the client; None if one of them is left out or takes another form."""
    holds = there.holds
    if not response.id or context.undo.single or not holds.reasoning:
        return None
    adapted: list[AnyPart] = []
    ids: CallIds | None = None
    calls = 0
    for part in response.parts:
        if type(part) is Text:
            if part.citations:
                return None
        elif not _stays(part, holds):
            return None
        bare = part
        if part.extras is not None or part.signature is not None or type(part) is Reasoning:
            bare = _without_foreign_fields(part, adapted, here, there, ledger)
        if type(bare) is ToolCall:
            calls += 1
            ids = ids or CallIds(there, response.id, context.salt, ledger)
            call_id = ids.of(bare, calls)
            adapted.append(bare if call_id == bare.id else structs.replace(bare, id=call_id))
        else:
            if calls:
                report_order(bare, holds, ledger)
            adapted.append(bare)
    return adapted


def _stays(part: AnyPart, holds: Holds) -> bool:
    """Tell whether a part that is no text is told, and in its own form."""
    if type(part) is ToolCall:
        if part.form == "text" and not holds.custom_calls:
            return False
        # Of a call that cannot be taken back the arguments must be an object.
        return not holds.object_arguments or (part.complete and json.is_object(part.arguments or "{}"))
    return type(part) is Reasoning


def _without_foreign_fields(
    part: AnyPart, before: list[AnyPart], here: Dialect, there: Dialect, ledger: Ledger
) -> AnyPart:
    """Return a part with its signature as the client holds it and no extras; what cannot be held is reported.

    A signature that a call cannot hold goes to reasoning `before` it.
    """
    kind, signature, extras, held, item = type(part), part.signature, part.extras, None, ""
    if signature is not None:
        redacted = isinstance(part, Reasoning) and part.redacted
        held = held_signature(signature, kind, there, redacted=redacted)
        if held is None and kind is ToolCall and is_carried(there.holds):
            before.append(Reasoning(signature=sealed(signature, "call", there.issuer)))
        elif held is None:
            drop_signature(signature, part, ledger, redacted=redacted)
        elif held is not signature and kind is Reasoning:
            item = carried_item(signature)
    elif kind is Reasoning:
        held = unsigned_mark(here.issuer, there)
    if extras is not None:
        carried = json.encode(item) if item else b""
        for field, raw in extras.fields.items():
            if raw != carried:
                place = part.where + field if here.field_place is None else here.field_place(part.where, field)
                ledger.value_dropped(place, raw, UNKNOWN)
    return part if held is signature and extras is None else structs.replace(part, signature=held, extras=None)


def _report_fields(fields: dict[str, bytes], here: Dialect, ledger: Ledger) -> tuple[bool, bytes]:
    """Report what only the source understands; tell whether a stop sequence was hit, and why the prompt was blocked."""
    sequence, blocked = False, b""
    sequences, blocks = ledger.pointers.get("finish.sequence", ()), ledger.pointers.get("finish.blocked", ())
    for field, raw in fields.items():
        if field in sequences:
            sequence = True
            continue
        if field in blocks:
            blocked = raw
        ledger.value_dropped(field, raw, reason_to_drop(field, here.repeated))
    return sequence, blocked
