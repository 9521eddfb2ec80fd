"""A reply as it happens: a closed set of events.

Grammar (`core.stream.checked` tests it): exactly one `Started`; parts may interleave; what grows arrives only
as `PartDelta`; a part is over at `PartEnded`; usage is a running snapshot and the last one wins; exactly one
`Finished` or `Failed`, and nothing after it. Indexes count parts in the order they started, from 0, and are private
to the stream.
"""

from msgspec import Struct

from dragoman.core.parts import AnyPart, Citation, Signature
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage


class Started(Struct, frozen=True):
    """The reply has begun."""

    id: str
    model: str
    created: int | None = None


class PartStarted(Struct, frozen=True):
    """A part begins; text, reasoning texts and call arguments are empty here and grow by deltas.

    Parts that do not grow (Media, Opaque, redacted Reasoning, ToolResult, Data) arrive whole.
    """

    index: int
    part: AnyPart


class PartDelta(Struct, frozen=True):
    """Text, refusal, reasoning or arguments grow. `piece` says which of several reasoning summaries."""

    index: int
    text: str
    piece: int = 0


class PartSigned(Struct, frozen=True):
    """The signature of an open part is known."""

    index: int
    signature: Signature


class PartCited(Struct, frozen=True):
    """An open text part names a source."""

    index: int
    citation: Citation


class PartNative(Struct, frozen=True):
    """An open part has a field only `dialect` understands; `field` is a JSON pointer relative to the part."""

    index: int
    dialect: str
    field: str
    raw: bytes


class PartEnded(Struct, frozen=True):
    """The part is complete; `complete` is False for a call that was cut off inside its arguments."""

    index: int
    complete: bool = True


class UsageSeen(Struct, frozen=True):
    """What has been used so far, as a snapshot."""

    usage: Usage


class Native(Struct, frozen=True):
    """The reply has a field only `dialect` understands; `field` is a JSON pointer into its whole reply."""

    dialect: str
    field: str
    raw: bytes


class Finished(Struct, frozen=True):
    """The model is done."""

    finish: Finish


class Failed(Struct, frozen=True):
    """The reply ended in an error."""

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
