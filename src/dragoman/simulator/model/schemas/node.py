"""A node: one place of a schema with everything that holds there, merged from references, `allOf` and chosen branches.

Reading is lenient. A keyword of the wrong type is not there; types may be told in capitals and nulls by `nullable`, as
Gemini does; bounds may be flags, as in draft 4. Schemas below a node stay as they are until somebody goes there.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

from msgspec import Struct, field

from dragoman.simulator.model.schemas.json_values import a_count, a_list, a_number, an_object, same, texts
from dragoman.simulator.model.schemas.references import REFERENCES, Document
from dragoman.simulator.rule import Json

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
Choose = Callable[[list[Any], "Node"], Any]
"""Which of several alternatives a node takes."""
_LONGEST_CHAIN = 48
_MOST_PARTS = 500
_MOST_PLACES = 256


class Node(Struct):
    """What holds at one place. Several schemas for the same thing stand side by side in a list."""

    types: list[str] | None = None
    allowed: list[Any] | None = None
    forbidden: list[Any] = field(default_factory=list[Any])
    never: bool = False
    properties: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    patterned: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    additional: list[Any] = field(default_factory=list[Any])
    required: list[str] = field(default_factory=list[str])
    unwanted: set[str] = field(default_factory=set[str])
    names: list[Any] = field(default_factory=list[Any])
    least_properties: int = 0
    most_properties: int | None = None
    dependents: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    dependent_schemas: dict[str, Any] = field(default_factory=dict[str, Any])
    prefix: list[Any] = field(default_factory=list[Any])
    items: list[Any] = field(default_factory=list[Any])
    least_items: int = 0
    most_items: int | None = None
    unique: bool = False
    contains: list[tuple[Any, int]] = field(default_factory=list[tuple[Any, int]])
    least_length: int = 0
    most_length: int | None = None
    patterns: list[str] = field(default_factory=list[str])
    format: str = ""
    minimum: int | float | None = None
    maximum: int | float | None = None
    above: int | float | None = None
    below: int | float | None = None
    multiples: list[int | float] = field(default_factory=list[int | float])
    suggestions: list[Any] = field(default_factory=list[Any])
    description: str = ""


class _Reading:
    """How schemas of one place are read: references that fan out without end are followed only so far."""

    def __init__(self, document: Document, choose: Choose) -> None:
        self.document = document
        self.choose = choose
        self.left = _MOST_PARTS


def read_node(document: Document, schema: Any, choose: Choose) -> Node:
    """Merge all that holds at one place. Where nothing had to be chosen, the same node is returned the next time."""
    known = document.places.get(id(schema))
    if known is not None:
        return known[1]
    chosen = False

    def choosing(branches: list[Any], node: Node) -> Any:
        nonlocal chosen
        chosen = True
        return choose(branches, node)

    node = Node()
    _absorb(node, _Reading(document, choosing), schema, frozenset())
    if not chosen and len(document.places) < _MOST_PLACES:
        document.places[id(schema)] = (schema, node)
    return node


def copied(node: Node) -> Node:
    """Return a node that may be changed."""
    changes = {name: copy(getattr(node, name)) for name in Node.__struct_fields__}
    return Node(**changes)


def absorb(node: Node, document: Document, schema: Any, choose: Choose) -> None:
    """Let another schema hold at a place too."""
    _absorb(node, _Reading(document, choose), schema, frozenset())


def types_of(schema: Any) -> list[str] | None:
    """Return the types a schema names itself, or None if it names none."""
    told = an_object(schema).get("type")
    named = [told] if isinstance(told, str) else texts(told)
    found = [name for word in named if (name := word.lower()) in TYPES]
    if found and an_object(schema).get("nullable") is True:
        found.append("null")
    return found or None


def narrowed(types: list[str] | None, others: list[str] | None) -> list[str] | None:
    """Return the types that are in both; a whole number is a number."""
    if types is None or others is None:
        return others if types is None else types
    kept = [name for name in types if name in others or (name == "integer" and "number" in others)]
    return kept + [name for name in others if name == "integer" and "number" in types and name not in kept]


def _absorb(node: Node, reading: _Reading, schema: Any, seen: frozenset[str]) -> None:
    if schema is False:
        node.never = True
    told = an_object(schema)
    reading.left -= 1
    if not told or reading.left < 0 or len(seen) > _LONGEST_CHAIN:
        return
    _absorb_kind(node, told)
    _absorb_object(node, told)
    _absorb_array(node, told)
    _absorb_scalar(node, told)
    _absorb_denial(node, told.get("not"), 0)
    for key in REFERENCES:
        reference = told.get(key)
        if isinstance(reference, str) and reference not in seen:
            _absorb(node, reading, reading.document.resolve(reference), seen | {reference})
    deeper = seen | {f" {len(seen)}"}
    for part in a_list(told.get("allOf")):
        _absorb(node, reading, part, deeper)
    for key in ("anyOf", "oneOf"):
        branches = a_list(told.get(key))
        if branches:
            _absorb(node, reading, reading.choose(branches, node), deeper)
    if "if" in told:
        both = {"allOf": [told["if"], told.get("then", True)]}
        other = {"not": told["if"], "allOf": [told.get("else", True)]}
        _absorb(node, reading, reading.choose([{}, both, other], node), deeper)


def _absorb_kind(node: Node, told: Json) -> None:
    node.types = narrowed(node.types, types_of(told))
    if node.types == []:
        node.never = True
    for allowed in ([told["const"]] if "const" in told else None, told.get("enum")):
        if isinstance(allowed, list):
            values = a_list(allowed)
            node.allowed = (
                values
                if node.allowed is None
                else [one for one in node.allowed if any(same(one, other) for other in values)]
            )
    for key in ("default", "example"):
        if key in told:
            node.suggestions.append(told[key])
    node.suggestions.extend(a_list(told.get("examples")))
    if isinstance(told.get("description"), str) and not node.description:
        node.description = told["description"]


def _absorb_object(node: Node, told: Json) -> None:
    for name, schema in an_object(told.get("properties")).items():
        node.properties.setdefault(name, []).append(schema)
    node.patterned.extend(an_object(told.get("patternProperties")).items())
    for key in ("additionalProperties", "unevaluatedProperties"):
        if key in told:
            node.additional.append(told[key])
    node.required.extend(name for name in texts(told.get("required")) if name not in node.required)
    if "propertyNames" in told:
        node.names.append(told["propertyNames"])
    node.least_properties = max(node.least_properties, a_count(told.get("minProperties")) or 0)
    node.most_properties = _lesser(node.most_properties, a_count(told.get("maxProperties")))
    for key in ("dependentRequired", "dependencies"):
        for name, needs in an_object(told.get(key)).items():
            if isinstance(needs, list):
                node.dependents.setdefault(name, []).extend(texts(needs))
    for key in ("dependentSchemas", "dependencies"):
        for name, schema in an_object(told.get(key)).items():
            if not isinstance(schema, list):
                node.dependent_schemas[name] = schema


def _absorb_array(node: Node, told: Json) -> None:
    items = told.get("items")
    prefix = a_list(told.get("prefixItems")) or a_list(items)
    node.prefix.extend(prefix[len(node.prefix) :])
    rest = told.get("additionalItems") if isinstance(items, list) else items
    for schema in (rest, told.get("unevaluatedItems")):
        if schema is not None:
            node.items.append(schema)
    node.least_items = max(node.least_items, a_count(told.get("minItems")) or 0)
    node.most_items = _lesser(node.most_items, a_count(told.get("maxItems")))
    node.unique = node.unique or told.get("uniqueItems") is True
    if "contains" in told:
        least = a_count(told.get("minContains"))
        node.contains.append((told["contains"], 1 if least is None else least))


def _absorb_scalar(node: Node, told: Json) -> None:
    node.least_length = max(node.least_length, a_count(told.get("minLength")) or 0)
    node.most_length = _lesser(node.most_length, a_count(told.get("maxLength")))
    if isinstance(told.get("pattern"), str):
        node.patterns.append(told["pattern"])
    if isinstance(told.get("format"), str):
        node.format = node.format or told["format"]
    low, high = a_number(told.get("minimum")), a_number(told.get("maximum"))
    above, below = a_number(told.get("exclusiveMinimum")), a_number(told.get("exclusiveMaximum"))
    if told.get("exclusiveMinimum") is True:
        low, above = None, low
    if told.get("exclusiveMaximum") is True:
        high, below = None, high
    node.minimum, node.above = _greater(node.minimum, low), _greater(node.above, above)
    node.maximum, node.below = _lesser(node.maximum, high), _lesser(node.below, below)
    multiple = a_number(told.get("multipleOf"))
    if multiple is not None and multiple > 0:
        node.multiples.append(multiple)


def _absorb_denial(node: Node, denied: Any, depth: int) -> None:
    """Take in what is denied where that is simple; the rest is left to the judge."""
    told = an_object(denied)
    if denied is True or (denied == {} and isinstance(denied, dict)):
        node.never = True
    if "const" in told:
        node.forbidden.append(told["const"])
    for name in an_object(told.get("properties")):
        node.properties.setdefault(name, [])
    if len(told) == 1:
        node.forbidden.extend(a_list(told.get("enum")))
        node.unwanted.update(texts(told.get("required")))
        types = types_of(told)
        if types is not None:
            wide = [name for name in TYPES if name not in types and not (name == "integer" and "number" in types)]
            node.types = narrowed(node.types, wide)
    for part in a_list(told.get("anyOf")) if depth < _LONGEST_CHAIN else []:
        _absorb_denial(node, part, depth + 1)


def _lesser(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else min(one, other)


def _greater(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else max(one, other)
