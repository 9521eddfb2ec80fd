"""Convert schemas for OpenAI and Anthropic: an object at the root, and the subsets for strict and structured output.

Both accept any JSON Schema whose root has `type: "object"` and no combinators. A schema without an object at its root
is wrapped in one as the property `value`. Everything below the root stays, except names in `required` that are not
declared, references to other documents, what draft 2020-12 does not define and, for strict servers, object schemas
without `properties` and array schemas without `items`. `is_openai_strict` checks only what OpenAI is known to reject.
"""

import hashlib
import re
from functools import lru_cache
from typing import Any

from msgspec import structs

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.closed import SchemaCloser, SchemaSubset
from dragoman.interpreter.schema.conversion import (
    ConvertedPiece,
    ConvertedSchema,
    Note,
    keep_schema,
    note_history_changes,
)
from dragoman.interpreter.schema.drafts import to_draft_2020
from dragoman.interpreter.schema.nodes import (
    Node,
    as_list,
    as_node,
    iterate_children,
    keyword_at,
    list_names,
    properties_of,
    read_document,
    read_types,
    rewrite,
)
from dragoman.interpreter.schema.object_root import locate_notes, to_object_root
from dragoman.interpreter.schema.references import References, describe_reference, find_reference
from dragoman.wire.json import Malformed, encode
from dragoman.wire.pointer import escape

LEGAL_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The property names that every target accepts."""
EMPTY = b'{"type":"object","properties":{}}'

_OF_ITEMS = ("items", "$ref")
_BRANCHES = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else"})
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.-]")


@note_history_changes
def convert_root(schema: bytes, *, property_keys: bool = False, add_properties: bool = True) -> ConvertedSchema:
    """Adapt a JSON Schema that `prove_plain` did not prove plain."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return ConvertedSchema(EMPTY, (Note("", f"the schema cannot be parsed: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = to_draft_2020(document)
    root, undo = to_object_root(modern.document, notes)
    # `property_keys` means Anthropic, which accepts tuples without `items`.
    repair = _SchemaRepair(root, notes, add_properties=add_properties, plain_tuples=property_keys)
    adapted = repair.repair_node(root, "")
    if property_keys and (renamed := _rename_illegal_keys(properties_of(adapted))):
        adapted = _rename_properties(adapted, renamed, notes)
        # A wrapped root has one property with a legal name, so there is no other undo here.
        undo = ArgumentUndo(renamed={sent: original for original, sent in renamed.items()})
    if adapted is document:
        return keep_schema(schema)
    return ConvertedSchema(encode(adapted), locate_notes(notes, document, undo, modern), undo)


class _SchemaRepair:
    """Applies the repairs that every level of a schema needs."""

    def __init__(self, root: Node, notes: list[Note], *, add_properties: bool, plain_tuples: bool) -> None:
        self.references = References(root)
        self.notes = notes
        self.add_properties = add_properties
        self.item_keywords = {*_OF_ITEMS, "prefixItems"} if plain_tuples else set(_OF_ITEMS)

    def repair_schema(self, schema: Any, where: str) -> Any:
        node = as_node(schema)
        return schema if node is None else self.repair_node(node, where)

    def repair_node(self, node: Node, where: str) -> Node:
        reference = find_reference(node)
        if reference is not None and self.references.locate(reference, where) is None:
            node = describe_reference(node, where, self.notes)
        node = rewrite(node, where, self.repair_schema)
        if self.add_properties and node.get("type") == "object" and _is_bare(node, where):
            node = {**node, "properties": {}}
        if self.add_properties and node.get("type") == "array" and node.keys().isdisjoint(self.item_keywords):
            node = {**node, "items": {}}
        return drop_undeclared_required(node, where, self.notes)


def drop_undeclared_required(node: Node, where: str, notes: list[Note]) -> Node:
    """Limit `required` to declared properties, each once: vendors reject the whole request otherwise."""
    required: object = node.get("required")
    is_list = isinstance(node.get("required"), list)
    if required is None or (is_list and "properties" not in node):
        return node
    declared = properties_of(node)
    kept = [name for name in list_names(required) if name in declared]
    if kept == required:
        return node
    for index, name in enumerate(as_list(required)):
        if not isinstance(name, str) or name not in declared:
            what = f'"{name}" is required but not declared'
            notes.append(Note(f"{where}/required/{index}", what, "dropped"))
    if not is_list:
        return {keyword: value for keyword, value in node.items() if keyword != "required"}
    return {**node, "required": kept}


