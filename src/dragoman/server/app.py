"""The server's request handler: route, authorize and answer each request, and report its outcome to observers."""

import asyncio
from functools import cache, partial
from typing import Any, cast

from dragoman.core.losses import Loss, Strict
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.gateway.agents.toolset import TOOLS_HEADER
from dragoman.gateway.client_request import (
    CONVERSATION_HEADERS,
    SMALL_BODY,
    ClientRequest,
    is_native,
    read_call,
    require_distinct_keys,
)
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.background import Background
from dragoman.gateway.conversations.options import ConversationOptions, parse_session_request
from dragoman.gateway.conversations.repeats import resend_answer
from dragoman.gateway.duplicate_keys import DuplicateKeyChecker
from dragoman.gateway.large_bodies import SeparatorLimit
from dragoman.gateway.passthrough import drop_key
from dragoman.gateway.record import EXCHANGE_HEADER, Record
from dragoman.http.client import RECEIVED_MARKS
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.message import Headers, Request
from dragoman.http.rejection import RejectionResponse
from dragoman.interpreter.other_format import convert_request, find_siblings
from dragoman.interpreter.translate import CACHES
from dragoman.server.auth import Key, parse_strict
from dragoman.server.endpoints import stored
from dragoman.server.handlers import (
    RETRY_AFTER,
    EndpointHandler,
    Endpoints,
    Services,
    build_error,
    build_path_rejection,
    reject_websocket,
    require_no_loop,
    send_error,
)
from dragoman.server.load_shedder import LoadShedder
from dragoman.server.metrics import QUIET_OPERATIONS
from dragoman.server.routes import PathMatch, Paths

_PUBLIC_OPERATIONS = frozenset({"health", "ready"})
_LIMITED_OPERATIONS = frozenset({"generate", "count", "other", "mcp", "translate"})
"""Operations that count for the concurrency limit of a key."""

_SLOW_BYTES = 256 << 10
"""Bytes of a body after whose parsing other requests have a turn, before it is translated."""
_MOST_MEMBERS = 10_000
"""Members of a body at the top level."""
_ReadBody = tuple[Call, ConversationOptions | None, tuple[Loss, ...]]


class BodyReader:
    """Reads the bodies of requests for a model."""

    def __init__(self) -> None:
        self._siblings = find_siblings(DIALECTS.values())
        self._duplicate_keys = DuplicateKeyChecker(CACHES)

    def read(self, body: bytes, path: PathMatch, strict: Strict) -> _ReadBody:
        """Return the call in a body, the conversation that it names, and the losses of a body in another format."""
        options, losses, dialect = None, (), dialect_named(path.dialect)
        if len(body) < SMALL_BODY:
            value = require_distinct_keys(body)
        else:
            value = self._duplicate_keys.require_distinct(body, dialect)
            if isinstance(value, dict) and len(cast("dict[str, Any]", value)) > _MOST_MEMBERS:
                message = f"the body has more than {_MOST_MEMBERS} members at the top level"
                raise Problem("invalid_request", message)
        if path.convert is not None and not is_native(value, dialect):
            if (other := self._find_other_format(value, dialect)) is not None:
                body, losses = convert_request(Call(body), other, dialect, strict)
            else:
                body = path.convert(body)
        if path.in_session:
            call, options = parse_session_request(body)
        elif path.in_url:
            call = Call(body, path.model, path.stream)
        else:
            call = read_call(body, value)
            if path.wrapped:
                call = Call(body, call.model, path.stream)
        return call, options, losses

    def _find_other_format(self, value: Any, dialect: Dialect) -> Dialect | None:
        """Return the dialect whose history a body has instead of its endpoint's, or None."""
        if not isinstance(value, dict) or dialect.history in value:
            return None
        return next((other for other in self._siblings[dialect.name] if other.history in value), None)


