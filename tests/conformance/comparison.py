"""Compare two readings of one reply, allowing only what the dialects themselves make different."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from oracles import Call, Reading, Usage

_OBJECTS = {"messages", "gemini"}
_REFUSAL_FIELD = {"chat", "responses"}
_DECLINED = {"filtered", "refused"}
_NO_WORD = {"malformed_call", "other"}
"""Finish reasons that only Gemini has; for every other client they are an error."""


def same_reading(theirs: Reading, mine: Reading, *, exact: bool) -> Iterator[str]:
    """Return the differences between two parses of the same bytes; `exact` compares arguments as text."""
    if theirs.problem or mine.problem:
        if bool(theirs.problem) != bool(mine.problem):
            yield f"problem {theirs.problem!r} != {mine.problem!r}"
        return
    yield from _differ("text", theirs.text, mine.text)
    yield from _differ("refusal", theirs.refusal, mine.refusal)
    yield from _differ("reasoning", "".join(theirs.reasoning.split()), "".join(mine.reasoning.split()))
    yield from _calls(theirs.calls, mine.calls, ids=True, exact=exact)
    if theirs.finish:  # some compatible hosts never say why they end
        yield from _differ("finish", theirs.finish, mine.finish)
    yield from _differ("usage", _usage(theirs.usage), _usage(mine.usage))


def build_expected(source: Reading, target: str, *, streamed: bool) -> Reading:
    """Return what a client of `target` should read for a reply of `source`; `problem` means that it must fail."""
    kept = [call for call in source.calls if _sayable(call, source.finish, target, streamed=streamed)]
    finish = source.finish
    if finish == "tool_calls" and len(kept) < len(source.calls):
        finish = "malformed_call"
    if finish == "paused" and target != "messages":
        finish = "length"
    problem = source.problem
    if finish in _NO_WORD and target != "gemini":
        problem = problem or f"no word for {finish}"
    if target == "responses" and finish in _DECLINED and not (source.text or source.refusal or kept):
        problem = problem or "a blocked prompt is a failed response"
    text, refusal = source.text, source.refusal
    if target not in _REFUSAL_FIELD:
        text, refusal = text + refusal, ""
    calls = tuple(_build_expected_call(target, call) for call in kept)
    usage = _consistent(source.usage, target)
    return replace(source, text=text, refusal=refusal, calls=calls, finish=finish, problem=problem, usage=usage)


def _sayable(call: Call, finish: str, target: str, *, streamed: bool) -> bool:
    """Arguments that are not an object cannot be rendered as one; a Messages stream may still be cut inside them."""
    if target not in _OBJECTS or call.form == "text" or _is_object(call.arguments) or _is_nothing(call):
        return True
    return target == "messages" and streamed and finish != "tool_calls" and call.arguments.lstrip().startswith("{")


def _consistent(usage: Usage | None, target: str) -> Usage | None:
    """Messages counts what was not cached, so it cannot say that more was cached than there was (Azure's Grok)."""
    if usage is None or target != "messages" or (usage.cached or 0) <= (usage.input or 0):
        return usage
    return usage._replace(input=usage.cached)


def same_meaning(expected: Reading, got: Reading, *, exact: bool) -> Iterator[str]:
    """Return where a translated reply differs in meaning."""
    if expected.problem or got.problem:
        if bool(expected.problem) != bool(got.problem):
            yield f"problem: wanted {expected.problem!r}, got {got.problem!r}"
        return
    yield from _differ("text", expected.text, got.text)
    yield from _differ("refusal", expected.refusal, got.refusal)
    yield from _differ("reasoning", "".join(expected.reasoning.split()), "".join(got.reasoning.split()))
    yield from _calls(expected.calls, got.calls, ids=False, exact=exact)
    yield from _differ("finish", _decline(expected.finish), _decline(got.finish))
    yield from _differ("usage", _usage(expected.usage), _usage(got.usage))


def _build_expected_call(target: str, call: Call) -> Call:
    """A free-form call is a function with one text where the dialect has no free-form tools."""
    if call.form == "text" and target in _OBJECTS:
        return Call(call.name, json.dumps({"input": call.arguments}), call.id)
    return Call(call.name, "{}", call.id) if target in _OBJECTS and _is_nothing(call) else call


def _is_nothing(call: Call) -> bool:
    """Groq says null for no arguments; an object dialect says an empty object."""
    return call.arguments.strip() == "null"


def _calls(theirs: tuple[Call, ...], mine: tuple[Call, ...], *, ids: bool, exact: bool) -> Iterator[str]:
    if [call.name for call in theirs] != [call.name for call in mine]:
        yield f"calls {theirs} != {mine}"
        return
    for one, other in zip(theirs, mine, strict=True):
        read = _text if exact else _value
        yield from _differ(f"arguments of {one.name}", read(one), read(other))
        yield from _differ(f"form of {one.name}", one.form, other.form)
        if ids:
            yield from _differ("call id", one.id, other.id)
    given = [call.id for call in mine]
    if not ids and (len(set(given)) != len(given) or "" in given):
        yield f"call ids {given} are not unique names"


def _text(call: Call) -> str:
    """No arguments are an empty object."""
    return call.arguments if call.form == "text" else call.arguments or "{}"


def _value(call: Call) -> Any:
    """SDKs that parse arguments write them their own way, so values are compared where both are JSON."""
    if call.form == "text":
        return call.arguments
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return call.arguments


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments or "{}"), dict)
    except ValueError:
        return False


def _decline(finish: str) -> str:
    """Messages has one word for a filter and a refusal; Gemini and a silent Chat reply have only the filter's."""
    return "declined" if finish in _DECLINED else finish


def _usage(usage: Usage | None) -> tuple[int, ...]:
    """SDK types demand numbers where nothing was reported: there zero is the same as nothing."""
    return tuple(count or 0 for count in usage) if usage is not None else (0, 0, 0, 0)


def _differ(what: str, one: Any, other: Any) -> Iterator[str]:
    if one != other:
        yield f"{what} {_short(one)} != {_short(other)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:90]}…{text[-60:]}"
