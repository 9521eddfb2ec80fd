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
from dragoman.gateway.conversations.options import ConversationOptions, asked_by_headers, named_conversation
from dragoman.gateway.errors import malformed_body, map_failure
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record
from dragoman.gateway.response_writer import write_events
from dragoman.gateway.router import Routes
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.link import Failure
from dragoman.http.message import Request
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
from dragoman.server.routes import Path
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable
from dragoman.upstreams.registry import KINDS
from dragoman.wire import json

_OURS = {"x-dragoman-key": "x-api-key", "host": "host", "origin": "origin"}
"""Headers that are for us, and what they are called where keys are looked at."""


def shown(request: Request) -> Request:
    """Return what a client shows to us of a request that is for its upstream."""
    headers = tuple((_OURS[name], value) for name, value in request.headers if name in _OURS)
    return Request(request.method, request.target.partition("?")[0], headers)


class Bound(Struct, frozen=True):
    """A session that a caller's conversation is bound to, and where its client asks."""

    session: InterceptSession
    url: str


class Interception:
    """Passes the requests of clients on to the upstreams they are meant for."""

    def __init__(self, config: Config, routes: Routes, client: Client, store: Store, *, alone: bool = True) -> None:
        self._config = config
        self._is_alone = alone
        """No other process answers on the same port: what is known here is all that is known."""
        self._routes = routes
        self._surface = InterceptHandler(client)
        self.sessions = InterceptSessions()
        self._remembering = Remembering(self.sessions, store)
        self.callers = CallerHandler()
        self.base_url = ""
        """Where clients that are started here are told to ask."""

    @property
    def lookers(self) -> list[ExchangeObserver]:
        """Who is told of each exchange when it is over."""
        return self._surface.observers

    def authorize(self, request: Request, path: Path, access: Access) -> Key:
        """Return the key of a client's request: its credentials are for its upstream, and not looked at here."""
        # A path that was given to a client which the gateway started needs no key.
        try:
            return access.admit(shown(request), anybody=self.sessions.has_ticket(path.name, path.item))
        except Problem as problem:
            if problem.kind != "authentication":
                raise
            words = f"{problem.message} in x-dragoman-key: what else is shown is for the upstream"
            raise Problem(problem.kind, words) from None

    async def answer(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        """Answer one request of a client."""
        table = self._table(path.name)
        destination = self._destination(table)
        if not key.allows(destination.upstream + path.action):
            raise Problem("permission", f"this key may not ask for {destination.upstream + path.action!r}")
        query = exchange.request.target.partition("?")[2]
        passing = InterceptedExchange(
            name=path.name,
            session=path.item,
            upstream=destination.upstream,
            method=exchange.request.method,
            target=path.action + (f"?{query}" if query else ""),
        )
        record.note_asked(destination.upstream, "")
        session = None
        if path.name in self._config.intercept:
            session = await self._remembering.find(SessionName(key.name, path.name, path.item), table)
        plan = build_fixed_plan(table) if session is None else session.build_plan(digest_of(exchange.request.body))
        try:
            await self._surface.handle_request(exchange, passing, destination, plan, session)
        except Failure as failure:
            raise map_failure(failure, destination.upstream) from None
        finally:
            record.status = passing.status
            if session is not None:
                await self._remembering.keep(session)

    @property
    def has_callers(self) -> bool:
        """Tell whether a request may be a caller's."""
        return bool(self._config.intercept)

    async def bound(self, ask: ClientRequest, request: Request, wanted: ConversationOptions | None) -> Bound | None:
        """Return the session that a request of a caller names as its conversation; None for any other request."""
        name = wanted.conversation if wanted is not None else conversation_of(ask, request)
        entry, _, session = name.partition(":")
        table = self._config.intercept.get(entry)
        if table is None:
            return None
        if not self._is_alone:
            words = f"sessions of [intercept.{entry}] live in one process: serve with one worker"
            raise Problem("unsupported", words, status=501)
        opened = await self._remembering.open(SessionName(ask.owner, entry, session), table)
        return Bound(opened, f"{self.base_url}/intercept/{entry}@{opened.ticket}")

    async def answer_caller(self, bound: Bound, context: RequestContext) -> None:
        """Answer a caller whose conversation is bound to a session."""
        server, callers = self._config.server, self.callers
        try:
            await answer_caller(bound, callers, context, hold=server.hold, heartbeat=server.heartbeat)
        finally:
            await self._remembering.keep(bound.session)

    def _table(self, name: str) -> InterceptTable:
        """Return what is configured for a client; an upstream's own name stands for nothing but the way there."""
        table = self._config.intercept.get(name)
        if table is not None:
            return table
        upstream = self._config.upstreams.get(name)
        if upstream is None or DIALECT not in KINDS[upstream.kind].dialects:
            raise Problem("not_found", f"there is no [intercept.{name}], and no upstream {name!r} of Google's")
        return InterceptTable(upstream=name)

    def _destination(self, table: InterceptTable) -> UpstreamAddress:
        target = self._routes.named(table.upstream, "gemini-")
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
    config: Config, routes: Routes, store: Store, *, alone: bool = True
) -> AsyncGenerator[Interception]:
    """Open what stands between clients and upstreams, as long as the block runs."""
    client = Client()
    try:
        opened = Interception(config, routes, client, store, alone=alone)
        try:
            yield opened
        finally:
            await opened.callers.close()
    finally:
        await client.close()


