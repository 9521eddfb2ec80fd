"""What OpenAI says on Responses of a body that departs from its declaration, where Chat says something else."""

from typing import Any, cast

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.responses.body import BODY
from dragoman.simulator.members import ANY_NAME, Array, Kind, Mismatch, OneOf, Words
from dragoman.simulator.rule import Json, Violation
from dragoman.wire.pointer import escape

_MOVED = {
    "messages": "input",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
_SPOKEN = {
    "/input": "one of a string or array of input items",
    "/tools": "an array of tools",
    "/metadata": "a metadata object",
    "/tool_choice": "one of an object or 'none', 'auto', or 'required'",
}
_EXPECTED = {"int": "an integer", "float": "a decimal", "str": "a string", "bool": "a boolean", "object": "an object"}
_FOUND: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
}
_NEAR = 2


def violation_of(found: Mismatch, document: Json) -> Violation:
    """Say how a body departs from its declaration."""
    where = f"{found.where}/{escape(found.name)}" if found.name else found.where
    message = words.describe(found)
    if found.fault == "unknown-field" and where.count("/") == 1:
        message = _unknown(found.name, document)
    elif found.fault == "type":
        message = _wrong_type(found)
    return Violation(message, where.removesuffix(f"/{ANY_NAME}"), rule=f"responses.{found.fault}")


def not_supported(value: str, model: str, taken: tuple[str, ...]) -> str:
    """A value that other models take."""
    start = f"Unsupported value: '{value}' is not supported with the '{model}' model."
    return f"{start} Supported values are: {words.listed(taken)}."


def unsupported(pointer: str, _: Any = None) -> str:
    """A parameter that the model does not take, under its full name."""
    return f"Unsupported parameter: '{words.named(pointer)}' is not supported with this model."


def one_of(pointer: str, value: Json, names: tuple[str, ...]) -> str:
    """Members of which exactly one must be there; "" if that is so."""
    given = [name for name in names if value.get(name)]
    if len(given) == 1:
        return ""
    start, how = ("Mutually", "only providing") if given else ("Missing mutually", "providing exactly")
    choice = words.listed(names, "or")
    return f"{start} exclusive parameters: '{words.named(pointer)}'. Ensure you are {how} one of: {choice}."


def _unknown(name: str, document: Json) -> str:
    if name in _MOVED:
        return (
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{_MOVED[name]}'. Try "
            "again with the new parameter. See the API documentation for more information: "
            "https://platform.openai.com/docs/api-reference/responses/create."
        )
    distances = ((_distance(name, member), member) for member in BODY.members if member not in document)
    near = [member for _, member in sorted(pair for pair in distances if pair[0] <= _NEAR)]
    return f"Unknown parameter: '{name}'." + (f" Did you mean {words.listed(near, 'or')}?" if near else "")


def _distance(one: str, other: str) -> int:
    """Return how many letters must change."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for at, wanted in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (letter != wanted))
    return row[-1]


def _wrong_type(found: Mismatch) -> str:
    where = found.where.removesuffix(f"/{ANY_NAME}")
    got = _FOUND.get(type(cast("object", found.value)), "an object")
    expected = _SPOKEN.get(where) or _expected(found.kind)
    if where != found.where:
        # Of a value under a name of the caller's own, the whole object is said to be wrong.
        expected, got = _SPOKEN.get(where, "an object"), "an object"
    return f"Invalid type for '{words.named(where)}': expected {expected}, but got {got} instead."


def _expected(kind: Kind) -> str:
    match kind:
        case OneOf():
            return f"one of {' or '.join(_expected(one) for one in kind.kinds)}"
        case Words():
            return f"one of {words.listed(kind.words, 'or')}"
        case Array():
            return "an array of strings" if kind.items.types == ("str",) and type(kind.items) is Kind else _OBJECTS
        case _:
            return _EXPECTED[kind.types[0]]


_OBJECTS = "an array of objects"
