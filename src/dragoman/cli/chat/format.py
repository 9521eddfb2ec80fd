"""Format calls and results for the terminal, one short line each, and suggest remedies for errors."""

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, assert_never, cast

from msgspec import Struct

from dragoman.agent import RunEnded, StopReason
from dragoman.core.parts import Content, Data, Inline, Media, Opaque, Text, ToolCall
from dragoman.core.problems import Kind, Problem
from dragoman.core.response import FinishReason
from dragoman.tools import Execution

_MAX_QUESTION = 2000
"""Maximum characters of the arguments shown in an approval question."""
_OTHER_MODEL = "or use another model (/model, --model)"
_LATER = f"try again later, {_OTHER_MODEL}"
_KEY = "check the key of that upstream; `dragoman doctor` tests it"
_CODES: Mapping[str | None, str] = {
    "credentials": _KEY,
    "sessions": "check `url` in [sessions], or run without --session",
}
_REMEDIES: Mapping[Kind, str] = {
    "authentication": _KEY,
    "permission": _KEY,
    "billing": f"add credit to the account, {_OTHER_MODEL}",
    "not_found": "/model lists the available models",
    "rate_limit": _LATER,
    "overloaded": _LATER,
    "timeout": _LATER,
    "conflict": "try again",
    "unreachable": "check the network and `base_url` of that upstream; `dragoman doctor` tests it",
    "context_length": "start a new conversation with /new, or use a model with a larger context window",
    "too_large": "send a shorter message",
    "policy": "rephrase the message",
    "invalid_request": f"use fewer tools (--tools, --no-tools), {_OTHER_MODEL}",
    "unsupported": f"use fewer tools (--tools, --no-tools), {_OTHER_MODEL}",
    "malformed_reply": _LATER,
    "internal": f"{_LATER}; `dragoman doctor` tests the configuration",
}
_STOPS: Mapping[StopReason, str] = {
    "turns": "the limit of turns with tools was reached; the model answered with what it had",
    "calls": "the limit of tool calls was reached; the model answered with what it had",
    "repetition": "the model repeated the same calls and was stopped; it answered with what it had",
    "seconds": "stopped: the time limit was reached",
    "tokens": "stopped: the token limit was reached",
    "cost": "stopped: the cost limit was reached",
    "cancelled": "stopped",
}
_ANSWERED = frozenset({"finished", "turns", "calls", "repetition"})
_FINISHES: Mapping[FinishReason, str] = {
    "length": "the answer is cut off: it reached the output limit of the model",
    "filtered": "the answer was blocked by the vendor's filter: rephrase the message",
    "refused": "the model refused: rephrase the message",
    "malformed_call": f"the model made calls that could not be parsed: try again, {_OTHER_MODEL}",
}


class NumberedCall(Struct):
    """A call with its number in the chat, and its execution once it has ended."""

    number: int
    call: ToolCall
    execution: Execution | None = None


class CallList:
    """All calls of a chat, numbered from 1."""

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
        """Store the execution of a call that has ended."""
        found, _ = self.number_call(call)
        del self._open[call.id]
        found.execution = execution
        return found


def format_call(numbered: NumberedCall, width: int) -> str:
    """Format a call as one line."""
    call = numbered.call
    head = f"[{numbered.number}] {call.name}("
    return f"{head}{_shorten(_format_arguments(call), width - len(head) - 1)})"


def format_result(numbered: NumberedCall, width: int) -> str:
    """Format the result of a call as one line."""
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
    """Format a call with its arguments, cut to `limit` characters, and its whole result."""
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
    """Format a call for an approval question."""
    return format_details(numbered, _MAX_QUESTION)


def format_json_turn(ended: RunEnded | Problem, calls: Iterable[NumberedCall]) -> str:
    """Format a turn as one line of JSON: its answer, its calls, what it used, and its problem."""
    problem = ended if isinstance(ended, Problem) else ended.problem
    turn: dict[str, Any] = {"text": "", "stop": "failed", "finish": "other"}
    if isinstance(ended, RunEnded):
        used = ended.statistics
        turn = {"text": ended.text, "stop": ended.stop, "finish": ended.finish.reason, "turns": used.turns}
        turn |= {"usage": {"input": used.usage.input, "output": used.usage.output}}
        turn |= {"cost": used.cost, "seconds": round(used.seconds, 3)}
    turn["calls"] = [_view_call(each) for each in calls]
    turn["problem"] = None if problem is None else {"kind": problem.kind, "message": problem.message}
    return json.dumps(turn, ensure_ascii=False) + "\n"


def _view_call(numbered: NumberedCall) -> dict[str, Any]:
    execution = numbered.execution
    try:
        arguments: Any = json.loads(numbered.call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = numbered.call.arguments
    view = {"name": numbered.call.name, "arguments": arguments, "outcome": None, "result": None}
    if execution is not None:
        view |= {"outcome": execution.outcome, "result": format_content(execution.result.content)}
    return view


def format_content(content: tuple[Content, ...]) -> str:
    """Format result parts as text; media are described by type and size."""
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
            return "(data in a vendor-specific format)"
        case _:
            assert_never(part)


def format_json(text: str) -> str:
    """Indent JSON; return any other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _format_arguments(call: ToolCall) -> str:
    try:
        arguments: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return " ".join(call.arguments.split())
    members = cast("dict[str, Any]", arguments)
    pairs = (
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in members.items()
    )
    return " ".join(", ".join(pairs).split())


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= max(limit, 20) else f"{text[: max(limit, 20) - 1]}…"


def suggest_remedy(problem: Problem) -> str:
    """Return what the user can do about a problem, or ""."""
    if problem.retry_after:
        return f"wait {problem.retry_after:g} seconds and try again, {_OTHER_MODEL}"
    return _CODES.get(problem.code) or _REMEDIES.get(problem.kind, "")


def has_answer(ended: RunEnded) -> bool:
    """Return whether a run ended with a complete answer."""
    return (
        ended.problem is None
        and ended.stop in _ANSWERED
        and ended.finish.reason not in _FINISHES
        and bool(ended.text.strip())
    )


def describe_end(ended: RunEnded) -> str:
    """Return a note on an unusual end of a run; "" for a normal answer."""
    note = _STOPS.get(ended.stop) or _FINISHES.get(ended.finish.reason, "")
    if not note and ended.stop == "finished" and not ended.text.strip():
        note = "the model returned an empty answer: try again"
    return note
