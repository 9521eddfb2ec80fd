"""What the vendor says of a body that has not the right shape.

`say` only notes what is wrong: the vendor's sentences name the value that was found and the words that are taken, and
those are told by `finished`, which has the document at hand and the tree of types the body is held to.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, cast

from msgspec import inspect

from dragoman.simulator.rule import Json, Violation
from dragoman.simulator.shape import Misshapen
from dragoman.wire.pointer import split

NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
_NOTE = "\x1f"
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
_ROLES = ("assistant", "system", "developer", "user")
_ORDERS = (
    ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    ("none", "auto", "required"),
    ("concise", "detailed", "auto"),
    ("in_memory", "24h"),
    (
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    ),
)
"""Words in the vendor's order; all others are told by the alphabet."""
_RANGE = re.compile(r"Expected `(int|float)` (>=|<=) ([-\d.]+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_NEAR = 2


def say(wrong: Misshapen) -> str:
    """Note what is wrong, for `finished`."""
    return _NOTE.join((wrong.fault, wrong.name, wrong.words))


@cache
def tree(hint: Any) -> inspect.Type:
    """Return the types a body is held to; looked up only when something is wrong, since that takes a while."""
    return inspect.type_info(hint)


def finished(wrong: Violation, document: Json, types: inspect.Type, members: Sequence[str]) -> Violation:
    """Say in full what `say` noted."""
    fault, name, noted = wrong.message.split(_NOTE)
    where = wrong.where.removesuffix("/...")
    if fault in {"unknown-field", "required"}:
        where = f"{where}/{name}"
    path = path_of(where)
    match fault:
        case "unknown-field":
            message = _unknown(path, document, members)
        case "required":
            message = f"Missing required parameter: '{path}'."
        case "enum":
            message = _not_among(_value_at(document, where), _taken(types, where, document))
        case "type":
            expected = _SPOKEN.get(where) or _expected(list(_types_at(types, where, document)))
            message = (
                f"Invalid type for '{path}': expected {expected}, but got {_kind(_value_at(document, where))} instead."
            )
        case "bounds":
            message = _out_of_bounds(path, noted, _value_at(document, where))
        case _:
            message = NOT_JSON
    return Violation(message, where, wrong.status, wrong.rule)


def path_of(where: str) -> str:
    """Write a pointer as the vendor does: `input[0].content`."""
    path = ""
    for token in split(where):
        path += f"[{token}]" if token.isdigit() else f".{token}" if path else token
    return path


def listed(values: Iterable[str], last: str = "and") -> str:
    """Join words as the vendor does: 'a', 'b', and 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return f" {last} ".join(quoted)
    return f"{', '.join(quoted[:-1])}, {last} {quoted[-1]}"


def too_long(path: str, limit: int | str, length: int) -> str:
    """Say that a text is too long."""
    return (
        f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with "
        f"length {length} instead."
    )


def not_a_name(path: str) -> str:
    """Say that a text is not a name."""
    pattern = "'^[a-zA-Z0-9_-]+$'"
    return f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern {pattern}."


def unsupported(value: str, model: str, taken: Iterable[str]) -> str:
    """Say that a model does not take a value others take."""
    words = f"Unsupported value: '{value}' is not supported with the '{model}' model."
    return f"{words} Supported values are: {listed(taken)}."


def _unknown(path: str, document: Json, members: Sequence[str]) -> str:
    if path in _MOVED:
        return (
            f"Unsupported parameter: '{path}'. In the Responses API, this parameter has moved to '{_MOVED[path]}'. Try "
            "again with the new parameter. See the API documentation for more information: "
            "https://platform.openai.com/docs/api-reference/responses/create."
        )
    message = f"Unknown parameter: '{path}'."
    if "." in path:
        return message
    distances = ((_distance(path, member), member) for member in members if member not in document)
    near = [member for _, member in sorted(pair for pair in distances if pair[0] <= _NEAR)]
    return f"{message} Did you mean {listed(near, 'or')}?" if near else message


def _distance(one: str, other: str) -> int:
    """How many letters must change."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row[0] = row[0], count
        for at, wanted in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (letter != wanted))
    return row[-1]


def _not_among(value: Any, taken: Sequence[str]) -> str:
    spoken = value if isinstance(value, str) else ""
    return f"Invalid value: '{spoken}'. Supported values are: {listed(taken)}."


