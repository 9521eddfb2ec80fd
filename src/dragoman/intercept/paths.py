"""What a path asks for at an upstream of Google's: a turn of the model, or anything else."""

import re

from msgspec import Struct

_TURN = re.compile(
    r"(?P<before>[^?]*/(?P<room>models|tunedModels|endpoints)/)(?P<model>[^/?]+?)"
    r"(?P<after>(?::|%3[Aa])(?P<verb>generateContent|streamGenerateContent)(?:\?(?P<query>.*))?)"
)
_WRAPPED = re.compile(r".*/v1internal:(?P<verb>generateContent|streamGenerateContent)(?:\?(?P<query>.*))?")
_EVENTS = frozenset({"alt=sse", "$alt=sse", "%24alt=sse"})


class Turn(Struct, frozen=True, kw_only=True):
    """A request for a turn of the model."""

    wrapped: bool = False
    """It stands in Code Assist's envelope."""
    stream: bool = False
    events: bool = False
    """The stream comes as events, not as one array."""
    model: str = ""
    """As the path names it; in the envelope it stands in the body."""


def turn_of(method: str, target: str) -> Turn | None:
    """Return what is asked for; None for anything that is no turn of the model."""
    if method != "POST":
        return None
    found = _TURN.fullmatch(target)
    model = found["model"] if found is not None else ""
    wrapped = found is None
    found = found or _WRAPPED.fullmatch(target)
    if found is None:
        return None
    stream = found["verb"].startswith("stream")
    events = not _EVENTS.isdisjoint((found["query"] or "").split("&"))
    return Turn(wrapped=wrapped, stream=stream, events=events, model=model)


def renamed(target: str, model: str) -> str:
    """Return a path that asks for another model; one that names none is as it was, or one of the user's own tuning."""
    found = _TURN.fullmatch(target)
    if found is None or found["room"] != "models":
        return target
    return f"{found['before']}{model}{found['after']}"
