"""Calls and results as a person reads them, one short line each, and errors with what to do about them."""

import json
import textwrap
from collections.abc import Mapping
from typing import Any, assert_never, cast

from msgspec import Struct

from dragoman.agent import RunEnded, StopReason
from dragoman.core.parts import Content, Data, Inline, Media, Opaque, Text, ToolCall
from dragoman.core.problems import Kind, Problem
from dragoman.core.response import FinishReason
from dragoman.tools import Execution

_MAX_QUESTION = 2000
"""Characters of the arguments that a question shows."""
_OTHER_MODEL = "or ask another model (/model, --model)"
_LATER = f"ask again in a moment, {_OTHER_MODEL}"
_KEY = "see to the key of that upstream: `dragoman doctor` tries it"
_CODES: Mapping[str | None, str] = {
    "credentials": _KEY,
    "sessions": "see to [sessions] url in the configuration, or go on without --session",
}
_REMEDIES: Mapping[Kind, str] = {
    "authentication": _KEY,
    "permission": _KEY,
    "billing": f"the account wants money, {_OTHER_MODEL}",
    "not_found": "`/model` lists the models there are",
    "rate_limit": _LATER,
    "overloaded": _LATER,
    "timeout": _LATER,
    "conflict": "ask again",
    "unreachable": "see to the network, and to the address of that upstream: `dragoman doctor` tries it",
    "context_length": "begin anew with /new, or ask a model that takes more",
    "too_large": "say less at once",
    "policy": "say it in other words",
    "invalid_request": f"use fewer tools (--tools, --no-tools), {_OTHER_MODEL}",
    "unsupported": f"use fewer tools (--tools, --no-tools), {_OTHER_MODEL}",
    "malformed_reply": _LATER,
    "internal": f"{_LATER}; `dragoman doctor` looks what is wrong",
}
_STOPS: Mapping[StopReason, str] = {
    "turns": "it had no more turns for tools, and answered with what it had",
    "calls": "it had no more calls, and answered with what it had",
    "repetition": "it repeated itself, and answered with what it had",
    "seconds": "its time was over",
    "tokens": "it had no more tokens",
    "cost": "it had no more money",
    "cancelled": "stopped",
}
_ANSWERED = frozenset({"finished", "turns", "calls", "repetition"})
_FINISHES: Mapping[FinishReason, str] = {
    "length": "the answer is cut off: it is longer than the model may say",
    "filtered": "the answer was held back by the vendor's filter: say it in other words",
    "refused": "the model refused: say it in other words",
    "malformed_call": "the model made calls that nobody could read: ask again, or another model",
}


class NumberedCall(Struct):
    """A call that was shown, under its number."""

    number: int
    call: ToolCall
    execution: Execution | None = None


class CallList:
    """All calls of a conversation."""

    def __init__(self) -> None:
        self.all: list[NumberedCall] = []
        self._open: dict[str, NumberedCall] = {}

    def number_call(self, call: ToolCall) -> tuple[NumberedCall, bool]:
        """Return a call with its number, and whether it is new."""
        if call.id in self._open:
            return self._open[call.id], False
        found = self._open[call.id] = NumberedCall(len(self.all) + 1, call)
        self.all.append(found)
        return found, True

    def end_call(self, call: ToolCall, execution: Execution) -> NumberedCall:
        """Note what became of a call."""
        found, _ = self.number_call(call)
        del self._open[call.id]
        found.execution = execution
        return found


def format_call(numbered: NumberedCall, width: int) -> str:
    """Return a call in one line."""
    call = numbered.call
    head = f"[{numbered.number}] {call.name}("
    return f"{head}{_shorten(_format_arguments(call), width - len(head) - 1)})"


def format_result(numbered: NumberedCall, width: int) -> str:
    """Return what became of a call in one line."""
    execution = numbered.execution
    if execution is None:
        return f"[{numbered.number}] {numbered.call.name}: no result yet"
    failed = "" if execution.outcome == "succeeded" else f"{execution.outcome}, "
    text = format_content(execution.result.content)
    is_timed = execution.has_run and execution.outcome != "cancelled"
    seconds = f"{execution.milliseconds / 1000:.1f} s, " if is_timed else ""
    head = f"[{numbered.number}] {numbered.call.name}: {failed}{seconds}{len(text):,} characters: "
    first = next((line.strip() for line in text.splitlines() if line.strip()), "(nothing)")
    return head + _shorten(first, width - len(head))


def format_details(numbered: NumberedCall, limit: int | None = None) -> str:
    """Return a call with its arguments and its result as they are; of the arguments `most` characters at most."""
    arguments = format_json(numbered.call.arguments) or "(no arguments)"
    if limit is not None and len(arguments) > limit:
        arguments = f"{arguments[:limit]}\n… and {len(arguments) - limit:,} more characters"
    lines = [f"[{numbered.number}] {numbered.call.name}", textwrap.indent(arguments, "    ")]
    if numbered.execution is not None:
        lines += [
            f"    {numbered.execution.outcome}:",
            textwrap.indent(format_content(numbered.execution.result.content), "    "),
        ]
    return "\n".join(lines)


def format_question(numbered: NumberedCall) -> str:
    """Return a call as a question shows it."""
    return format_details(numbered, _MAX_QUESTION)


def format_content(content: tuple[Content, ...]) -> str:
    """Return a result as text; what is no text is told of."""
    return "\n".join(map(_format_part, content))


def _format_part(part: Content) -> str:
    match part:
        case Text(text=text):
            return text
        case Data(json=raw):
            return format_json(raw.decode("utf-8", "replace"))
        case Media(kind=kind, media_type=media_type, source=source):
            size = f", {len(source.data) * 3 // 4:,} bytes" if isinstance(source, Inline) else ""
            return f"({media_type or kind}{size})"
        case Opaque():
            return "(something only its vendor understands)"
        case _:
            assert_never(part)


def format_json(text: str) -> str:
    """Return JSON with a line for each member; any other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _format_arguments(call: ToolCall) -> str:
    try:
        told: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return " ".join(call.arguments.split())
    members = cast("dict[str, Any]", told)
    words = (
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in members.items()
    )
    return " ".join(", ".join(words).split())


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= max(limit, 20) else f"{text[: max(limit, 20) - 1]}…"


def suggest_remedy(problem: Problem) -> str:
    """Return what to do about a problem; "" if nothing is known."""
    if problem.retry_after:
        return f"wait {problem.retry_after:g} seconds and ask again, {_OTHER_MODEL}"
    return _CODES.get(problem.code) or _REMEDIES.get(problem.kind, "")


def has_answer(ended: RunEnded) -> bool:
    """Tell whether a run ended with an answer that is one."""
    return (
        ended.problem is None
        and ended.stop in _ANSWERED
        and ended.finish.reason not in _FINISHES
        and bool(ended.text.strip())
    )


def describe_end(ended: RunEnded) -> str:
    """Return what there is to say of how a run ended; "" if it is an answer like any other."""
    words = _STOPS.get(ended.stop) or _FINISHES.get(ended.finish.reason, "")
    if not words and ended.stop == "finished" and not ended.text.strip():
        words = "the model said nothing: ask again"
    return words
