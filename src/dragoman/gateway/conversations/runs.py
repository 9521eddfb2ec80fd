"""Runs of agents in the session store: written while they happen, and read as histories that can be continued.

While a run goes on, its process writes a heartbeat every few seconds, so that others can tell a long run from one whose
process is gone. A store that does not respond for a while does not end a run: what was not written is written with what
comes next. Whoever runs a turn has claimed its conversation; a claim whose process is gone is free after half a minute.
A turn that was begun and not saved is written under the state of the conversation that it continues, and deleted when
the conversation is saved: so what is found there is of a process that is gone, failed or was cancelled. A question
without any answer is left out: asking again is asking once.
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
from dragoman.core.preserved import decode_messages, encode_messages
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.gateway.conversations.recorder import build_unavailable_error
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
    """Hold a claim as long as the block runs; a `Problem` with these words if it was not free in time."""
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
    """Hold a conversation of a client's while tools are run in it.

    A `Problem` if another request is at work in it, or has gone on with it since it was read: before any tool is run.
    """
    owner, name = conversation.owner, conversation.id
    words = f"another request is at work in the conversation {name!r}: ask again when it has ended"
    try:
        async with hold_claim(store.claims, owner, name, message=words):
            now = await store.find_conversation(owner, name)
            if (0 if now is None else now.revision) != conversation.revision:
                words = f"the conversation {name!r} has gone on meanwhile: ask again"
                raise Problem("conflict", words, code="conversation_changed")
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
    """A run as it can be looked at afterwards, or from elsewhere."""

    id: str
    status: str
    """`running`, `interrupted`, or why it ended."""
    history: tuple[Message, ...]
    """All that was said; every call in it has its result."""
    summary: bytes
    """Its statistics as a JSON object, if it is over."""


class _PendingWrites(Struct):
    """One run while it is written."""

    heartbeat: asyncio.Task[None]
    last_entry: int = 0
    unwritten: list[tuple[int, bytes]] = []
    replaces: bool = False
    """The first of what is unwritten takes the place of everything before it."""


class RunBook:
    """Writes down the runs of one owner. It is an agent's `Recorder`.

    With `anew` a run takes the place of one of its name that is over, or was interrupted.
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
        """Begin a page; a `Problem` if there is one of that name, or no store to write in."""
        # Before it is written: what is cancelled meanwhile may have been written all the same, and is ended then.
        self._pending[run] = _PendingWrites(start_task(self._send_heartbeats(run), f"heartbeat of {run}"))
        try:
            await self._runs.begin(
                self._owner, run, request.model, encode_messages(request.messages), replaces_ended=self._replaces_ended
            )
        except (Conflict, Unavailable) as error:
            self._pending.pop(run).heartbeat.cancel()
            taken = Problem("conflict", f"there is a run {run!r} already")
            raise (taken if isinstance(error, Conflict) else build_unavailable_error()) from None

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write what was said."""
        if messages:
            await self._record_messages(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write a history that takes the place of the one before."""
        page = self._pending[run]
        page.unwritten, page.replaces = [], True
        await self._record_messages(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Close the page."""
        page = self._pending.pop(ended.run, None)
        if page is None:
            return  # it could not be begun
        page.heartbeat.cancel()
        with contextlib.suppress(Unavailable):
            await self._flush(ended.run, page)
            await self._runs.end(self._owner, ended.run, ended.stop, _render_summary(ended))

    async def _record_messages(self, run: str, messages: tuple[Message, ...]) -> None:
        page = self._pending[run]
        page.last_entry += 1
        page.unwritten.append((page.last_entry, encode_messages(messages)))
        with contextlib.suppress(Unavailable):
            await self._flush(run, page)

    async def _flush(self, run: str, pending: _PendingWrites) -> None:
        while pending.unwritten:
            place, body = pending.unwritten[0]
            write = self._runs.replace_entries if pending.replaces else self._runs.add_entry
            await write(self._owner, run, place, body)
            pending.replaces = False
            pending.unwritten = [entry for entry in pending.unwritten if entry[0] > place]

    async def _send_heartbeats(self, run: str) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            with contextlib.suppress(Unavailable):
                await self._runs.update_heartbeat(self._owner, run)


async def past_run(runs: Runs, owner: str, name: str) -> PastRun | None:
    """Look a run up; of one that was interrupted, calls without a result have one that says so."""
    kept = await runs.find(owner, name)
    if kept is None:
        return None
    messages = tuple(message for body in kept.entries for message in decode_messages(body))
    return PastRun(id=kept.id, status=kept.status, history=closed(messages), summary=kept.summary)


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
    """A conversation at the beginning of a turn."""

    opened: OpenConversation
    history: tuple[Message, ...]
    """What was said so far, in a turn that was not kept too."""

    @property
    def run_id(self) -> str:
        """The name under which the turn is written down."""
        return _run_id_of(self.opened)


class _EncodedStart(Struct, frozen=True):
    name: str
    kept: Conversation
    messages: Raw
    before: Raw
    whole: bool


def encode_start(start: TurnStart) -> str:
    """Write a beginning down, as a step returns it."""
    opened = start.opened
    said, before = Raw(encode_messages(opened.messages)), Raw(encode_messages(start.history))
    return msgspec.json.encode(_EncodedStart(opened.name, opened.stored, said, before, opened.is_whole)).decode()


def decode_start(text: str) -> TurnStart:
    """Read a beginning that was written down."""
    found = msgspec.json.decode(text, type=_EncodedStart)
    opened = OpenConversation(found.name, decode_messages(bytes(found.messages)), found.kept, found.whole)
    return TurnStart(opened, decode_messages(bytes(found.before)))


async def begin_turn(conversations: Conversations, owner: str, name: str) -> TurnStart:
    """Open a conversation that is claimed, to begin a turn in it."""
    opened = await conversations.open(owner, name)
    past = None if opened.is_over else await past_run(conversations.runs, owner, _run_id_of(opened))
    if past is None:
        return TurnStart(opened, opened.messages)
    said = past.history[count_leading_systems(past.history) :]
    while said and _is_question(said[-1]):
        said = said[:-1]
    return TurnStart(opened, said)


async def start_recording(conversations: Conversations, start: TurnStart) -> RunBook:
    """Return what writes the turn down, in place of the one before it."""
    owner = start.opened.stored.owner
    await conversations.runs.delete(owner, start.run_id)
    return RunBook(conversations.runs, owner)


async def save_turn(conversations: Conversations, start: TurnStart, messages: tuple[Message, ...], model: str) -> None:
    """Keep the conversation as it is after the turn."""
    await conversations.save(start.opened, messages, model)
    with contextlib.suppress(Unavailable):
        await conversations.runs.delete(start.opened.stored.owner, start.run_id)


@asynccontextmanager
async def claim_conversation(
    conversations: Conversations, owner: str, name: str, *, wait: float = 0.0
) -> AsyncGenerator[None]:
    """Hold a conversation for a turn; a `Problem` if another turn is under way, here or in another process."""
    words = f"another call is at work in the session {name!r}: ask again when it has ended, or in half a minute"
    async with hold_claim(conversations.claims, owner, conversations.claim_of(name), message=words, wait=wait):
        yield


def _run_id_of(conversation: OpenConversation) -> str:
    return f"{conversation.stored.id}@{conversation.stored.revision}"


def _is_question(message: Message) -> bool:
    return message.role != "assistant" and not any(isinstance(part, ToolResult) for part in message.parts)
