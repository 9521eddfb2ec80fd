"""Limits for schemas: the size before compiling one, and an estimate of the cost of validating arguments against it.

A hostile schema can be small and still expand without end: references fan out exponentially, nesting exhausts the
stack. A recursive schema whose alternatives all lead to the same property doubles the work with every level of the
arguments. Steps are counted once for each pair of schema and value. All measures take time linear in the bytes.
"""

from collections.abc import Iterator
from math import inf
from typing import Any

from msgspec import Struct

from dragoman.interpreter.schema.nodes import (
    as_list,
    as_node,
    iterate_children,
    list_names,
    properties_of,
    read_document,
)
from dragoman.interpreter.schema.references import REFERENCES, References
from dragoman.wire.json import Malformed
from dragoman.wire.pointer import unescape

MAX_SCHEMA_BYTES = 262_144
MAX_DEPTH = 64
MAX_EXPANDED = 10_000
MAX_REFERENCE_CHAIN = 200
"""The maximum nesting of schemas when references are followed."""
DIALECTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    }
)


class Excess(Struct, frozen=True):
    """One limit that a schema exceeds, or another reason not to compile it."""

    where: str
    message: str


def find_excesses(document: object) -> Iterator[Excess]:
    """Yield the reasons not to compile a schema: unknown `$schema`, external references, depth, expansion."""
    node = as_node(document)
    if node is None:
        return
    dialect = node.get("$schema")
    if dialect is not None and not (isinstance(dialect, str) and dialect.rstrip("#") in DIALECTS):
        yield Excess("/$schema", f"unknown dialect {dialect!r}; use draft 4, 6, 7, 2019-09 or 2020-12")
    survey = _SchemaSurvey(document)
    survey.walk(document, "", 0)
    yield from survey.found
    if not survey.found and survey.count_expanded(document) > MAX_EXPANDED:
        yield Excess("", f"references expand to more than {MAX_EXPANDED} schemas")


def is_recursive(document: object) -> bool:
    """Return whether a schema contains itself."""
    survey = _SchemaSurvey(document)
    survey.count_expanded(document)
    return survey.recursive


class _SchemaSurvey:
    def __init__(self, document: object) -> None:
        self.references = References(document)
        self.found: list[Excess] = []
        self.counts: dict[str, float] = {}
        self.open: set[str] = set()
        self.recursive = False

    def walk(self, schema: object, where: str, depth: int) -> None:
        """Check depth and references of every schema once."""
        node = as_node(schema)
        if node is None:
            return
        if depth > MAX_DEPTH:
            self.found.append(Excess(where, f"nested deeper than {MAX_DEPTH} schemas"))
            return
        for keyword in REFERENCES:
            if keyword in node and self.references.locate(node[keyword], where) is None:
                self.found.append(Excess(f"{where}/{keyword}", _describe_missing(node[keyword])))
        for relative, child in iterate_children(node):
            self.walk(child, where + relative, depth + 1)

    def count_expanded(self, schema: object, where: str = "", depth: int = 0) -> float:
        """Count the schemas that a full inlining would give; a schema inside itself counts once."""
        node = as_node(schema)
        if node is None:
            return 1
        if depth > MAX_REFERENCE_CHAIN:
            return inf
        if where in self.counts:
            self.recursive = self.recursive or where in self.open
            return self.counts[where]
        self.counts[where] = 1
        self.open.add(where)
        total: float = 1
        for relative, child in iterate_children(node):
            # Definitions are counted where they are used.
            if not relative.startswith(("/$defs/", "/definitions/")):
                total += self.count_expanded(child, where + relative, depth + 1)
        for keyword in REFERENCES:
            pointer = self.references.locate(node.get(keyword), where)
            if pointer is not None:
                total += self.count_expanded(self.references.get_schema(pointer), pointer, depth + 1)
        self.open.remove(where)
        self.counts[where] = total
        return total


