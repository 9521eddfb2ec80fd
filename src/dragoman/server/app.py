"""The server: every request comes in here and leaves answered, in the client's own dialect."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call, ErrorReply
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.gateway.agents.toolset import HEADER
from dragoman.gateway.client_request import CONVERSATION_HEADERS, ClientRequest, flattened, read_call
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.background import Background
from dragoman.gateway.conversations.options import ConversationOptions, native_call
from dragoman.gateway.conversations.repeats import send_again
from dragoman.gateway.duplicate_keys import DistinctKeys, require_distinct
from dragoman.gateway.passthrough import without_key
from dragoman.gateway.record import Record, headers_of, signed
from dragoman.gateway.retry import client_may_retry
from dragoman.gateway.token_count import unwrapped, wrapped_count
from dragoman.http.exchange import Exchange, Gone
from dragoman.http.message import JSON, Headers, Request
from dragoman.interpreter.translate import CACHES
from dragoman.server.auth import Access, Key, wants_strict
from dragoman.server.endpoints import code_assist, mcp, models, passing, stored
from dragoman.server.exchanges import Watch
from dragoman.server.interception import Interception, shown
from dragoman.server.routes import Path, Paths
from dragoman.server.services import Connected

Handler = Callable[[Exchange, Path, Key, Record], Awaitable[None]]


class App:
    """Answers every request."""

    def __init__(  # noqa: PLR0913  what answers, and what looks on
        self,
        upstreams: Connected,
        access: Access,
        watch: Watch,
        door: mcp.Door,
        interception: Interception,
        *,
        strict: bool = False,
    ) -> None:
        self._gateway = upstreams.gateway
        self._access = access
        self._desk = upstreams.desk
        self._door = door
        self.interception = interception
        self._background = Background(self._desk.store, self._gateway, watch.observers, upstreams.carrier)
        self._strict = strict
        self._has_callers = interception.has_callers
        self._stateful = frozenset(name for name, dialect in DIALECTS.items() if dialect.turns.keeps)
        """Dialects whose requests say themselves which conversation they continue."""
        self.paths = Paths(DIALECTS.values())
        vendors = (dialect.api.passed_headers for dialect in DIALECTS.values())
        self._passed = frozenset({"idempotency-key"}).union(*vendors)
        """Headers by which a vendor's clients choose how it behaves. Credentials are never among them."""
        self._watch = watch
        self._distinct = DistinctKeys(CACHES)
        self._handlers: dict[str, Handler] = {
            "generate": self._generate,
            "health": self._show_health,
            "metrics": self._show_metrics,
            "count": self._count,
            "models": self._list_models,
            "model": self._list_models,
            "kept": self._answer_stored,
            "assist": self._answer_code_assist,
            "other": self._pass_on,
            "mcp": self._answer_mcp,
            "intercept": self._intercept,
            "exchange": self._show_exchange,
        }

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        path = self.paths.find(request.method, request.path, request.target.partition("?")[0])
        dialect = (path.dialect if path else "") or self.paths.dialect_of(request.path, dict(request.headers))
        record = Record(dialect=dialect, operation=path.operation if path else "")
        self._watch.observers.begin(record)
        try:
            key = self._authorize(request, path)
            record.owner = key.name
            if request.method == "GET" and request.header("sec-websocket-key"):
                await self._reject_websocket(exchange, record)
            elif path is None:
                await self._reject_path(exchange, record)
            else:
                await self._handlers[path.operation](exchange, path, key, record)
        except Problem as problem:
            record.problem = problem
            await self._send_error(problem, exchange, record)
        except (Gone, asyncio.CancelledError):
            # Some hang up as soon as they have read the last event: that is no leaving.
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        except Exception as error:  # noqa: BLE001  a client is owed an answer in its own dialect even then
            record.crash = error
            record.problem = Problem("internal", f"the gateway failed; its log tells how, at {record.id}")
            await self._send_error(record.problem, exchange, record)
        else:
            if record.outcome == "open":
                record.status, record.outcome = exchange.status, "answered"
        finally:
            record.close()
            self._watch.observers.end(record)

    def _authorize(self, request: Request, path: Path | None) -> Key:
        if path is not None and path.operation == "intercept":
            # What the client shows is for its upstream: we do not look at it.
            try:
                return self._access.admit(shown(request), anybody=self.interception.knows(path))
            except Problem as problem:
                if problem.kind != "authentication":
                    raise
                words = f"{problem.message} in x-dragoman-key: what else is shown is for the upstream"
                raise Problem(problem.kind, words) from None
        return self._access.admit(request, anybody=path is not None and path.operation == "health")

    async def _reject_websocket(self, exchange: Exchange, record: Record) -> None:
        """Reject a WebSocket with a status upon which clients that prefer one use HTTP at once."""
        reply = dialect_named(record.dialect).build_error(Problem("unsupported", "use HTTP here, not a WebSocket"))
        await exchange.send(426, reply.headers, reply.body)

    async def _reject_path(self, exchange: Exchange, record: Record) -> None:
        """Reject a path that does not exist, or that has other methods."""
        request = exchange.request
        methods = self.paths.methods(request.path, request.target.partition("?")[0])
        if not methods:
            raise Problem("not_found", f"there is no {request.method} {request.path} here", code="unknown_url")
        allowed = ", ".join(methods)
        words = f"{request.path} is asked with {allowed} here, not with {request.method}"
        reply = dialect_named(record.dialect).build_error(Problem("invalid_request", words, status=405))
        record.status, record.outcome = 405, "refused"
        await exchange.send(405, headers_of(record, {**reply.headers, "allow": allowed}), signed(reply.body, record))

    async def _show_health(self, exchange: Exchange, _path: Path, _key: Key, _record: Record) -> None:
        await exchange.send(200, JSON, self._door.health(known=self._access.knows(exchange.request)))

    async def _show_metrics(self, exchange: Exchange, _path: Path, _key: Key, _record: Record) -> None:
        kind, text = await asyncio.to_thread(self._watch.metrics.text)
        await exchange.send(200, {"content-type": kind}, text)

    async def _show_exchange(self, exchange: Exchange, path: Path, key: Key, _record: Record) -> None:
        await exchange.send(*await self._watch.exchanges.tell(path.name, key.name))

    async def _list_models(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        query = exchange.request.query
        listed = await models.told(self._gateway.catalogue, path.model, key.allows, record.dialect, query)
        await exchange.send(200, headers_of(record, JSON), listed)

    async def _answer_stored(self, exchange: Exchange, path: Path, key: Key, _record: Record) -> None:
        require_distinct(exchange.request.body)
        await stored.answer(self._background, path, key.name, exchange)

    async def _answer_code_assist(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        body = exchange.request.body
        require_distinct(body)
        told = await code_assist.told(path.name, body, self._gateway.catalogue, key.allows)
        await exchange.send(200, headers_of(record, JSON), told)

    async def _intercept(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        await self.interception.answer(exchange, path, key, record)

    async def _generate(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        ask, wanted = self._read_request(exchange.request, path, key)
        call = ask.call
        record.model, record.stream = call.model, call.stream
        if not key.allows(call.model):
            raise Problem("permission", f"this key may not ask for the model {call.model!r}")
        self._take_slot(exchange, key)
        context = RequestContext(ask, exchange, record)
        goes_on = False
        try:
            if self._has_callers:
                bound = await self.interception.bound(ask, exchange.request, wanted)
                if bound is not None:
                    await self.interception.answer_caller(bound, context)
                    return
            opened = None
            if wanted or path.dialect in self._stateful or not CONVERSATION_HEADERS.isdisjoint(exchange.request.named):
                wanted = wanted or self._desk.wanted(ask, exchange.request.named)
                opened = await self._desk.open(ask, wanted) if wanted is not None else None
            if opened is None:
                await self._gateway.generate(context)
            elif opened.again is not None:
                await send_again(opened.again, ask, exchange, record)
            elif opened.question.is_background:
                turn = await self._background.begin(opened, partial(self._watch.quotas.give_back, key))
                goes_on = True
                await stored.tell_begun(self._background, turn, exchange, record)
            else:
                context.request, context.keeper = opened.ask, self._desk.keeper(opened)
                await self._gateway.generate(context)
                await context.keeper.delivered()
        finally:
            if not goes_on:
                self._watch.quotas.give_back(key)

    async def _answer_mcp(self, exchange: Exchange, _path: Path, key: Key, record: Record) -> None:
        self._watch.quotas.take(key)
        try:
            await self._door.answer(exchange, key, record)
        finally:
            self._watch.quotas.give_back(key)

    async def _pass_on(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        if path.other is None:
            raise Problem("not_found", f"{exchange.request.path} is not served here")
        going = passing.found(exchange.request, path.other, record.dialect, self._gateway.routes, key)
        record.dialect, record.model = going.passage.target.upstream.dialect, going.model
        self._take_slot(exchange, key)
        try:
            await self._gateway.pass_on(going.passage, exchange, record)
        finally:
            self._watch.quotas.give_back(key)

    def _take_slot(self, exchange: Exchange, key: Key) -> None:
        """Count one more open request of a key, and cancel it when its client disconnects."""
        self._watch.quotas.take(key)
        task = asyncio.current_task()
        if task is not None:
            exchange.when_gone(task.cancel)

    async def _count(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        ask, _ = self._read_request(exchange.request, path, key)
        if path.google and not path.wrapped:
            ask = structs.replace(ask, call=unwrapped(ask.call))
        wanted = self._desk.wanted(ask, exchange.request.named)
        opened = await self._desk.open(ask, wanted) if wanted is not None else None
        ask = opened.ask if opened is not None else ask
        record.model = ask.call.model
        if not key.allows(ask.call.model):
            raise Problem("permission", f"this key may not ask for the model {ask.call.model!r}")
        self._take_slot(exchange, key)
        try:
            body, estimated = await self._gateway.count(ask, record)
        finally:
            self._watch.quotas.give_back(key)
        record.status, record.outcome = 200, "answered"
        labelled = {**JSON, "x-dragoman-estimate": "true"} if estimated else JSON
        await exchange.send(200, headers_of(record, labelled), body)

    def _read_request(self, request: Request, path: Path, key: Key) -> tuple[ClientRequest, ConversationOptions | None]:
        wanted = None
        value = self._distinct.require(request.body, dialect_named(path.dialect))
        if path.in_session:
            call, wanted = native_call(request.body)
        elif path.in_url:
            call = Call(request.body, path.model, path.stream)
        elif path.wrapped and path.operation == "count":
            call = wrapped_count(request.body)
        else:
            call = read_call(request.body, value)
            if path.wrapped:
                call = Call(request.body, call.model, path.stream)
            elif path.flat:
                call = flattened(call)
        in_items = path.google and path.stream and request.query.get("alt") != "sse"
        named = request.named
        said = named.get("x-dragoman-strict")
        ask = ClientRequest(
            dialect=path.dialect,
            call=call,
            framing="array" if in_items else "sse",
            strict=self._strict if said is None else wants_strict(said, usual=self._strict),
            owner=key.name,
            headers=() if self._passed.isdisjoint(named) else self._passed_headers(request.headers),
            target=target_without_key(request.target) if path.queried and "?" in request.target else "",
            tools=named.get(HEADER, "") if self._gateway.runs_tools else "",
            allowed=key.tools,
        )
        return ask, wanted

    def _passed_headers(self, headers: Headers) -> Headers:
        """Return the headers that may go to an upstream of the client's own dialect."""
        return tuple(header for header in headers if header[0] in self._passed)

    async def _send_error(self, problem: Problem, exchange: Exchange, record: Record) -> None:
        """Send an error in the client's dialect; cut a response that has started."""
        record.outcome = "failed" if record.upstream else "refused"
        if exchange.started:
            exchange.cut()
            return
        if record.operation == "mcp":
            told = mcp.refusal(problem)
            record.status = told.status
            # It is no dialect of a model's, and has no place for the name of a request.
            await exchange.send(told.status, {**told.headers, "x-dragoman-exchange": record.id}, told.body)
            return
        reply: ErrorReply = dialect_named(record.dialect).build_error(problem)
        record.status = reply.status
        headers = headers_of(record, reply.headers)
        if record.is_spent or not client_may_retry(problem, record.tries):
            headers["x-should-retry"] = "false"
        await exchange.send(reply.status, headers, signed(reply.body, record))


def target_without_key(target: str) -> str:
    """Return a path and its query without the key that may be in it."""
    path, _, query = target.partition("?")
    kept = without_key(query)
    return f"{path}?{kept}" if kept else ""
