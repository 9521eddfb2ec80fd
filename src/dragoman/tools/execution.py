"""What became of one call: its result, and what the caller may want to know beside it."""

from typing import Literal

from msgspec import Struct, structs

from dragoman.core.parts import Content, Text, ToolCall, ToolResult
from dragoman.tools.handler import Handler
from dragoman.tools.results import encodable

Outcome = Literal[
    "succeeded",
    "failed",
    "unknown",
    "invalid",
    "timeout",
    "error",
    "oversized",
    "stuck",
    "conflict",
    "denied",
    "skipped",
    "cancelled",
]
"""How a call ended. "failed" is the tool's own word; "error" is an exception it did not mean to raise.

The last three are the words of whoever decides what is run: it may not be, it would lead nowhere, it was interrupted.
"""


class Execution(Struct, frozen=True, kw_only=True):
    """One call that is over."""

    result: ToolResult
    outcome: Outcome
    handler: Handler | None = None
    """The tool that was called, with its flags; None for an unknown one."""
    milliseconds: float = 0.0
    size: int = 0
    """Bytes the tool returned, before anything was cut."""
    repeated: bool = False
    """It was not run: this is what came of the call that had the same key before."""

    @property
    def ran(self) -> bool:
        """Tell whether the tool was begun, so that it may have changed something."""
        return self.outcome not in ("unknown", "invalid", "stuck", "conflict", "denied", "skipped")


def answered(call: ToolCall, content: tuple[Content, ...], *, failed: bool) -> ToolResult:
    """Return the result of a call."""
    return ToolResult(call_id=call.id, name=call.name, content=content, failed=failed, form=call.form)


def refused(call: ToolCall, handler: Handler | None, outcome: Outcome, words: str) -> Execution:
    """Return a failed result that tells the model why, and what it can do."""
    result = answered(call, (Text(text=encodable(words)),), failed=True)
    return Execution(result=result, outcome=outcome, handler=handler)


def repeated_for(call: ToolCall, execution: Execution) -> Execution:
    """Return what came of an earlier call as the answer to this one."""
    result = structs.replace(execution.result, call_id=call.id, name=call.name)
    return structs.replace(execution, result=result, repeated=True)
