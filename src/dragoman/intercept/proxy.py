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
from dragoman.http.exchange import Exchange, Gone
from dragoman.http.link import Failure
from dragoman.http.message import Headers, Origin
from dragoman.intercept.captured import Group, digest_of
from dragoman.intercept.exchange import Looker, Passing
from dragoman.intercept.lookout import Lookout
from dragoman.intercept.plan import Plan
from dragoman.intercept.replies import TurnRequest, made_reply, turn_of
from dragoman.intercept.reply_filter import ReplyFilter, refusal
from dragoman.intercept.rewrite import Going, rewritten
from dragoman.intercept.sessions import Session

_PASSED = frozenset(
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
_PREFIXES = ("x-goog-", "x-gemini-", "x-google-", "x-upload-")
_PLAIN = ("accept-encoding", "identity")
_UNTOLD = frozenset(
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
_LARGEST_ERROR = 1 << 20
_REFUSED = 400
"""What an upstream says of a request that it cannot take: the client's own may still be one that it can."""


def request_headers(headers: Headers, rules: Mapping[str, str]) -> Headers:
    """Return the headers of a client that its upstream sees; `rules` set some, and take out those they leave empty."""
    kept = [
        (name, value)
        for name, value in headers
        if (name in _PASSED or name.startswith(_PREFIXES)) and name not in rules
    ]
    return (*kept, *((name, value) for name, value in rules.items() if value), _PLAIN)


def reply_headers(headers: Headers, *, plain: bool) -> dict[str, str]:
    """Return the headers of a reply that the client sees; one that was unpacked here is not told to be packed."""
    told: dict[str, str] = {}
    for name, value in headers:
        if name in _UNTOLD or (name == "content-encoding" and not plain):
            continue
        told[name] = f"{told[name]}, {value}" if name in told else value
    return told


def shown(headers: Headers) -> Headers:
    """Return headers without those that could be a secret."""
    return tuple(header for header in headers if _SECRET.search(header[0]) is None)


def without_key(target: str) -> str:
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
    passing: Passing
    destination: UpstreamAddress


class Surface:
    """Passes requests on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lookers: list[Looker] = []
        """Who is told of each exchange when it is over."""
        self._lookout = Lookout()

    async def answer(
        self, exchange: Exchange, passing: Passing, destination: UpstreamAddress, plan: Plan, session: Session | None
    ) -> None:
        """Pass one request on, and its reply back; raises the `Failure` of an upstream that gives none."""
        request, target = exchange.request, passing.target
        passing.headers = shown(request.headers)
        lookers = [*self.lookers, self._lookout] if self._lookout.is_watched else self.lookers
        passing.is_seen = bool(lookers)
        passing.came = passing.left = request.body
        passing.target = passing.target_left = without_key(target)
        try:
            is_awaited = session is not None and session.awaited is not None
            turn = turn_of(request.method, target) if is_awaited or not plan.is_empty else None
            forwarding = Forwarding(exchange, passing, destination)
            if turn is None:
                await self._pass(forwarding, Going(target=target, body=request.body), None)
            else:
                going = rewritten(target, request.body, turn, plan)
                await self._turn(forwarding, going, turn, session, plan.ready)
        finally:
            passing.close()
            for looker in lookers:
                _tell(looker, passing)

    async def _turn(
        self, forwarding: Forwarding, going: Going, turn: TurnRequest, session: Session | None, ready: Group | None
    ) -> None:
        """Forward a turn of the client as it was rewritten, and filter what the model replies to it."""
        exchange, passing = forwarding.exchange, forwarding.passing
        passing.rules, passing.problem, passing.left = going.rules, going.problem, going.body
        passing.target_left = without_key(going.target)
        if going.problem:
            _LOG.warning("a request of %s is sent on as it came: %s", passing.name, going.problem)
        if session is None or going.is_aside:
            await self._pass(forwarding, going, None)
            return
        pending = session.pending
        if pending is not None:
            passing.blocked, passing.status = True, 200
            told, reply = made_reply(session.placeholder(pending.mark), turn, going.model or turn.model)
            passing.reply_left = reply
            await exchange.send(200, told, reply)
            return
        caller = session.awaited
        digest = digest_of(exchange.request.body)
        hearing = ReplyFilter(session, caller, going, session.mark(digest)) if caller is not None else None
        try:
            await self._pass(forwarding, going, (turn, hearing) if hearing is not None else None)
        finally:
            passing.captured = hearing.captured if hearing is not None else ()
        is_taken = passing.status == 200 and not passing.problem
        if ready is not None and is_taken and ready.calls[0].part in going.contents:
            ready.used = ready.used or digest

    async def _pass(self, forwarding: Forwarding, going: Going, heard: tuple[TurnRequest, ReplyFilter] | None) -> None:
        exchange, passing, destination = forwarding.exchange, forwarding.passing, forwarding.destination
        request = exchange.request
        told = request_headers(request.headers, destination.headers)
        outgoing = Outgoing(destination.origin, request.method, destination.prefix + going.target, told, going.body)
        hearing = heard[1] if heard is not None else None
        try:
            incoming = await self._client.ask(outgoing, destination.deadlines)
            refused = await incoming.read(_LARGEST_ERROR) if going.rules and incoming.status == _REFUSED else None
        except Failure as failure:
            if hearing is not None:
                hearing.fail(Problem("unreachable", f"the upstream {destination.upstream} gave no answer: {failure}"))
            raise
        try:
            if refused is not None:
                _note_refused(incoming, refused, passing, hearing)
                unchanged = Going(target=going.came, body=request.body)
                await self._pass(forwarding, unchanged, None)
            elif heard is None:
                await self._hand_back(incoming, exchange, passing)
            else:
                await self._hear(incoming, exchange, passing, *heard)
        finally:
            incoming.close()

    async def _hand_back(self, incoming: Incoming, exchange: Exchange, passing: Passing) -> None:
        told = _head(incoming, passing)
        if incoming.status in _BODILESS or exchange.request.method == "HEAD":
            await exchange.send(incoming.status, told)
            return
        length = incoming.header("content-length") if incoming.plain else ""
        exchange.start(incoming.status, told, int(length) if length.isdecimal() else None)
        while piece := await incoming.piece():
            passing.note(piece, piece)
            await exchange.write(piece)
        await exchange.end()

    async def _hear(
        self, incoming: Incoming, exchange: Exchange, passing: Passing, turn: TurnRequest, hearing: ReplyFilter
    ) -> None:
        """Hand a reply to the client without the calls in it; it is heard to its end, also if the client leaves."""
        told = _head(incoming, passing)
        client, refused, is_read = _Client(exchange), b"", False
        try:
            if incoming.good:
                hearing.begin(turn, incoming.header("content-type"))
                client.start(incoming.status, told)
                while piece := await incoming.piece():
                    left = hearing.feed(piece)
                    passing.note(piece, left)
                    await client.write(left)
            else:
                refused = await incoming.read(_LARGEST_ERROR)
            is_read = True
        except Failure as failure:
            is_read = True
            hearing.fail(Problem("malformed_reply", f"the reply broke off: {failure}"))
            exchange.cut()
            return
        finally:
            if not is_read:
                hearing.fail(Problem("cancelled", "the gateway stopped"))
        if not incoming.good:
            hearing.fail(refusal(incoming.status, dict(incoming.headers), refused))
            passing.note(refused, refused)
            await exchange.send(incoming.status, told, refused)
            return
        last = hearing.close()
        passing.note(b"", last)
        await client.end(last)


class _Client:
    """The client of an exchange, which may leave before the reply is whole."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def start(self, status: int, told: dict[str, str]) -> None:
        if not self._exchange.is_gone:
            self._exchange.start(status, told)

    async def write(self, piece: bytes) -> None:
        if piece and not self._exchange.is_gone:
            try:
                await self._exchange.write(piece)
            except Gone:
                return

    async def end(self, last: bytes) -> None:
        await self._exchange.end(last)


def _head(incoming: Incoming, passing: Passing) -> dict[str, str]:
    told = reply_headers(incoming.headers, plain=incoming.plain)
    passing.status, passing.reply_headers = incoming.status, tuple(told.items())
    return told


def _note_refused(incoming: Incoming, body: bytes, passing: Passing, hearing: ReplyFilter | None) -> None:
    """Note that the upstream does not take what was made of a request: it goes again, as it came."""
    problem = refusal(incoming.status, dict(incoming.headers), body)
    passing.rules, passing.left, passing.target_left = (), passing.came, passing.target
    passing.problem = f"the upstream refuses it with {problem.status or incoming.status}: {problem.message}"
    _LOG.warning("a request of %s is sent on as it came: %s", passing.name, passing.problem)
    if hearing is not None:
        hearing.fail(problem)


def _tell(looker: Looker, passing: Passing) -> None:
    seen = attempt(looker, passing)
    if seen.error is not None:  # whoever looks on must not be able to do harm
        _LOG.error("a looker failed on %s", passing.id, exc_info=seen.error)
