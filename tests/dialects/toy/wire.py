"""The JSON of Toy: a conversation is a list of lines, each a text, a call or a result."""

from typing import Annotated, Literal

from msgspec import Raw

from dragoman.core.value import Extras
from dragoman.wire.shape import ABSENT, Wire, core_field, core_location
from dragoman.wire.unread import Unknown

NAME = ISSUER = "toy"


class ToySay(Wire, tag="say"):
    """A line of text in a conversation."""

    by: Literal["rule", "human", "model"]
    text: str


class ToyCall(Wire, tag="call"):
    """A call of a tool; `input` is JSON as the model wrote it."""

    id: Annotated[str, core_location("call.id")]
    tool: str
    input: Annotated[str, core_location("call.arguments")]


class ToyResult(Wire, tag="result"):
    """What a tool answered."""

    of: Annotated[str, core_location("result.call_id")]
    text: str
    failed: Annotated[bool, core_location("result.failed")] = False


Line = ToySay | ToyCall | ToyResult | Unknown


class ToyRequest(Wire):
    """A request."""

    lines: Annotated[list[Line], core_location("messages")]
    model: Annotated[str | None, core_location("model")] = None
    tools: Annotated[Raw, core_location("tools")] = ABSENT
    pick: Annotated[Literal["auto", "none", "required"] | None, core_location("tool_choice")] = None
    limit: Annotated[int | None, core_field("sampling.max_tokens")] = None
    heat: Annotated[float | None, core_field("sampling.temperature")] = None
    stream: Annotated[bool, core_location("stream")] = False


class ToyTool(Wire):
    """A tool of the caller's."""

    tool: str
    about: str = ""
    takes: Annotated[Raw, core_location("tool.parameters")] = ABSENT


class ToyTokens(Wire):
    """How many tokens were read and written."""

    read: int
    written: int


class ToyReply(Wire):
    """A whole reply."""

    id: str
    model: str
    lines: list[Line]
    end: str
    tokens: ToyTokens | None = None


def extras_of(fields: dict[str, bytes] | None) -> Extras | None:
    """Return unknown fields as extras of this dialect."""
    return Extras(NAME, fields) if fields else None
