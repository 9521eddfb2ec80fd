"""What tools answered, in short: their words, or the values of what they sent."""

from typing import Any

import msgspec

from dragoman.simulator.model.schemas.json_values import a_list, an_object
from dragoman.simulator.talk import Result

_LONGEST = 600
_MOST_VALUES = 16
_DEEPEST = 3
_WRAPPED = ("output", "result", "content", "text")
_LONGEST_JSON = 200_000


def quoted(result: Result) -> str:
    """Say what a tool answered."""
    name = result.name or "the tool"
    failure = _failure(result)
    if failure is not None:
        return f"{name} failed: {failure}" if failure else f"{name} failed and did not say why."
    told = _told(result.text)
    return f"{name} says: {told}" if told else f"{name} answered with nothing."


def read_json(text: str) -> Any:
    """Read a text that is an object or a list in JSON; None if it is not."""
    if text.lstrip()[:1] not in {"{", "["} or len(text) > _LONGEST_JSON:
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _failure(result: Result) -> str | None:
    """The words of a failure, or None if it is none."""
    told = an_object(read_json(result.text))
    error = told.get("error")
    if error and (result.failed or len(told) == 1):
        message = an_object(error).get("message", error)
        return shortened(message if isinstance(message, str) else _told(_json(message)))
    if result.failed:
        return shortened(result.text.strip())
    if result.text.startswith(("Error:", "Error executing", "error:")):
        return shortened(result.text.strip())
    return None


def _told(text: str) -> str:
    value = read_json(text)
    if value is None:
        return shortened(text.strip())
    for _ in range(_DEEPEST):
        told = an_object(value)
        if len(told) == 1 and next(iter(told)) in _WRAPPED:
            value = next(iter(told.values()))
    if isinstance(value, str):
        return shortened(value.strip())
    values = _values(value, "", 0)
    return shortened(", ".join(values)) if values else shortened(text.strip())


def _values(value: Any, name: str, depth: int) -> list[str]:
    """List the simple values of a value with their names."""
    inner = [(key, item) for key, item in an_object(value).items()] + [("", item) for item in a_list(value)]
    if isinstance(value, dict | list):
        if depth > _DEEPEST:
            return [f"{name}: …"] if name else ["…"]
        found: list[str] = []
        for key, item in inner[:_MOST_VALUES]:
            found.extend(_values(item, f"{name}.{key}" if name and key else key or name, depth + 1))
        return found[:_MOST_VALUES]
    text = value if isinstance(value, str) else _json(value)
    return [f"{name}: {text}" if name else text]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def shortened(text: str) -> str:
    """Cut a text that is too long to be quoted."""
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + " …"
