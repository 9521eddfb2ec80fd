"""Turns of conversations that are stored by name, in the store and under the owner that `dragoman chat` uses."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from dragoman.agent import Recorder
from dragoman.agent.sources import SavedTurn
from dragoman.config import ANONYMOUS_NAME, load
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.gateway.conversations.runs import TurnStart, begin_turn, claim_conversation, save_turn, start_recording
from dragoman.server.services import open_conversation_loader
from dragoman.sessions.conversations import Conversations
from dragoman.sessions.values import Unavailable


class StoredTurn:
    """A turn of a stored conversation."""

    def __init__(self, conversations: Conversations, start: TurnStart, recorder: Recorder) -> None:
        self._conversations, self._start = conversations, start
        self.recorder = recorder

    @property
    def run_id(self) -> str:
        """The name under which the run is recorded."""
        return self._start.run_id

    @property
    def is_new(self) -> bool:
        """Whether the conversation was never saved."""
        return self._start.opened.stored.revision == 0

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the turn."""
        return self._start.history

    @property
    def untrusted(self) -> bool:
        """Whether the oldest messages were cut off."""
        return not self._start.opened.is_whole

    async def save(self, history: tuple[Message, ...], model: str) -> None:
        """Save the conversation; a turn that changed nothing only loses its record."""
        if history != self._start.opened.messages:
            await save_turn(self._conversations, self._start, history, model)
        else:
            with suppress(Unavailable):
                await self._conversations.runs.delete(ANONYMOUS_NAME, self.run_id)


@asynccontextmanager
async def open_turn(name: str) -> AsyncGenerator[SavedTurn]:
    """Claim a conversation and start a turn in it; raises `Problem` if another program is using it."""
    config = load()
    async with open_conversation_loader(config) as loader:
        conversations = Conversations(loader.store, hours=0, max_messages=config.mcp.session_messages)
        try:
            async with claim_conversation(conversations, ANONYMOUS_NAME, name):
                start = await begin_turn(conversations, ANONYMOUS_NAME, name)
                yield StoredTurn(conversations, start, await start_recording(conversations, start))
        except Unavailable as error:
            raise Problem("unreachable", f"cannot reach the session store: {error}", code="sessions") from None
