"""The JSON of Toy: a conversation is a list of lines, each a text, a call or a result."""

from typing import Literal

from msgspec import Raw

from dragoman.core.value import Extras
from dragoman.wire.shape import ABSENT, Wire
from dragoman.wire.unread import Unknown

NAME = ISSUER = "toy"


class SayLine(Wire, tag="say"):
    """A line of text in a conversation."""

    by: Literal["rule", "human", "model"]
    text: str


class CallLine(Wire, tag="call"):
    """A call of a tool; `input` is JSON as the model wrote it."""

    id: str
    tool: str
    input: str


class ResultLine(Wire, tag="result"):
    """What a tool answered."""

    of: str
    text: str
    failed: bool = False


Line = SayLine | CallLine | ResultLine | Unknown


class RequestShape(Wire):
    """A request."""

    lines: list[Line]
    model: str | None = None
    tools: Raw = ABSENT
    pick: Literal["auto", "none", "required"] | None = None
    limit: int | None = None
    heat: float | None = None
    stream: bool = False


class ToolShape(Wire):
    """A tool of the caller's."""

    tool: str
    about: str = ""
    takes: Raw = ABSENT


class TokensShape(Wire):
    """How many tokens were read and written."""

    read: int
    written: int


class ReplyShape(Wire):
    """A whole reply."""

    id: str
    model: str
    lines: list[Line]
    end: str
    tokens: TokensShape | None = None


def extras_of(fields: dict[str, bytes] | None) -> Extras | None:
    """Return unknown fields as extras of this dialect."""
    return Extras(NAME, fields) if fields else None
