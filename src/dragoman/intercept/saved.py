"""An exchange as a file: one JSON object that a person can read, with every byte of what passed.

Text stands as text, anything else in base64. Credentials are not in it: they were never in what is saved.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from dragoman.intercept.captured import Captured
from dragoman.intercept.passing import Passing


class Packed(Struct, frozen=True):
    """Bytes that are no text."""

    base64: bytes


Body = str | Packed


class Call(Struct, frozen=True, kw_only=True):
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
    captured: tuple[Call, ...]


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


def _call(call: Captured) -> Call:
    return Call(id=call.id, name=call.name, part=body(call.part))
