"""Removes signatures that an upstream rejects, or would reject, from a request of its own dialect.

Those are what it rejected, or what the store recorded for another vendor. What the gateway has restored in a translated
request is removed too if the upstream rejects it.
"""

import re

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.router import Target
from dragoman.gateway.signatures import SignatureStore
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.passthrough import remove_recorded_signatures, remove_rejected_signatures
from dragoman.interpreter.translation import Translation

_REJECTED = Loss("", "the upstream rejected the saved reasoning: the request is sent without it", "dropped")


_CALL_ID = re.compile(rb'"(?:id|call_id)"\s*:\s*"([^"\\]{1,256})"')


async def remove_recorded(
    call: Call, request: ClientRequest, target: Target, store: SignatureStore
) -> tuple[Call, tuple[Loss, ...]]:
    """Return the request without the signatures that the store recorded for another vendor, and the losses.

    They are found by the ids of the calls of the request, with one query, if it has signatures.
    """
    dialect = dialect_named(request.dialect)
    if dialect.capabilities.call_issuers:
        return call, ()  # the signatures of other vendors have a field of their own
    field = dialect.pointers["part.signature"][0].rpartition("/")[2]
    if b'"%b"' % field.encode() not in call.body:
        return call, ()
    ids = list(dict.fromkeys(found.decode("utf-8", "replace") for found in _CALL_ID.findall(call.body)))
    signer = store.signer_for(request.owner)
    if unknown := [call_id for call_id in ids if signer.find_signatures(call_id) is None]:
        await signer.look_up(unknown)
    issuers: dict[str, str] = {}
    for call_id in ids:
        for saved in (signer.find_signatures(call_id) or {}).values():
            for signature in (saved.call, *(one.signature for one in saved.placed)):
                if signature is not None and signature.issuer != dialect.issuer:
                    issuers[signature.value] = signature.issuer
    removed = remove_recorded_signatures(call, dialect, target.model, issuers) if issuers else None
    if removed is None:
        return call, ()
    if request.strict:
        reject_losses(removed[1], strict=request.strict)
    return removed


def remove_signatures(
    request: ClientRequest, target: Target, problem: Problem
) -> tuple[ClientRequest, tuple[Loss, ...]] | None:
    """Return the request without the signatures in its history, and the losses, if `problem` rejects one of them.

    The vendor is the judge of signatures of unknown origin, such as those of a fallback to another vendor's server.
    Strict mode leaves the error to the client, because the reasoning of the history is a material loss.
    """
    is_translated = target.upstream.dialect != request.dialect
    if is_translated or request.strict or target.is_exact or not rejects_signature(problem, target):
        return None
    call = request.native or request.call
    unsigned = remove_rejected_signatures(call, dialect_named(request.dialect), target.model)
    if unsigned is None:
        return None
    return structs.replace(request, call=unsigned[0], native=None), unsigned[1]


def rejects_signature(problem: Problem, target: Target) -> bool:
    """Return whether an upstream's error says that it rejects a signature of the request."""
    pattern = dialect_named(target.upstream.dialect).signature_error if problem.status == 400 else None
    if pattern is None:
        return False
    detail = (problem.detail or b"").decode("utf-8", "replace")
    return pattern.search(f"{problem.code} {problem.message} {detail}") is not None


def replace_rejected(rejected: Translation, plain: Translation) -> Translation | None:
    """Return the translation without restored reasoning, with a loss; None if nothing had been restored.

    What was restored may no longer fit: the client has edited the history, or the account is another one.
    """
    if plain.call.body == rejected.call.body:
        return None
    return structs.replace(plain, losses=(*dict.fromkeys((*rejected.losses, *plain.losses)), _REJECTED))
