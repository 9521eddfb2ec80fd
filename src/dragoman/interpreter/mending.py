"""Put a history in order that goes to an upstream of its own dialect.

A client's own history passes as it is: its vendor judges it. One that was kept elsewhere may have calls that nobody
answered, or answered late, and no vendor takes those.
"""

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.repair import paired
from dragoman.interpreter.traits import traits_for

NO_LOSSES: tuple[Loss, ...] = ()


def mended(call: Call, dialect: Dialect, model: str) -> tuple[Call, tuple[Loss, ...]]:
    """Return a request in which every call has its result right behind it; the same one if that is so."""
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model)
    ledger = Ledger(dialect.pointers, call.body)
    messages = list(request.messages)
    found = paired(messages, traits, ledger)
    if found is messages:
        return call, NO_LOSSES
    return dialect.render_request(structs.replace(request, messages=tuple(found)), traits), ledger.losses()
