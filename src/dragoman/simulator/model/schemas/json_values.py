"""Look at JSON without trusting it: what is not of the kind that is asked for is not there."""

from typing import Any, cast

from dragoman.simulator.rule import Json


def an_object(value: Any) -> Json:
    """Return an object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Return the texts of a list, each once."""
    return list(dict.fromkeys(item for item in a_list(value) if isinstance(item, str)))


def a_number(value: Any) -> int | float | None:
    """Return a number; one that is told as text (as int64 is) counts."""
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e300 else None


def a_count(value: Any) -> int | None:
    """Return a number of things."""
    number = a_number(value)
    return int(number) if number is not None and number >= 0 else None


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
