"""Conversations with an agent, kept in the session store for a limited time and up to a limited length.

A conversation belongs to its owner. One that has not been continued for too long starts empty under the same name. One
that is too long loses its oldest messages, up to a user message, so that no tool result is left without its call.
"""

from time import time
from uuid import uuid4

from msgspec import Struct

from dragoman.core.parts import ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.sessions.runs import Claims, Runs
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Item, Turn, generate_key

_DIALECT = "mcp"
_PREFIX = "mcp:"
_HOUR = 3600.0


class OpenConversation(Struct, frozen=True):
    """A conversation as loaded from the store."""

    name: str
    messages: tuple[Message, ...]
    stored: Conversation
    """The stored row; its revision is 0 if the conversation was never saved."""
    is_whole: bool = True
    """Whether it has all stored messages; False if the oldest were cut off."""
    is_over: bool = False
    """Whether it expired, so that it starts empty."""


class Conversations:
    """Loads and saves conversations with an agent."""

    def __init__(self, store: Store, *, hours: float, max_messages: int) -> None:
        self._store = store
        self._hours = hours
        self._max_messages = max_messages

    @property
    def runs(self) -> Runs:
        """The table in which calls are recorded while they run."""
        return self._store.runs

    @property
    def claims(self) -> Claims:
        """The table in which a call claims the conversation that it continues."""
        return self._store.claims

    @staticmethod
    def claim_of(name: str) -> str:
        """Return the name of the claim on a conversation."""
        return _PREFIX + name

    async def open(self, owner: str, name: str) -> OpenConversation:
        """Load a conversation, or create one if there is none; without a name it gets a random one."""
        name = name or uuid4().hex
        found = await self._store.load_conversation(owner, _PREFIX + name)
        if found is None:
            stored = Conversation(owner=owner, id=_PREFIX + name, dialect=_DIALECT, created=int(time()))
            return OpenConversation(name, (), stored)
        stored, history = found
        last = history.last
        if self._hours and last is not None and time() - last.created > self._hours * _HOUR:
            return OpenConversation(name, (), stored, is_over=True)
        messages = drop_oldest(
            tuple(message for item in history.items for message in decode_messages(item.body)), self._max_messages
        )
        return OpenConversation(name, messages, stored, len(messages) == len(history.items))

    async def save(self, conversation: OpenConversation, messages: tuple[Message, ...], model: str) -> None:
        """Save a conversation after a call; raises `Problem` if another call has continued it in the meantime."""
        stored = conversation.stored
        # Messages that were cut off, here or by the agent loop, are not kept any longer.
        is_continued = (
            conversation.is_whole
            and bool(conversation.messages)
            and messages[: len(conversation.messages)] == conversation.messages
        )
        new = messages[len(conversation.messages) :] if is_continued else messages
        turn = Turn(
            owner=stored.owner,
            dialect=_DIALECT,
            parent=stored.head if is_continued else "",
            conversation=stored.id,
            model=model,
            items=tuple(
                Item(generate_key(), encode_messages([message]), message.role == "assistant") for message in new
            ),
            created=int(time()),
        )
        try:
            await self._store.add_turn(turn, stored)
        except Conflict:
            message = f"another call has continued session {conversation.name!r} meanwhile; send this call again"
            raise Problem("conflict", message) from None


def drop_oldest(messages: tuple[Message, ...], max_messages: int) -> tuple[Message, ...]:
    """Return the newest messages of a conversation, at most `max_messages`, starting with a user message."""
    if not max_messages or len(messages) <= max_messages:
        return messages
    oldest = len(messages) - max_messages
    starts = [index for index in range(oldest, len(messages)) if _is_user_message(messages[index])]
    return messages[starts[0] :] if starts else ()


def _is_user_message(message: Message) -> bool:
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)
