"""Send errors in the client's dialect."""

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record, headers_of, signed
from dragoman.gateway.retry import client_may_retry
from dragoman.http.exchange import Exchange
from dragoman.server.endpoints import mcp
from dragoman.server.routes import methods_of


async def reject_websocket(exchange: Exchange, record: Record) -> None:
    """Reject a WebSocket with a status upon which clients that prefer one use HTTP at once."""
    reply = dialect_named(record.dialect).build_error(Problem("unsupported", "use HTTP here, not a WebSocket"))
    await exchange.send(426, reply.headers, reply.body)


async def reject_path(exchange: Exchange, record: Record) -> None:
    """Reject a path that does not exist, or that has other methods."""
    request = exchange.request
    methods = methods_of(request.path, request.target.partition("?")[0])
    if not methods:
        raise Problem("not_found", f"there is no {request.method} {request.path} here", code="unknown_url")
    allowed = ", ".join(methods)
    words = f"{request.path} is asked with {allowed} here, not with {request.method}"
    reply = dialect_named(record.dialect).build_error(Problem("invalid_request", words, status=405))
    record.status, record.outcome = 405, "refused"
    await exchange.send(405, headers_of(record, {**reply.headers, "allow": allowed}), signed(reply.body, record))


async def send_error(problem: Problem, exchange: Exchange, record: Record) -> None:
    """Send an error in the client's dialect; cut a response that has started."""
    record.problem = problem
    record.outcome = "failed" if record.upstream else "refused"
    if exchange.started:
        exchange.cut()
        return
    if record.operation == "mcp":
        rejection = mcp.refusal(problem)
        record.status = rejection.status
        # It is no dialect of a model's, and has no place for the name of a request.
        await exchange.send(rejection.status, {**rejection.headers, "x-dragoman-exchange": record.id}, rejection.body)
        return
    reply = dialect_named(record.dialect).build_error(problem)
    record.status = reply.status
    headers = headers_of(record, reply.headers)
    if record.is_spent or not client_may_retry(problem, record.tries):
        headers["x-should-retry"] = "false"
    await exchange.send(reply.status, headers, signed(reply.body, record))
