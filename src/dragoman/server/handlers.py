"""Handlers of all operations but generate: each reads its request, calls its module, and sends the response.

A request for pass-through goes to the upstream of its model, if it names one in the path, in a JSON body or in a form.
Otherwise the path must name the upstream, or the vendor must have only one. If a key has a list of models, one pattern
must match the requested model or, for a path that names an upstream, `upstream/model` or `upstream/v1/files`. Errors
are sent in the client's dialect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from dragoman.core.losses import Strict
from dragoman.core.problems import Kind, Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, require_distinct_keys
from dragoman.gateway.conversations.background import Background
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.errors import add_id
from dragoman.gateway.passthrough import ModelBody, PassthroughRequest, parse_model_body, rename_nested_models
from dragoman.gateway.record import EXCHANGE_HEADER, Record, build_response_headers
from dragoman.gateway.retry import client_may_retry
from dragoman.gateway.router import Routes, Target
from dragoman.http.admission import Load
from dragoman.http.client import RECEIVED_MARKS
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS, Headers, Request
from dragoman.http.rejection import RejectionResponse
from dragoman.server import mcp
from dragoman.server.auth import Access, Key, parse_strict
from dragoman.server.endpoints import code_assist, models, stored
from dragoman.server.exchanges import Observability
from dragoman.server.interception import Interception
from dragoman.server.passthrough_paths import PassthroughPath
from dragoman.server.routes import PathMatch, Paths
from dragoman.server.services import GatewayServices
from dragoman.upstreams.upstream import Upstream

_MAX_GATEWAYS = 10
"""The most gateways that a request may have come through."""
_MAX_SHOWN = 200
EndpointHandler = Callable[[Exchange, PathMatch, Key, Record], Awaitable[None]]
ReadRequest = Callable[[Request, PathMatch, Key], Awaitable[tuple[ClientRequest, ConversationOptions | None]]]


class Services(Struct, frozen=True):
    """The dependencies of the request handlers."""

    gateway_services: GatewayServices
    access: Access
    observability: Observability
    mcp_endpoint: mcp.McpEndpoint
    interception: Interception
    load: Load
    strict: Strict = False
    """Which losses are rejected in all requests."""
    translates: bool = False
    """Whether documents are translated at `/v1/translate`."""


class Endpoints:
    """Handlers of all operations but generate."""

    def __init__(self, services: Services, background: Background, read_request: ReadRequest) -> None:
        self._services = services
        self._gateway = services.gateway_services.gateway
        self._quotas = services.observability.quotas
        self._background = background
        self._read_request = read_request
        self.handlers: Mapping[str, EndpointHandler] = {
            "health": self._show_health,
            "ready": self._show_readiness,
            "metrics": self._show_metrics,
            "count": self._count_tokens,
            "models": self._list_models,
            "model": self._list_models,
            "kept": self._answer_stored,
            "assist": self._answer_code_assist,
            "other": self._forward,
            "mcp": self._answer_mcp,
            "intercept": services.interception.handle_request,
            "exchange": self._show_exchange,
            "translate": self._translate,
        }

    async def _show_health(self, exchange: Exchange, _path: PathMatch, _key: Key, _record: Record) -> None:
        is_authorized = self._services.access.is_authorized(exchange.request)
        await exchange.send(200, JSON_HEADERS, self._services.mcp_endpoint.render_health(shows_servers=is_authorized))

    async def _show_readiness(self, exchange: Exchange, _path: PathMatch, _key: Key, _record: Record) -> None:
        is_ready = not self._services.load.is_stopping
        await exchange.send(
            200 if is_ready else 503, JSON_HEADERS, b'{"ready":true}' if is_ready else b'{"ready":false}'
        )

    async def _show_metrics(self, exchange: Exchange, _path: PathMatch, _key: Key, _record: Record) -> None:
        from dragoman.server.exposition import render_metrics  # noqa: PLC0415  slow to load, and not needed before

        kind, text = await asyncio.to_thread(render_metrics, self._services.observability.metrics.counters)
        await exchange.send(200, {"content-type": kind}, text)

    async def _show_exchange(self, exchange: Exchange, path: PathMatch, key: Key, _record: Record) -> None:
        await exchange.send(
            200, JSON_HEADERS, await self._services.observability.exchanges.find_anywhere(path.name, key.name)
        )

    async def _translate(self, exchange: Exchange, _path: PathMatch, key: Key, record: Record) -> None:
        from dragoman.server.endpoints import translation  # noqa: PLC0415  most gateways do not have this path

        header = exchange.request.headers_by_name.get("x-dragoman-strict")
        strict = parse_strict(header, default=self._services.strict)
        with self._quotas.slot(key):
            await translation.handle_request(exchange, record, self._services.gateway_services.large_bodies, strict)

    async def _list_models(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        query = exchange.request.query
        listed = await models.list_models(self._gateway.catalogue, path.model, key.allows, record.dialect, query)
        await exchange.send(200, build_response_headers(record, JSON_HEADERS), listed)

    async def _answer_stored(self, exchange: Exchange, path: PathMatch, key: Key, _record: Record) -> None:
        require_distinct_keys(exchange.request.body)
        await stored.handle_request(self._background, path, key.name, exchange)

    async def _answer_code_assist(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        body = exchange.request.body
        require_distinct_keys(body)
        answer = await code_assist.handle_call(path.name, body, self._gateway.catalogue, key.allows)
        await exchange.send(200, build_response_headers(record, JSON_HEADERS), answer)

    async def _answer_mcp(self, exchange: Exchange, _path: PathMatch, key: Key, record: Record) -> None:
        with self._quotas.slot(key):
            await self._services.mcp_endpoint.handle_request(exchange, key, record)

    async def _forward(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        if path.passthrough is None:
            raise Problem("not_found", f"{exchange.request.path} does not exist")
        routed = route_passthrough(exchange.request, path.passthrough, record.dialect, self._gateway.routes, key)
        record.dialect, record.model = routed.request.target.upstream.dialect, routed.model
        exchange.is_cancelled_on_disconnect = True
        with self._quotas.slot(key):
            await self._gateway.forward(routed.request, exchange, record)

    async def _count_tokens(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        request, _ = await self._read_request(exchange.request, path, key)
        conversations = self._services.gateway_services.conversations
        options = conversations.read_options(request, exchange.request.headers_by_name)
        opened = await conversations.load(request, options) if options is not None else None
        request = opened.client_request if opened is not None else request
        record.model = request.call.model
        if not key.allows(request.call.model):
            raise Problem("permission", f"this API key is not allowed to use the model {request.call.model!r}")
        exchange.is_cancelled_on_disconnect = True
        with self._quotas.slot(key):
            body, estimated = await self._gateway.count_tokens(request, record)
        record.status, record.outcome = 200, "answered"
        headers = {**JSON_HEADERS, "x-dragoman-estimate": "true"} if estimated else JSON_HEADERS
        await exchange.send(200, build_response_headers(record, headers), body)


_MODEL_PREFIX = "models/"
"""Prefix of model names that Google's clients may send or omit."""


