"""A session as bytes that can be kept, and back: what was captured and answered outlives the process.

Who waits for what does not, and of conversations that could be put back only the last one is kept.
"""

from time import monotonic, time

import msgspec
from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.core.preserved import preserved, restored
from dragoman.core.request import Message
from dragoman.intercept.captured import Captured, Group
from dragoman.intercept.plan import Tools
from dragoman.intercept.sessions import Name, Session


class _Group(Struct):
    mark: str
    calls: tuple[Captured, ...]
    known: bytes
    since: float
    """When it was captured, by the clock on the wall."""
    before: bytes = b""
    asked: bytes = b""
    results: tuple[bytes, ...] | None = None
    used: bytes = b""
    is_given_up: bool = False


class _Session(Struct):
    groups: tuple[_Group, ...] = ()
    tools: Tools = Tools()


_DECODER = msgspec.msgpack.Decoder(_Session)


def key_of(name: Name) -> str:
    """Return what a session is kept under, for its owner."""
    return f"intercept {name.entry}:{name.session}"


def kept(session: Session) -> bytes:
    """Write down what is known of a session."""
    last = next(reversed(session.groups), "")
    away = time() - monotonic()
    groups = tuple(
        _Group(
            mark=group.mark,
            calls=group.calls,
            known=preserved([Message(role="assistant", parts=group.known)]),
            since=group.since + away,
            before=group.before if group.mark == last else b"",
            asked=group.asked,
            results=group.results,
            used=group.used,
            is_given_up=group.is_given_up,
        )
        for group in session.groups.values()
    )
    undo = session.undo
    # How a caller's words are found again is known to this process alone: tools that need it are brought again.
    is_plain = not (undo.names or undo.custom or undo.arguments)
    return msgspec.msgpack.encode(_Session(groups, session.tools if is_plain else Tools()))


def recall(session: Session, body: bytes) -> None:
    """Let a session know again what was written down; what another version wrote is left out."""
    try:
        found = _DECODER.decode(body)
        away = time() - monotonic()
        groups = {one.mark: _group(one, away) for one in found.groups}
    except (msgspec.MsgspecError, ValueError):
        return
    session.groups = groups
    session.tools = found.tools
    session.kept = session.state


def _group(one: _Group, away: float) -> Group:
    parts = [part for message in restored(one.known) for part in message.parts]
    return Group(
        mark=one.mark,
        calls=one.calls,
        known=tuple(part for part in parts if isinstance(part, ToolCall)),
        before=one.before,
        asked=one.asked,
        results=one.results,
        used=one.used,
        is_given_up=one.is_given_up,
        since=one.since - away,
    )
