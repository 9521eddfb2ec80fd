"""The intercept proxy in the server: clients whose requests pass through, and callers bound to their sessions.

The client's own key is for its upstream. With configured keys it sends one of ours in `x-dragoman-key`; a client that
the gateway started itself is recognised by its path. Sessions are saved with the conversations, so that they outlive
the process; if the store fails they live in memory. A caller may use any dialect: the events of Gemini's reply are
adapted to it.
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
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.options import ConversationOptions, read_conversation_id, read_header_options
from dragoman.gateway.errors import build_body_error, map_failure
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import write_events
from dragoman.gateway.router import Routes
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.intercept.caller import CallerHandler, parse_caller_request
from dragoman.intercept.captured import digest_of
from dragoman.intercept.exchange import ExchangeObserver, InterceptedExchange
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
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline, generate_id
from dragoman.server.auth import Access, Key
from dragoman.server.routes import PathMatch
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.upstreams.registry import KINDS
from dragoman.wire import json

_OWN_HEADERS = {"x-dragoman-key": "x-api-key", "host": "host", "origin": "origin"}
"""Headers that are for us, and what they are called where keys are looked at."""


def select_own_headers(request: Request) -> Request:
    """Return what a client shows to us of a request that is for its upstream."""
    headers = tuple((_OWN_HEADERS[name], value) for name, value in request.headers if name in _OWN_HEADERS)
    return Request(request.method, request.target.partition("?")[0], headers)


class BoundSession(Struct, frozen=True):
    """A session that a caller's conversation is bound to, and where its client asks."""

    session: InterceptSession
    url: str


