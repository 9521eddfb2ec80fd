"""The events of a streamed reply: a closed set of types.

Grammar (the tests verify it): exactly one `Started`; parts may interleave; text and arguments arrive
only as `PartDelta`; a part ends with `PartEnded`; usage is a running snapshot and the last one counts; exactly one
`Finished` or `Failed`, and no event after it. Indexes count parts from 0 in the order they started, and are valid only
within the stream.
"""

from msgspec import Struct

from dragoman.core.parts import AnyPart, Citation, Signature
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage


class Started(Struct, frozen=True):
    """The reply starts; the first event of a stream."""

    id: str
    model: str
    created: int | None = None


class PartStarted(Struct, frozen=True):
    """A part begins; its text, reasoning texts or call arguments are empty here and follow as deltas.

    Parts without deltas (Media, Opaque, redacted Reasoning, ToolResult, Data) are complete here.
    """

    index: int
    part: AnyPart


class PartDelta(Struct, frozen=True):
    """A delta of text, refusal, reasoning or arguments. `piece` is the index of one of several reasoning summaries."""

    index: int
    text: str
    piece: int = 0


class PartSigned(Struct, frozen=True):
    """The signature of an open part has arrived."""

    index: int
    signature: Signature


class PartCited(Struct, frozen=True):
    """An open text part has a citation."""

    index: int
    citation: Citation


class PartNative(Struct, frozen=True):
    """An open part has a field that only `dialect` understands; `field` is a JSON pointer relative to the part."""

    index: int
    dialect: str
    field: str
    raw: bytes


class PartEnded(Struct, frozen=True):
    """The part has ended; `complete` is False for a call that was cut off inside its arguments."""

    index: int
    complete: bool = True


class UsageSeen(Struct, frozen=True):
    """The token usage so far, as a snapshot that replaces the one before."""

    usage: Usage


class Native(Struct, frozen=True):
    """The reply has a field that only `dialect` understands; `field` is a JSON pointer into that dialect's reply."""

    dialect: str
    field: str
    raw: bytes


class Finished(Struct, frozen=True):
    """The reply is complete; the last event of a successful stream."""

    finish: Finish


class Failed(Struct, frozen=True):
    """The reply ended in an error; the last event of a failed stream."""

    problem: Problem


Event = (
    Started
    | PartStarted
    | PartDelta
    | PartSigned
    | PartCited
    | PartNative
    | PartEnded
    | UsageSeen
    | Native
    | Finished
    | Failed
)
