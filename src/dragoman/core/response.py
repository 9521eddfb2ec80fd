"""A reply in the neutral language."""

from typing import Literal

from msgspec import Struct

from dragoman.core.parts import AnyPart
from dragoman.core.value import Extras, Value

FinishReason = Literal["stop", "length", "tool_calls", "filtered", "refused", "paused", "malformed_call", "other"]


class Finish(Struct, frozen=True):
    """Why the model stopped. `raw` is the vendor's own word; `sequence` the stop sequence that was hit."""

    reason: FinishReason
    raw: str = ""
    sequence: str | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens. `input` INCLUDES cached and cache_written, `output` INCLUDES reasoning; None was not reported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None
    extras: Extras | None = None


class Response(Value, frozen=True, kw_only=True, eq=False):
    """A whole reply. No `spelling` means that its document has every value exactly where its pointer says."""

    id: str
    model: str
    parts: tuple[AnyPart, ...]
    finish: Finish
    usage: Usage | None = None
    created: int | None = None