class RoutedPassthrough(Struct, frozen=True):
    """A request for pass-through with its upstream, and the model it names."""

    request: PassthroughRequest
    model: str


def route_passthrough(
    request: Request, path_match: PassthroughPath, dialect: str, routes: Routes, key: Key
) -> RoutedPassthrough:
    """Choose the upstream of a pass-through request and check the key; raises a `Problem`."""
    form = (
        ModelBody(request.body) if path_match.model else parse_model_body(request.body, request.header("content-type"))
    )
    model = (path_match.model or form.model).removeprefix(_MODEL_PREFIX)
    target, permission = _find_target(path_match, model, dialect, routes)
    if not key.allows(permission):
        raise Problem("permission", f"this API key is not allowed to use {permission!r}")
    upstream_model = model if path_match.upstream else target.model.removeprefix(_MODEL_PREFIX)
    if not path_match.model:
        prefix = _MODEL_PREFIX if form.model.startswith(_MODEL_PREFIX) else ""
        return RoutedPassthrough(
            PassthroughRequest(target=target, path=path_match.path, body=form.with_model(prefix + upstream_model)),
            model,
        )
    path = path_match.path.replace(f"/models/{model}:", f"/models/{upstream_model}:", 1)
    body = request.body if upstream_model == model else rename_nested_models(request.body, model, upstream_model)
    return RoutedPassthrough(PassthroughRequest(target=target, path=path, body=body), model)


def _find_target(path_match: PassthroughPath, model: str, dialect: str, routes: Routes) -> tuple[Target, str]:
    """Return the upstream of a pass-through request, and the name that the key's model patterns must match."""
    if path_match.upstream:
        target = routes.find_named(path_match.upstream, model)
        if target is None:
            raise Problem("not_found", f"upstream {path_match.upstream!r} does not exist", code="unknown_url")
        return target, f"{path_match.upstream}/{model}" if model else path_match.upstream + path_match.path
    vendor = dialect_named(dialect).issuer
    if model:
        matching = [target for target in routes.find_targets(model) if _has_vendor_endpoints(target.upstream, vendor)]
        if not matching:
            raise Problem("not_found", f"the upstream of model {model!r} has no {path_match.path}", code="unknown_url")
        return matching[0], model
    candidates = [upstream for upstream in routes.upstreams if _has_vendor_endpoints(upstream, vendor)]
    if len(candidates) != 1:
        names = ", ".join(f"/upstreams/{upstream.name}{path_match.path}" for upstream in candidates)
        if candidates:
            message = f"several upstreams have {path_match.path}; use one of {names}"
        else:
            message = f"no upstream of this vendor is configured for {path_match.path}; add one to [upstreams]"
        raise Problem("not_found", message, code="unknown_url")
    return routes.target_for(candidates[0]), candidates[0].name + path_match.path


