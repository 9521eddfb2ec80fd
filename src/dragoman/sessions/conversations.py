"""Conversations with an agent: what was said is kept in the session store, for some hours and up to some length.

Rules: a conversation is its owner's. One that nobody has gone on with for too long begins anew under its name. What is
too long loses its beginning, up to something the user said, so that no result is left without its call.
"""

from time import time
from uuid import uuid4

from msgspec import Struct

from dragoman.core.parts import ToolResult
from dragoman.core.preserved import preserved, restored
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.sessions.runs import Claims, Runs
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Item, Turn, fresh_key

_DIALECT = "mcp"
_PREFIX = "mcp:"
_HOUR = 3600.0


class Opened(Struct, frozen=True):
    """A conversation as it is now."""

    name: str
    messages: tuple[Message, ...]
    kept: Conversation
    """What the store knows of it; one that was never kept has no revision."""
    whole: bool = True
    """Nothing was cut off at its beginning."""
    is_over: bool = False
    """Nobody went on with it for too long: it begins anew."""


class Conversations:
    """What was said in earlier calls."""

    def __init__(self, store: Store, *, hours: float, longest: int) -> None:
        self._store = store
        self._hours = hours
        self._longest = longest

    @property
    def runs(self) -> Runs:
        """Where calls are written down while they run."""
        return self._store.runs

    @property
    def claims(self) -> Claims:
        """Where a call says that it goes on with a conversation."""
        return self._store.claims

    @staticmethod
    def claim_of(name: str) -> str:
        """Return what is claimed by who goes on with a conversation."""
        return _PREFIX + name

    async def open(self, owner: str, name: str) -> Opened:
        """Find what was said, or begin a conversation; without a name it gets one."""
        name = name or uuid4().hex
        found = await self._store.opened(owner, _PREFIX + name)
        if found is None:
            kept = Conversation(owner=owner, id=_PREFIX + name, dialect=_DIALECT, created=int(time()))
            return Opened(name, (), kept)
        kept, history = found
        last = history.last
        if self._hours and last is not None and time() - last.created > self._hours * _HOUR:
            return Opened(name, (), kept, is_over=True)
        messages = shortened(tuple(one for item in history.items for one in restored(item.body)), self._longest)
        return Opened(name, messages, kept, len(messages) == len(history.items))

    async def keep(self, opened: Opened, said: tuple[Message, ...], model: str) -> None:
        """Keep a conversation as it is after a call, if nobody else has gone on with it meanwhile."""
        kept = opened.kept
        # What was cut off, here or by the loop, is not kept any longer.
        goes_on = opened.whole and bool(opened.messages) and said[: len(opened.messages)] == opened.messages
        new = said[len(opened.messages) :] if goes_on else said
        turn = Turn(
            owner=kept.owner,
            dialect=_DIALECT,
            parent=kept.head if goes_on else "",
            conversation=kept.id,
            model=model,
            items=tuple(Item(fresh_key(), preserved([message]), message.role == "assistant") for message in new),
            created=int(time()),
        )
        try:
            await self._store.add(turn, kept)
        except Conflict:
            words = f"another call has gone on with the session {opened.name!r} meanwhile: ask again"
            raise Problem("conflict", words) from None


def shortened(messages: tuple[Message, ...], longest: int) -> tuple[Message, ...]:
    """Return the end of a conversation, from something on that the user said."""
    if not longest or len(messages) <= longest:
        return messages
    begins = [at for at in range(len(messages) - longest, len(messages)) if _begins(messages[at])]
    return messages[begins[0] :] if begins else ()


def _begins(message: Message) -> bool:
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)
