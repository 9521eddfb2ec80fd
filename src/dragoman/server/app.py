"""The server's request handler: find the operation of a path, check who asks, answer, and report how it ended."""

import asyncio
from functools import partial

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.gateway.agents.toolset import HEADER
from dragoman.gateway.client_request import (
    CONVERSATION_HEADERS,
    SMALL_BODY,
    ClientRequest,
    flattened,
    read_call,
    require_distinct,
)
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.background import Background
from dragoman.gateway.conversations.options import ConversationOptions, native_call
from dragoman.gateway.conversations.repeats import send_again
from dragoman.gateway.duplicate_keys import DistinctKeys
from dragoman.gateway.passthrough import without_key
from dragoman.gateway.record import Record
from dragoman.gateway.token_count import wrapped_count
from dragoman.http.exchange import Exchange, Gone
from dragoman.http.message import Headers, Request
from dragoman.interpreter.translate import CACHES
from dragoman.server.auth import Key, cancel_when_gone, wants_strict
from dragoman.server.endpoints import stored
from dragoman.server.endpoints.handlers import Endpoints, Handler, Services, reject_path, reject_websocket, send_error
from dragoman.server.routes import Path, Paths


class App:
    """Handles every request."""

    def __init__(self, services: Services) -> None:
        upstreams, watch = services.upstreams, services.watch
        self.interception = services.interception
        self._access = services.access
        self._strict = services.strict
        self._gateway = upstreams.gateway
        self._desk = upstreams.desk
        self._observers = watch.observers
        self._quotas = watch.quotas
        self._background = Background(self._desk.store, self._gateway, watch.observers, upstreams.carrier)
        self._has_callers = services.interception.has_callers
        self._stateful = frozenset(name for name, dialect in DIALECTS.items() if dialect.turns.keeps)
        """Dialects whose requests say themselves which conversation they continue."""
        self.paths = Paths(DIALECTS.values())
        vendors = (dialect.api.passed_headers for dialect in DIALECTS.values())
        self._passed = frozenset({"idempotency-key"}).union(*vendors)
        """Headers by which a vendor's clients choose how it behaves. Credentials are never among them."""
        self._distinct = DistinctKeys(CACHES)
        others = Endpoints(services, self._background, self._read_request)
        self._handlers: dict[str, Handler] = {**others.handlers, "generate": self._generate}

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        path = self.paths.find(request.method, request.path, request.target.partition("?")[0])
        dialect = (path.dialect if path else "") or self.paths.dialect_of(request.path, request.named)
        record = Record(dialect=dialect, operation=path.operation if path else "")
        self._observers.begin(record)
        try:
            if path is not None and path.operation == "intercept":
                key = self.interception.authorize(request, path, self._access)
            else:
                key = self._access.admit(request, anybody=record.operation == "health")
            record.owner = key.name
            if request.method == "GET" and request.header("sec-websocket-key"):
                await reject_websocket(exchange, record)
            elif path is None:
                await reject_path(self.paths, exchange, record)
            else:
                await self._handlers[path.operation](exchange, path, key, record)
            if record.outcome == "open":
                record.status, record.outcome = exchange.status, "answered"
        except Problem as problem:
            await send_error(problem, exchange, record)
        except (Gone, asyncio.CancelledError):
            # Some clients disconnect as soon as they have read the last event: such a request is answered.
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        except Exception as error:  # noqa: BLE001  a client gets an answer in its own dialect whatever fails
            record.crash = error
            problem = Problem("internal", f"the gateway failed; its log tells how, at {record.id}")
            await send_error(problem, exchange, record)
        finally:
            self._observers.end(record)

    async def _generate(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        """Answer a request for a response of a model."""
        request, options = self._read_request(exchange.request, path, key)
        call = request.call
        record.model, record.stream = call.model, call.stream
        if not key.allows(call.model):
            raise Problem("permission", f"this key may not ask for the model {call.model!r}")
        self._quotas.take(key)
        cancel_when_gone(exchange)
        context = RequestContext(request, exchange, record)
        goes_on = False
        try:
            if self._has_callers:
                bound = await self.interception.bound(request, exchange.request, options)
                if bound is not None:
                    await self.interception.answer_caller(bound, context)
                    return
            opened, named = None, exchange.request.named
            if options or path.dialect in self._stateful or not CONVERSATION_HEADERS.isdisjoint(named):
                options = options or self._desk.wanted(request, named)
                opened = await self._desk.open(request, options) if options is not None else None
            if opened is None:
                await self._gateway.generate(context)
            elif opened.again is not None:
                await send_again(opened.again, request, exchange, record)
            elif opened.question.is_background:
                turn = await self._background.begin(opened, partial(self._quotas.give_back, key))
                goes_on = True
                await stored.tell_begun(self._background, turn, exchange, record)
            else:
                context.request, context.keeper = opened.ask, self._desk.keeper(opened)
                await self._gateway.generate(context)
                await context.keeper.delivered()
        finally:
            if not goes_on:
                self._quotas.give_back(key)

    def _read_request(self, request: Request, path: Path, key: Key) -> tuple[ClientRequest, ConversationOptions | None]:
        """Read a request for a model: its call, what its path and headers say, and the conversation it names."""
        options, body, named = None, request.body, request.named
        if len(body) < SMALL_BODY:
            value = require_distinct(body)
        else:
            value = self._distinct.require(body, dialect_named(path.dialect))
        if path.in_session:
            call, options = native_call(body)
        elif path.in_url:
            call = Call(body, path.model, path.stream)
        elif path.wrapped and path.operation == "count":
            call = wrapped_count(body)
        else:
            call = read_call(body, value)
            if path.wrapped:
                call = Call(body, call.model, path.stream)
            elif path.flat:
                call = flattened(call)
        in_items = path.google and path.stream and request.query.get("alt") != "sse"
        strict = named.get("x-dragoman-strict")
        client_request = ClientRequest(
            dialect=path.dialect,
            call=call,
            framing="array" if in_items else "sse",
            strict=self._strict if strict is None else wants_strict(strict, usual=self._strict),
            owner=key.name,
            headers=() if self._passed.isdisjoint(named) else self._passed_headers(request.headers),
            target=target_without_key(request.target) if path.queried and "?" in request.target else "",
            tools=named.get(HEADER, "") if self._gateway.runs_tools else "",
            allowed=key.tools,
        )
        return client_request, options

    def _passed_headers(self, headers: Headers) -> Headers:
        """Return the headers that may go to an upstream of the client's own dialect."""
        return tuple(header for header in headers if header[0] in self._passed)


def target_without_key(target: str) -> str:
    """Return a path and its query without the key that may be in it."""
    path, _, query = target.partition("?")
    kept = without_key(query)
    return f"{path}?{kept}" if kept else ""
