"""Check a dialect's table of pointers against its own requests."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from dragoman.core.parts import Media, Part, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Tool
from dragoman.dialects.record import Call, Dialect

_OWNERS: dict[str, type] = {
    "tool": Tool,
    "part": Part,
    "message": Message,
    "call": ToolCall,
    "result": ToolResult,
    "media": Media,
}


def check_pointers(dialect: Dialect, documents: list[dict[str, Any]], replies_only: tuple[str, ...] = ()) -> None:
    """Every pointer leads, in one of the documents, to what its core field says."""
    read = [(document, dialect.parse_request(Call(json.dumps(document).encode(), "m"))) for document in documents]
    for key, pointers in dialect.pointers.items():
        for pointer in () if key in replies_only else pointers:
            owner = _OWNERS.get(key.partition(".")[0])
            found = [_leads(dialect, key, pointer, document, request) for document, request in read if owner is None]
            found += [_says(key, pointer, owner, *one) for one in read if owner is not None]
            assert any(found), f"{key} is not at {pointer} in any document"


def _leads(dialect: Dialect, key: str, pointer: str, document: dict[str, Any], before: Request) -> bool:
    """Without the value, its field changes and no other does; one that is required says the same as its field."""
    if resolve(document, pointer) is None:
        return False
    try:
        after = dialect.parse_request(Call(json.dumps(_without(document, pointer)).encode(), "other model"))
    except Problem:
        return _field(before, key) == resolve(document, pointer)
    root = key.partition(".")[0]
    for other in dialect.pointers:
        if other.partition(".")[0] not in (root, *_OWNERS, "model"):
            assert _field(after, other) == _field(before, other), f"without {pointer}, {other} changes"
    return _field(after, key) != _field(before, key)


def _field(request: Request, key: str) -> Any:
    value: Any = request
    for name in key.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _without(document: dict[str, Any], pointer: str) -> dict[str, Any]:
    document = copy.deepcopy(document)
    above, _, name = pointer.rpartition("/")
    holder = resolve(document, above)
    if isinstance(holder[name], list):
        holder[name] = []
    else:
        del holder[name]
    return document


def _says(key: str, pointer: str, owner: type, document: dict[str, Any], request: Request) -> bool:
    field = key.partition(".")[2]
    return any(
        _same(getattr(value, field), resolve(document, value.where + pointer))
        for value in _values(request)
        if isinstance(value, owner) and hasattr(value, field)
    )


def _same(result: Any, written: Any) -> bool:
    match result:
        case None:
            return False
        case bytes():
            return json.loads(result) == written
        case Struct():
            return result.value == written  # pyright: ignore[reportAttributeAccessIssue]
        case tuple():
            return bool(result) and [json.loads(one.raw) for one in result] == written
        case str() if isinstance(written, dict) and written and not written.keys() - {"type", "mode", "ttl"}:
            return written.get("ttl", "") == result
        case str() if isinstance(written, dict):
            return json.loads(result) == written
        case _:
            return result == written != "" and type(result) is type(written)


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for member in value:
            yield from _values(member)
    elif isinstance(value, Struct):
        yield value
        for field in structs.fields(value):
            yield from _values(getattr(value, field.name))


def resolve(document: Any, pointer: str) -> Any:
    """The value at a pointer, or None."""
    value = document
    for name in pointer.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
