"""Intercepted sessions with their tools, calls and results; and their encoding for the session store."""

import secrets
from hashlib import sha256
from time import monotonic, time

import msgspec
from msgspec import Struct

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.intercept.plan import CallerTools, CapturedToolCall, Group, RewritePlan
from dragoman.intercept.settings import MARK, InterceptTable
from dragoman.intercept.turns import CallerTurn
from dragoman.interpreter.undo import Undo

_MAX_SESSIONS = 1000
_MAX_GROUPS = 500
_NO_UNDO = Undo()
_NO_TOOLS = CallerTools()


class SessionName(Struct, frozen=True):
    """Identifies a session by its owner, its config entry and its name."""

    owner: str
    entry: str
    """The name of the entry in the configuration."""
    session: str = ""


class InterceptSession:
    """One conversation of a client, and of the caller that adds tools to it."""

    def __init__(self, name: SessionName, table: InterceptTable) -> None:
        self.name = name
        self.table = table
        self.ticket = secrets.token_hex(16)
        """A secret in the URL path of a client that the gateway starts; no other program knows it."""
        self.tools = CallerTools()
        self.undo = _NO_UNDO
        """How to restore the caller's own tool names and arguments."""
        self.groups: dict[str, Group] = {}
        self.turn: CallerTurn | None = None
        self.used = monotonic()
        self.saved_state: object = None
        """The `state` when the session was last saved."""

    @property
    def state(self) -> object:
        """A value that changes whenever there is something new to save."""
        groups = ((one.mark, len(one.calls), one.results, one.used, one.is_given_up) for one in self.groups.values())
        return self.tools, *groups

    @property
    def active_turn(self) -> CallerTurn | None:
        """The turn that a caller waits for; without one there is no caller to send calls to."""
        turn = self.turn
        return turn if turn is not None and turn.is_awaited(self.table.timeout) else None

    @property
    def pending_group(self) -> Group | None:
        """The calls that wait for results; calls that have waited too long are given up."""
        for group in self.groups.values():
            if group.is_pending:
                if monotonic() - group.since < self.table.result_timeout:
                    return group
                group.is_given_up = True
        return None

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of all calls of this session."""
        return frozenset(call.id for group in self.groups.values() for call in group.calls)

    def build_plan(self, digest: bytes) -> RewritePlan:
        """Return the changes to make to the request with this digest."""
        last = next((group for group in reversed(self.groups.values()) if not group.is_given_up), None)
        is_ready = last is not None and last.is_answered and last.used in {b"", digest}
        table = self.table
        return RewritePlan(
            strip=table.strip,
            tools=self.tools if self.active_turn is not None else _NO_TOOLS,
            groups=self.groups,
            ready=last if is_ready else None,
            placeholder=table.placeholder,
            prompt=table.prompt,
            model=table.model,
            system=table.system,
            system_mode=table.system_mode,
        )

    def make_mark(self, digest: bytes) -> str:
        """Return the mark for calls in the reply to a request.

        A retry of the request gets the same mark, unless calls were captured already.
        """
        number = 0
        while (mark := _make_mark(self.ticket, digest, number)) in self.groups:
            number += 1
        return mark

    def format_placeholder(self, mark: str) -> str:
        """Return the placeholder text that the client gets instead of a group of calls."""
        return self.table.placeholder.replace(MARK, mark)

    def add(self, group: Group) -> None:
        """Add captured calls; if a client sends two requests at once, only the first calls are used."""
        group.is_given_up = group.is_given_up or self.pending_group is not None or group.mark in self.groups
        if not group.is_given_up:
            # Only the last conversation can be restored; delete the others, which may be large.
            for other in self.groups.values():
                other.before = b""
        self.groups.setdefault(group.mark, group)
        while len(self.groups) > _MAX_GROUPS:
            del self.groups[next(iter(self.groups))]


def _make_mark(ticket: str, digest: bytes, number: int) -> str:
    return f"dt-{sha256(b'%s %d ' % (ticket.encode(), number) + digest).hexdigest()[:16]}"


def build_fixed_plan(table: InterceptTable) -> RewritePlan:
    """Return the changes made to every request, with or without a session."""
    return RewritePlan(model=table.model, system=table.system, system_mode=table.system_mode)


class InterceptSessions:
    """All sessions, by name and by ticket."""

    def __init__(self) -> None:
        self._by_name: dict[SessionName, InterceptSession] = {}
        self._tickets: dict[str, InterceptSession] = {}

    def find(self, name: SessionName) -> InterceptSession | None:
        """Return an existing session that has not expired; None if there is none."""
        session = self._tickets.get(name.session) or self._by_name.get(name)
        if session is None or session.name.entry != name.entry:
            return None
        if monotonic() - session.used > session.table.idle:
            self._remove(session)
            return None
        session.used = monotonic()
        return session

    def has_ticket(self, entry: str, ticket: str) -> bool:
        """Check whether a path contains the ticket of a client that the gateway started."""
        session = self._tickets.get(ticket)
        return session is not None and session.name.entry == entry

    def open(self, name: SessionName, table: InterceptTable) -> InterceptSession:
        """Return a session; create it if there is none."""
        found = self.find(name)
        if found is not None:
            return found
        self._evict()
        session = self._by_name[name] = InterceptSession(name, table)
        self._tickets[session.ticket] = session
        return session

    def _evict(self) -> None:
        """Remove expired sessions, or the least recently used; raise a `Problem` if there are too many active ones."""
        now = monotonic()
        for session in [one for one in self._by_name.values() if now - one.used > one.table.idle]:
            self._remove(session)
        if len(self._by_name) >= _MAX_SESSIONS:
            idle = [one for one in self._by_name.values() if one.turn is None or not one.turn.is_followed]
            if not idle:
                raise Problem("overloaded", "too many intercepted sessions are active; try again later")
            self._remove(min(idle, key=lambda one: one.used))

    def _remove(self, session: InterceptSession) -> None:
        self._by_name.pop(session.name, None)
        self._tickets.pop(session.ticket, None)


class _Group(Struct):
    mark: str
    calls: tuple[CapturedToolCall, ...]
    caller_calls: bytes
    since: float
    """When it was captured, in wall-clock time."""
    before: bytes = b""
    last_turn_digest: bytes = b""
    results: tuple[bytes, ...] | None = None
    used: bytes = b""
    is_given_up: bool = False


class _Session(Struct):
    groups: tuple[_Group, ...] = ()
    tools: CallerTools = CallerTools()


_DECODER = msgspec.msgpack.Decoder(_Session)


def key_of(name: SessionName) -> str:
    """Return the storage key of a session, for its owner."""
    return f"intercept {name.entry}:{name.session}"


def encode_session(session: InterceptSession) -> bytes:
    """Encode the state of a session."""
    last = next(reversed(session.groups), "")
    clock_offset = time() - monotonic()
    groups = tuple(
        _Group(
            mark=group.mark,
            calls=group.calls,
            caller_calls=encode_messages([Message(role="assistant", parts=group.caller_calls)]),
            since=group.since + clock_offset,
            before=group.before if group.mark == last else b"",
            last_turn_digest=group.last_turn_digest,
            results=group.results,
            used=group.used,
            is_given_up=group.is_given_up,
        )
        for group in session.groups.values()
    )
    undo = session.undo
    # The undo information exists only in this process, so tools that need it are not saved: callers send them again.
    is_plain = not (undo.names or undo.custom or undo.arguments)
    return msgspec.msgpack.encode(_Session(groups, session.tools if is_plain else CallerTools()))


def restore_session(session: InterceptSession, body: bytes) -> None:
    """Restore the saved state of a session; state written by an incompatible version is ignored."""
    try:
        found = _DECODER.decode(body)
        clock_offset = time() - monotonic()
        groups = {one.mark: _restore_group(one, clock_offset) for one in found.groups}
    except (msgspec.MsgspecError, ValueError):
        return
    session.groups = groups
    session.tools = found.tools
    session.saved_state = session.state


def _restore_group(saved: _Group, clock_offset: float) -> Group:
    parts = [part for message in decode_messages(saved.caller_calls) for part in message.parts]
    return Group(
        mark=saved.mark,
        calls=saved.calls,
        caller_calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        before=saved.before,
        last_turn_digest=saved.last_turn_digest,
        results=saved.results,
        used=saved.used,
        is_given_up=saved.is_given_up,
        since=saved.since - clock_offset,
    )
