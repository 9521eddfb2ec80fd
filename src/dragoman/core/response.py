"""A complete reply in the core, with its finish reason and token usage."""

from typing import Literal

from msgspec import Struct

from dragoman.core.parts import AnyPart
from dragoman.core.value import Extras, Value

FinishReason = Literal["stop", "length", "tool_calls", "filtered", "refused", "paused", "malformed_call", "other"]


class Finish(Struct, frozen=True):
    """Why the model stopped. `raw` is the vendor's own value; `sequence` is the stop sequence that was generated."""

    reason: FinishReason
    raw: str = ""
    sequence: str | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """Token counts. `input` INCLUDES cached and cache_written, `output` INCLUDES reasoning; None: not reported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None
    searches: int | None = None
    """How many web searches the provider ran."""
    extras: Extras | None = None


def add_usage(one: Usage | None, other: Usage | None) -> Usage:
    """Add the usage of two replies; a count that neither reports stays None."""
    if one is None or other is None:
        return one or other or Usage()
    return Usage(
        input=_add_counts(one.input, other.input),
        output=_add_counts(one.output, other.output),
        cached=_add_counts(one.cached, other.cached),
        cache_written=_add_counts(one.cache_written, other.cache_written),
        reasoning=_add_counts(one.reasoning, other.reasoning),
        searches=_add_counts(one.searches, other.searches),
    )


def _add_counts(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


class Response(Value, frozen=True, kw_only=True, eq=False):
    """A complete reply. If `spelling` is empty, every value is in its document exactly at its pointer."""

    id: str
    model: str
    parts: tuple[AnyPart, ...]
    finish: Finish
    usage: Usage | None = None
    created: int | None = None
