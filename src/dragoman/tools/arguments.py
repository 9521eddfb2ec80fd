"""Validate the arguments of a call against the schema of its tool, and list all errors in words a model can act on.

A schema is compiled once for all tools that have it; nothing outside it is fetched; patterns take linear time unless
they look around. A validation that would take too many steps is not started: a schema may refer to one place of itself
from several alternatives, and each level doubles the work. Steps are counted once for each pair of schema and value.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import inf
from typing import Any, cast
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from dragoman.core.request import Tool
from dragoman.interpreter.schema.validation import compile_schema
from dragoman.tools.handler import ToolDefinitionError

_DEEPEST_SCHEMA = 64
_DEEPEST_WALK = 300
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_SAME_VALUE_BY_NAME = frozenset({"dependentSchemas", "dependencies"})
_EVERY_MEMBER = frozenset({"additionalProperties", "unevaluatedProperties"})
_EVERY_ITEM = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})
Node = dict[str, Any]
LARGEST_SCHEMA = 256 << 10
_MOST_STEPS = 200_000
_MOST_EXPLAINED = 500
_MOST_REPEATED = 4
_MOST_TOLD = 20
_MOST_COUNTED = 1000
_LONGEST = 300


class Effort(Struct, frozen=True):
    """What a check takes."""

    steps: float
    """Infinite where a value is too deep to be walked."""
    pairs: int
    """How many different pairs of a schema and a value there are; more steps are the same work done again."""


class Steps:
    """Counts steps of one schema. A `ValueError` says why a schema can be used for nothing."""

    def __init__(self, document: Node) -> None:
        self._document = document
        self._targets: dict[str, Any] = {}
        self.needed = False
        """Whether the schema refers to anything; without that, a step is one keyword on one value."""
        self._survey()

    def _survey(self) -> None:
        """Find what is referred to. Whatever could mean two places is refused rather than counted wrongly."""
        inner = False
        waiting: list[tuple[Any, int]] = [(self._document, 0)]
        while waiting:
            value, depth = waiting.pop()
            if depth > _DEEPEST_SCHEMA:
                raise ValueError(f"it is nested deeper than {_DEEPEST_SCHEMA} levels")
            node = _schema_node(value)
            if node is None:
                waiting += [(item, depth + 1) for item in _list(value)]
                continue
            inner = inner or (depth > 0 and isinstance(node.get("$id"), str))
            for word in _REFERENCES:
                if isinstance(node.get(word), str):
                    self.needed = True
                    self._targets[node[word]] = None
            waiting += [(child, depth + 1) for child in node.values()]
        if self.needed and inner:
            raise ValueError("it has an $id below its root, and references")
        for reference in self._targets:
            self._targets[reference] = self._target(reference)

    def _target(self, reference: str) -> Any:
        """Return what a reference means: the root, a place by its pointer, or one by its anchor."""
        fragment = (
            reference.removeprefix(str(self._document.get("$id", ""))) if self._document.get("$id") else reference
        )
        if fragment in ("", "#"):
            return self._document
        if not fragment.startswith("#"):
            raise ValueError(f"it refers to {reference!r}, which is not in it, and nothing is fetched")
        if not fragment.startswith("#/"):
            return self._anchored(fragment[1:])
        node: Any = self._document
        for step in fragment[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                node = _list(node)[int(name)] if isinstance(node, list) else node[name]
            except (LookupError, TypeError, ValueError):
                raise ValueError(f"it refers to {reference!r}, which is not in it") from None
        return node

    def _anchored(self, anchor: str) -> Any:
        found: list[Any] = []
        waiting: list[Any] = [self._document]
        while waiting:
            value = waiting.pop()
            node = _schema_node(value)
            if node is not None and anchor in (node.get("$anchor"), node.get("$dynamicAnchor")):
                found.append(node)
            waiting += _list(value) if node is None else node.values()
        if len(found) != 1:
            raise ValueError(f"it refers to the anchor {anchor!r}, which is in it {len(found)} times")
        return found[0]

    def meant(self, schema: Any) -> Any:
        """Return what a schema that only refers means."""
        return self._targets.get((_schema_node(schema) or {}).get("$ref", ""), schema)

    def count(self, value: Any) -> Effort:
        """Return what a check of `value` takes."""
        known: dict[tuple[int, int], float] = {}
        total = self._count(self._document, value, known, 0)
        return Effort(total, len(known))

    def _count(self, schema: Any, value: Any, known: dict[tuple[int, int], float], depth: int) -> float:
        node = _schema_node(schema)
        if node is None:
            return 1
        if depth > _DEEPEST_WALK:
            return inf
        key = (id(node), id(value))
        if key not in known:
            known[key] = 1  # a reference back to here, for the same value, is not followed by validators either
            total: float = 1
            for child, part in self._applied(node, value):
                total += self._count(child, part, known, depth + 1)
            known[key] = total
        return known[key]

    def _applied(self, node: Node, value: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate the schemas that are applied below a node, each with what of the value it is applied to."""
        for word, child in node.items():
            if word in _REFERENCES and isinstance(child, str):
                yield self._targets[child], value
            elif word in _SAME_VALUE:
                yield from ((each, value) for each in _list(child) or [child])
            elif word in _SAME_VALUE_BY_NAME:
                yield from ((each, value) for each in (_schema_node(child) or {}).values())
            elif word == "properties":
                members = _schema_node(value) or {}
                yield from (
                    (each, members[name]) for name, each in (_schema_node(child) or {}).items() if name in members
                )
            elif word == "patternProperties":
                parts = (_schema_node(value) or {}).values()
                yield from ((each, part) for each in (_schema_node(child) or {}).values() for part in parts)
            elif word in _EVERY_MEMBER:
                yield from ((child, part) for part in (_schema_node(value) or {}).values())
            elif word == "propertyNames":
                yield from ((child, name) for name in _schema_node(value) or {})
            elif word in _EVERY_ITEM:
                yield from ((each, part) for each in _list(child) or [child] for part in _list(value))


