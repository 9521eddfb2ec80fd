"""The intercept proxy in the server: forwards requests of intercepted programs, and answers callers of their sessions.

The API key of an intercepted program is for its upstream. If the gateway has keys, the program sends one of them in
`x-dragoman-key`; a program that the gateway started itself is recognised by its path. Sessions are saved in the
conversation store, so that they survive a restart; if the store fails they live in memory. A caller may use any
dialect: the events of Gemini's reply are adapted to it.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from time import time

from msgspec import Struct, structs

from dragoman.config import Config
from dragoman.core.events import Event, Started
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.event_writer import write_events
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.options import ConversationOptions, read_conversation_id, read_header_options
from dragoman.gateway.errors import build_body_error, map_failure
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record
from dragoman.gateway.router import Routes
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.intercept.caller import CallerHandler, parse_caller_request
from dragoman.intercept.exchange import ExchangeObserver, InterceptedExchange
from dragoman.intercept.plan import digest_of
from dragoman.intercept.proxy import InterceptHandler, UpstreamAddress
from dragoman.intercept.sessions import (
    InterceptSession,
    InterceptSessions,
    SessionName,
    build_fixed_plan,
    encode_session,
    key_of,
    restore_session,
)
from dragoman.intercept.settings import DIALECT, InterceptTable
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import open_reply_ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline
from dragoman.server.auth import Access, Key
from dragoman.server.routes import PathMatch
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.upstreams.registry import KINDS
from dragoman.wire import json

_OWN_HEADERS = {"x-dragoman-key": "x-api-key", "host": "host", "origin": "origin"}
"""Headers meant for the gateway, and the names under which authorization expects them."""


def select_own_headers(request: Request) -> Request:
    """Return a request with only the headers that are meant for the gateway, not for the upstream."""
    headers = tuple((_OWN_HEADERS[name], value) for name, value in request.headers if name in _OWN_HEADERS)
    return Request(request.method, request.target.partition("?")[0], headers)


class BoundSession(Struct, frozen=True):
    """A session that a caller's conversation is bound to, and the base URL of its intercepted program."""

    session: InterceptSession
    url: str