def _describe_missing(reference: object) -> str:
    if isinstance(reference, str) and reference.startswith("#"):
        return f"reference {reference} points to nothing in the schema, or to an anchor that is defined twice"
    return f"reference {reference} points outside the schema; external schemas are not fetched"


MAX_STEPS = 20_000
_MAX_VALUE_DEPTH = 300

_DEFINITIONS = frozenset({"$defs", "definitions", "defs", "contentSchema"})
_OF_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
_OF_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})


class ValidationCost(Struct, frozen=True):
    """The estimated cost of a validation."""

    steps: float
    """Number of steps; infinite if the value is nested too deeply."""
    pairs: int
    """Number of different pairs of a schema and a value; steps beyond it repeat the same work."""


class StepCounter:
    """Counts the steps of validating values against one schema, without validating them."""

    def __init__(self, document: object) -> None:
        self._document = document
        self._references = References(document)

    def count(self, value: object) -> ValidationCost:
        """Return the cost of validating `value`."""
        counts: dict[tuple[str, int], float] = {}
        steps = self._count_steps(self._document, "", value, counts, 0)
        return ValidationCost(steps, len(counts))

    def resolve_schema(self, schema: object) -> Any:
        """Return the target of a schema that is only a `$ref`; any other schema unchanged."""
        pointer = self._references.locate((as_node(schema) or {}).get("$ref"))
        return schema if pointer is None else self._references.get_schema(pointer)

    def _count_steps(
        self, schema: object, where: str, value: Any, counts: dict[tuple[str, int], float], depth: int
    ) -> float:
        node = as_node(schema)
        if node is None:
            return 1
        if depth > _MAX_VALUE_DEPTH:
            return inf
        key = (where, id(value))
        if key in counts:
            return counts[key]
        counts[key] = 1  # a reference back to here, for the same value, is not followed by validators either
        total: float = 1
        for relative, child in iterate_children(node):
            for part in _select_values(relative, value):
                total += self._count_steps(child, where + relative, part, counts, depth + 1)
        for keyword in REFERENCES:
            pointer = self._references.locate(node.get(keyword), where)
            if pointer is not None:
                target = self._references.get_schema(pointer)
                total += self._count_steps(target, pointer, value, counts, depth + 1)
        counts[key] = total
        return total


def _select_values(relative: str, value: Any) -> list[Any]:
    """Return the values inside `value` to which the schema under a keyword applies."""
    _, keyword, *rest = relative.split("/")
    if keyword in _DEFINITIONS:
        return []
    if keyword == "properties":
        name = unescape(rest[0])
        members = as_node(value) or {}
        return [members[name]] if name in members else []
    if keyword in _OF_MEMBERS:
        return list((as_node(value) or {}).values())
    if keyword == "propertyNames":
        return list(as_node(value) or {})
    return as_list(value) if keyword in _OF_ITEMS else [value]


_UNIONS = ("anyOf", "oneOf")


class Complexity(Struct, frozen=True):
    """How many parameters are optional, and how many have several types."""

    optional: int = 0
    unions: int = 0


def measure_complexity(schema: bytes | None) -> Complexity:
    """Count optional and union parameters at every level; a schema that cannot be parsed has none."""
    if schema is None:
        return Complexity()
    try:
        waiting: list[Any] = [read_document(schema)]
    except Malformed:
        return Complexity()
    optional = unions = 0
    while waiting:
        value = waiting.pop()
        waiting.extend(as_list(value))
        node = as_node(value)
        if node is None:
            continue
        required = list_names(node.get("required"))
        for name, child in properties_of(node).items():
            optional += name not in required
            unions += _is_union(child)
        waiting.extend(node.values())
    return Complexity(optional, unions)


def _is_union(schema: Any) -> bool:
    node = as_node(schema)
    return node is not None and (isinstance(node.get("type"), list) or any(keyword in node for keyword in _UNIONS))
