"""OpenAI's error texts for malformed bodies on Responses, where they differ from those on Chat Completions."""

from typing import Any, cast

from dragoman.simulator.apis.declarations import ANY_KEY, Array, Kind, Mismatch, OneOf, StringEnum
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.responses.body import BODY
from dragoman.simulator.apis.rule import Json, Violation
from dragoman.wire.pointer import escape

_MOVED_PARAMETERS = {
    "messages": "input",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
_EXPECTED_BY_POINTER = {
    "/input": "one of a string or array of input items",
    "/tools": "an array of tools",
    "/metadata": "a metadata object",
    "/tool_choice": "one of an object or 'none', 'auto', or 'required'",
}
_EXPECTED_TYPES = {
    "int": "an integer",
    "float": "a decimal",
    "str": "a string",
    "bool": "a boolean",
    "object": "an object",
}
_FOUND_TYPES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
}
_MAX_DISTANCE = 2


def build_violation(found: Mismatch, document: Json) -> Violation:
    """Return the violation for a mismatch of a body with its declaration."""
    where = f"{found.where}/{escape(found.name)}" if found.name else found.where
    message = words.describe_mismatch(found)
    if found.reason == "unknown-field" and where.count("/") == 1:
        message = _describe_unknown(found.name, document)
    elif found.reason == "type":
        message = _describe_wrong_type(found)
    return Violation(message, where.removesuffix(f"/{ANY_KEY}"), rule=f"responses.{found.reason}")


def describe_unsupported_value(value: str, model: str, supported: tuple[str, ...]) -> str:
    """Return the error text for a value that this model does not support."""
    start = f"Unsupported value: '{value}' is not supported with the '{model}' model."
    return f"{start} Supported values are: {words.join_quoted(supported)}."


def describe_unsupported_parameter(pointer: str, _: Any = None) -> str:
    """Return the error text for a parameter that the model does not support, with its full path."""
    return f"Unsupported parameter: '{words.format_pointer(pointer)}' is not supported with this model."


def describe_one_of(pointer: str, value: Json, names: tuple[str, ...]) -> str:
    """Return the error text unless exactly one of the fields is given; "" if that is so."""
    given = [name for name in names if value.get(name)]
    if len(given) == 1:
        return ""
    start, how = ("Mutually", "only providing") if given else ("Missing mutually", "providing exactly")
    choice = words.join_quoted(names, "or")
    return f"{start} exclusive parameters: '{words.format_pointer(pointer)}'. Ensure you are {how} one of: {choice}."


def _describe_unknown(name: str, document: Json) -> str:
    if name in _MOVED_PARAMETERS:
        return (
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to "
            f"'{_MOVED_PARAMETERS[name]}'. Try again with the new parameter. "
            "See the API documentation for more information: "
            "https://platform.openai.com/docs/api-reference/responses/create."
        )
    distances = ((_count_edits(name, member), member) for member in BODY.members if member not in document)
    near = [member for _, member in sorted(pair for pair in distances if pair[0] <= _MAX_DISTANCE)]
    return f"Unknown parameter: '{name}'." + (f" Did you mean {words.join_quoted(near, 'or')}?" if near else "")


def _count_edits(one: str, other: str) -> int:
    """Return the edit distance of two names."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for at, wanted in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (letter != wanted))
    return row[-1]


def _describe_wrong_type(found: Mismatch) -> str:
    where = found.where.removesuffix(f"/{ANY_KEY}")
    got = _FOUND_TYPES.get(type(cast("object", found.value)), "an object")
    expected = _EXPECTED_BY_POINTER.get(where) or _describe_expected(found.kind)
    if where != found.where:
        # For a wrong value under an arbitrary key, the vendor reports the whole object.
        expected, got = _EXPECTED_BY_POINTER.get(where, "an object"), "an object"
    return f"Invalid type for '{words.format_pointer(where)}': expected {expected}, but got {got} instead."


def _describe_expected(kind: Kind) -> str:
    match kind:
        case OneOf():
            return f"one of {' or '.join(_describe_expected(one) for one in kind.kinds)}"
        case StringEnum():
            return f"one of {words.join_quoted(kind.allowed, 'or')}"
        case Array():
            return "an array of strings" if kind.items.types == ("str",) and type(kind.items) is Kind else _OBJECTS
        case _:
            return _EXPECTED_TYPES[kind.types[0]]


_OBJECTS = "an array of objects"
