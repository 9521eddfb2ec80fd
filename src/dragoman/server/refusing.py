"""What a client hears when its bytes are no request that could be answered, in its own dialect."""

from dragoman.core.problems import Kind, Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record
from dragoman.gateway.telling import headers_of, signed
from dragoman.http.message import Headers, Request
from dragoman.server.paths import dialect_of, path_of

_SAID: dict[int, tuple[Kind, str]] = {
    400: ("invalid_request", "this is no HTTP request, or one that could be read in two ways"),
    408: ("timeout", "the body of the request did not come in time"),
    413: ("too_large", "the request is larger than this server takes"),
    415: ("unsupported", "the body is encoded in a way that is not known here: send it plain, or with gzip or deflate"),
    431: ("invalid_request", "the headers of the request are larger than this server takes"),
}


def refusal(status: int, request: Request) -> tuple[Headers, bytes]:
    """Say why something is no request; of the request only its first lines are known."""
    path = path_of("POST", request.path)
    dialect = (path.dialect if path is not None else "") or dialect_of(request.path, dict(request.headers))
    record = Record(dialect=dialect, status=status)
    kind, words = _SAID[status]
    told = dialect_named(dialect).build_error(Problem(kind, words, status=status))
    return tuple(headers_of(record, told.headers).items()), signed(told.body, record)