def _out_of_bounds(path: str, noted: str, value: Any) -> str:
    number = _RANGE.match(noted)
    if number is not None:
        kind = "integer" if number[1] == "int" else "decimal"
        side = "below minimum" if number[2] == ">=" else "above maximum"
        limit = number[3].removesuffix(".0")
        return f"Invalid '{path}': {kind} {side} value. Expected a value {number[2]} {limit}, but got {value} instead."
    length = _LENGTH.match(noted)
    if length is None:
        return f"Invalid '{path}': {noted}."
    limit = length[3]
    if length[1] == "object" and isinstance(value, dict):
        count = len(cast("Json", value))
        return (
            f"Invalid '{path}': too many properties. Expected an object with at most {limit} properties, but got an "
            f"object with {count} properties instead."
        )
    if length[2] == ">=":
        return (
            f"Invalid '{path}': empty string. Expected a string with minimum length {limit}, but got an empty string "
            "instead."
        )
    return too_long(path, limit, _longest(value))


def _longest(value: Any) -> int:
    if isinstance(value, dict):
        texts = [text for pair in cast("Json", value).items() for text in pair if isinstance(text, str)]
        return max((len(text) for text in texts), default=0)
    return len(value) if isinstance(value, str) else 0


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _value_at(document: Any, where: str) -> Any:
    value: Any = document
    for token in split(where):
        match value:
            case dict():
                value = cast("Json", value).get(token)
            case list() if token.isdigit() and int(token) < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[int(token)]
            case _:
                return None
    return value


def _taken(types: inspect.Type, where: str, document: Json) -> list[str]:
    """The words that are taken at a place."""
    parent, _, member = where.rpartition("/")
    if member == "role" and parent.startswith("/input/"):
        return list(_ROLES)
    taken = [
        str(kind.tag).partition(":")[0]
        for kind in _types_at(types, parent, document, judged=False)
        if isinstance(kind, inspect.StructType) and kind.tag_field == member
    ]
    for kind in _types_at(types, where, document):
        if isinstance(kind, inspect.LiteralType):
            taken += _ordered(kind)
    return list(dict.fromkeys(taken))


def _ordered(kind: inspect.LiteralType) -> Sequence[str]:
    values = [str(value) for value in kind.values]
    return next((order for order in _ORDERS if set(order) == set(values)), values)


def _expected(kinds: Sequence[inspect.Type]) -> str:
    spoken: list[str] = []
    for kind in kinds:
        match kind:
            case inspect.LiteralType():
                spoken.append(f"one of {listed(_ordered(kind), 'or')}")
            case inspect.StrType():
                spoken.append("a string")
            case inspect.BoolType():
                spoken.append("a boolean")
            case inspect.IntType():
                spoken.append("an integer")
            case inspect.FloatType():
                spoken.append("a decimal")
            case inspect.ListType():
                inner = next(_flat(kind.item_type))
                spoken.append("an array of strings" if isinstance(inner, inspect.StrType) else "an array of objects")
            case inspect.StructType() | inspect.DictType():
                spoken.append("an object")
            case _:
                pass
    told = list(dict.fromkeys(spoken))
    return told[0] if len(told) == 1 else f"one of {' or '.join(told)}"


def _types_at(types: inspect.Type, where: str, document: Json, *, judged: bool = True) -> Iterator[inspect.Type]:
    """Types that may stand at a place; of several objects only the one the document means, if that is `judged`."""
    found = list(_flat(types))
    value: Any = document
    tokens = split(where)
    for count, token in enumerate(tokens, 1):
        value = _value_at(value, f"/{token}")
        found = [inner for kind in found for step in _below(kind, token) for inner in _flat(step)]
        if judged or count < len(tokens):
            found = _meant(found, value)
    yield from found


def _below(kind: inspect.Type, token: str) -> Iterator[inspect.Type]:
    match kind:
        case inspect.StructType():
            yield from (field.type for field in kind.fields if field.encode_name == token)
        case inspect.ListType():
            yield kind.item_type
        case inspect.DictType():
            yield kind.value_type
        case _:
            return


def _meant(kinds: list[inspect.Type], value: Any) -> list[inspect.Type]:
    if not isinstance(value, dict):
        return kinds
    known = cast("Json", value)
    return [
        kind
        for kind in kinds
        if not isinstance(kind, inspect.StructType) or kind.tag_field is None or known.get(kind.tag_field) == kind.tag
    ]


def _flat(kind: inspect.Type) -> Iterator[inspect.Type]:
    match kind:
        case inspect.UnionType():
            for inner in kind.types:
                yield from _flat(inner)
        case inspect.Metadata():
            yield from _flat(kind.type)
        case inspect.NoneType():
            return
        case _:
            yield kind
