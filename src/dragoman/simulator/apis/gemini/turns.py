"""Contents as turns: those that follow each other from one side are one turn, as Google takes them.

Results of functions are the user's, in whatever role they come (recorded: Code Assist clients send them as the model).
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from dragoman.simulator.apis.gemini.proto import items_of, members_of
from dragoman.simulator.apis.gemini.shape import Content, FunctionCall, FunctionResponse, GenerateContentRequest, Part

Side = Literal["user", "model"]
_EXACT = 1 << 53


class Placed(Struct, frozen=True):
    """A part, and where it stands."""

    content: int
    index: int
    part: Part

    @property
    def where(self) -> str:
        """Its pointer."""
        return f"/contents/{self.content}/parts/{self.index}"


class Turn(Struct, frozen=True):
    """What one side said before the other spoke."""

    side: Side
    parts: tuple[Placed, ...]

    @property
    def calls(self) -> list[tuple[Placed, FunctionCall]]:
        """Its calls of functions."""
        return [(placed, placed.part.function_call) for placed in self.parts if placed.part.function_call is not None]

    @property
    def results(self) -> list[tuple[Placed, FunctionResponse]]:
        """Its results of functions."""
        return [
            (placed, placed.part.function_response)
            for placed in self.parts
            if placed.part.function_response is not None
        ]

    @property
    def only_results(self) -> bool:
        """Whether there is nothing but results in it."""
        return bool(self.parts) and all(placed.part.function_response is not None for placed in self.parts)


def side_of(content: Content) -> Side:
    """Whose a content is."""
    parts = content.parts or []
    if any(part.function_response is not None for part in parts):
        return "user"
    return "model" if content.role == "model" else "user"


def turns_of(request: GenerateContentRequest) -> tuple[Turn, ...]:
    """Gather contents into turns."""
    gathered: list[tuple[Side, list[Placed]]] = []
    for number, content in enumerate(request.contents or []):
        side = side_of(content)
        if not gathered or gathered[-1][0] != side:
            gathered.append((side, []))
        gathered[-1][1].extend(Placed(number, index, part) for index, part in enumerate(content.parts or []))
    return tuple(Turn(side, tuple(parts)) for side, parts in gathered)


def current_turn(turns: tuple[Turn, ...]) -> Iterator[Turn]:
    """Yield the model's steps since the user last said something that is not a result."""
    begin = 0
    for number, turn in enumerate(turns):
        if turn.side == "user" and not turn.only_results:
            begin = number
    yield from (turn for turn in turns[begin:] if turn.side == "model")


def signed_content(part: Part) -> str:
    """Return what a signature on a part is bound to: a call with its arguments, or that it is no call.

    A text may come back cut into other pieces than it was sent in, so it is not looked at.
    """
    call = part.function_call
    if call is None:
        return "text"
    return msgspec.json.encode(["call", call.name, plain(call.args or {})], order="sorted").decode()


def plain(value: Any) -> Any:
    """Write numbers as protobuf's Struct keeps them: 5 and 5.0 are one."""
    members = members_of(value)
    if members is not None:
        return {name: plain(item) for name, item in members.items()}
    items = items_of(value)
    if items is not None:
        return [plain(item) for item in items]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value
