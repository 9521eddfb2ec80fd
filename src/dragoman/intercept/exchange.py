"""One intercepted exchange, and its file format: a readable JSON object with every byte that was sent."""

from collections.abc import Callable
from os import urandom
from time import monotonic, time
from typing import Literal

import msgspec
from msgspec import Struct, field

from dragoman.http.message import Headers
from dragoman.intercept.plan import CapturedToolCall

_MAX_KEPT = 8 << 20
"""The maximum number of reply bytes to keep."""


def _make_id() -> str:
    return f"in_{urandom(8).hex()}"


class InterceptedExchange(Struct, kw_only=True):
    """One exchange, filled in as it proceeds; reply bodies are kept only while it is observed."""

    id: str = field(default_factory=_make_id)
    name: str
    """The path segment after `/intercept/`."""
    session: str = ""
    upstream: str = ""
    method: str
    target: str
    """The path and query at the upstream as the client wrote them, without an API key."""
    target_left: str = ""
    headers: Headers = ()
    came: bytes = b""
    left: bytes = b""
    """The body sent to the upstream; the same object as `came` if nothing was changed."""
    rules: tuple[str, ...] = ()
    """The rules that changed the request, in order."""
    problem: str = ""
    """Why the request was forwarded unchanged, although rules applied to it."""
    blocked: bool = False
    """The gateway answered it itself, because calls were waiting for results."""
    status: int = 0
    reply_headers: Headers = ()
    reply_came: bytes = b""
    reply_left: bytes = b""
    captured: tuple[CapturedToolCall, ...] = ()
    is_observed: bool = False
    """There is an observer, so the bodies are kept until the end."""
    is_cut: bool = False
    """The reply was larger than the limit, and is not kept completely."""
    began: float = field(default_factory=time)
    clock: float = field(default_factory=monotonic)
    seconds: float | None = None

    def record_reply(self, came: bytes, left: bytes) -> None:
        """Keep a chunk of the reply, as received and as forwarded, up to the size limit."""
        if not self.is_observed:
            return
        self.is_cut = self.is_cut or len(self.reply_came) + len(came) > _MAX_KEPT
        if not self.is_cut:
            self.reply_came += came
            self.reply_left += left

    def close(self) -> None:
        """Record the duration: the exchange has ended."""
        self.seconds = monotonic() - self.clock


ExchangeObserver = Callable[[InterceptedExchange], None]
"""Called with each exchange that has ended; must not block for long."""


class BinaryBody(Struct, frozen=True):
    """Bytes that are not valid UTF-8."""

    base64: bytes


Body = str | BinaryBody


class SavedCall(Struct, frozen=True, kw_only=True):
    """A captured call."""

    id: str
    name: str
    part: Body


class SavedExchange(Struct, frozen=True, kw_only=True):
    """An exchange as saved in a file, in the order in which it happened."""

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
    """The body sent to the upstream; None if it is the same as `came`."""
    rules: tuple[str, ...]
    problem: str
    blocked: bool
    status: int
    reply_headers: tuple[tuple[str, str], ...]
    reply_came: Body
    reply_left: Body | None
    """The body sent to the client; None if it is the same as `reply_came`."""
    is_cut: bool
    captured: tuple[SavedCall, ...]


class SavedExchangeError(ValueError):
    """A file is not a saved exchange."""


def to_saved(exchange: InterceptedExchange) -> SavedExchange:
    """Convert an exchange to its saved form."""
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
    """Return the content of the file for an exchange."""
    return msgspec.json.format(msgspec.json.encode(to_saved(exchange)), indent=1) + b"\n"


def decode_exchange(content: bytes) -> SavedExchange:
    """Parse the content of a file."""
    try:
        return msgspec.json.decode(content, type=SavedExchange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SavedExchangeError(f"not a saved exchange: {error}") from None


def encode_body(content: bytes) -> Body:
    """Return bytes as text if they are valid UTF-8, else as base64."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return BinaryBody(content)


def decode_body(body: Body) -> bytes:
    """Return the bytes of a saved body."""
    return body.base64 if isinstance(body, BinaryBody) else body.encode()


def _to_saved_call(call: CapturedToolCall) -> SavedCall:
    return SavedCall(id=call.id, name=call.name, part=encode_body(call.part))
