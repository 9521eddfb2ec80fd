"""The intercept proxy: forwards a client's requests to its upstream and the replies back, with the rules applied.

The client's own credentials are forwarded, the gateway adds none, and hop-by-hop headers are dropped.
"""

import logging
import re
from collections.abc import Mapping

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.guard import attempt
from dragoman.http.client import Client, Deadlines, Incoming, Outgoing
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.message import Headers, Origin
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.intercept.exchange import ExchangeObserver, InterceptedExchange, ObserverFolders
from dragoman.intercept.plan import Group, RewritePlan, digest_of
from dragoman.intercept.replies import TurnRequest, build_reply, parse_turn_request
from dragoman.intercept.reply_filter import ReplyFilter, parse_refusal
from dragoman.intercept.rewrite import RewrittenRequest, rewrite_request
from dragoman.intercept.sessions import InterceptSession

_FORWARDED_HEADERS = frozenset(
    [
        "accept",
        "accept-language",
        "api-revision",
        "authorization",
        "content-language",
        "content-range",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "range",
        "user-agent",
        "x-http-method-override",
        "x-request-id",
        "x-server-timeout",
    ]
)
_FORWARDED_PREFIXES = ("x-goog-", "x-gemini-", "x-google-", "x-upload-")
_IDENTITY_ENCODING = ("accept-encoding", "identity")
_DROPPED_HEADERS = frozenset(
    [
        "alt-svc",
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "set-cookie",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_SECRET = re.compile(r"auth|cookie|credential|key|secret|token")
_KEY = re.compile(r"(?<=[?&])(?:key|(?:access|oauth|bearer)_token)=[^&]*&?", re.IGNORECASE)
_LOG = logging.getLogger("dragoman.intercept")
_BODILESS = frozenset({204, 304})
_MAX_ERROR_BODY = 1 << 20
_BAD_REQUEST = 400
"""The status for a rewritten request that the upstream rejects: the client's original may still be accepted."""


def filter_request_headers(headers: Headers, rules: Mapping[str, str]) -> Headers:
    """Return the client's headers that are forwarded; `rules` set headers, or remove those with an empty value."""
    kept = [
        (name, value)
        for name, value in headers
        if (name in _FORWARDED_HEADERS or name.startswith(_FORWARDED_PREFIXES)) and name not in rules
    ]
    return (*kept, *((name, value) for name, value in rules.items() if value), _IDENTITY_ENCODING)


def filter_reply_headers(headers: Headers, *, plain: bool) -> dict[str, str]:
    """Return the reply headers that are forwarded; `content-encoding` is dropped if the body was decompressed here."""
    forwarded: dict[str, str] = {}
    for name, value in headers:
        if name in _DROPPED_HEADERS or (name == "content-encoding" and not plain):
            continue
        forwarded[name] = f"{forwarded[name]}, {value}" if name in forwarded else value
    return forwarded


def drop_secret_headers(headers: Headers) -> Headers:
    """Return headers without those that could contain a secret."""
    return tuple(header for header in headers if _SECRET.search(header[0]) is None)


def strip_key(target: str) -> str:
    """Return a path and query without an API key or token."""
    return _KEY.sub("", target).rstrip("?&")


class UpstreamAddress(Struct, frozen=True, kw_only=True):
    """Where a client's requests are forwarded: configured, never taken from a request."""

    upstream: str
    origin: Origin
    prefix: str = ""
    deadlines: Deadlines = Deadlines()
    headers: Mapping[str, str] = {}
    """Headers to set, or to remove if empty."""


class Forwarding(Struct, frozen=True):
    """A request that is forwarded: its HTTP exchange, its record, and its destination."""

    exchange: Exchange
    intercepted: InterceptedExchange
    destination: UpstreamAddress


class InterceptHandler:
    """Handles intercepted requests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.observers: list[ExchangeObserver] = []
        """Called with each exchange that has ended."""
        self._observer_folders = ObserverFolders()

    async def handle_request(
        self,
        exchange: Exchange,
        intercepted: InterceptedExchange,
        destination: UpstreamAddress,
        plan: RewritePlan,
        session: InterceptSession | None,
    ) -> None:
        """Forward one request, and its reply back; raise `Failure` if the upstream does not answer."""
        request, target = exchange.request, intercepted.target
        intercepted.headers = drop_secret_headers(request.headers)
        observers = (
            [*self.observers, self._observer_folders] if self._observer_folders.has_observers else self.observers
        )
        intercepted.is_observed = bool(observers)
        intercepted.came = intercepted.left = request.body
        intercepted.target = intercepted.target_left = strip_key(target)
        try:
            is_awaited = session is not None and session.active_turn is not None
            turn = parse_turn_request(request.method, target) if is_awaited or not plan.is_empty else None
            forwarding = Forwarding(exchange, intercepted, destination)
            if turn is None:
                await self._forward(forwarding, RewrittenRequest(target=target, body=request.body), None)
            else:
                rewritten = rewrite_request(target, request.body, turn, plan)
                await self._forward_turn(forwarding, rewritten, turn, session, plan.ready)
        finally:
            intercepted.close()
            for observer in observers:
                _notify_observer(observer, intercepted)

    async def _forward_turn(
        self,
        forwarding: Forwarding,
        rewritten: RewrittenRequest,
        turn: TurnRequest,
        session: InterceptSession | None,
        ready: Group | None,
    ) -> None:
        """Forward a rewritten turn of the client, and filter the model's reply."""
        exchange, record = forwarding.exchange, forwarding.intercepted
        record.rules, record.problem, record.left = rewritten.rules, rewritten.problem, rewritten.body
        record.target_left = strip_key(rewritten.target)
        if rewritten.problem:
            _LOG.warning(
                "a request of intercepted client %s is forwarded unchanged: %s", record.name, rewritten.problem
            )
        if session is None or rewritten.is_side_request:
            await self._forward(forwarding, rewritten, None)
            return
        pending = session.pending_group
        if pending is not None:
            record.blocked, record.status = True, 200
            headers, reply = build_reply(session.format_placeholder(pending.mark), turn, rewritten.model or turn.model)
            record.reply_left = reply
            await exchange.send(200, headers, reply)
            return
        caller = session.active_turn
        digest = digest_of(exchange.request.body)
        reply_filter = (
            ReplyFilter(session, caller, rewritten, session.make_mark(digest)) if caller is not None else None
        )
        try:
            await self._forward(forwarding, rewritten, (turn, reply_filter) if reply_filter is not None else None)
        finally:
            record.captured = reply_filter.calls if reply_filter is not None else ()
        is_taken = record.status == 200 and not record.problem
        if ready is not None and is_taken and ready.calls[0].part in rewritten.contents:
            ready.used = ready.used or digest

    async def _forward(
        self, forwarding: Forwarding, rewritten: RewrittenRequest, turn_filter: tuple[TurnRequest, ReplyFilter] | None
    ) -> None:
        exchange, record, destination = forwarding.exchange, forwarding.intercepted, forwarding.destination
        request = exchange.request
        headers = filter_request_headers(request.headers, destination.headers)
        outgoing = Outgoing(
            destination.origin, request.method, destination.prefix + rewritten.target, headers, rewritten.body
        )
        reply_filter = turn_filter[1] if turn_filter is not None else None
        try:
            incoming = await self._client.send(outgoing, destination.deadlines)
            rejected = (
                await incoming.read(_MAX_ERROR_BODY) if rewritten.rules and incoming.status == _BAD_REQUEST else None
            )
        except ConnectionFailure as failure:
            if reply_filter is not None:
                reply_filter.fail(
                    Problem("unreachable", f"the upstream {destination.upstream} did not answer: {failure}")
                )
            raise
        try:
            if rejected is not None:
                _record_refusal(incoming, rejected, record, reply_filter)
                unchanged = RewrittenRequest(target=rewritten.original_target, body=request.body)
                await self._forward(forwarding, unchanged, None)
            elif turn_filter is None:
                await self._forward_reply(incoming, exchange, record)
            else:
                await self._filter_reply(incoming, exchange, record, *turn_filter)
        finally:
            incoming.close()

    async def _forward_reply(self, incoming: Incoming, exchange: Exchange, intercepted: InterceptedExchange) -> None:
        headers = _record_head(incoming, intercepted)
        if incoming.status in _BODILESS or exchange.request.method == "HEAD":
            await exchange.send(incoming.status, headers)
            return
        length = incoming.header("content-length") if incoming.is_uncompressed else ""
        exchange.start(incoming.status, headers, int(length) if length.isdecimal() else None)
        while piece := await incoming.read_chunk():
            intercepted.record_reply(piece, piece)
            await exchange.write(piece)
        await exchange.end()

    async def _filter_reply(
        self,
        incoming: Incoming,
        exchange: Exchange,
        intercepted: InterceptedExchange,
        turn: TurnRequest,
        reply_filter: ReplyFilter,
    ) -> None:
        """Forward a reply without the captured calls; it is read to its end even if the client disconnects."""
        headers = _record_head(incoming, intercepted)
        client, error_body, is_read = _ClientWriter(exchange), b"", False
        try:
            if incoming.is_success:
                reply_filter.begin(turn, incoming.header("content-type"))
                client.start(incoming.status, headers)
                while piece := await incoming.read_chunk():
                    left = reply_filter.feed(piece)
                    intercepted.record_reply(piece, left)
                    await client.write(left)
            else:
                error_body = await incoming.read(_MAX_ERROR_BODY)
            is_read = True
        except ConnectionFailure as failure:
            is_read = True
            reply_filter.fail(Problem("malformed_reply", f"the reply ended early: {failure}"))
            exchange.truncate()
            return
        finally:
            if not is_read:
                reply_filter.fail(Problem("cancelled", "the gateway was stopped"))
        if not incoming.is_success:
            reply_filter.fail(parse_refusal(incoming.status, dict(incoming.headers), error_body))
            intercepted.record_reply(error_body, error_body)
            await exchange.send(incoming.status, headers, error_body)
            return
        last = reply_filter.close()
        intercepted.record_reply(b"", last)
        await client.end(last)


class _ClientWriter:
    """Writes to a client that may disconnect before the reply is complete."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def start(self, status: int, headers: dict[str, str]) -> None:
        if not self._exchange.is_disconnected:
            self._exchange.start(status, headers)

    async def write(self, piece: bytes) -> None:
        if piece and not self._exchange.is_disconnected:
            try:
                await self._exchange.write(piece)
            except ClientDisconnected:
                return

    async def end(self, last: bytes) -> None:
        await self._exchange.end(last)


def _record_head(incoming: Incoming, intercepted: InterceptedExchange) -> dict[str, str]:
    headers = filter_reply_headers(incoming.headers, plain=incoming.is_uncompressed)
    intercepted.status, intercepted.reply_headers = incoming.status, tuple(headers.items())
    return headers


def _record_refusal(
    incoming: Incoming, body: bytes, intercepted: InterceptedExchange, reply_filter: ReplyFilter | None
) -> None:
    """Record that the upstream rejected the rewritten request; it is then sent again unchanged."""
    problem = parse_refusal(incoming.status, dict(incoming.headers), body)
    intercepted.rules, intercepted.left, intercepted.target_left = (), intercepted.came, intercepted.target
    intercepted.problem = f"the upstream rejected it with {problem.status or incoming.status}: {problem.message}"
    _LOG.warning("a request of intercepted client %s is forwarded unchanged: %s", intercepted.name, intercepted.problem)
    if reply_filter is not None:
        reply_filter.fail(problem)


def _notify_observer(observer: ExchangeObserver, intercepted: InterceptedExchange) -> None:
    outcome = attempt(observer, intercepted)
    if outcome.error is not None:  # a failing observer must not affect the exchange
        _LOG.error("an observer of intercepted exchange %s failed", intercepted.id, exc_info=outcome.error)
