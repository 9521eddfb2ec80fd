"""Turns that were begun and not kept: what was said and done in them is where the next one goes on.

Rules: whoever runs a turn has claimed its conversation. While it runs, it is written down under the state of the
conversation that it goes on from. When the conversation is kept, what was written is forgotten: nothing stands there
twice. So whatever is found is of a turn whose process is gone, or which failed or was cancelled. A question to which
nothing came is left out: asking again is asking once.
"""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Raw, Struct, json

from dragoman.core.parts import ToolResult
from dragoman.core.preserved import preserved, restored
from dragoman.core.request import Message, leading_systems
from dragoman.gateway.sessions.claimed import claimed
from dragoman.gateway.sessions.runs import RunBook, past_run
from dragoman.sessions.conversations import Conversations, Opened
from dragoman.sessions.values import Conversation, Unavailable


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
    return json.encode(_Packed(opened.name, opened.kept, said, before, opened.whole)).decode()


def unpacked(text: str) -> Unfinished:
    """Read a beginning that was written down."""
    found = json.decode(text, type=_Packed)
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