def _is_bare(node: Node, where: str) -> bool:
    """Return whether an object schema lacks `properties`; a branch may require what the enclosing schema declares."""
    if "properties" in node or "$ref" in node:
        return False
    return "required" not in node or keyword_at(where) not in _BRANCHES


def _rename_illegal_keys(properties: Node) -> dict[str, str]:
    renamed: dict[str, str] = {}
    taken = set(properties)
    for name in properties:
        if LEGAL_KEY.fullmatch(name):
            continue
        legal = _ILLEGAL.sub("_", name)[:64] or "_"
        if legal in taken:
            legal = f"{legal[:55]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        taken.add(legal)
        renamed[name] = legal
    return renamed


def _rename_properties(node: Node, renamed: dict[str, str], notes: list[Note]) -> Node:
    for original, sent in renamed.items():
        notes.append(Note(f"/properties/{escape(original)}", f'renamed to "{sent}"', "approximated"))
    properties = {renamed.get(name, name): child for name, child in properties_of(node).items()}
    changed = {**node, "properties": properties}
    if "required" in node:
        changed["required"] = [renamed.get(name, name) for name in list_names(node["required"])]
    return changed


_REFUSED = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "uniqueItems"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LOOKAROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?<?[=!]")
"""A lookahead or lookbehind, which OpenAI's strict mode rejects; the parenthesis is not escaped."""


@lru_cache(maxsize=1024)
def is_openai_strict(schema: bytes) -> bool:
    """Return whether OpenAI accepts `schema` for a strict tool."""
    try:
        root = as_node(read_document(schema))
    except Malformed:
        return False
    if root is None or read_types(root) != ["object"] or "anyOf" in root:
        return False
    waiting: list[object] = [root]
    while waiting:
        node = as_node(waiting.pop())
        if node is None:
            continue
        if not _is_strict_node(node):
            return False
        waiting += [child for _, child in iterate_children(node)]
    return True


def _is_strict_node(node: Node) -> bool:
    if not _REFUSED.isdisjoint(node):
        return False
    if "format" in node and node["format"] not in _FORMATS:
        return False
    if isinstance(pattern := node.get("pattern"), str) and _LOOKAROUND.search(pattern):
        return False
    if "object" not in read_types(node):
        return True
    return node.get("additionalProperties") is False and set(properties_of(node)) == set(
        list_names(node.get("required"))
    )


_CLOSED = b'{"type":"object","properties":{},"additionalProperties":false}'

ANTHROPIC = SchemaSubset(
    keywords=frozenset({"default"}),
    formats=_FORMATS | {"uri"},
    recursion=False,
    all_required=False,
    max_min_items=1,
    refused_patterns=re.compile(r"\(\?|\\[bB1k]"),
)
OPENAI_STRICT = SchemaSubset(
    keywords=frozenset(
        {"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
    ),
    formats=_FORMATS,
    recursion=True,
    all_required=True,
    refused_patterns=_LOOKAROUND,
    typed_values=True,
)


@note_history_changes
def to_anthropic_output(schema: bytes) -> ConvertedSchema:
    """Adapt a schema to Anthropic's structured output."""
    return _close_schema(schema, ANTHROPIC)


@note_history_changes
def to_openai_strict(schema: bytes) -> ConvertedSchema:
    """Adapt a schema to OpenAI's strict mode; the undo removes the nulls of properties that were optional."""
    return _close_schema(schema, OPENAI_STRICT)


def _close_schema(schema: bytes, subset: SchemaSubset) -> ConvertedSchema:
    try:
        document = read_document(schema)
    except Malformed as error:
        return ConvertedSchema(_CLOSED, (Note("", f"the schema cannot be parsed: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = to_draft_2020(document)
    root, wrapping = to_object_root(modern.document, notes)
    closer = SchemaCloser(as_node(root) or {}, notes, subset)
    piece = closer.close_document()
    if wrapping is not None:
        inside = wrapping if piece.undo is None else piece.undo
        wrapped = structs.replace(inside, wrapped=wrapping.wrapped, wrapped_kinds=wrapping.wrapped_kinds)
        piece = ConvertedPiece(piece.schema, wrapped)
    return ConvertedSchema(
        encode(piece.schema), locate_notes(notes, document, wrapping, modern), piece.undo, closer.narrowed
    )
