"""Foresee how many steps a validator takes over given arguments, so that no schema can make it run on.

A schema may refer to one place of itself from several alternatives, and that place to another in the same way: each
level doubles the work. Steps are counted once for each pair of schema and value, so that counting stays cheap where
validating would not.
"""

from collections.abc import Iterator
from math import inf
from typing import Any, cast
from urllib.parse import unquote

from msgspec import Struct

_DEEPEST_SCHEMA = 64
_DEEPEST_WALK = 300
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_SAME_VALUE_BY_NAME = frozenset({"dependentSchemas", "dependencies"})
_EVERY_MEMBER = frozenset({"additionalProperties", "unevaluatedProperties"})
_EVERY_ITEM = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})
Node = dict[str, Any]


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
            node = _node(value)
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
            node = _node(value)
            if node is not None and anchor in (node.get("$anchor"), node.get("$dynamicAnchor")):
                found.append(node)
            waiting += _list(value) if node is None else node.values()
        if len(found) != 1:
            raise ValueError(f"it refers to the anchor {anchor!r}, which is in it {len(found)} times")
        return found[0]

    def meant(self, schema: Any) -> Any:
        """Return what a schema that only refers means."""
        return self._targets.get((_node(schema) or {}).get("$ref", ""), schema)

    def count(self, value: Any) -> Effort:
        """Return what a check of `value` takes."""
        known: dict[tuple[int, int], float] = {}
        total = self._count(self._document, value, known, 0)
        return Effort(total, len(known))

    def _count(self, schema: Any, value: Any, known: dict[tuple[int, int], float], depth: int) -> float:
        node = _node(schema)
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
                yield from ((each, value) for each in (_node(child) or {}).values())
            elif word == "properties":
                members = _node(value) or {}
                yield from ((each, members[name]) for name, each in (_node(child) or {}).items() if name in members)
            elif word == "patternProperties":
                parts = (_node(value) or {}).values()
                yield from ((each, part) for each in (_node(child) or {}).values() for part in parts)
            elif word in _EVERY_MEMBER:
                yield from ((child, part) for part in (_node(value) or {}).values())
            elif word == "propertyNames":
                yield from ((child, name) for name in _node(value) or {})
            elif word in _EVERY_ITEM:
                yield from ((each, part) for each in _list(child) or [child] for part in _list(value))


def _node(value: Any) -> Node | None:
    return cast("Node", value) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
