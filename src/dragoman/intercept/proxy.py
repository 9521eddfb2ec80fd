"""The intercept proxy: forwards a client's requests to its upstream and the replies back, with the rules applied.

The client's own credentials are forwarded, nothing of ours is added, and headers of a connection stay with it.
"""

import logging
import re
from collections.abc import Mapping

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.guard import attempt
from dragoman.http.client import Client, Deadlines, Incoming, Outgoing
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.link import ConnectionFailure
from dragoman.http.message import Headers, Origin
from dragoman.intercept.captured import Group, digest_of
from dragoman.intercept.exchange import ExchangeObserver, InterceptedExchange
from dragoman.intercept.lookout import ObserverFolders
from dragoman.intercept.plan import RewritePlan
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
"""What an upstream says of a request that it cannot take: the client's own may still be one that it can."""


def filter_request_headers(headers: Headers, rules: Mapping[str, str]) -> Headers:
    """Return the headers of a client that its upstream sees; `rules` set some, and take out those they leave empty."""
    kept = [
        (name, value)
        for name, value in headers
        if (name in _FORWARDED_HEADERS or name.startswith(_FORWARDED_PREFIXES)) and name not in rules
    ]
    return (*kept, *((name, value) for name, value in rules.items() if value), _IDENTITY_ENCODING)


def filter_reply_headers(headers: Headers, *, plain: bool) -> dict[str, str]:
    """Return the headers of a reply that the client sees; one that was unpacked here is not told to be packed."""
    told: dict[str, str] = {}
    for name, value in headers:
        if name in _DROPPED_HEADERS or (name == "content-encoding" and not plain):
            continue
        told[name] = f"{told[name]}, {value}" if name in told else value
    return told


def drop_secret_headers(headers: Headers) -> Headers:
    """Return headers without those that could be a secret."""
    return tuple(header for header in headers if _SECRET.search(header[0]) is None)


def strip_key(target: str) -> str:
    """Return a path and query without the key that it may show."""
    return _KEY.sub("", target).rstrip("?&")


class UpstreamAddress(Struct, frozen=True, kw_only=True):
    """Where the requests of a client go: configured, never out of a request."""

    upstream: str
    origin: Origin
    prefix: str = ""
    deadlines: Deadlines = Deadlines()
    headers: Mapping[str, str] = {}
    """Headers to set on the way, or to take out."""


class Forwarding(Struct, frozen=True):
    """One request that is forwarded: its exchange, what is noted of it, and where it goes."""

    exchange: Exchange
    intercepted: InterceptedExchange
    destination: UpstreamAddress


