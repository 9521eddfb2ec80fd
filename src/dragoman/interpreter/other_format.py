"""Convert a request whose body has the format of the vendor's other API: some clients send it to the wrong endpoint.

A body of Responses has `input`, and one of Chat has `messages`. Only the body is converted: the reply and errors have
the format of the endpoint. The limits of models are applied later, when the request is translated for its upstream.
"""

from collections.abc import Iterable

from msgspec import structs

from dragoman.core.losses import Loss, Strict
from dragoman.core.request import EFFORTS
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import open_request_ledger
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.translate import complete_request

_NO_LIMITS = {
    "custom_tools": True,
    "grammars": True,
    "allowed_subset": True,
    "allowed_natives": True,
    "metadata": True,
    "verbosity": True,
    "efforts": EFFORTS,
    "max_tokens_member": "max_completion_tokens",
    "name_max": 128,
    "id_max": 64,
    "stream_fields": (),
    "unkept": (),
}
"""Traits of any model of the vendor, so that nothing is adapted to one."""


def find_siblings(dialects: Iterable[Dialect]) -> dict[str, tuple[Dialect, ...]]:
    """Return the other dialects of each dialect's vendor, by the dialect's name."""
    known = [dialect for dialect in dialects if dialect.api.paths]
    return {
        one.name: tuple(other for other in known if other is not one and other.issuer == one.issuer) for one in known
    }


def convert_request(call: Call, source: Dialect, target: Dialect, strict: Strict) -> tuple[bytes, tuple[Loss, ...]]:
    """Return the body of a request in the format of `target`, and the losses, which strict mode rejects."""
    ledger = open_request_ledger(source, call.body)
    request = complete_request(source.parse_request(call), source, ledger)
    traits = structs.replace(traits_for(target.name, ""), **_NO_LIMITS)
    adapted, _ = adapt(request, Adaptation(traits, ledger, source.issuer))
    losses = ledger.losses()
    if strict:
        reject_losses(losses, strict=strict)
    return target.render_request(adapted, traits).body, losses
