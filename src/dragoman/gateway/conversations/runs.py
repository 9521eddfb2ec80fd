"""Agent runs in the session store: recorded while they run, and read as histories that can be continued.

During a run its process writes a heartbeat every few seconds, by which other processes distinguish a long run from one
whose process has died. If the store is unavailable for a while, the run continues: what was not written is written with
the next entry. A turn runs only after its conversation is claimed; the claim of a dead process expires after half a
minute. A turn that has started and is not saved is recorded under the revision of the conversation that it continues,
and deleted when the conversation is saved. So a record that is found there comes from a process that died, or from a
turn that failed or was cancelled. User input without a reply is left out, so that a retry does not repeat it.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct

from dragoman.agent import RunEnded, closed
from dragoman.core.parts import ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.gateway.conversation_recorder import build_unavailable_error
from dragoman.sessions.conversations import Conversations, OpenConversation
from dragoman.sessions.runs import Claims, Runs
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Unavailable
from dragoman.tasks import TaskSet, start_task
from dragoman.wire import json

_CLAIM_INTERVAL = 5.0
_CLAIM_RETRY_SECONDS = 0.1


@asynccontextmanager
async def hold_claim(claims: Claims, owner: str, name: str, *, message: str, wait: float = 0.0) -> AsyncGenerator[None]:
    """Hold a claim while the block runs; raises `Problem` with this message if it is not free within `wait` seconds."""
    holder, end = uuid4().hex, monotonic() + wait
    while not await claims.acquire(owner, name, holder):
        if monotonic() >= end:
            raise Problem("conflict", message, code="conversation_locked")
        await asyncio.sleep(_CLAIM_RETRY_SECONDS)
    try:
        async with TaskSet() as background:
            background.start(_renew_claim(claims, owner, name, holder), f"renew the claim of {name}")
            yield
    finally:
        with contextlib.suppress(Unavailable):
            await claims.release(owner, name, holder)


@asynccontextmanager
async def hold_conversation(store: Store, conversation: Conversation) -> AsyncGenerator[None]:
    """Claim a client's conversation while server-side tools run in it.

    Raises `Problem`, before any tool runs, if another request has claimed it or has changed it since it was read.
    """
    owner, name = conversation.owner, conversation.id
    message = f"another request is using the conversation {name!r}; retry when it has ended"
    try:
        async with hold_claim(store.claims, owner, name, message=message):
            current = await store.find_conversation(owner, name)
            if (0 if current is None else current.revision) != conversation.revision:
                message = f"the conversation {name!r} was changed by another request; retry"
                raise Problem("conflict", message, code="conversation_changed")
            yield
    except Unavailable:
        raise build_unavailable_error() from None


async def _renew_claim(claims: Claims, owner: str, name: str, holder: str) -> None:
    while True:
        await asyncio.sleep(_CLAIM_INTERVAL)
        with contextlib.suppress(Unavailable):
            await claims.acquire(owner, name, holder)


_HEARTBEAT_SECONDS = 5.0


class PastRun(Struct, frozen=True, kw_only=True):
    """A recorded run, seen after its end or from another process."""

    id: str
    status: str
    """`running`, `interrupted`, or the reason why it ended."""
    history: tuple[Message, ...]
    """All messages; every call has a result."""
    summary: bytes
    """Its statistics as a JSON object, if it has ended."""


class _PendingWrites(Struct):
    """The entries of one run that are not in the store yet."""

    heartbeat: asyncio.Task[None]
    last_entry: int = 0
    unwritten: list[tuple[int, bytes]] = []
    replaces: bool = False
    """Whether the first unwritten entry replaces all entries in the store."""


class RunRecorder:
    """Records the runs of one owner. It is a `Recorder` for the agent loop.

    With `replaces_ended` a run replaces an earlier one of the same name that has ended or was interrupted.
    """

    def __init__(
        self, runs: Runs, owner: str, heartbeat_seconds: float = _HEARTBEAT_SECONDS, *, replaces_ended: bool = False
    ) -> None:
        self._runs = runs
        self._owner = owner
        self._heartbeat_seconds = heartbeat_seconds
        self._replaces_ended = replaces_ended
        self._pending: dict[str, _PendingWrites] = {}

    async def begin(self, run: str, request: Request) -> None:
        """Start recording a run; raises `Problem` if a run of that name exists or the store is unavailable."""
        # First, because a cancelled write may still have reached the store, and `end` must be able to end it.
        self._pending[run] = _PendingWrites(start_task(self._send_heartbeats(run), f"heartbeat of {run}"))
        try:
            await self._runs.begin(
                self._owner, run, request.model, encode_messages(request.messages), replaces_ended=self._replaces_ended
            )
        except (Conflict, Unavailable) as error:
            self._pending.pop(run).heartbeat.cancel()
            exists = Problem("conflict", f"a run {run!r} already exists")
            raise (exists if isinstance(error, Conflict) else build_unavailable_error()) from None

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record new messages."""
        if messages:
            await self._record_messages(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record a history that replaces the earlier one."""
        pending = self._pending[run]
        pending.unwritten, pending.replaces = [], True
        await self._record_messages(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Record the end of a run."""
        pending = self._pending.pop(ended.run, None)
        if pending is None:
            return  # `begin` failed
        pending.heartbeat.cancel()
        with contextlib.suppress(Unavailable):
            await self._flush(ended.run, pending)
            await self._runs.end(self._owner, ended.run, ended.stop, _render_summary(ended))

    async def _record_messages(self, run: str, messages: tuple[Message, ...]) -> None:
        pending = self._pending[run]
        pending.last_entry += 1
        pending.unwritten.append((pending.last_entry, encode_messages(messages)))
        with contextlib.suppress(Unavailable):
            await self._flush(run, pending)

    async def _flush(self, run: str, pending: _PendingWrites) -> None:
        while pending.unwritten:
            index, body = pending.unwritten[0]
            write = self._runs.replace_entries if pending.replaces else self._runs.add_entry
            await write(self._owner, run, index, body)
            pending.replaces = False
            pending.unwritten = [entry for entry in pending.unwritten if entry[0] > index]

    async def _send_heartbeats(self, run: str) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            with contextlib.suppress(Unavailable):
                await self._runs.update_heartbeat(self._owner, run)


async def past_run(runs: Runs, owner: str, name: str) -> PastRun | None:
    """Look up a run; in an interrupted one, calls without a result get one that says so."""
    stored = await runs.find_status(owner, name)
    if stored is None:
        return None
    entries = await runs.list_entries(owner, name, -1)
    messages = tuple(message for _, body in entries for message in decode_messages(body))
    return PastRun(id=name, status=stored.status, history=closed(messages), summary=stored.summary)


def _render_summary(ended: RunEnded) -> bytes:
    statistics = ended.statistics
    return json.encode(
        {
            "turns": statistics.turns,
            "calls": statistics.calls,
            "failed": statistics.failed,
            "input": statistics.usage.input,
            "output": statistics.usage.output,
            "cost": statistics.cost,
            "seconds": statistics.seconds,
            "untrusted": ended.untrusted,
        }
    )


class TurnStart(Struct, frozen=True):
    """A conversation at the start of a turn."""

    opened: OpenConversation
    history: tuple[Message, ...]
    """The messages so far, including those of a turn that was not saved."""

    @property
    def run_id(self) -> str:
        """The name under which the turn is recorded."""
        return _run_id_of(self.opened)


class _EncodedStart(Struct, frozen=True):
    name: str
    kept: Conversation
    messages: Raw
    before: Raw
    whole: bool


def encode_start(start: TurnStart) -> str:
    """Encode a turn start as the result of a step."""
    opened = start.opened
    messages, before = Raw(encode_messages(opened.messages)), Raw(encode_messages(start.history))
    return msgspec.json.encode(_EncodedStart(opened.name, opened.stored, messages, before, opened.is_whole)).decode()


def decode_start(text: str) -> TurnStart:
    """Decode a turn start."""
    found = msgspec.json.decode(text, type=_EncodedStart)
    opened = OpenConversation(found.name, decode_messages(bytes(found.messages)), found.kept, found.whole)
    return TurnStart(opened, decode_messages(bytes(found.before)))


async def begin_turn(conversations: Conversations, owner: str, name: str) -> TurnStart:
    """Open a claimed conversation to start a turn in it."""
    opened = await conversations.open(owner, name)
    past = None if opened.is_over else await past_run(conversations.runs, owner, _run_id_of(opened))
    if past is None:
        return TurnStart(opened, opened.messages)
    messages = past.history[count_leading_systems(past.history) :]
    while messages and _is_question(messages[-1]):
        messages = messages[:-1]
    return TurnStart(opened, messages)


async def start_recording(conversations: Conversations, start: TurnStart) -> RunRecorder:
    """Return a recorder for the turn; an earlier record of the turn is deleted."""
    owner = start.opened.stored.owner
    await conversations.runs.delete(owner, start.run_id)
    return RunRecorder(conversations.runs, owner)


async def save_turn(conversations: Conversations, start: TurnStart, messages: tuple[Message, ...], model: str) -> None:
    """Save the conversation after a turn, and delete the record of the turn."""
    await conversations.save(start.opened, messages, model)
    with contextlib.suppress(Unavailable):
        await conversations.runs.delete(start.opened.stored.owner, start.run_id)


@asynccontextmanager
async def claim_conversation(
    conversations: Conversations, owner: str, name: str, *, wait: float = 0.0
) -> AsyncGenerator[None]:
    """Claim a conversation for a turn; raises `Problem` if another turn is running, in any process."""
    message = f"another call is using the session {name!r}; retry when it has ended, or in half a minute"
    async with hold_claim(conversations.claims, owner, conversations.claim_of(name), message=message, wait=wait):
        yield


def _run_id_of(conversation: OpenConversation) -> str:
    return f"{conversation.stored.id}@{conversation.stored.revision}"


def _is_question(message: Message) -> bool:
    return message.role != "assistant" and not any(isinstance(part, ToolResult) for part in message.parts)
