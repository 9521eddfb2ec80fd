"""A conversation with an agent: each prompt continues from the answers before it.

With a name it is kept in the session store and continued by the next program, or by `dragoman chat --session NAME`.
A turn that fails before the model has answered leaves it unchanged. The model may change between turns. Turns that run
at the same time do not see each other; their messages are kept in the order in which they end.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, Unpack

from msgspec import Struct

from dragoman.agent.notebook import render_history
from dragoman.agent.options import RunOptions, run_blocking, visible_text
from dragoman.agent.output import RunResult, RunStep
from dragoman.agent.sources import SavedTurn, load_library
from dragoman.agent.steps import Recorder
from dragoman.agent.type_variables import OutputT
from dragoman.core.parts import AnyPart, ToolResult
from dragoman.core.request import Message, count_leading_systems


class TurnSettings(Struct, frozen=True, kw_only=True):
    """How a turn of a conversation is run."""

    run: str = ""
    recorder: Recorder | None = None
    untrusted: bool = False
    can_ask: bool = True
    """Whether the reader sees approval requests and can answer them."""


StreamTurn = Callable[[str | Sequence[AnyPart], RunOptions, TurnSettings], AsyncGenerator[RunStep[OutputT]]]
"""Runs an agent for one turn."""


class AgentConversation(Generic[OutputT]):
    """Prompts and answers that continue each other."""

    def __init__(
        self, stream_turn: StreamTurn[OutputT], *, name: str = "", model: str = "", history: Sequence[Message] = ()
    ) -> None:
        self._stream_turn = stream_turn
        self.name = name
        """The name in the session store; "" for a conversation of this program only."""
        self.model = model
        """The model of the next turns; "" for the agent's."""
        self.history: tuple[Message, ...] = tuple(history)
        """All messages so far; of a named conversation, as the last turn has left it."""
        self._untrusted = False

    def __repr__(self) -> str:
        return f"<AgentConversation {self.name or 'without a name'}, {len(self.history)} messages>"

    def _repr_html_(self) -> str:
        """Show the messages in a notebook."""
        return render_history(self.history)

    async def run(self, prompt: str | Sequence[AnyPart], **options: Unpack[RunOptions]) -> RunResult[OutputT]:
        """Send a prompt and return the end of the run."""
        async with aclosing(self._stream_steps(prompt, options, can_ask=False)) as steps:
            ended = [step async for step in steps if isinstance(step, RunResult)]
        return ended[-1]

    def run_sync(self, prompt: str | Sequence[AnyPart], **options: Unpack[RunOptions]) -> RunResult[OutputT]:
        """Send a prompt and wait for the end, from a program without an event loop or from a notebook."""
        return run_blocking(lambda: self.run(prompt, **options))

    async def stream_text(self, prompt: str | Sequence[AnyPart], **options: Unpack[RunOptions]) -> AsyncGenerator[str]:
        """Send a prompt and yield the text of the replies as it arrives; raises the `Problem` of a failed run."""
        async with aclosing(visible_text(self._stream_steps(prompt, options, can_ask=False))) as texts:
            async for text in texts:
                yield text

    def stream(
        self, prompt: str | Sequence[AnyPart], **options: Unpack[RunOptions]
    ) -> AsyncGenerator[RunStep[OutputT]]:
        """Send a prompt and yield every step as it happens; the last one is the result."""
        return self._stream_steps(prompt, options, can_ask=True)

    async def _stream_steps(
        self, prompt: str | Sequence[AnyPart], options: RunOptions, *, can_ask: bool
    ) -> AsyncGenerator[RunStep[OutputT]]:
        if not self.name:
            settings = TurnSettings(untrusted=self._untrusted, can_ask=can_ask)
            async with aclosing(self._stream(prompt, options, settings)) as steps:
                async for step in steps:
                    yield step
            return
        async with load_library().open_turn(self.name) as turn:
            self.history = self.history if turn.is_new and not turn.history else turn.history
            settings = TurnSettings(
                run=turn.run_id,
                recorder=turn.recorder,
                untrusted=turn.untrusted or self._untrusted,
                can_ask=can_ask,
            )
            async with aclosing(self._stream(prompt, options, settings)) as steps:
                async for step in steps:
                    if isinstance(step, RunResult):
                        await self._save(turn, options.get("model") or self.model)
                    yield step

    async def _stream(
        self, prompt: str | Sequence[AnyPart], options: RunOptions, settings: TurnSettings
    ) -> AsyncGenerator[RunStep[OutputT]]:
        begun = self.history
        before = tuple(options.get("history", begun))
        given: RunOptions = {**options, "history": before, "model": options.get("model") or self.model}
        async with aclosing(self._stream_turn(prompt, given, settings)) as steps:
            async for step in steps:
                if isinstance(step, RunResult):
                    after = _history_after(step, before)
                    self.history = after if self.history is begun else _join_turns(self.history, before, after)
                    self._untrusted = step.untrusted
                yield step

    async def _save(self, turn: SavedTurn, model: str) -> None:
        await turn.save(self.history, model)


def _join_turns(
    current: tuple[Message, ...], before: tuple[Message, ...], after: tuple[Message, ...]
) -> tuple[Message, ...]:
    """Return the history after a turn during which another one has ended; a turn that was compacted replaces it."""
    return (*current, *after[len(before) :]) if after[: len(before)] == before else after


def _history_after(ended: RunResult[OutputT], before: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the history without the system prompt; unchanged if the run added nothing to the prompt."""
    last = ended.history[-1]
    is_prompt = last.role == "user" and not any(isinstance(part, ToolResult) for part in last.parts)
    if is_prompt and ended.stop in ("failed", "cancelled"):
        return before
    return ended.history[count_leading_systems(ended.history) :]
