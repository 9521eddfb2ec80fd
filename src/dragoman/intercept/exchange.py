"""One intercepted exchange, and its file: one JSON object that a person can read, with every byte that passed."""

from collections.abc import Callable
from os import urandom
from time import monotonic, time
from typing import Literal

import msgspec
from msgspec import Struct, field

from dragoman.http.message import Headers
from dragoman.intercept.captured import CapturedToolCall

_MAX_KEPT = 8 << 20
"""Bytes of a reply."""


def _make_id() -> str:
    return f"in_{urandom(8).hex()}"


class InterceptedExchange(Struct, kw_only=True):
    """One exchange, filled in as it goes on. Bodies of a reply are kept only while somebody looks on."""

    id: str = field(default_factory=_make_id)
    name: str
    """What stands behind `/intercept/` in its path."""
    session: str = ""
    upstream: str = ""
    method: str
    target: str
    """The path and query at the upstream as the client wrote them, without a key."""
    target_left: str = ""
    headers: Headers = ()
    came: bytes = b""
    left: bytes = b""
    """The body that the upstream was sent; the same object as `came` where nothing was changed."""
    rules: tuple[str, ...] = ()
    """What was done to it, in this order."""
    problem: str = ""
    """Why it was sent on as it came, though there was something to be done."""
    blocked: bool = False
    """It was answered here, because calls were waiting for their results."""
    status: int = 0
    reply_headers: Headers = ()
    reply_came: bytes = b""
    reply_left: bytes = b""
    captured: tuple[CapturedToolCall, ...] = ()
    is_observed: bool = False
    """Somebody looks on, so what passes is kept until it is over."""
    is_cut: bool = False
    """More of the reply passed than is kept here."""
    began: float = field(default_factory=time)
    clock: float = field(default_factory=monotonic)
    seconds: float | None = None

    def record_reply(self, came: bytes, left: bytes) -> None:
        """Keep a piece of the reply, as it came and as it left, unless too much of it has passed already."""
        if not self.is_observed:
            return
        self.is_cut = self.is_cut or len(self.reply_came) + len(came) > _MAX_KEPT
        if not self.is_cut:
            self.reply_came += came
            self.reply_left += left

    def close(self) -> None:
        """It is over."""
        self.seconds = monotonic() - self.clock


ExchangeObserver = Callable[[InterceptedExchange], None]
"""Is told of an exchange that is over; must not take long."""


class BinaryBody(Struct, frozen=True):
    """Bytes that are no text."""

    base64: bytes


Body = str | BinaryBody


class SavedCall(Struct, frozen=True, kw_only=True):
    """A call that was captured."""

    id: str
    name: str
    part: Body


class SavedExchange(Struct, frozen=True, kw_only=True):
    """What passed, in the order in which it did."""

    version: Literal[1] = 1
    id: str
    name: str
    session: str
    upstream: str
    began: float
    seconds: float | None
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    came: Body
    target_left: str
    left: Body | None
    """What the upstream was sent; nothing here means that it was what came."""
    rules: tuple[str, ...]
    problem: str
    blocked: bool
    status: int
    reply_headers: tuple[tuple[str, str], ...]
    reply_came: Body
    reply_left: Body | None
    """What the client was sent; nothing here means that it was what the upstream had sent."""
    is_cut: bool
    captured: tuple[SavedCall, ...]


class SavedExchangeError(ValueError):
    """A file is not a saved exchange."""


def to_saved(exchange: InterceptedExchange) -> SavedExchange:
    """Return an exchange as it is saved."""
    return SavedExchange(
        id=exchange.id,
        name=exchange.name,
        session=exchange.session,
        upstream=exchange.upstream,
        began=exchange.began,
        seconds=exchange.seconds,
        method=exchange.method,
        target=exchange.target,
        headers=tuple(exchange.headers),
        came=encode_body(exchange.came),
        target_left=exchange.target_left,
        left=None if exchange.left == exchange.came else encode_body(exchange.left),
        rules=exchange.rules,
        problem=exchange.problem,
        blocked=exchange.blocked,
        status=exchange.status,
        reply_headers=tuple(exchange.reply_headers),
        reply_came=encode_body(exchange.reply_came),
        reply_left=None if exchange.reply_left == exchange.reply_came else encode_body(exchange.reply_left),
        is_cut=exchange.is_cut,
        captured=tuple(map(_to_saved_call, exchange.captured)),
    )


def encode_exchange(exchange: InterceptedExchange) -> bytes:
    """Return the file of an exchange."""
    return msgspec.json.format(msgspec.json.encode(to_saved(exchange)), indent=1) + b"\n"


def decode_exchange(content: bytes) -> SavedExchange:
    """Return the exchange of a file."""
    try:
        return msgspec.json.decode(content, type=SavedExchange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SavedExchangeError(f"it is no saved exchange: {error}") from None


def encode_body(content: bytes) -> Body:
    """Return bytes as they stand in a file."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return BinaryBody(content)


def decode_body(body: Body) -> bytes:
    """Return the bytes that stand in a file."""
    return body.base64 if isinstance(body, BinaryBody) else body.encode()


def _to_saved_call(call: CapturedToolCall) -> SavedCall:
    return SavedCall(id=call.id, name=call.name, part=encode_body(call.part))
