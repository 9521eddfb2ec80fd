"""A request that passes in its own dialect, without what another vendor signed.

What stands in our envelopes is for its issuer alone. A dialect may also have a field for another vendor's signature,
which only that vendor's models read: others refuse a field that they do not know. Both are taken out where the target
is not theirs, and booked. Bodies in which neither occurs are not even read.
"""

from msgspec import structs

from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.request import Message
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.arrange import signed_steps
from dragoman.interpreter.carry import MARK, native
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.traits import traits_for


def cleaned(call: Call, dialect: Dialect, model: str, ledger: Ledger) -> Call:
    """Return a request without what another vendor signed; the same one if there is nothing such."""
    in_envelopes = MARK in call.body
    in_calls = bool(dialect.holds.call_issuers) and _field(dialect) in call.body
    if not in_envelopes and not in_calls:
        return call
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model or request.model)
    messages = request.messages
    # Servers that take any reasoning back are lenient with fields, and may be a way to Google themselves.
    if in_calls and not traits.call_signatures and not traits.reasoning_text:
        messages = tuple(_unsigned(message, dialect, ledger) for message in messages)
    if in_envelopes:
        messages = signed_steps(native(messages, dialect.issuer, ledger), traits, ledger)
    elif not len(ledger):
        return call
    return dialect.render_request(structs.replace(request, messages=messages), traits)


def _field(dialect: Dialect) -> bytes:
    """Return the name of the field that a call has for another vendor's signature."""
    return dialect.pointers["part.signature"][0].rpartition("/")[2].encode()


def _unsigned(message: Message, dialect: Dialect, ledger: Ledger) -> Message:
    return structs.replace(message, parts=tuple(_without_signature(part, dialect, ledger) for part in message.parts))


def _without_signature(part: AnyPart, dialect: Dialect, ledger: Ledger) -> AnyPart:
    if not isinstance(part, ToolCall) or part.signature is None:
        return part
    if part.signature.issuer not in dialect.holds.call_issuers:
        return part
    ledger.field_dropped("part.signature", f"signed by {part.signature.issuer}, whose models alone read it", part)
    return structs.replace(part, signature=None)
