"""Removes what an upstream rejects: signatures of a request of its own dialect, and what the gateway has restored."""

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.router import Target
from dragoman.interpreter.passthrough import remove_rejected_signatures
from dragoman.interpreter.translation import Translation

_REJECTED = Loss("", "the upstream rejected the saved reasoning: the request is sent without it", "dropped")


def remove_signatures(
    request: ClientRequest, target: Target, problem: Problem
) -> tuple[ClientRequest, tuple[Loss, ...]] | None:
    """Return the request without the signatures in its history, and the losses, if `problem` rejects one of them.

    The vendor is the judge of signatures of unknown origin, such as those of a fallback to another vendor's server.
    Strict mode leaves the error to the client, because the reasoning of the history is a material loss.
    """
    pattern = dialect_named(request.dialect).signature_error if problem.status == 400 else None
    is_translated = target.upstream.dialect != request.dialect
    if pattern is None or is_translated or request.strict or target.is_exact:
        return None
    if not pattern.search(f"{problem.code} {problem.message} {(problem.detail or b'').decode('utf-8', 'replace')}"):
        return None
    call = request.native or request.call
    unsigned = remove_rejected_signatures(call, dialect_named(request.dialect), target.model)
    if unsigned is None:
        return None
    return structs.replace(request, call=unsigned[0], native=None), unsigned[1]


def replace_rejected(rejected: Translation, plain: Translation) -> Translation | None:
    """Return the translation without restored reasoning, with a loss; None if nothing had been restored.

    What was restored may no longer fit: the client has edited the history, or the account is another one.
    """
    if plain.call.body == rejected.call.body:
        return None
    return structs.replace(plain, losses=(*dict.fromkeys((*rejected.losses, *plain.losses)), _REJECTED))
