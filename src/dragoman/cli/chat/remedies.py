"""What went wrong in plain words, and what to do about it."""

from collections.abc import Mapping

from dragoman.agent import RunEnded, StopReason
from dragoman.core.problems import Kind, Problem
from dragoman.core.response import FinishReason

_OTHER = "or ask another model (/model, --model)"
_LATER = f"ask again in a moment, {_OTHER}"
_KEY = "see to the key of that upstream: `dragoman doctor` tries it"
_CODES: Mapping[str | None, str] = {
    "credentials": _KEY,
    "sessions": "see to [sessions] url in the configuration, or go on without --session",
}
_REMEDIES: Mapping[Kind, str] = {
    "authentication": _KEY,
    "permission": _KEY,
    "billing": f"the account wants money, {_OTHER}",
    "not_found": "`/model` lists the models there are",
    "rate_limit": _LATER,
    "overloaded": _LATER,
    "timeout": _LATER,
    "conflict": "ask again",
    "unreachable": "see to the network, and to the address of that upstream: `dragoman doctor` tries it",
    "context_length": "begin anew with /new, or ask a model that takes more",
    "too_large": "say less at once",
    "policy": "say it in other words",
    "invalid_request": f"use fewer tools (--tools, --no-tools), {_OTHER}",
    "unsupported": f"use fewer tools (--tools, --no-tools), {_OTHER}",
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


def remedy(problem: Problem) -> str:
    """Return what to do about a problem; "" if nothing is known."""
    if problem.retry_after:
        return f"wait {problem.retry_after:g} seconds and ask again, {_OTHER}"
    return _CODES.get(problem.code) or _REMEDIES.get(problem.kind, "")


def succeeded(ended: RunEnded) -> bool:
    """Tell whether a run ended with an answer that is one."""
    return (
        ended.problem is None
        and ended.stop in _ANSWERED
        and ended.finish.reason not in _FINISHES
        and bool(ended.text.strip())
    )


def worth_saying(ended: RunEnded) -> str:
    """Return what there is to say of how a run ended; "" if it is an answer like any other."""
    words = _STOPS.get(ended.stop) or _FINISHES.get(ended.finish.reason, "")
    if not words and ended.stop == "finished" and not ended.text.strip():
        words = "the model said nothing: ask again"
    return words