class InterceptHandler:
    """Passes requests on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.observers: list[ExchangeObserver] = []
        """Who is told of each exchange when it is over."""
        self._observer_folders = ObserverFolders()

    async def handle_request(
        self,
        exchange: Exchange,
        intercepted: InterceptedExchange,
        destination: UpstreamAddress,
        plan: RewritePlan,
        session: InterceptSession | None,
    ) -> None:
        """Pass one request on, and its reply back; raises the `Failure` of an upstream that gives none."""
        request, target = exchange.request, intercepted.target
        intercepted.headers = drop_secret_headers(request.headers)
        lookers = [*self.observers, self._observer_folders] if self._observer_folders.has_observers else self.observers
        intercepted.is_observed = bool(lookers)
        intercepted.came = intercepted.left = request.body
        intercepted.target = intercepted.target_left = strip_key(target)
        try:
            is_awaited = session is not None and session.awaited_turn is not None
            turn = parse_turn_request(request.method, target) if is_awaited or not plan.is_empty else None
            forwarding = Forwarding(exchange, intercepted, destination)
            if turn is None:
                await self._forward(forwarding, RewrittenRequest(target=target, body=request.body), None)
            else:
                going = rewrite_request(target, request.body, turn, plan)
                await self._forward_turn(forwarding, going, turn, session, plan.ready)
        finally:
            intercepted.close()
            for looker in lookers:
                _notify_observer(looker, intercepted)

    async def _forward_turn(
        self,
        forwarding: Forwarding,
        rewritten: RewrittenRequest,
        turn: TurnRequest,
        session: InterceptSession | None,
        ready: Group | None,
    ) -> None:
        """Forward a turn of the client as it was rewritten, and filter what the model replies to it."""
        exchange, passing = forwarding.exchange, forwarding.intercepted
        passing.rules, passing.problem, passing.left = rewritten.rules, rewritten.problem, rewritten.body
        passing.target_left = strip_key(rewritten.target)
        if rewritten.problem:
            _LOG.warning("a request of %s is sent on as it came: %s", passing.name, rewritten.problem)
        if session is None or rewritten.is_side_request:
            await self._forward(forwarding, rewritten, None)
            return
        pending = session.pending_group
        if pending is not None:
            passing.blocked, passing.status = True, 200
            told, reply = build_reply(session.format_placeholder(pending.mark), turn, rewritten.model or turn.model)
            passing.reply_left = reply
            await exchange.send(200, told, reply)
            return
        caller = session.awaited_turn
        digest = digest_of(exchange.request.body)
        hearing = ReplyFilter(session, caller, rewritten, session.make_mark(digest)) if caller is not None else None
        try:
            await self._forward(forwarding, rewritten, (turn, hearing) if hearing is not None else None)
        finally:
            passing.captured = hearing.captured_calls if hearing is not None else ()
        is_taken = passing.status == 200 and not passing.problem
        if ready is not None and is_taken and ready.calls[0].part in rewritten.contents:
            ready.used = ready.used or digest

    async def _forward(
        self, forwarding: Forwarding, rewritten: RewrittenRequest, turn_filter: tuple[TurnRequest, ReplyFilter] | None
    ) -> None:
        exchange, passing, destination = forwarding.exchange, forwarding.intercepted, forwarding.destination
        request = exchange.request
        told = filter_request_headers(request.headers, destination.headers)
        outgoing = Outgoing(
            destination.origin, request.method, destination.prefix + rewritten.target, told, rewritten.body
        )
        hearing = turn_filter[1] if turn_filter is not None else None
        try:
            incoming = await self._client.send(outgoing, destination.deadlines)
            refused = (
                await incoming.read(_MAX_ERROR_BODY) if rewritten.rules and incoming.status == _BAD_REQUEST else None
            )
        except ConnectionFailure as failure:
            if hearing is not None:
                hearing.fail(Problem("unreachable", f"the upstream {destination.upstream} gave no answer: {failure}"))
            raise
        try:
            if refused is not None:
                _record_refusal(incoming, refused, passing, hearing)
                unchanged = RewrittenRequest(target=rewritten.original_target, body=request.body)
                await self._forward(forwarding, unchanged, None)
            elif turn_filter is None:
                await self._forward_reply(incoming, exchange, passing)
            else:
                await self._filter_reply(incoming, exchange, passing, *turn_filter)
        finally:
            incoming.close()

    async def _forward_reply(self, incoming: Incoming, exchange: Exchange, intercepted: InterceptedExchange) -> None:
        told = _record_head(incoming, intercepted)
        if incoming.status in _BODILESS or exchange.request.method == "HEAD":
            await exchange.send(incoming.status, told)
            return
        length = incoming.header("content-length") if incoming.is_uncompressed else ""
        exchange.start(incoming.status, told, int(length) if length.isdecimal() else None)
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
        """Hand a reply to the client without the calls in it; it is heard to its end, also if the client leaves."""
        told = _record_head(incoming, intercepted)
        client, refused, is_read = _ClientWriter(exchange), b"", False
        try:
            if incoming.is_success:
                reply_filter.begin(turn, incoming.header("content-type"))
                client.start(incoming.status, told)
                while piece := await incoming.read_chunk():
                    left = reply_filter.feed(piece)
                    intercepted.record_reply(piece, left)
                    await client.write(left)
            else:
                refused = await incoming.read(_MAX_ERROR_BODY)
            is_read = True
        except ConnectionFailure as failure:
            is_read = True
            reply_filter.fail(Problem("malformed_reply", f"the reply broke off: {failure}"))
            exchange.truncate()
            return
        finally:
            if not is_read:
                reply_filter.fail(Problem("cancelled", "the gateway stopped"))
        if not incoming.is_success:
            reply_filter.fail(parse_refusal(incoming.status, dict(incoming.headers), refused))
            intercepted.record_reply(refused, refused)
            await exchange.send(incoming.status, told, refused)
            return
        last = reply_filter.close()
        intercepted.record_reply(b"", last)
        await client.end(last)


class _ClientWriter:
    """The client of an exchange, which may leave before the reply is whole."""

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
    told = filter_reply_headers(incoming.headers, plain=incoming.is_uncompressed)
    intercepted.status, intercepted.reply_headers = incoming.status, tuple(told.items())
    return told


def _record_refusal(
    incoming: Incoming, body: bytes, intercepted: InterceptedExchange, reply_filter: ReplyFilter | None
) -> None:
    """Note that the upstream does not take what was made of a request: it goes again, as it came."""
    problem = parse_refusal(incoming.status, dict(incoming.headers), body)
    intercepted.rules, intercepted.left, intercepted.target_left = (), intercepted.came, intercepted.target
    intercepted.problem = f"the upstream refuses it with {problem.status or incoming.status}: {problem.message}"
    _LOG.warning("a request of %s is sent on as it came: %s", intercepted.name, intercepted.problem)
    if reply_filter is not None:
        reply_filter.fail(problem)


def _notify_observer(observer: ExchangeObserver, intercepted: InterceptedExchange) -> None:
    seen = attempt(observer, intercepted)
    if seen.error is not None:  # whoever looks on must not be able to do harm
        _LOG.error("a looker failed on %s", intercepted.id, exc_info=seen.error)
