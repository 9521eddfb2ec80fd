"""The neutral view: a core value as plain JSON, for people and for tests.

Every value with a kind says it in `type`; raw JSON is shown as JSON; what was not said is left out.
"""

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.core.parts import Inline, Link, Part, Plain, Stored
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool
from dragoman.wire import json

_HIDDEN = {"where", "spelling"}
_TYPED = (Part, Inline, Link, Plain, Stored, Tool, NativeTool)
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def view(value: Any) -> Any:
    """Return `value` as plain JSON values."""
    match value:
        case Struct():
            return _view_struct(value)
        case tuple() | list() | frozenset():
            return [view(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {name: view(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case bytes():
            return Raw(value) if json.is_json(value) else value.decode("utf-8", "replace")
        case _:
            return value


def _view_struct(value: Struct) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if isinstance(value, _TYPED):
        shown["type"] = _WORD.sub("_", type(value).__name__).lower()
    for field in msgspec.structs.fields(value):
        if field.name in _HIDDEN:
            continue
        item = getattr(value, field.name)
        if item is None or (not field.required and item == field.default):
            continue
        shown[field.name] = view(item)
    return shown


def view_problem(problem: Problem) -> dict[str, Any]:
    """Return a problem as plain JSON values."""
    shown = {
        "kind": problem.kind,
        "message": problem.message,
        "status": problem.status,
        "where": problem.where,
        "code": problem.code,
        "retry_after": problem.retry_after,
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def encode(value: Any) -> bytes:
    """Write a view."""
    return json.encode(value)
