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
from dragoman.core.preserved import preserved, restored
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, leading_systems
from dragoman.gateway.conversations.recorder import unavailable
from dragoman.sessions.conversations import Conversations, Opened
from dragoman.sessions.runs import Claims, Runs
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Unavailable
from dragoman.tasks import TaskSet, start_task
from dragoman.wire import json

_CLAIM_INTERVAL = 5.0
_BETWEEN_TRIES = 0.1


@asynccontextmanager
async def claimed(claims: Claims, owner: str, name: str, *, words: str, patience: float = 0.0) -> AsyncGenerator[None]:
    """Hold a claim as long as the block runs; a `Problem` with these words if it was not free in time."""
    holder, end = uuid4().hex, monotonic() + patience
    while not await claims.take(owner, name, holder):
        if monotonic() >= end:
            raise Problem("conflict", words, code="conversation_locked")
        await asyncio.sleep(_BETWEEN_TRIES)
    try:
        async with TaskSet() as background:
            background.start(_renew(claims, owner, name, holder), f"renew the claim of {name}")
            yield
    finally:
        with contextlib.suppress(Unavailable):
            await claims.drop(owner, name, holder)


@asynccontextmanager
async def held(store: Store, conversation: Conversation) -> AsyncGenerator[None]:
    """Hold a conversation of a client's while tools are run in it.

    A `Problem` if another request is at work in it, or has gone on with it since it was read: before any tool is run.
    """
    owner, name = conversation.owner, conversation.id
    words = f"another request is at work in the conversation {name!r}: ask again when it has ended"
    try:
        async with claimed(store.claims, owner, name, words=words):
            now = await store.conversation(owner, name)
            if (0 if now is None else now.revision) != conversation.revision:
                words = f"the conversation {name!r} has gone on meanwhile: ask again"
                raise Problem("conflict", words, code="conversation_changed")
            yield
    except Unavailable:
        raise unavailable() from None


async def _renew(claims: Claims, owner: str, name: str, holder: str) -> None:
    while True:
        await asyncio.sleep(_CLAIM_INTERVAL)
        with contextlib.suppress(Unavailable):
            await claims.take(owner, name, holder)


_BETWEEN_SIGNS = 5.0


class PastRun(Struct, frozen=True, kw_only=True):
    """A run as it can be looked at afterwards, or from elsewhere."""

    id: str
    status: str
    """`running`, `interrupted`, or why it ended."""
    history: tuple[Message, ...]
    """All that was said; every call in it has its result."""
    summary: bytes
    """Its statistics as a JSON object, if it is over."""


class _Page(Struct):
    """One run while it is written."""

    signs: asyncio.Task[None]
    place: int = 0
    unwritten: list[tuple[int, bytes]] = []
    replaces: bool = False
    """The first of what is unwritten takes the place of everything before it."""


