"""One intercepted exchange, and its file: one JSON object that a person can read, with every byte that passed."""

from collections.abc import Callable
from os import urandom
from time import monotonic, time
from typing import Literal

import msgspec
from msgspec import Struct, field

from dragoman.http.message import Headers
from dragoman.intercept.captured import Captured

_MOST_KEPT = 8 << 20
"""Bytes of a reply."""


def _fresh_id() -> str:
    return f"in_{urandom(8).hex()}"


class Passing(Struct, kw_only=True):
    """One exchange, filled in as it goes on. Bodies of a reply are kept only while somebody looks on."""

    id: str = field(default_factory=_fresh_id)
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
    captured: tuple[Captured, ...] = ()
    is_seen: bool = False
    """Somebody looks on, so what passes is kept until it is over."""
    is_cut: bool = False
    """More of the reply passed than is kept here."""
    began: float = field(default_factory=time)
    clock: float = field(default_factory=monotonic)
    seconds: float | None = None

    def note(self, came: bytes, left: bytes) -> None:
        """Keep a piece of the reply, as it came and as it left, unless too much of it has passed already."""
        if not self.is_seen:
            return
        self.is_cut = self.is_cut or len(self.reply_came) + len(came) > _MOST_KEPT
        if not self.is_cut:
            self.reply_came += came
            self.reply_left += left

    def close(self) -> None:
        """It is over."""
        self.seconds = monotonic() - self.clock


Looker = Callable[[Passing], None]
"""Is told of an exchange that is over; must not take long."""


class Packed(Struct, frozen=True):
    """Bytes that are no text."""

    base64: bytes


Body = str | Packed


class CapturedCall(Struct, frozen=True, kw_only=True):
    """A call that was captured."""

    id: str
    name: str
    part: Body


class Saved(Struct, frozen=True, kw_only=True):
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
    captured: tuple[CapturedCall, ...]


class NotSavedError(ValueError):
    """A file is not a saved exchange."""


def saved(passing: Passing) -> Saved:
    """Return an exchange as it is saved."""
    return Saved(
        id=passing.id,
        name=passing.name,
        session=passing.session,
        upstream=passing.upstream,
        began=passing.began,
        seconds=passing.seconds,
        method=passing.method,
        target=passing.target,
        headers=tuple(passing.headers),
        came=body(passing.came),
        target_left=passing.target_left,
        left=None if passing.left == passing.came else body(passing.left),
        rules=passing.rules,
        problem=passing.problem,
        blocked=passing.blocked,
        status=passing.status,
        reply_headers=tuple(passing.reply_headers),
        reply_came=body(passing.reply_came),
        reply_left=None if passing.reply_left == passing.reply_came else body(passing.reply_left),
        is_cut=passing.is_cut,
        captured=tuple(map(_call, passing.captured)),
    )


def written(passing: Passing) -> bytes:
    """Return the file of an exchange."""
    return msgspec.json.format(msgspec.json.encode(saved(passing)), indent=1) + b"\n"


def read(content: bytes) -> Saved:
    """Return the exchange of a file."""
    try:
        return msgspec.json.decode(content, type=Saved)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotSavedError(f"it is no saved exchange: {error}") from None


def body(content: bytes) -> Body:
    """Return bytes as they stand in a file."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return Packed(content)


def content(body: Body) -> bytes:
    """Return the bytes that stand in a file."""
    return body.base64 if isinstance(body, Packed) else body.encode()


def _call(call: Captured) -> CapturedCall:
    return CapturedCall(id=call.id, name=call.name, part=body(call.part))
