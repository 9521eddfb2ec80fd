"""What an official SDK made of a reply, in words that mean the same in every dialect.

Nothing in this package imports the project: these are the judges.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A tool call. `arguments` is the text where the SDK keeps it, else the SDK's value written as JSON."""

    name: str
    arguments: str
    id: str
    form: str = "json"


class Usage(NamedTuple):
    """Tokens: `input` includes cached, `output` includes reasoning; None was not reported."""

    input: int | None
    output: int | None
    cached: int | None
    reasoning: int | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reply. `problem` is the exception the SDK raised, or what makes its reading doubtful; "" is good."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    usage: Usage | None = None
    refusal: str = ""
    reasoning: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """The exception an SDK raised: its class, and what a caller can decide on."""

    name: str
    bases: tuple[str, ...] = ()
    status: int | None = None
    type: str | None = None
    code: str | int | None = None
    message: str = ""


def get_error(error: BaseException, **facts: Any) -> Raised:
    """Describe an exception."""
    return Raised(
        name=type(error).__name__,
        bases=tuple(base.__name__ for base in type(error).__mro__),
        message=str(error),
        **facts,
    )


def describe_error(error: BaseException) -> str:
    """Say an exception in one line, with the cause that pydantic names."""
    cause = error.__cause__
    return f"{type(error).__name__}: {error}"[:600] + (f" <- {cause}"[:600] if cause is not None else "")


def finish_after(word: str, *, calls: bool, refusal: bool) -> str:
    """A plain end after a call is a call's end, after a refusal a refusal."""
    if word != "stop":
        return word
    return "tool_calls" if calls else "refused" if refusal else "stop"


def as_json(value: Any) -> str:
    """Write a value the SDK parsed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def add_counts(*counts: int | None) -> int | None:
    """Add what was reported; nothing reported is None."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