def _has_vendor_endpoints(upstream: Upstream, vendor: str) -> bool:
    return upstream.has_passthrough and dialect_named(upstream.dialect).issuer == vendor


def require_no_loop(marks: str, base_url: str) -> None:
    """Raise a `Problem` if a request has come through this gateway before, or through too many others."""
    # A connection's requests share their context, so those without marks reset what an earlier one has set.
    RECEIVED_MARKS.set(marks)
    passed = marks.split(", ")
    if base_url in passed or len(passed) > _MAX_GATEWAYS:
        message = (
            f"the gateway called itself: set base_url of the upstream to another address than {base_url}"
            if passed[0] == base_url
            else f"the request has passed a chain of gateways that leads back to this one: {marks[:_MAX_SHOWN]}"
        )
        raise Problem("invalid_request", message, code="loop")


async def reject_websocket(exchange: Exchange, record: Record) -> None:
    """Reject a WebSocket with 426, upon which clients that prefer WebSockets use HTTP at once."""
    reply = dialect_named(record.dialect).build_error(Problem("unsupported", "WebSockets are not supported; use HTTP"))
    await exchange.send(426, reply.headers, reply.body)


def build_path_rejection(paths: Paths, request: Request, record: Record) -> RejectionResponse:
    """Reject a path that does not exist with 404, or one that has other methods with 405."""
    methods = paths.find_methods(request.path, request.target.partition("?")[0])
    if not methods:
        raise Problem("not_found", f"{request.method} {request.path} does not exist", code="unknown_url")
    allowed = ", ".join(methods)
    message = f"{request.method} is not allowed on {request.path}; use {allowed}"
    reply = dialect_named(record.dialect).build_error(Problem("invalid_request", message, status=405))
    record.status, record.outcome = 405, "refused"
    headers = build_response_headers(record, {**reply.headers, "allow": allowed})
    return RejectionResponse(405, tuple(headers.items()), add_id(reply.body, record))


async def send_error(problem: Problem, exchange: Exchange, record: Record) -> None:
    """Send an error in the client's dialect; truncate a response that has started."""
    if exchange.started:
        record.problem, record.outcome = problem, "failed" if record.upstream else "refused"
        exchange.truncate()
        return
    rejection = build_error(problem, record)
    await exchange.send(rejection.status, dict(rejection.headers), rejection.body)


def build_error(problem: Problem, record: Record) -> RejectionResponse:
    """Render an error in the client's dialect."""
    record.problem = problem
    record.outcome = "failed" if record.upstream else "refused"
    if record.operation == "mcp":
        reply = mcp.build_rejection(problem)
        # MCP is not a dialect, and its errors have no field for the exchange id.
        headers, body = {**reply.headers, EXCHANGE_HEADER: record.id}, reply.body
    else:
        reply = dialect_named(record.dialect).build_error(problem)
        headers, body = build_response_headers(record, reply.headers), add_id(reply.body, record)
        if record.is_retry_budget_spent or not client_may_retry(problem, record.tries):
            headers["x-should-retry"] = "false"
    record.status = reply.status
    return RejectionResponse(reply.status, tuple(headers.items()), body)


RETRY_AFTER = 1.0
"""Seconds after which a client may retry a request that the gateway was too busy for."""
_REJECTIONS: dict[int, tuple[Kind, str]] = {
    400: ("invalid_request", "the request is not valid HTTP, or two servers could read it differently"),
    408: ("timeout", "the request body did not arrive in time; the limit is `body_seconds` in [server.limits]"),
    413: ("too_large", "the request body is too large; the limit is `body` in [server.limits]"),
    415: ("unsupported", "the content-encoding is not supported; send the body uncompressed, or with gzip or deflate"),
    503: (
        "overloaded",
        "the gateway has reached `connections` or `buffered` in [server.limits]; retry later",
    ),
    431: ("invalid_request", "the request headers are too large; the limit is `head` in [server.limits]"),
}


def build_rejection(paths: Paths, status: int, request: Request) -> tuple[Headers, bytes]:
    """Render the error for an invalid request, of which only the head may be known."""
    path = paths.find("POST", request.path)
    dialect = (path.dialect if path is not None else "") or paths.dialect_of(request.path, dict(request.headers))
    record = Record(dialect=dialect, status=status)
    kind, message = _REJECTIONS[status]
    wait = RETRY_AFTER if kind == "overloaded" else None
    reply = dialect_named(dialect).build_error(Problem(kind, message, status=status, retry_after=wait))
    return tuple(build_response_headers(record, reply.headers).items()), add_id(reply.body, record)
