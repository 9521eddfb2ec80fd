"""OpenAI's error texts and its notation for parameters."""

from collections.abc import Callable, Iterable
from typing import Any

from dragoman.simulator.apis.declarations import ANY_KEY, MapOf, Mismatch, Number, String, StringEnum
from dragoman.wire.json import encode
from dragoman.wire.pointer import escape, split

_EXPECTED_TYPES = {
    "int": "an integer",
    "float": "a decimal",
    "str": "a string",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array of objects",
}
_FOUND_TYPES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal number",
    str: "a string",
    dict: "an object",
    list: "an array",
}


def format_pointer(pointer: str) -> str:
    """Return a JSON pointer in OpenAI's notation for parameters: `messages[0].content`."""
    name = ""
    for token in split(pointer):
        if token == ANY_KEY:
            break
        name += f"[{token}]" if token.isdecimal() else f".{token}" if name else token
    return name


def join_quoted(values: Iterable[str], last: str = "and") -> str:
    """Return `'a', 'b', and 'c'`."""
    quoted = [f"'{word}'" for word in values]
    if len(quoted) < 3:
        return f" {last} ".join(quoted)
    return f"{', '.join(quoted[:-1])}, {last} {quoted[-1]}"


def describe_unknown(pointer: str, _: Any = None) -> str:
    """Return the error text for an unknown parameter."""
    return f"Unknown parameter: '{format_pointer(pointer)}'."


def describe_missing(pointer: str, _: Any = None) -> str:
    """Return the error text for a missing required parameter."""
    return f"Missing required parameter: '{format_pointer(pointer)}'."


def describe_unsupported(pointer: str, _: Any = None) -> str:
    """Return the error text for a parameter that the model does not support."""
    return f"Unsupported parameter: '{split(pointer)[-1]}' is not supported with this model."


def describe_only_allowed_with(required: str) -> Callable[[str, Any], str]:
    """Return a function that gives the error text for a parameter sent without a required other one."""
    return lambda pointer, _: (
        f"Invalid value for '{format_pointer(pointer)}': '{format_pointer(pointer)}' is only allowed when "
        f"'{required}' are specified."
    )


def describe_invalid_value(value: str, supported: Iterable[str]) -> str:
    """Return the error text for a value that is not in an enum."""
    return f"Invalid value: '{value}'. Supported values are: {join_quoted(supported)}."


def describe_empty_array(pointer: str) -> str:
    """Return the error text for an empty array."""
    return (
        f"Invalid '{format_pointer(pointer)}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead."
    )


def describe_long_array(pointer: str, most: int, length: int) -> str:
    """Return the error text for an array with too many items."""
    return (
        f"Invalid '{format_pointer(pointer)}': array too long. Expected an array with maximum length {most}, "
        f"but got an array with length {length} instead."
    )


def describe_too_many_properties(pointer: str, most: int, count: int) -> str:
    """Return the error text for an object with too many properties."""
    return (
        f"Invalid '{format_pointer(pointer)}': too many properties. Expected an object with at most {most} properties, "
        f"but got an object with {count} properties instead."
    )


def describe_empty_string(pointer: str) -> str:
    """Return the error text for an empty string."""
    return (
        f"Invalid '{format_pointer(pointer)}': empty string. Expected a string with minimum length 1, "
        "but got an empty string instead."
    )


def describe_long_string(pointer: str, most: int, length: int) -> str:
    """Return the error text for a string that is too long."""
    return (
        f"Invalid '{format_pointer(pointer)}': string too long. Expected a string with maximum length {most}, "
        f"but got a string with length {length} instead."
    )


def describe_pattern_mismatch(pointer: str, pattern: str) -> str:
    """Return the error text for a string that does not match a pattern."""
    return (
        f"Invalid '{format_pointer(pointer)}': string does not match pattern. "
        f"Expected a string that matches the pattern '{pattern}'."
    )


def describe_out_of_bounds(pointer: str, value: Any, kind: Number) -> str:
    """Return the error text for a number that is too small or too large."""
    name = "integer" if kind.types == ("int",) else "decimal"
    is_low = kind.least is not None and value < kind.least
    side, relation, bound = ("below minimum", ">=", kind.least) if is_low else ("above maximum", "<=", kind.most)
    got = "another" if pointer.endswith(ANY_KEY) else encode(value).decode()
    expected = f"Expected a value {relation} {bound:g}, but got {got} instead."
    return f"Invalid '{format_pointer(pointer)}': {name} {side} value. {expected}"


def describe_mismatch(found: Mismatch) -> str:
    """Return the error text for a mismatch of a body with its declaration."""
    inside = f"{found.where}/{escape(found.name)}"
    match found.reason:
        case "unknown-field":
            return describe_unknown(inside)
        case "required":
            return describe_missing(inside)
        case "enum" if isinstance(found.kind, StringEnum):
            return describe_invalid_value(found.value, found.kind.allowed)
        case "bounds" if isinstance(found.kind, Number):
            return describe_out_of_bounds(found.where, found.value, found.kind)
        case "bounds" if isinstance(found.kind, MapOf):
            return describe_too_many_properties(found.where, found.kind.most or 0, len(found.value))
        case "bounds" if isinstance(found.kind, String):
            length, most = len(found.value), found.kind.most or 0
            return describe_long_string(found.where, most, length) if length else describe_empty_string(found.where)
        case _:
            return _describe_wrong_type(found)


def _describe_wrong_type(found: Mismatch) -> str:
    expected = [_EXPECTED_TYPES[name] for name in found.kind.types]
    wanted = " or ".join([expected[0], *(word.split(" ", 1)[1] for word in expected[1:])])
    several = "one of " if len(expected) > 1 else ""
    got = next((words for kind, words in _FOUND_TYPES.items() if isinstance(found.value, kind)), "null")
    return f"Invalid type for '{format_pointer(found.where)}': expected {several}{wanted}, but got {got} instead."
