"""How the vendor says what is wrong with a body, and where.

Its paths are dotted and name the type of what they pass: `messages.0.content.1.tool_result.tool_use_id`. Where only one
type is possible (blocks of `system`, the output format) it is not named.
"""

from collections.abc import Callable, Iterable
from typing import Any

from dragoman.simulator.members import Mismatch, Number, Tags, Words
from dragoman.wire.pointer import split

_UNTAGGED = frozenset({"system", "format", "output_format", "mcp_servers", "task_budget", "compaction", "skills", ""})
_EXPECTED = {
    "str": "a valid string",
    "int": "a valid integer",
    "float": "a valid number",
    "bool": "a valid boolean",
    "array": "a valid list",
    "object": "an object",
}
NOT_PERMITTED = "Extra inputs are not permitted"


def dotted(where: str) -> str:
    """Write a pointer with dots."""
    return where[1:].replace("/", ".")


def extra(where: str, _: Any = None) -> str:
    """A member nobody knows."""
    return f"{dotted(where)}: {NOT_PERMITTED}"


def custom(words: str) -> Callable[[str, Any], str]:
    """Return words about a place within a tool of the caller's own."""

    def say(where: str, _: Any) -> str:
        tools, number, *rest = dotted(where).split(".")
        return f"{'.'.join((tools, number, 'custom', *rest))}: {words}"

    return say


def unknown_tag(value: Any, known: Iterable[str] = ()) -> str:
    """A type that is not listed."""
    tags = ", ".join(f"'{tag}'" for tag in known)
    return f"Input tag '{value}' found using 'type' does not match any of the expected tags{': ' if tags else ''}{tags}"


def describe(found: Mismatch, document: Any) -> str:
    """Say how a document departs from its declaration."""
    tokens = split(found.where)
    match found.fault:
        case "unknown-field":
            return f"{_path([*tokens, found.name], document)}: {NOT_PERMITTED}"
        case "required":
            return f"{_path([*tokens, found.name], document)}: Field required"
        case "enum" if isinstance(found.kind, Tags) and tokens[-1] == "role":
            return f'messages: Unexpected role "{found.value}". Allowed roles are "user", "assistant" or "system"'
        case "enum" if isinstance(found.kind, Tags):
            return f"{_path(tokens[:-1], document)}: {unknown_tag(found.value, found.kind.words)}"
        case "type" if tokens[-1:] == ["input_schema"]:
            return f"{_path(tokens, document)}: Input does not match the expected shape."
        case _:
            return f"{_path(tokens, document)}: Input should be {_expected(found)}"


def _expected(found: Mismatch) -> str:
    kind = found.kind
    if found.fault == "enum" and isinstance(kind, Words):
        quoted = [f"'{word}'" for word in kind.words]
        return " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
    if found.fault == "bounds" and isinstance(kind, Number):
        is_low = kind.least is not None and found.value < kind.least
        relation, bound = ("greater", kind.least) if is_low else ("less", kind.most)
        return f"{relation} than or equal to {float(bound or 0) if kind.types == ('float',) else bound}"
    return _EXPECTED[kind.types[0]]


def _path(tokens: list[str], document: Any) -> str:
    """Write where as the vendor does: before each member stands the type of the object that it is a member of."""
    written: list[str] = []
    value, member = document, ""
    for token in tokens:
        if isinstance(value, dict) and member not in _UNTAGGED:
            tag: Any = value.get("type", "custom" if member == "tools" else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            written += [tag] if isinstance(tag, str) else []
        written.append(token)
        member = member if token.isdecimal() else token
        value = _step(value, token)
    return ".".join(written) or "body"


def _step(value: Any, token: str) -> Any:
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):  # pyright: ignore[reportUnknownArgumentType]
        return value[int(token)]  # pyright: ignore[reportUnknownVariableType]
    return value.get(token) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
