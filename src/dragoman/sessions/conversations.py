"""Conversations with an agent: what was said is kept in the session store, for some hours and up to some length.

Rules: a conversation is its owner's. One that nobody has gone on with for too long begins anew under its name. What is
too long loses its beginning, up to something the user said, so that no result is left without its call.
"""

from time import time
from uuid import uuid4

from msgspec import Struct

from dragoman.core.parts import ToolResult
from dragoman.core.preserved import decode_messages, encode_messages
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.sessions.runs import Claims, Runs
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Item, Turn, generate_key

_DIALECT = "mcp"
_PREFIX = "mcp:"
_HOUR = 3600.0


class OpenConversation(Struct, frozen=True):
    """A conversation as it is now."""

    name: str
    messages: tuple[Message, ...]
    stored: Conversation
    """What the store knows of it; one that was never kept has no revision."""
    is_whole: bool = True
    """Nothing was cut off at its beginning."""
    is_over: bool = False
    """Nobody went on with it for too long: it begins anew."""


class Conversations:
    """What was said in earlier calls."""

    def __init__(self, store: Store, *, hours: float, max_messages: int) -> None:
        self._store = store
        self._hours = hours
        self._max_messages = max_messages

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

    async def open(self, owner: str, name: str) -> OpenConversation:
        """Find what was said, or begin a conversation; without a name it gets one."""
        name = name or uuid4().hex
        found = await self._store.load_conversation(owner, _PREFIX + name)
        if found is None:
            kept = Conversation(owner=owner, id=_PREFIX + name, dialect=_DIALECT, created=int(time()))
            return OpenConversation(name, (), kept)
        kept, history = found
        last = history.last
        if self._hours and last is not None and time() - last.created > self._hours * _HOUR:
            return OpenConversation(name, (), kept, is_over=True)
        messages = drop_oldest(
            tuple(one for item in history.items for one in decode_messages(item.body)), self._max_messages
        )
        return OpenConversation(name, messages, kept, len(messages) == len(history.items))

    async def save(self, conversation: OpenConversation, messages: tuple[Message, ...], model: str) -> None:
        """Keep a conversation as it is after a call, if nobody else has gone on with it meanwhile."""
        kept = conversation.stored
        # What was cut off, here or by the loop, is not kept any longer.
        goes_on = (
            conversation.is_whole
            and bool(conversation.messages)
            and messages[: len(conversation.messages)] == conversation.messages
        )
        new = messages[len(conversation.messages) :] if goes_on else messages
        turn = Turn(
            owner=kept.owner,
            dialect=_DIALECT,
            parent=kept.head if goes_on else "",
            conversation=kept.id,
            model=model,
            items=tuple(
                Item(generate_key(), encode_messages([message]), message.role == "assistant") for message in new
            ),
            created=int(time()),
        )
        try:
            await self._store.add_turn(turn, kept)
        except Conflict:
            words = f"another call has gone on with the session {conversation.name!r} meanwhile: ask again"
            raise Problem("conflict", words) from None


def drop_oldest(messages: tuple[Message, ...], max_messages: int) -> tuple[Message, ...]:
    """Return the end of a conversation, from something on that the user said."""
    if not max_messages or len(messages) <= max_messages:
        return messages
    begins = [at for at in range(len(messages) - max_messages, len(messages)) if _is_user_message(messages[at])]
    return messages[begins[0] :] if begins else ()


def _is_user_message(message: Message) -> bool:
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)