class RunBook:
    """Writes down the runs of one owner. It is an agent's `Recorder`.

    With `anew` a run takes the place of one of its name that is over, or was interrupted.
    """

    def __init__(self, runs: Runs, owner: str, between_signs: float = _BETWEEN_SIGNS, *, anew: bool = False) -> None:
        self._runs = runs
        self._owner = owner
        self._between_signs = between_signs
        self._anew = anew
        self._pages: dict[str, _Page] = {}

    async def begin(self, run: str, request: Request) -> None:
        """Begin a page; a `Problem` if there is one of that name, or no store to write in."""
        # Before it is written: what is cancelled meanwhile may have been written all the same, and is ended then.
        self._pages[run] = _Page(start_task(self._live(run), f"heartbeat of {run}"))
        try:
            await self._runs.begin(self._owner, run, request.model, preserved(request.messages), anew=self._anew)
        except (Conflict, Unavailable) as error:
            self._pages.pop(run).signs.cancel()
            taken = Problem("conflict", f"there is a run {run!r} already")
            raise (taken if isinstance(error, Conflict) else unavailable()) from None

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write what was said."""
        if messages:
            await self._write(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Write a history that takes the place of the one before."""
        page = self._pages[run]
        page.unwritten, page.replaces = [], True
        await self._write(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Close the page."""
        page = self._pages.pop(ended.run, None)
        if page is None:
            return  # it could not be begun
        page.signs.cancel()
        with contextlib.suppress(Unavailable):
            await self._flush(ended.run, page)
            await self._runs.end(self._owner, ended.run, ended.stop, _summary(ended))

    async def _write(self, run: str, messages: tuple[Message, ...]) -> None:
        page = self._pages[run]
        page.place += 1
        page.unwritten.append((page.place, preserved(messages)))
        with contextlib.suppress(Unavailable):
            await self._flush(run, page)

    async def _flush(self, run: str, page: _Page) -> None:
        while page.unwritten:
            place, body = page.unwritten[0]
            write = self._runs.replace if page.replaces else self._runs.add
            await write(self._owner, run, place, body)
            page.replaces = False
            page.unwritten = [entry for entry in page.unwritten if entry[0] > place]

    async def _live(self, run: str) -> None:
        while True:
            await asyncio.sleep(self._between_signs)
            with contextlib.suppress(Unavailable):
                await self._runs.live(self._owner, run)


async def past_run(runs: Runs, owner: str, name: str) -> PastRun | None:
    """Look a run up; of one that was interrupted, calls without a result have one that says so."""
    kept = await runs.find(owner, name)
    if kept is None:
        return None
    messages = tuple(message for body in kept.entries for message in restored(body))
    return PastRun(id=kept.id, status=kept.status, history=closed(messages), summary=kept.summary)


def _summary(ended: RunEnded) -> bytes:
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


class Unfinished(Struct, frozen=True):
    """A conversation at the beginning of a turn."""

    opened: Opened
    before: tuple[Message, ...]
    """What was said so far, in a turn that was not kept too."""

    @property
    def run(self) -> str:
        """The name under which the turn is written down."""
        return _place(self.opened)


class _Packed(Struct, frozen=True):
    name: str
    kept: Conversation
    messages: Raw
    before: Raw
    whole: bool


def packed(unfinished: Unfinished) -> str:
    """Write a beginning down, as a step returns it."""
    opened = unfinished.opened
    said, before = Raw(preserved(opened.messages)), Raw(preserved(unfinished.before))
    return msgspec.json.encode(_Packed(opened.name, opened.kept, said, before, opened.whole)).decode()


def unpacked(text: str) -> Unfinished:
    """Read a beginning that was written down."""
    found = msgspec.json.decode(text, type=_Packed)
    opened = Opened(found.name, restored(bytes(found.messages)), found.kept, found.whole)
    return Unfinished(opened, restored(bytes(found.before)))


async def begun(conversations: Conversations, owner: str, name: str) -> Unfinished:
    """Open a conversation that is claimed, to begin a turn in it."""
    opened = await conversations.open(owner, name)
    past = None if opened.is_over else await past_run(conversations.runs, owner, _place(opened))
    if past is None:
        return Unfinished(opened, opened.messages)
    said = past.history[leading_systems(past.history) :]
    while said and _is_question(said[-1]):
        said = said[:-1]
    return Unfinished(opened, said)


async def written(conversations: Conversations, unfinished: Unfinished) -> RunBook:
    """Return what writes the turn down, in place of the one before it."""
    owner = unfinished.opened.kept.owner
    await conversations.runs.forget(owner, unfinished.run)
    return RunBook(conversations.runs, owner)


async def kept(conversations: Conversations, unfinished: Unfinished, said: tuple[Message, ...], model: str) -> None:
    """Keep the conversation as it is after the turn."""
    await conversations.keep(unfinished.opened, said, model)
    with contextlib.suppress(Unavailable):
        await conversations.runs.forget(unfinished.opened.kept.owner, unfinished.run)


@asynccontextmanager
async def in_conversation(
    conversations: Conversations, owner: str, name: str, *, patience: float = 0.0
) -> AsyncGenerator[None]:
    """Hold a conversation for a turn; a `Problem` if another turn is under way, here or in another process."""
    words = f"another call is at work in the session {name!r}: ask again when it has ended, or in half a minute"
    async with claimed(conversations.claims, owner, conversations.claim_of(name), words=words, patience=patience):
        yield


def _place(opened: Opened) -> str:
    return f"{opened.kept.id}@{opened.kept.revision}"


def _is_question(message: Message) -> bool:
    return message.role != "assistant" and not any(isinstance(part, ToolResult) for part in message.parts)
