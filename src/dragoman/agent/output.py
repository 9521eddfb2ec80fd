"""Structured output: the answer of a run as a value of a type."""

from typing import Any, Generic

from msgspec import UNSET, UnsetType

from dragoman.agent.notebook import render_history, render_losses
from dragoman.agent.steps import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    RunEnded,
    TurnEnded,
)
from dragoman.agent.type_variables import OutputT
from dragoman.core.events import Event
from dragoman.core.losses import Loss
from dragoman.core.notebook import shorten_text
from dragoman.core.problems import Problem
from dragoman.core.request import OutputFormat
from dragoman.tools.arguments import InvalidArgumentsError
from dragoman.tools.value_type import ValueType, is_text

_CORRECTION = "Your answer was not accepted: {error}\nAnswer again, with nothing but a JSON value that fits the schema."


class RunResult(RunEnded, Generic[OutputT], frozen=True, kw_only=True):
    """The end of a run, with its answer as a value of the agent's `output_type`."""

    parsed: OutputT | UnsetType = UNSET
    """The answer; UNSET if there is none."""
    losses: tuple[Loss, ...] = ()
    """What could not be sent to the model, or was lost in its replies; only known for models by name."""

    @property
    def output(self) -> OutputT:
        """The answer. If the run failed or its answer is invalid, this raises the `Problem`."""
        if self.parsed is UNSET:
            raise self.problem or Problem("malformed_reply", f"the run ended without an answer ({self.stop})")
        return self.parsed

    @property
    def text(self) -> str:
        """The text of the last reply. If the run failed without one, this raises its `Problem`."""
        text = super().text
        if not text and self.problem is not None and self.stop == "failed":
            raise self.problem
        return text

    def _repr_html_(self) -> str:
        """Show the messages, the end and the losses in a notebook."""
        used = self.statistics
        end = f"{self.stop}: {used.turns} turns, {used.calls} calls, {used.tokens:,} tokens, {used.seconds:.1f} s"
        end += "" if self.problem is None else f"; {self.problem.message}"
        return f"{render_history(self.history)}<p>{shorten_text(end)}</p>{render_losses(self.losses)}"


RunStep = Event | CallStarted | CallProgressed | CallEnded | ApprovalAsked | TurnEnded | Compacted | RunResult[OutputT]
"""The steps of a run with a typed result as the last one."""


class OutputType(Generic[OutputT]):
    """The type of the answers of an agent."""

    def __init__(self, kind: Any) -> None:
        self._value_type: ValueType[OutputT] | None = None if is_text(kind) else ValueType(kind)

    @property
    def format(self) -> OutputFormat | None:
        """The format that requests ask for; None for plain text."""
        if self._value_type is None:
            return None
        return OutputFormat(kind="json_schema", schema=self._value_type.schema, name=self._value_type.name)

    def find_correction(self, text: str) -> str:
        """Return the message after which the model answers again; "" if the answer is valid."""
        try:
            self._decode(text)
        except InvalidArgumentsError as error:
            return _CORRECTION.format(error=error)
        return ""

    def build_result(self, ended: RunEnded, losses: tuple[Loss, ...] = ()) -> RunResult[OutputT]:
        """Return the end of a run with its answer."""
        parsed: OutputT | UnsetType = UNSET
        problem = ended.problem
        if problem is None and ended.stop != "client_calls":
            try:
                parsed = self._decode(ended.text)
            except InvalidArgumentsError as error:
                problem = Problem("malformed_reply", f"the answer has not the required form: {error}")
        return RunResult(
            run=ended.run,
            stop=ended.stop,
            statistics=ended.statistics,
            history=ended.history,
            finish=ended.finish,
            problem=problem,
            untrusted=ended.untrusted,
            parsed=parsed,
            losses=losses,
        )

    def _decode(self, text: str) -> Any:
        return text if self._value_type is None else self._value_type.decode(text)