class Interception:
    """Passes the requests of clients on to the upstreams they are meant for."""

    def __init__(
        self, config: Config, routes: Routes, client: Client, store: Store, *, is_single_process: bool = True
    ) -> None:
        self._config = config
        self._is_single_process = is_single_process
        """No other process answers on the same port: what is known here is all that is known."""
        self._routes = routes
        self._handler = InterceptHandler(client)
        self.sessions = InterceptSessions()
        self._session_store = InterceptSessionStore(self.sessions, store)
        self.callers = CallerHandler()
        self.base_url = ""
        """Where clients that are started here are told to ask."""

    @property
    def observers(self) -> list[ExchangeObserver]:
        """Who is told of each exchange when it is over."""
        return self._handler.observers

    def authorize(self, request: Request, path: PathMatch, access: Access) -> Key:
        """Return the key of a client's request: its credentials are for its upstream, and not looked at here."""
        # A path that was given to a client which the gateway started needs no key.
        try:
            return access.authorize(
                select_own_headers(request), is_public=self.sessions.has_ticket(path.name, path.item)
            )
        except Problem as problem:
            if problem.kind != "authentication":
                raise
            words = f"{problem.message} in x-dragoman-key: what else is shown is for the upstream"
            raise Problem(problem.kind, words) from None

    async def handle_request(self, exchange: Exchange, path: PathMatch, key: Key, record: Record) -> None:
        """Answer one request of a client."""
        table = self._find_table(path.name)
        destination = self._find_destination(table)
        if not key.allows(destination.upstream + path.action):
            raise Problem("permission", f"this API key is not allowed to use {destination.upstream + path.action!r}")
        query = exchange.request.target.partition("?")[2]
        passing = InterceptedExchange(
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
            await self._handler.handle_request(exchange, passing, destination, plan, session)
        except ConnectionFailure as failure:
            raise map_failure(failure, destination.upstream) from None
        finally:
            record.status = passing.status
            if session is not None:
                await self._session_store.save(session)

    @property
    def has_callers(self) -> bool:
        """Tell whether a request may be a caller's."""
        return bool(self._config.intercept)

    async def find_bound_session(
        self, client_request: ClientRequest, request: Request, options: ConversationOptions | None
    ) -> BoundSession | None:
        """Return the session that a request of a caller names as its conversation; None for any other request."""
        name = options.conversation if options is not None else conversation_of(client_request, request)
        entry, _, session = name.partition(":")
        table = self._config.intercept.get(entry)
        if table is None:
            return None
        if not self._is_single_process:
            words = f"sessions of [intercept.{entry}] live in one process: serve with one worker"
            raise Problem("unsupported", words, status=501)
        opened = await self._session_store.open(SessionName(client_request.owner, entry, session), table)
        return BoundSession(opened, f"{self.base_url}/intercept/{entry}@{opened.ticket}")

    async def answer_caller(self, bound: BoundSession, context: RequestContext) -> None:
        """Answer a caller whose conversation is bound to a session."""
        server, callers = self._config.server, self.callers
        try:
            await answer_caller(bound, callers, context, hold=server.hold, heartbeat=server.heartbeat)
        finally:
            await self._session_store.save(bound.session)

    def _find_table(self, name: str) -> InterceptTable:
        """Return what is configured for a client; an upstream's own name stands for nothing but the way there."""
        table = self._config.intercept.get(name)
        if table is not None:
            return table
        upstream = self._config.upstreams.get(name)
        if upstream is None or DIALECT not in KINDS[upstream.kind].dialects:
            raise Problem("not_found", f"there is no [intercept.{name}], and no upstream {name!r} of Google's")
        return InterceptTable(upstream=name)

    def _find_destination(self, table: InterceptTable) -> UpstreamAddress:
        target = self._routes.find_named(table.upstream, "gemini-")
        site = getattr(target.upstream, "site", None) if target is not None else None
        if target is None or site is None:
            raise Problem("not_found", f"there is no upstream {table.upstream!r} of Google's")
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
    """Open what stands between clients and upstreams, as long as the block runs."""
    client = Client()
    try:
        opened = Interception(config, routes, client, store, is_single_process=is_single_process)
        try:
            yield opened
        finally:
            await opened.callers.close()
    finally:
        await client.close()


def conversation_of(client_request: ClientRequest, request: Request) -> str:
    """Return the conversation that a request names, in its body where its dialect does, or in its header."""
    if dialect_named(client_request.dialect).turns.has_store_member:
        try:
            named = read_conversation_id(json.decode_object(request.body).get("conversation"))
        except json.Malformed as error:
            raise build_body_error(error) from None
        if named:
            return named
    return read_header_options(request.headers_by_name).conversation


async def answer_caller(
    bound: BoundSession, callers: CallerHandler, context: RequestContext, *, hold: float, heartbeat: float
) -> None:
    """Answer a caller with what the model says to the client, or raise the `Problem` for which that is not possible."""
    ask, record, dialect = context.request, context.record, dialect_named(context.request.dialect)
    request = dialect.parse_request(ask.call)
    if dialect.turns.has_store_member and json.peek(ask.call.body).get("background"):
        raise Problem("unsupported", "an intercepted session answers who waits for it", where="/background")
    wish = parse_caller_request(request, ask.call.body, ask.dialect, strict=ask.strict)
    record.losses = wish.losses
    record.note_attempt(bound.session.name.entry, "")
    heard = CallerReply(ask, record, DIALECT)
    if ask.call.stream:
        context.heartbeat = Heartbeat(ask, context.exchange, record)
    async with aclosing(callers.answer(bound.session, wish, request, ask.dialect, bound.url)) as events:
        work = write_events(heard.adapt_events(events), request, context, heard.record_losses)
        await (work if context.heartbeat is None else context.heartbeat.run(work, hold, heartbeat))


_MAX_LOOKED_UP = 1000


class InterceptSessionStore:
    """Sessions that are known, or were before the process began."""

    def __init__(self, sessions: InterceptSessions, store: Store) -> None:
        self._sessions = sessions
        self._store = store
        self._looked_up: set[SessionName] = set()

    async def find(self, name: SessionName, table: InterceptTable) -> InterceptSession | None:
        """Return a session that there is, or was."""
        found = self._sessions.find(name)
        if found is not None or name in self._looked_up:
            return found
        body = await self._load_body(name)
        return self._restore(name, table, body) if body is not None else None

    async def open(self, name: SessionName, table: InterceptTable) -> InterceptSession:
        """Return a session, a new one if there never was one."""
        return await self.find(name, table) or self._sessions.open(name, table)

    async def save(self, session: InterceptSession) -> None:
        """Keep a session, if there is something new of it."""
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
    """Fits the events of one reply, which is given in the dialect `source`."""

    def __init__(self, client_request: ClientRequest, record: Record, source: str) -> None:
        here, there = dialect_named(source), dialect_named(client_request.dialect)
        self._record = record
        self._prefix = there.reply_prefix
        self._ledger = Ledger(here.reply_pointers)
        self._pipeline = ReplyPipeline(NO_UNDO)
        if here is not there:
            options = ReplyOptions(salt=record.id, is_whole=not client_request.call.stream)
            self._pipeline = ReplyPipeline(NO_UNDO, EventAdapter(here, there, self._ledger, options).feed)

    async def adapt_events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Tell what the client can be told."""
        async for event in events:
            for fitted in self._adapt(event):
                yield fitted

    def record_losses(self) -> None:
        """Book what could not be told."""
        self._record.reply_losses = self._ledger.losses()

    def _adapt(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Started):
            named = event.id or generate_id(self._prefix, self._record.id)
            event = structs.replace(event, id=named, created=event.created or int(time()))
        return self._pipeline.feed(event)
