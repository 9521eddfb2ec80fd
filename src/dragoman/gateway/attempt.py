"""One attempt at one upstream, from the client's original bytes to the head of a good reply.

Whatever goes wrong is a `Problem` in the client's terms. A refusal of our own credentials is ours to mend: the client
is told of a bad gateway, never that its own key is wrong.
"""

from collections.abc import Callable
from time import time

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask
from dragoman.gateway.record import Record
from dragoman.gateway.redact import credentials_of, without
from dragoman.gateway.route import Target
from dragoman.gateway.vault import Vault
from dragoman.gateway.vetting import explained, is_validated, require_readable, require_valid_tools
from dragoman.http.client import Client, Incoming, Outgoing
from dragoman.http.link import Failure, TooSlow, Untrusted
from dragoman.http.message import Headers
from dragoman.interpreter.context import Context
from dragoman.interpreter.faults import as_fault
from dragoman.interpreter.links import Links, Unfetched
from dragoman.interpreter.mending import NO_LOSSES, mended
from dragoman.interpreter.rejections import Sent, named, placed
from dragoman.interpreter.translate import Asked, Translation, parse_request

_REFUSED_KEY = frozenset({401, 403})


class Reached(Struct, frozen=True):
    """A good reply has begun."""

    target: Target
    translation: Translation
    incoming: Incoming
    vault: Vault | None = None
    """Keeps the signatures of calls, where these are signed and the client may not bring them back."""

    @property
    def context(self) -> Context:
        """What the reply is an answer to."""
        return Context(self.translation.request, self.translation.undo, now=int(time()))


async def reach(ask: Ask, target: Target, client: Client, record: Record, vault: Vault | None = None) -> Reached:
    """Translate a request and send it; return when the upstream has begun a good reply.

    What cannot be translated is no try of an upstream: it is refused before anybody is asked.
    """
    upstream = target.upstream
    vault = vault if _is_signed_elsewhere(ask, target) else None
    translation = await translated(ask, target, vault)
    incoming = await sent(
        translation,
        target,
        client,
        record,
        passed=passed(ask, target),
        translated=upstream.dialect != ask.dialect,
        query=ask.target,
        told_why=lambda incoming, body: refused(incoming, body, target, ask, translation),
    )
    record.losses = translation.losses
    return Reached(target, translation, incoming, vault)


async def sent(  # noqa: PLR0913  a request on its way has all of this
    translation: Translation,
    target: Target,
    client: Client,
    record: Record,
    *,
    passed: Headers,
    translated: bool,
    told_why: Callable[[Incoming, bytes], Problem],
    query: str = "",
) -> Incoming:
    """Send a request that is translated; return when a good reply has begun, or raise what `told_why` makes of it."""
    upstream = target.upstream
    record.note_asked(upstream.name, target.model)
    outgoing = await upstream.generate(translation.call, passed, translated=translated)
    if query:
        outgoing = _queried(outgoing, query)
    try:
        incoming = await client.ask(outgoing, target.deadlines)
        if incoming.good:
            return incoming
        body = await incoming.read()
    except Failure as failure:
        raise told(failure, upstream.name) from None
    raise told_why(incoming, without_secrets(body, outgoing))


def _queried(outgoing: Outgoing, target: str) -> Outgoing:
    """Ask with the client's query where the upstream has the path that it was written for."""
    path = target.partition("?")[0]
    if not outgoing.target.endswith(path):
        return outgoing
    return structs.replace(outgoing, target=outgoing.target.removesuffix(path) + target)


def without_secrets(body: bytes, outgoing: Outgoing) -> bytes:
    """Return an upstream's words without our credentials: some repeat the key that they refuse."""
    return without(body.decode("latin-1"), credentials_of(outgoing)).encode("latin-1")


def _is_signed_elsewhere(ask: Ask, target: Target) -> bool:
    """Tell whether calls are signed at the target and the client's own vendor knows nothing of that."""
    there = dialect_named(target.upstream.dialect)
    return not target.text_calls and "call" in there.holds.signatures and there.name != ask.dialect


