"""Validate the arguments of a call against the schema of its tool and list all errors so that a model can correct them.

A schema is compiled once for all tools that share it; remote references are not fetched; patterns take linear time
unless they use lookaround. A validation that would take too many steps is not started: a schema may refer to one of its
subschemas from several alternatives, and each nesting level then doubles the work. Steps are counted once for each pair
of schema and value.
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

_MAX_SCHEMA_DEPTH = 64
_MAX_VALUE_DEPTH = 300
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_SAME_VALUE_BY_NAME = frozenset({"dependentSchemas", "dependencies"})
_EVERY_MEMBER = frozenset({"additionalProperties", "unevaluatedProperties"})
_EVERY_ITEM = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})
Node = dict[str, Any]
MAX_SCHEMA_BYTES = 256 << 10
_MAX_STEPS = 200_000
_MAX_EXPLAINED_STEPS = 500
_MAX_STEPS_PER_PAIR = 4
_MAX_LISTED = 20
_MAX_ERRORS = 1000
_MAX_TEXT = 300


class ValidationCost(Struct, frozen=True):
    """The estimated cost of a validation."""

    steps: float
    """Number of steps; infinite if the value is nested too deeply."""
    pairs: int
    """Number of different pairs of a schema and a value; steps beyond it repeat the same work."""


class StepCounter:
    """Counts the validation steps of one schema; raises `ValueError` for a schema that cannot be used."""

    def __init__(self, document: Node) -> None:
        self._document = document
        self._targets: dict[str, Any] = {}
        self.has_references = False
        """Whether the schema has references; without any, a step is one keyword applied to one value."""
        self._find_references()

    def _find_references(self) -> None:
        """Resolve all references; an ambiguous one raises `ValueError`, because its steps could be counted wrongly."""
        inner = False
        waiting: list[tuple[Any, int]] = [(self._document, 0)]
        while waiting:
            value, depth = waiting.pop()
            if depth > _MAX_SCHEMA_DEPTH:
                raise ValueError(f"nested deeper than {_MAX_SCHEMA_DEPTH} levels")
            node = _as_node(value)
            if node is None:
                waiting += [(item, depth + 1) for item in _as_list(value)]
                continue
            inner = inner or (depth > 0 and isinstance(node.get("$id"), str))
            for word in _REFERENCES:
                if isinstance(node.get(word), str):
                    self.has_references = True
                    self._targets[node[word]] = None
            waiting += [(child, depth + 1) for child in node.values()]
        if self.has_references and inner:
            raise ValueError("a schema with references must not have an $id below its root")
        for reference in self._targets:
            self._targets[reference] = self._resolve_reference(reference)

    def _resolve_reference(self, reference: str) -> Any:
        """Return the subschema that a reference points to: the root, a JSON pointer or an anchor."""
        fragment = (
            reference.removeprefix(str(self._document.get("$id", ""))) if self._document.get("$id") else reference
        )
        if fragment in ("", "#"):
            return self._document
        if not fragment.startswith("#"):
            raise ValueError(
                f"it refers to {reference!r}, which is outside the schema, and remote references are not fetched"
            )
        if not fragment.startswith("#/"):
            return self._resolve_anchor(fragment[1:])
        node: Any = self._document
        for step in fragment[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                node = _as_list(node)[int(name)] if isinstance(node, list) else node[name]
            except (LookupError, TypeError, ValueError):
                raise ValueError(f"it refers to {reference!r}, which the schema does not contain") from None
        return node

    def _resolve_anchor(self, anchor: str) -> Any:
        found: list[Any] = []
        waiting: list[Any] = [self._document]
        while waiting:
            value = waiting.pop()
            node = _as_node(value)
            if node is not None and anchor in (node.get("$anchor"), node.get("$dynamicAnchor")):
                found.append(node)
            waiting += _as_list(value) if node is None else node.values()
        if len(found) != 1:
            raise ValueError(f"it refers to the anchor {anchor!r}, which it defines {len(found)} times instead of once")
        return found[0]

    def resolve_schema(self, schema: Any) -> Any:
        """Return the target of a schema that is only a `$ref`; any other schema unchanged."""
        return self._targets.get((_as_node(schema) or {}).get("$ref", ""), schema)

    def count(self, value: Any) -> ValidationCost:
        """Return the cost of validating `value`."""
        known: dict[tuple[int, int], float] = {}
        total = self._count_steps(self._document, value, known, 0)
        return ValidationCost(total, len(known))

    def _count_steps(self, schema: Any, value: Any, known: dict[tuple[int, int], float], depth: int) -> float:
        node = _as_node(schema)
        if node is None:
            return 1
        if depth > _MAX_VALUE_DEPTH:
            return inf
        key = (id(node), id(value))
        if key not in known:
            known[key] = 1  # a reference back to here, for the same value, is not followed by validators either
            total: float = 1
            for child, part in self._find_subschemas(node, value):
                total += self._count_steps(child, part, known, depth + 1)
            known[key] = total
        return known[key]

    def _find_subschemas(self, node: Node, value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the subschemas of a node, each with the part of the value that it validates."""
        for word, child in node.items():
            if word in _REFERENCES and isinstance(child, str):
                yield self._targets[child], value
            elif word in _SAME_VALUE:
                yield from ((each, value) for each in _as_list(child) or [child])
            elif word in _SAME_VALUE_BY_NAME:
                yield from ((each, value) for each in (_as_node(child) or {}).values())
            elif word == "properties":
                members = _as_node(value) or {}
                yield from ((each, members[name]) for name, each in (_as_node(child) or {}).items() if name in members)
            elif word == "patternProperties":
                parts = (_as_node(value) or {}).values()
                yield from ((each, part) for each in (_as_node(child) or {}).values() for part in parts)
            elif word in _EVERY_MEMBER:
                yield from ((child, part) for part in (_as_node(value) or {}).values())
            elif word == "propertyNames":
                yield from ((child, name) for name in _as_node(value) or {})
            elif word in _EVERY_ITEM:
                yield from ((each, part) for each in _as_list(child) or [child] for part in _as_list(value))