def conversation_of(ask: ClientRequest, request: Request) -> str:
    """Return the conversation that a request names, in its body where its dialect does, or in its header."""
    if dialect_named(ask.dialect).turns.keeps:
        try:
            named = named_conversation(json.decode_object(request.body).get("conversation"))
        except json.Malformed as error:
            raise malformed_body(error) from None
        if named:
            return named
    return asked_by_headers(request.named).conversation


async def answer_caller(
    bound: Bound, callers: CallerHandler, context: RequestContext, *, hold: float, heartbeat: float
) -> None:
    """Answer a caller with what the model says to the client, or raise the `Problem` for which that is not possible."""
    ask, record, dialect = context.request, context.record, dialect_named(context.request.dialect)
    request = dialect.parse_request(ask.call)
    if dialect.turns.keeps and json.peek(ask.call.body).get("background"):
        raise Problem("unsupported", "an intercepted session answers who waits for it", where="/background")
    wish = parse_caller_request(request, ask.call.body, ask.dialect, strict=ask.strict)
    record.losses = wish.losses
    record.note_asked(bound.session.name.entry, "")
    heard = Heard(ask, record, DIALECT)
    if ask.call.stream:
        context.heartbeat = Heartbeat(ask, context.exchange, record)
    async with aclosing(callers.answer(bound.session, wish, request, ask.dialect, bound.url)) as events:
        work = write_events(heard.events(events), request, context, heard.note)
        await (work if context.heartbeat is None else context.heartbeat.run(work, hold, heartbeat))


_MOST_LOOKED_FOR = 1000


class Remembering:
    """Sessions that are known, or were before the process began."""

    def __init__(self, sessions: InterceptSessions, store: Store) -> None:
        self._sessions = sessions
        self._store = store
        self._looked_for: set[SessionName] = set()

    async def find(self, name: SessionName, table: InterceptTable) -> InterceptSession | None:
        """Return a session that there is, or was."""
        found = self._sessions.find(name)
        if found is not None or name in self._looked_for:
            return found
        body = await self._body(name)
        return self._recalled(name, table, body) if body is not None else None

    async def open(self, name: SessionName, table: InterceptTable) -> InterceptSession:
        """Return a session, a new one if there never was one."""
        return await self.find(name, table) or self._sessions.open(name, table)

    async def keep(self, session: InterceptSession) -> None:
        """Keep a session, if there is something new of it."""
        state = session.state
        if not session.groups or state == session.saved_state:
            return
        session.saved_state = state
        with contextlib.suppress(Unavailable):
            await self._store.keep_asides(session.name.owner, {key_of(session.name): encode_session(session)})
            self._looked_for.discard(session.name)

    async def _body(self, name: SessionName) -> bytes | None:
        key = key_of(name)
        try:
            found = await self._store.asides(name.owner, [key])
        except Unavailable:
            return None
        if len(self._looked_for) >= _MOST_LOOKED_FOR:
            self._looked_for.clear()
        self._looked_for.add(name)
        return found.get(key)

    def _recalled(self, name: SessionName, table: InterceptTable, body: bytes) -> InterceptSession:
        found = self._sessions.find(name)
        if found is None:
            found = self._sessions.open(name, table)
            restore_session(found, body)
        return found


class Heard:
    """Fits the events of one reply, which is given in the dialect `source`."""

    def __init__(self, ask: ClientRequest, record: Record, source: str) -> None:
        here, there = dialect_named(source), dialect_named(ask.dialect)
        self._record = record
        self._prefix = there.reply_prefix
        self._ledger = Ledger(here.reply_pointers)
        self._pipeline = ReplyPipeline(NO_UNDO)
        if here is not there:
            options = ReplyOptions(salt=record.id, whole=not ask.call.stream)
            self._pipeline = ReplyPipeline(NO_UNDO, EventAdapter(here, there, self._ledger, options).feed)

    async def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Tell what the client can be told."""
        async for event in events:
            for fitted in self._fitted(event):
                yield fitted

    def note(self) -> None:
        """Book what could not be told."""
        self._record.reply_losses = self._ledger.losses()

    def _fitted(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Started):
            named = event.id or generate_id(self._prefix, self._record.id)
            event = structs.replace(event, id=named, created=event.created or int(time()))
        return self._pipeline.feed(event)
