"""How many tokens a request has: by the upstream's own counter, or else an estimate that says what it is."""

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call, Count
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.errors import malformed_body, map_failure, map_rejection
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import UpstreamClient, translate
from dragoman.http.link import Failure
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import removed

_BYTES_PER_TOKEN = 4
_NOT_COUNTED = frozenset({404, 405, 501})
"""Statuses of a compatible server that has no counter."""
_WHOLE_REQUEST = "generateContentRequest"


async def count(
    request: ClientRequest, target: Target, upstreams: UpstreamClient, record: Record
) -> tuple[bytes, bool]:
    """Return the response to a request for a token count, and whether the count is an estimate."""
    upstream = target.upstream
    translation = await translate(request, target)
    record.losses = translation.losses
    record.note_asked(upstream.name, target.model)
    headers = request.headers if upstream.dialect == request.dialect else ()
    outgoing = await upstream.count(translation.call, headers)
    counted = None
    if outgoing is not None:
        incoming = await upstreams.send(outgoing, target)
        if incoming.good:
            try:
                body = await incoming.read()
            except Failure as failure:
                raise map_failure(failure, upstream.name) from None
            counted = _read(body, _told_in(upstream.dialect).member)
        else:
            rejection = await upstreams.read_rejection(incoming, outgoing, target)
            if rejection.status not in _NOT_COUNTED:
                raise map_rejection(rejection, target, translation, request.dialect, request.call.body)
    form = _told_in(request.dialect)
    tokens = len(translation.call.body) // _BYTES_PER_TOKEN if counted is None else counted
    return json.encode({**form.before, form.member: tokens}), counted is None


def _told_in(dialect: str) -> Count:
    form = dialect_named(dialect).count
    if form is None:
        raise Problem("not_found", "tokens cannot be counted here", code="unknown_url")
    return form


def unwrapped(call: Call) -> Call:
    """Take a request out of the member that Gemini's counter has for a whole one."""
    try:
        members = json.decode_object(call.body)
    except json.Malformed as error:
        raise malformed_body(error) from None
    whole = members.get(_WHOLE_REQUEST)
    return call if whole is None else Call(bytes(whole), call.model)


def wrapped_count(body: bytes) -> Call:
    """Read a request to count as Code Assist has it: the model stands in the request, and nothing else around it."""
    try:
        request = bytes(json.decode_object(body)["request"])
        model = json.decode(json.decode_object(request)["model"])
        return Call(removed(request, "model"), str(model).removeprefix("models/"))
    except json.Malformed as error:
        raise malformed_body(error) from None
    except KeyError as error:
        raise Problem("invalid_request", f"the request has no {error}", where="/request") from None


def _read(body: bytes, member: str) -> int:
    try:
        found = lookup(body, f"/{member}")
        tokens = json.decode(found[1]) if found is not None else None
    except json.Malformed:
        tokens = None
    if not isinstance(tokens, int):
        raise Problem("malformed_reply", "the upstream's count is no number")
    return tokens