class Interception:
    """Forwards the requests of intercepted programs to their upstreams."""

    def __init__(
        self, config: Config, routes: Routes, client: Client, store: Store, *, is_single_process: bool = True
    ) -> None:
        self._config = config
        self._is_single_process = is_single_process
        """Whether this is the only process on the port, so that it has all sessions."""
        self._routes = routes
        self._handler = InterceptHandler(client)
        self.sessions = InterceptSessions()
        self._session_store = InterceptSessionStore(self.sessions, store)
        self.callers = CallerHandler()
        self.base_url = ""
        """The URL that programs started by the gateway use."""

    @property
    def observers(self) -> list[ExchangeObserver]:
        """Functions that are called with each exchange when it has ended."""
        return self._handler.observers

    def authorize(self, request: Request, path: PathMatch, access: Access) -> Key:
        """Return the gateway key of a program's request; credentials outside `x-dragoman-key` are for the upstream."""
        # A program that the gateway started needs no key: its path contains the session's ticket.
        try:
            return access.authorize(
                select_own_headers(request), is_public=self.sessions.has_ticket(path.name, path.item)
            )
        except Problem as problem:
            if problem.kind != "authentication":
                raise
            message = "send a key of the gateway in x-dragoman-key; other credentials are for the upstream"
            raise Problem(problem.kind, message) from None

    async def handle_request(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        """Forward one request of an intercepted program."""
        table = self._find_table(path.name)
        destination = self._find_destination(table)
        if not key.allows(destination.upstream + path.action):
            raise Problem("permission", f"this API key is not allowed to use {destination.upstream + path.action!r}")
        query = exchange.request.target.partition("?")[2]
        intercepted = InterceptedExchange(
            name=path.name,
            session=path.item,
            upstream=destination.upstream,
            method=exchange.request.method,
            target=path.action + (f"?{query}" if query else ""),
        )
        record.note_attempt(destination.upstream, "")
        session = None
        if path.name in self._config.intercept:
            session = await self._session_store.find(SessionName(key.name, path.name, path.item), table)
        plan = build_fixed_plan(table) if session is None else session.build_plan(digest_of(exchange.request.body))
        try:
            await self._handler.handle_request(exchange, intercepted, destination, plan, session)
        except ConnectionFailure as failure:
            raise map_failure(failure, destination.upstream) from None
        finally:
            record.status = intercepted.status
            if session is not None:
                await self._session_store.save(session)

    @property
    def has_callers(self) -> bool:
        """Whether a request may come from a caller, because [intercept] has entries."""
        return bool(self._config.intercept)

    async def find_bound_session(
        self, client_request: ClientRequest, request: Request, options: ConversationOptions | None
    ) -> BoundSession | None:
        """Return the session that a caller's request names as its conversation; None for any other request."""
        name = options.conversation if options is not None else conversation_of(client_request, request)
        entry, _, session = name.partition(":")
        table = self._config.intercept.get(entry)
        if table is None:
            return None
        if not self._is_single_process:
            message = f"[intercept.{entry}] does not work with several workers; start the gateway with --workers 1"
            raise Problem("unsupported", message, status=501)
        opened = await self._session_store.open(SessionName(client_request.owner, entry, session), table)
        return BoundSession(opened, f"{self.base_url}/intercept/{entry}@{opened.ticket}")

    async def answer_caller(self, bound: BoundSession, context: RequestContext) -> None:
        """Answer a caller whose conversation is bound to a session, and save the session."""
        server, callers = self._config.server, self.callers
        try:
            await answer_caller(bound, callers, context, hold=server.hold, heartbeat=server.heartbeat)
        finally:
            await self._session_store.save(bound.session)

    def _find_table(self, name: str) -> InterceptTable:
        """Return the [intercept] table of a name; the name of an upstream gives a table without options."""
        table = self._config.intercept.get(name)
        if table is not None:
            return table
        upstream = self._config.upstreams.get(name)
        if upstream is None or DIALECT not in KINDS[upstream.kind].dialects:
            raise Problem("not_found", f"there is no [intercept.{name}] and no upstream {name!r} with the Gemini API")
        return InterceptTable(upstream=name)

    def _find_destination(self, table: InterceptTable) -> UpstreamAddress:
        target = self._routes.find_named(table.upstream, dialect_named(DIALECT).api.default_model)
        site = getattr(target.upstream, "site", None) if target is not None else None
        if target is None or site is None:
            raise Problem("not_found", f"there is no upstream {table.upstream!r} with the Gemini API")
        return UpstreamAddress(
            upstream=table.upstream,
            origin=site.origin,
            prefix=site.prefix,
            deadlines=target.deadlines,
            headers=table.headers,
        )


@asynccontextmanager
async def open_interception(
    config: Config, routes: Routes, store: Store, *, is_single_process: bool = True
) -> AsyncGenerator[Interception]:
    """Run the intercept proxy while the block runs."""
    client = Client()
    try:
        interception = Interception(config, routes, client, store, is_single_process=is_single_process)
        try:
            yield interception
        finally:
            await interception.callers.close()
    finally:
        await client.close()


def conversation_of(client_request: ClientRequest, request: Request) -> str:
    """Return the conversation that a request names, in the body if its dialect has such a field, or in a header."""
    if dialect_named(client_request.dialect).turns.has_store_member:
        try:
            conversation = read_conversation_id(json.decode_object(request.body).get("conversation"))
        except json.Malformed as error:
            raise build_body_error(error) from None
        if conversation:
            return conversation
    return read_header_options(request.headers_by_name).conversation


async def answer_caller(
    bound: BoundSession, callers: CallerHandler, context: RequestContext, *, hold: float, heartbeat: float
) -> None:
    """Answer a caller with the model's reply in the intercepted program; raises a `Problem` if that is impossible."""
    client_request, record, dialect = context.request, context.record, dialect_named(context.request.dialect)
    request = dialect.parse_request(client_request.call)
    if dialect.turns.has_store_member and json.peek(client_request.call.body).get("background"):
        raise Problem(
            "unsupported",
            "an intercepted session cannot answer in the background; remove `background`",
            where="/background",
        )
    caller_request = parse_caller_request(
        request, client_request.call.body, client_request.dialect, strict=client_request.strict
    )
    record.losses = caller_request.losses
    record.note_attempt(bound.session.name.entry, "")
    reply = CallerReply(context, DIALECT)
    async with aclosing(
        callers.answer(bound.session, caller_request, request, client_request.dialect, bound.url)
    ) as events:
        work = write_events(reply.adapt_events(events), request, context, reply.record_losses)
        await (Heartbeat(context, hold, heartbeat).run(work) if client_request.call.stream else work)


_MAX_LOOKED_UP = 1000


class InterceptSessionStore:
    """Sessions in memory, with those of earlier processes loaded from the store on demand."""

    def __init__(self, sessions: InterceptSessions, store: Store) -> None:
        self._sessions = sessions
        self._store = store
        self._looked_up: set[SessionName] = set()

    async def find(self, name: SessionName, table: InterceptTable) -> InterceptSession | None:
        """Return an existing session, from memory or the store; None if there is none."""
        found = self._sessions.find(name)
        if found is not None or name in self._looked_up:
            return found
        body = await self._load_body(name)
        return self._restore(name, table, body) if body is not None else None

    async def open(self, name: SessionName, table: InterceptTable) -> InterceptSession:
        """Return an existing session, or create it."""
        return await self.find(name, table) or self._sessions.open(name, table)

    async def save(self, session: InterceptSession) -> None:
        """Save a session to the store if it has changed."""
        state = session.state
        if not session.groups or state == session.saved_state:
            return
        session.saved_state = state
        with contextlib.suppress(Unavailable):
            await self._store.save_blobs(session.name.owner, {key_of(session.name): encode_session(session)})
            self._looked_up.discard(session.name)

    async def _load_body(self, name: SessionName) -> bytes | None:
        key = key_of(name)
        try:
            found = await self._store.find_blobs(name.owner, [key])
        except Unavailable:
            return None
        if len(self._looked_up) >= _MAX_LOOKED_UP:
            self._looked_up.clear()
        self._looked_up.add(name)
        return found.get(key)

    def _restore(self, name: SessionName, table: InterceptTable, body: bytes) -> InterceptSession:
        found = self._sessions.find(name)
        if found is None:
            found = self._sessions.open(name, table)
            restore_session(found, body)
        return found


class CallerReply:
    """Adapts the events of one reply from the dialect `source` to the caller's dialect."""

    def __init__(self, context: RequestContext, source: str) -> None:
        source_dialect, target_dialect = dialect_named(source), dialect_named(context.request.dialect)
        self._record = context.record
        self._prefix = target_dialect.reply_prefix
        self._ledger = open_reply_ledger(source_dialect)
        self._pipeline = ReplyPipeline(NO_UNDO)
        if source_dialect is not target_dialect:
            options = ReplyOptions(salt=context.record.id, is_whole=not context.request.call.stream)
            adapter = EventAdapter(source_dialect, target_dialect, self._ledger, options)
            self._pipeline = ReplyPipeline(NO_UNDO, adapter.feed)

    async def adapt_events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Yield the events that the caller's dialect can express."""
        async for event in events:
            for adapted in self._adapt(event):
                yield adapted

    def record_losses(self) -> None:
        """Store the losses of the reply in the record."""
        self._record.reply_losses = self._ledger.losses()

    def _adapt(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Started):
            reply_id = event.id or generate_id(self._prefix, self._record.id)
            event = structs.replace(event, id=reply_id, created=event.created or int(time()))
        return self._pipeline.feed(event)