def _as_node(value: Any) -> Node | None:
    return cast("Node", value) if isinstance(value, dict) else None


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


class InvalidArgumentsError(ValueError):
    """The arguments of a call are invalid; the message is sent to the model."""


class CompiledSchema(Struct, frozen=True):
    """A compiled schema with its validator."""

    document: Any
    validator: Any
    steps: StepCounter | None
    """Estimates the cost of a validation; None if the schema has no references, so that each value is visited once."""


def read_arguments(tool: Tool, text: str) -> Any:
    """Return the validated arguments of a call as a JSON value; an empty text means no arguments."""
    if tool.form == "text":
        return text
    try:
        value: Any = msgspec.json.decode(text if text.strip() else "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {_shorten(str(error))}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments must be a JSON object, not {_shorten(_encode_json(value))}")
    if tool.parameters is not None:
        faults = _find_errors(compile_parameters(tool.parameters), value)
        if faults:
            raise InvalidArgumentsError(format_errors(faults))
    return cast("Any", value)


def format_errors(errors: Sequence[str]) -> str:
    """Return one message that lists validation errors, one a line."""
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    count += " or more" if len(errors) == _MAX_ERRORS else ""
    listed = "".join(f"\n- {error}" for error in errors[:_MAX_LISTED])
    more = f"\n- and {len(errors) - _MAX_LISTED} more" if len(errors) > _MAX_LISTED else ""
    return f"{count} in the arguments:{listed}{more}"


def format_error(where: str, message: str) -> str:
    """Return one validation error with the JSON pointer of the wrong value."""
    return f"{where or 'the arguments'}: {message}"


@lru_cache(maxsize=1024)
def compile_parameters(schema: bytes) -> CompiledSchema:
    """Compile the JSON schema of a tool's parameters; raises `ToolDefinitionError` if it is invalid."""
    if len(schema) > MAX_SCHEMA_BYTES:
        raise ToolDefinitionError(f"its schema is larger than {MAX_SCHEMA_BYTES} bytes")
    try:
        document: Any = msgspec.json.decode(schema)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ToolDefinitionError(f"its schema is not JSON: {error}") from None
    node = _as_node(document)
    if node is None:
        raise ToolDefinitionError("its schema must be a JSON object")
    kinds = node.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise ToolDefinitionError('its schema must have "type": "object" at its root')
    try:
        steps = StepCounter(node)
    except ValueError as error:
        raise ToolDefinitionError(f"its schema cannot be used: {error}") from None
    validator = compile_schema(document)
    if isinstance(validator, str):
        raise ToolDefinitionError(f"its schema cannot be used: {_shorten(validator)}")
    return CompiledSchema(document, validator, steps if steps.has_references else None)


def _find_errors(schema: CompiledSchema, value: Any) -> list[str]:
    effort = ValidationCost(0, 0) if schema.steps is None else schema.steps.count(value)
    if effort.steps > _MAX_STEPS:
        return [format_error("", "nested too deeply, or too large, to be checked against the schema")]
    if schema.validator.is_valid(value):
        return []
    if effort.steps > max(_MAX_EXPLAINED_STEPS, _MAX_STEPS_PER_PAIR * effort.pairs):
        # Listing errors visits each failed alternative, so it costs far more than the yes or no of `is_valid`.
        return [format_error("", f"they do not fit the schema (expected {_shorten(_encode_json(schema.document))})")]
    errors = islice(schema.validator.iter_errors(value), _MAX_ERRORS)
    return [format_error(format_pointer(error.instance_path), _explain_error(schema, error)) for error in errors]


def _explain_error(checker: CompiledSchema, error: Any) -> str:
    """Return what is wrong with a value and what the schema expects there."""
    schema = _schema_of(checker.document, error.schema_path)
    match error.schema_path[-1] if error.schema_path else "":
        case "required":
            missing = (_as_node(schema.get("properties")) or {}).get(error.kind.property)
            meant = missing if checker.steps is None else checker.steps.resolve_schema(missing)
            expected = f"expected {_shorten(_encode_json(meant))}" if meant else ""
        case "additionalProperties" | "unevaluatedProperties" | "propertyNames":
            expected = _describe_members(schema)
        case _:
            expected = f"expected {_shorten(_encode_json(schema))}" if schema else ""
    return _shorten(error.message) + (f" ({expected})" if expected else "")


def _schema_of(document: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the subschema that contains the failed keyword."""
    node: Any = document
    for step in path[:-1]:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return {}
    return _as_node(node) or {}


def _describe_members(schema: dict[str, Any]) -> str:
    """Return the list of members that an object may have, with the required ones marked."""
    known = _as_node(schema.get("properties")) or {}
    required = schema.get("required") or ()
    members = [f"{name} (required)" if name in required else name for name in known]
    return f"expected members: {', '.join(members)}" if members else "expected no members"


def format_pointer(path: Sequence[str | int]) -> str:
    """Return a path in the arguments as a JSON pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _encode_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