def _schema_node(value: Any) -> Node | None:
    return cast("Node", value) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


class InvalidArgumentsError(ValueError):
    """The arguments of a call do not fit; the message is for the model."""


class Checker(Struct, frozen=True):
    """A compiled schema."""

    document: Any
    validator: Any
    steps: Steps | None
    """Counts what a check would take; None where the schema refers to nothing, so that it takes one look a value."""


def read_arguments(tool: Tool, text: str) -> Any:
    """Return the arguments of a call as a JSON value; no text at all means no arguments."""
    if tool.form == "text":
        return text
    try:
        value: Any = msgspec.json.decode(text if text.strip() else "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {_short(str(error))}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments must be a JSON object, not {_short(_told(value))}")
    if tool.parameters is not None:
        faults = _faults(checked_schema(tool.parameters), value)
        if faults:
            raise InvalidArgumentsError(listed(faults))
    return cast("Any", value)


def listed(faults: Sequence[str]) -> str:
    """Say what is wrong, one thing a line."""
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    count += " or more" if len(faults) == _MOST_COUNTED else ""
    told = "".join(f"\n- {fault}" for fault in faults[:_MOST_TOLD])
    more = f"\n- and {len(faults) - _MOST_TOLD} more" if len(faults) > _MOST_TOLD else ""
    return f"{count} in the arguments:{told}{more}"


def fault(where: str, words: str) -> str:
    """Say one thing that is wrong, and where."""
    return f"{where or 'the arguments'}: {words}"


@lru_cache(maxsize=1024)
def checked_schema(schema: bytes) -> Checker:
    """Compile a schema of parameters, or say why it is none."""
    if len(schema) > LARGEST_SCHEMA:
        raise ToolDefinitionError(f"its schema is larger than {LARGEST_SCHEMA} bytes")
    try:
        document: Any = msgspec.json.decode(schema)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ToolDefinitionError(f"its schema is not JSON: {error}") from None
    node = _schema_node(document)
    if node is None:
        raise ToolDefinitionError("its schema must be a JSON object")
    kinds = node.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise ToolDefinitionError('its schema must be of "type": "object" at its root: arguments have names')
    try:
        steps = Steps(node)
    except ValueError as error:
        raise ToolDefinitionError(f"its schema cannot be used: {error}") from None
    validator = compile_schema(document)
    if isinstance(validator, str):
        raise ToolDefinitionError(f"its schema cannot be used: {_short(validator)}")
    return Checker(document, validator, steps if steps.needed else None)


def _faults(checker: Checker, value: Any) -> list[str]:
    effort = Effort(0, 0) if checker.steps is None else checker.steps.count(value)
    if effort.steps > _MOST_STEPS:
        return [fault("", "nested too deeply, or too large, to be checked against the schema")]
    if checker.validator.is_valid(value):
        return []
    if effort.steps > max(_MOST_EXPLAINED, _MOST_REPEATED * effort.pairs):
        # Each alternative that failed is part of the explanation, so it costs far more than the verdict.
        return [fault("", f"they do not fit the schema (expected {_short(_told(checker.document))})")]
    errors = islice(checker.validator.iter_errors(value), _MOST_COUNTED)
    return [fault(pointer(error.instance_path), _explained(checker, error)) for error in errors]


def _explained(checker: Checker, error: Any) -> str:
    """Say what is wrong with a value and what is expected there."""
    schema = _schema_of(checker.document, error.schema_path)
    match error.schema_path[-1] if error.schema_path else "":
        case "required":
            missing = (_schema_node(schema.get("properties")) or {}).get(error.kind.property)
            meant = missing if checker.steps is None else checker.steps.meant(missing)
            expected = f"expected {_short(_told(meant))}" if meant else ""
        case "additionalProperties" | "unevaluatedProperties" | "propertyNames":
            expected = _members(schema)
        case _:
            expected = f"expected {_short(_told(schema))}" if schema else ""
    return _short(error.message) + (f" ({expected})" if expected else "")


def _schema_of(document: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the schema whose keyword failed."""
    node: Any = document
    for step in path[:-1]:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return {}
    return _schema_node(node) or {}


def _members(schema: dict[str, Any]) -> str:
    """Say which members an object may have and which it must."""
    known = _schema_node(schema.get("properties")) or {}
    required = schema.get("required") or ()
    told = [f"{name} (required)" if name in required else name for name in known]
    return f"expected members: {', '.join(told)}" if told else "expected no members"


def pointer(path: Sequence[str | int]) -> str:
    """Return a place in the arguments as a JSON pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _told(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
