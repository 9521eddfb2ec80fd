"""Helpers for JSON Schema documents as Python values: decode, walk, rewrite, merge and describe them.

Rule 1: keywords are keywords only in schema position; a property may be named `type`, `enum` or `$comment`.
Rule 2: documents are never changed in place; `rewrite` returns the same node object if nothing changes below it.
Rule 3: `merge` unites properties and `required`, intersects enums and takes the tightest bound; in a conflict the first
schema is kept, and the keyword is passed to `clash`. A keyword that a target does not have becomes a sentence in the
description.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import is_not
from typing import Any, TypeAlias, cast

from dragoman.wire.json import Malformed, decode, encode
from dragoman.wire.pointer import escape

Node: TypeAlias = dict[str, Any]

MAX_DOCUMENT_DEPTH = 128
MAX_SCHEMA_DEPTH = 64
SINGLE = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
)
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "defs", "dependentSchemas", "dependencies")
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
ANNOTATIONS = frozenset({"title", "description", "default", "example", "examples", "deprecated"})

_TYPE_ALIASES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
_TYPE_BY_KEYWORDS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("object", ("minProperties", "maxProperties", "dependentRequired", "dependentSchemas")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


class Removed:
    """The type of `REMOVED`, which a `visit` function returns to make `rewrite` leave a schema out."""


REMOVED = Removed()


def read_document(schema: bytes) -> Any:
    """Decode a schema; raise `Malformed` if it is nested too deeply to be walked."""
    document = decode(schema)
    if schema.count(b"{") + schema.count(b"[") > MAX_DOCUMENT_DEPTH and _is_too_deep(document):
        raise Malformed("the schema is nested too deeply")
    return document


def _is_too_deep(document: object) -> bool:
    level = [document]
    for _ in range(MAX_DOCUMENT_DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(cast("Node", value).values())
            elif isinstance(value, list):
                below.extend(cast("list[object]", value))
        level = below
    return any(isinstance(value, dict | list) for value in level)


def as_node(value: object) -> Node | None:
    """Return `value` if it is an object, else None."""
    return cast("Node", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any]:
    """Return `value` if it is an array, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_number(value: object) -> int | float | None:
    """Return `value` if it is a number, else None; true and false are not numbers."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def list_names(value: object) -> list[str]:
    """Return the distinct strings of an array, in order."""
    return list(dict.fromkeys(name for name in as_list(value) if isinstance(name, str)))


def properties_of(node: Node) -> Node:
    """Return the declared properties."""
    return as_node(node.get("properties")) or {}


def to_json_text(value: object) -> str:
    """Return a value as JSON text."""
    return encode(value).decode()


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters; the end of a longer one is cut off."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def iterate_children(node: Node) -> Iterator[tuple[str, object]]:
    """Yield the schemas directly inside `node`, with their relative pointers."""
    for keyword in SINGLE:
        if keyword in node and not isinstance(node[keyword], list):
            yield f"/{keyword}", node[keyword]
    for keyword in LISTS:
        for index, child in enumerate(as_list(node.get(keyword))):
            yield f"/{keyword}/{index}", child
    for keyword in MAPS:
        for name, child in (as_node(node.get(keyword)) or {}).items():
            if not isinstance(child, list):
                yield f"/{keyword}/{escape(name)}", child


def keyword_at(where: str) -> str:
    """Return the keyword that contains the schema at `where`; for a property named `not` that is `properties`."""
    found = ""
    steps = iter(where.split("/")[1:])
    for step in steps:
        if not step.isdecimal():
            found = step
        if step in MAPS:
            next(steps, None)
    return found


Visit: TypeAlias = Callable[[Any, str], Any]


def rewrite(node: Node, where: str, visit: Visit) -> Node:
    """Replace each schema inside `node` by `visit(child, pointer)`; return `node` itself if none changes."""
    changes: Node = {}
    for keyword in SINGLE:
        if keyword in node and not isinstance(node[keyword], list):
            _add_change(changes, keyword, node[keyword], visit(node[keyword], f"{where}/{keyword}"))
    for keyword in LISTS:
        if before := as_list(node.get(keyword)):
            after = [visit(child, f"{where}/{keyword}/{index}") for index, child in enumerate(before)]
            if any(map(is_not, after, before)):
                changes[keyword] = [child for child in after if child is not REMOVED]
    for keyword in MAPS:
        if members := as_node(node.get(keyword)):
            changed = _rewrite_members(members, f"{where}/{keyword}", visit)
            _add_change(changes, keyword, members, changed)
    if not changes:
        return node
    return {keyword: value for keyword, value in {**node, **changes}.items() if value is not REMOVED}


def _rewrite_members(members: Node, where: str, visit: Visit) -> Node:
    # `dependencies` of the older drafts may contain lists of names as well as schemas.
    schemas = [name for name, child in members.items() if not isinstance(child, list)]
    after = {**members, **{name: visit(members[name], f"{where}/{escape(name)}") for name in schemas}}
    if all(after[name] is child for name, child in members.items()):
        return members
    return {name: child for name, child in after.items() if child is not REMOVED}


def _add_change(changes: Node, keyword: str, before: object, after: object) -> None:
    if after is not before:
        changes[keyword] = after


def read_types(node: Node) -> list[str]:
    """Return the JSON types that `type` names, in lower case, without unknown names."""
    value = node.get("type")
    names = [value] if isinstance(value, str) else list_names(value)
    types = [_TYPE_ALIASES.get(name.lower(), name.lower()) for name in names]
    return list(dict.fromkeys(name for name in types if name in TYPES))


def infer_types(node: Node) -> list[str]:
    """Return the types of a schema: those in `type`, else the type that its keywords apply to, else none."""
    if types := read_types(node):
        return types
    for kind, keywords in _TYPE_BY_KEYWORDS:
        if any(keyword in node for keyword in keywords):
            return [kind]
    return []


_MAX_SHOWN = 300

_TEMPLATES = {
    "multipleOf": "must be a multiple of {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
    "pattern": "must match the pattern {}",
    "format": "format: {}",
    "not": "must not match {}",
    "contains": "must contain an item that matches {}",
    "minContains": "at least {} such items",
    "maxContains": "at most {} such items",
    "propertyNames": "names of members must match {}",
    "contentMediaType": "content type: {}",
    "contentEncoding": "content encoding: {}",
    "contentSchema": "its content must match {}",
    "additionalProperties": "other members must match {}",
    "default": "Default: {}",
    "const": "must be {}",
    "enum": "must be one of {}",
}


def describe_keyword(node: Node, keyword: str) -> str | None:
    """Return a sentence that describes the constraint `keyword`; None if it constrains nothing."""
    value = node.get(keyword)
    if keyword == "uniqueItems":
        return "items must be unique" if value is True else None
    if keyword == "if":
        return _describe_condition(node)
    if keyword in {"dependentRequired", "dependencies", "dependentSchemas"}:
        return _describe_dependencies(value)
    if keyword == "patternProperties":
        members = as_node(value) or {}
        return "; ".join(f"members named like {name} must match {_shorten(child)}" for name, child in members.items())
    template = _TEMPLATES.get(keyword)
    if template is None or (isinstance(value, bool) and keyword not in {"default", "const"}):
        return None
    return template.format(value if isinstance(value, str) and keyword != "default" else _shorten(value))


def describe_alternatives(branches: Iterable[object]) -> str | None:
    """Return a sentence that describes a union whose alternatives have only `required`."""
    groups = [list_names((as_node(branch) or {}).get("required")) for branch in branches]
    options = [" and ".join(f'"{name}"' for name in group) for group in groups if group]
    return f"at least one of these must be given: {', or '.join(options)}" if options else None


def append_sentences(description: object, sentences: Iterable[str | None]) -> str:
    """Append sentences to a description, in brackets."""
    added = "; ".join(dict.fromkeys(text for text in sentences if text))
    start = description if isinstance(description, str) else "" if description is None else _shorten(description)
    return f"{start} ({added})".lstrip() if added else start


def _describe_condition(node: Node) -> str | None:
    parts = [f"if it matches {_shorten(node.get('if'))}"]
    parts += [f"{keyword} it must match {_shorten(node[keyword])}" for keyword in ("then", "else") if keyword in node]
    return " ".join(parts) if len(parts) > 1 else None


def _describe_dependencies(value: object) -> str:
    sentences: list[str] = []
    for name, demand in (as_node(value) or {}).items():
        if needed := ", ".join(f'"{other}"' for other in list_names(demand)):
            sentences.append(f'with "{name}" these are required: {needed}')
        else:
            sentences.append(f'with "{name}" it must match {_shorten(demand)}')
    return "; ".join(sentences)


def _shorten(value: Any) -> str:
    return shorten(to_json_text(value), _MAX_SHOWN)


_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_SCHEMA_KEYWORDS = frozenset({"items", "additionalProperties", "additionalItems", "contains", "propertyNames"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_METADATA = frozenset({"title", "default", "example", "examples", "$schema", "$id", "$comment", "$anchor"})
_NUMBERS = frozenset({"number", "integer"})
"""Types that both include the integers."""

Clash = Callable[[str], None]


def merge(first: Node, second: Node, clash: Clash, *, join: bool) -> Node:
    """Return one schema with the constraints of both; of two descriptions the first, or both with `join`."""
    merged = dict(first)
    for keyword, theirs in second.items():
        if keyword not in merged:
            merged[keyword] = theirs
        elif merged[keyword] != theirs or type(merged[keyword]) is not type(theirs):
            if keyword == "description" and join:
                merged[keyword] = f"{merged[keyword]}\n{theirs}"
            elif keyword not in _METADATA and keyword != "description":
                merged[keyword] = _combine(keyword, merged, theirs, clash)
    return merged


def _combine(keyword: str, merged: Node, theirs: Any, clash: Clash) -> Any:
    ours = merged[keyword]
    if keyword == "type":
        return _intersect_types(merged, theirs, clash)
    if keyword == "required":
        return list_names([*as_list(ours), *as_list(theirs)])
    if keyword == "enum":
        return _intersect_values(ours, theirs, clash)
    if keyword == "allOf":
        return [*as_list(ours), *as_list(theirs)]
    if keyword == "uniqueItems":
        return ours is True or theirs is True
    if keyword in _LOWER_BOUNDS | _UPPER_BOUNDS and as_number(ours) is not None and as_number(theirs) is not None:
        return max(ours, theirs) if keyword in _LOWER_BOUNDS else min(ours, theirs)
    if keyword in _SCHEMA_KEYWORDS:
        return intersect_schemas(ours, theirs)
    if keyword in _SCHEMA_MAPS and (mine := as_node(ours)) is not None and (yours := as_node(theirs)) is not None:
        return {
            name: intersect_schemas(mine[name], yours[name])
            if name in mine and name in yours
            else mine.get(name, yours.get(name))
            for name in {**mine, **yours}
        }
    clash(keyword)
    return ours


def intersect_schemas(first: Any, second: Any) -> Any:
    """Return the schema of values that match both."""
    if first == second and type(first) is type(second):
        return first
    if first is False or second is False:
        return False
    if first is True or first == {}:
        return second
    if second is True or second == {}:
        return first
    return {"allOf": [first, second]}


def _intersect_types(merged: Node, theirs: Any, clash: Clash) -> Any:
    ours, others = read_types(merged), read_types({"type": theirs})
    shared = [kind for kind in ours if kind in others or (kind in _NUMBERS and not _NUMBERS.isdisjoint(others))]
    common = list(dict.fromkeys(kind if kind in others else "integer" for kind in shared))
    if not common:
        if others:
            clash("type")
        return merged["type"]
    return common[0] if len(common) == 1 else common


def _intersect_values(ours: Any, theirs: Any, clash: Clash) -> Any:
    allowed = {to_json_text(value) for value in as_list(theirs)}
    common = [value for value in as_list(ours) if to_json_text(value) in allowed]
    if not common:
        clash("enum")
    return common or ours