class App:
    """Handles every request of the server."""

    def __init__(self, services: Services) -> None:
        gateway_services, observability = services.gateway_services, services.observability
        self._services = services
        self.interception = services.interception
        self._access = services.access
        self._load = services.load
        self._gateway = gateway_services.gateway
        self._conversations = gateway_services.conversations
        self._observers = observability.observers
        self._quotas = observability.quotas
        self._background = Background(
            self._conversations.store, self._gateway, observability.observers, gateway_services.job_runner
        )
        self.base_url = ""
        """The address at which the server listens; "" before it does."""
        self._has_callers = services.interception.has_callers
        self._stateful_dialects = frozenset(
            name for name, dialect in DIALECTS.items() if dialect.turns.has_store_member
        )
        """Dialects whose request bodies can name the conversation they continue."""
        self.paths = Paths(DIALECTS.values(), translates=services.translates)
        self._shedder = LoadShedder(self.paths, self._load, observability.metrics)
        vendor_headers = (dialect.api.forwarded_headers for dialect in DIALECTS.values())
        self._forwarded_headers = frozenset({"idempotency-key"}).union(*vendor_headers)
        """Client headers that are forwarded because they select vendor features. They never include credentials."""
        self._body_reader = BodyReader()
        self._separators = SeparatorLimit(self._load.limits.separators)
        endpoints = Endpoints(services, self._background, self._read_request)
        self._handlers: dict[str, EndpointHandler] = {**endpoints.handlers, "generate": self._generate}

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        if self._load.is_full and (rejection := self._shedder.build_rejection(request)) is not None:
            await exchange.send(rejection.status, dict(rejection.headers), rejection.body)
            return
        path, record = self._find_path(request)
        is_counted = False
        self._observers.begin(record)
        try:
            key = self._admit(request, path, record)
            if record.operation not in QUIET_OPERATIONS:
                self._load.begin_request()
                is_counted = True
            if len(request.body) > self._separators.uncounted:
                await self._separators.check(request, record.operation)
            if request.method == "GET" and request.header("sec-websocket-key"):
                await reject_websocket(exchange, record)
            elif path is None:
                rejection = build_path_rejection(self.paths, request, record)
                await exchange.send(rejection.status, dict(rejection.headers), rejection.body)
            else:
                await self._handlers[path.operation](exchange, path, key, record)
            if record.outcome == "open":
                record.status, record.outcome = exchange.status, "answered"
        except Problem as problem:
            await send_error(problem, exchange, record)
        except (ClientDisconnected, asyncio.CancelledError):
            # Some clients disconnect as soon as they have read the last event: such a request is answered.
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        except Exception as error:  # noqa: BLE001  a client gets every error in its own dialect
            record.crash = error
            problem = Problem("internal", f"Internal error (exchange {record.id}). See the gateway log.")
            await send_error(problem, exchange, record)
        finally:
            if is_counted:
                self._load.end_request()
            self._observers.end(record)

    def check_head(self, request: Request) -> RejectionResponse | None:
        """Return the error for a request that is rejected before its body is received, else None."""
        if self._load.is_full and (rejection := self._shedder.build_rejection(request)) is not None:
            return rejection
        path, record = self._find_path(request)
        try:
            key = self._admit(request, path, record, int(request.headers_by_name.get("content-length", 1)))
            if record.operation in _LIMITED_OPERATIONS:
                self._quotas.require_free(key)
            if path is not None:
                return None
            rejection = build_path_rejection(self.paths, request, record)
        except Problem as problem:
            rejection = build_error(problem, record)
        self._observers.begin(record)
        self._observers.end(record)
        return rejection

    def _find_path(self, request: Request) -> tuple[PathMatch | None, Record]:
        path = self.paths.find(request.method, request.path, request.target.partition("?")[0])
        dialect = (path.dialect if path else "") or self.paths.dialect_of(request.path, request.headers_by_name)
        return path, Record(dialect=dialect, operation=path.operation if path else "")

    def _admit(self, request: Request, path: PathMatch | None, record: Record, length: int = 0) -> Key:
        """Return the key of a request; raises a `Problem` if it is not authorized, or the server has too much to do.

        `length` is the number of bytes of its body if that has not been received.
        """
        if path is not None and path.operation == "intercept":
            key = self.interception.authorize(request, path, self._access)
        else:
            key = self._access.authorize(request, is_public=record.operation in _PUBLIC_OPERATIONS)
        record.owner = key.name
        marks = request.headers_by_name.get(EXCHANGE_HEADER, "")
        if marks or RECEIVED_MARKS.get():
            require_no_loop(marks, self.base_url)
        reason = self._load.find_exceeded(length) if record.operation not in QUIET_OPERATIONS else ""
        if reason:
            raise Problem("overloaded", f"the gateway is overloaded: {reason}", retry_after=RETRY_AFTER)
        return key

    async def _generate(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        """Answer a request for a model's response."""
        if exchange.request.is_large:
            exchange.is_cancelled_on_disconnect = True
        request, options = await self._read_request(exchange.request, path, key)
        call = request.call
        record.model, record.stream, record.losses = call.model, call.stream, request.losses
        if not key.allows(call.model):
            raise Problem("permission", f"this API key is not allowed to use the model {call.model!r}")
        self._quotas.acquire(key)
        exchange.is_cancelled_on_disconnect = True
        context = RequestContext(request, record, exchange)
        runs_in_background = False
        try:
            if self._has_callers:
                bound = await self.interception.find_bound_session(request, exchange.request, options)
                if bound is not None:
                    await self.interception.answer_caller(bound, context)
                    return
            opened, headers = None, exchange.request.headers_by_name
            if options or path.dialect in self._stateful_dialects or not CONVERSATION_HEADERS.isdisjoint(headers):
                options = options or self._conversations.read_options(request, headers)
                opened = await self._conversations.load(request, options) if options is not None else None
            if opened is None:
                await self._gateway.generate(context)
            elif opened.again is not None:
                await resend_answer(opened.again, context)
            elif opened.question.is_background:
                turn = await self._background.begin(opened, partial(self._quotas.release, key))
                runs_in_background = True
                await stored.send_queued(self._background, turn, context)
            else:
                context.request, context.recorder = opened.client_request, self._conversations.build_recorder(opened)
                await self._gateway.generate(context)
                await context.recorder.mark_delivered()
        finally:
            if not runs_in_background:
                self._quotas.release(key)

    async def _read_request(
        self, request: Request, path: PathMatch, key: Key
    ) -> tuple[ClientRequest, ConversationOptions | None]:
        """Parse a request for a model: its call, the options in path and headers, and the conversation it names."""
        headers = request.headers_by_name
        strict = parse_strict(headers.get("x-dragoman-strict"), default=self._services.strict)
        if request.is_large:
            large_bodies = self._services.gateway_services.large_bodies
            call, options, losses = await large_bodies.run(read_large_body, request.body, path, strict)
        else:
            call, options, losses = self._body_reader.read(request.body, path, strict)
            if len(request.body) > _SLOW_BYTES:
                await asyncio.sleep(0)
        is_json_array = path.streams_array and path.stream and request.query.get("alt") != "sse"
        client_request = ClientRequest(
            dialect=path.dialect,
            call=call,
            framing="array" if is_json_array else "sse",
            strict=strict,
            losses=losses,
            owner=key.name,
            headers=() if self._forwarded_headers.isdisjoint(headers) else self._select_headers(request.headers),
            target=drop_key_from_target(request.target) if path.queried and "?" in request.target else "",
            tools=headers.get(TOOLS_HEADER, "") if self._gateway.has_tools else "",
            allowed=key.tools,
            is_large=request.is_large,
        )
        return client_request, options

    def _select_headers(self, headers: Headers) -> Headers:
        """Return the headers that are forwarded to an upstream of the client's own dialect."""
        return tuple(header for header in headers if header[0] in self._forwarded_headers)


@cache
def _get_body_reader() -> BodyReader:
    return BodyReader()


def read_large_body(body: bytes, path: PathMatch, strict: Strict) -> _ReadBody:
    """Read a body; called in the process for large bodies."""
    return _get_body_reader().read(body, path, strict)


def drop_key_from_target(target: str) -> str:
    """Return a path and query without the API key in the query; "" if nothing else is in the query."""
    path, _, query = target.partition("?")
    kept = drop_key(query)
    return f"{path}?{kept}" if kept else ""