async def translated(ask: Ask, target: Target, vault: Vault | None = None) -> Translation:
    """Translate a request for an upstream; every attempt begins with the client's own bytes."""
    upstream, here = target.upstream, dialect_named(ask.dialect)
    there = dialect_named(upstream.dialect)
    call = ask.native if ask.native is not None and here is there else ask.call
    repairs = NO_LOSSES
    if here is there:
        require_readable(call, here)
        if ask.is_kept:
            call, repairs = mended(call, here, target.model)
    asked = Asked(
        call,
        here,
        there,
        target.model if target.model != ask.call.model else "",
        upstream.form,
        ask.strict,
        vault.signer(ask.owner) if vault is not None else None,
        Links(taken=target.links) if target.library is not None else None,
        target.text_calls,
    )
    try:
        translation = await _translated(asked, target, vault, ask.owner)
    except Problem as problem:
        raise explained(problem, call, here) from None
    request = translation.request
    is_passed_on = here is there and not target.text_calls
    if request is not None and not is_passed_on and not is_validated(request, translation.tool_set):
        await require_valid_tools(call, here, request, translation.tool_set)
    return structs.replace(translation, losses=(*repairs, *translation.losses)) if repairs else translation


async def _translated(asked: Asked, target: Target, vault: Vault | None, owner: str) -> Translation:
    """Translate a request with the signatures that are kept for its calls.

    Most calls that come without a signature never had one. So a request is translated first and its unknown calls are
    looked up afterwards; only if one is signed it is translated again. In strict mode they are looked up first, because
    a missing signature is a loss, and a request with losses is rejected there.
    """
    pending = parse_request(asked)
    unknown = pending.unknown_ids if vault is not None else ()
    if asked.strict and unknown and vault is not None:
        await vault.look_up(owner, unknown)
        pending, unknown = parse_request(asked), ()
    try:
        translation = pending.translate(asked.links)
    except Unfetched as missing:
        if target.library is None:
            raise
        translation = await target.library.translate(pending.translate, missing, taken=target.links)
    if unknown and vault is not None and await vault.look_up(owner, unknown):
        # The signatures are known now; a call that could not be looked up is reported as a loss.
        return await _translated(asked, target, None, owner)
    return translation


def passed(ask: Ask, target: Target) -> Headers:
    """Return the client's headers that the upstream may see: another vendor's would only puzzle it."""
    return ask.headers if target.upstream.dialect == ask.dialect else ()


def told(failure: Failure, name: str) -> Problem:
    """Say why an upstream could not be asked, without where it is: that is nobody's business but the operator's."""
    match failure:
        case TooSlow():
            return Problem("timeout", f"the upstream {name} did not answer in time")
        case Untrusted():
            return Problem("internal", f"the upstream {name} cannot prove who it is", status=502, code="untrusted")
        case _:
            return Problem("unreachable", f"the upstream {name} cannot be reached or broke off")


def refused(incoming: Incoming, body: bytes, target: Target, ask: Ask, translation: Translation) -> Problem:
    """Return an upstream's error in the client's terms."""
    here, there = dialect_named(target.upstream.dialect), dialect_named(ask.dialect)
    problem = here.parse_error(incoming.status, dict(incoming.headers), body)
    if is_refused_key(incoming.status, problem):
        return refused_key(target, problem)
    if here is there and not target.text_calls:
        problem = named(problem, ask.call.body)
    elif translation.request is not None:
        sent = Sent(translation.call.body, here.name, target.model, translation.undo)
        problem = placed(problem, sent, translation.request, there, ask.call.body)
    return as_fault(problem, here.issuer, there.issuer)


def is_refused_key(status: int, problem: Problem) -> bool:
    """Tell whether an upstream refuses our own credentials."""
    return status in _REFUSED_KEY or problem.kind == "authentication"


def refused_key(target: Target, problem: Problem) -> Problem:
    """Say that an upstream refuses our own credentials, which is nothing the client can mend."""
    words = f"the upstream {target.upstream.name} refuses the gateway's credentials: {problem.message}"
    return Problem("internal", words, status=502, code="credentials")


def told_for_an_answer(problem: Problem, client: str) -> Problem:
    """Return what an upstream says in place of an answer: an error with status 200 is no less its own for that."""
    if problem.kind != "internal" or problem.status != 500 or not problem.detail_dialect:
        return problem
    return as_fault(problem, dialect_named(problem.detail_dialect).issuer, dialect_named(client).issuer)
