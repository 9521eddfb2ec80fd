"""Convert strings, numbers, enums, objects and arrays to Google's `Schema`, with descriptions of what it lacks.

Its enums contain only strings; on AI Studio it has neither maps nor tuples.
"""

import math
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.losses import LossKind
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedPiece
from dragoman.interpreter.schema.nodes import (
    Node,
    append_sentences,
    as_list,
    as_node,
    as_number,
    describe_keyword,
    list_names,
    properties_of,
    to_json_text,
)
from dragoman.wire.json import encode
from dragoman.wire.pointer import escape, join

DESCRIBED = {
    "object": ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
    "array": ("uniqueItems", "contains", "minContains", "maxContains"),
    "string": ("contentMediaType", "contentEncoding", "contentSchema"),
    "number": ("multipleOf",),
    "integer": ("multipleOf",),
}
"""Constraints of each type that `Schema` lacks and that are moved to the description."""
ANYWHERE = ("not", "if")
_HANDLED = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "const", "default", "example", "examples"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"}
    | {"properties", "required", "minProperties", "maxProperties", "propertyOrdering", "additionalProperties"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf", "oneOf", "allOf", "then", "else"}
    | {"$defs", "definitions", "$schema", "$id", "id", "$comment", "$vocabulary"}
    | {"$anchor", "$dynamicAnchor", "$recursiveAnchor"}
)


class SchemaPosition(Struct, frozen=True):
    """A position in the schema: its pointer, its depth, and the references followed to reach it."""

    where: str = ""
    depth: int = 0
    trail: tuple[str, ...] = ()

    def descend(self, *steps: str) -> "SchemaPosition":
        return SchemaPosition(self.where + join(steps), self.depth + 1, self.trail)

    def nest(self) -> "SchemaPosition":
        return SchemaPosition(self.where, self.depth + 1, self.trail)

    def enter(self, pointer: str) -> "SchemaPosition":
        return SchemaPosition(pointer, self.depth, (*self.trail, pointer))


class TypeConverter(Protocol):
    """What the converters of single types need from `SchemaConverter`."""

    vertex: bool

    def add_note(self, where: str, what: str, kind: LossKind = ...) -> None: ...

    def convert(self, schema: Any, at: SchemaPosition) -> ConvertedPiece: ...


ANY = ConvertedPiece({"type": "STRING"}, ArgumentUndo(parse=True))
_ANY_DESCRIPTION = "any JSON value, written as JSON text"


def add_description(piece: ConvertedPiece, node: Node, sentence: str = _ANY_DESCRIPTION) -> ConvertedPiece:
    """Add a sentence to the description that explains what a string contains."""
    annotated = add_annotations(piece, node, describe_constraints(node))
    text = append_sentences(annotated.schema.get("description"), [sentence])
    return ConvertedPiece({**annotated.schema, "description": text}, piece.undo)


def add_annotations(piece: ConvertedPiece, node: Node, sentences: tuple[str | None, ...] = ()) -> ConvertedPiece:
    """Add title, description, default and example of `node`; the default and `sentences` go into the description."""
    schema = dict(piece.schema)
    if (title := node.get("title")) is not None:
        schema.setdefault("title", title if isinstance(title, str) else to_json_text(title))
    inner = schema.get("description")
    outer = node.get("description")
    defaults = [describe_keyword(node, keyword) for keyword in ("default",) if node.get(keyword) is not None]
    description = append_sentences(inner if outer is None else outer, [*sentences, *defaults])
    if outer is not None and inner is not None and inner != outer:
        description = f"{description}\n{inner}"
    if description:
        schema["description"] = description
    examples = as_list(node.get("examples"))
    if "example" in node or examples:
        schema.setdefault("example", node["example"] if "example" in node else examples[0])
    return ConvertedPiece(schema, piece.undo)


def note_unsupported(conversion: TypeConverter, node: Node, at: SchemaPosition, kind: str = "") -> None:
    """Note the constraints that are moved to the description or dropped."""
    described = (*DESCRIBED.get(kind, ()), *ANYWHERE)
    elsewhere = {keyword for keywords in DESCRIBED.values() for keyword in keywords}
    for keyword in node:
        if keyword in _HANDLED:
            continue
        if keyword in described:
            conversion.add_note(f"{at.where}/{escape(keyword)}", f"{keyword} is moved to the description")
        elif keyword not in elsewhere:
            conversion.add_note(f"{at.where}/{escape(keyword)}", f"Gemini's Schema has no {keyword}", "dropped")


def describe_constraints(node: Node, kind: str = "") -> tuple[str | None, ...]:
    """Return the sentences for constraints that `Schema` has no keyword for."""
    return tuple(
        describe_keyword(node, keyword) for keyword in (*DESCRIBED.get(kind, ()), *ANYWHERE) if keyword in node
    )


FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}


def convert_string(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    """Convert a string schema without enum."""
    schema: Node = {"type": "STRING"}
    copy_counts(node, schema, ("minLength", "maxLength"))
    if isinstance(pattern := node.get("pattern"), str):
        schema["pattern"] = pattern
    sentences = (*_convert_format(conversion, node, "string", schema, at), *describe_constraints(node, "string"))
    return add_annotations(ConvertedPiece(schema), node, sentences)


def convert_number(conversion: TypeConverter, node: Node, kind: str, at: SchemaPosition) -> ConvertedPiece:
    """Convert a number or integer schema without enum."""
    schema: Node = {"type": kind.upper()}
    sentences: list[str | None] = list(_convert_format(conversion, node, kind, schema, at))
    for keyword, exclusive, tighter in (("minimum", "exclusiveMinimum", max), ("maximum", "exclusiveMaximum", min)):
        bound, open_bound = as_number(node.get(keyword)), as_number(node.get(exclusive))
        if node.get(exclusive) is True:
            # Draft 4: a flag that makes the other keyword exclusive.
            bound, open_bound = None, bound
        if open_bound is not None and kind == "integer":
            nearest = math.floor(open_bound) + 1 if tighter is max else math.ceil(open_bound) - 1
            bound = nearest if bound is None else tighter(bound, nearest)
        elif open_bound is not None and (bound is None or tighter(bound, open_bound) == open_bound):
            bound = open_bound
            sentences.append(describe_keyword({exclusive: open_bound}, exclusive))
            conversion.add_note(f"{at.where}/{exclusive}", f"{exclusive} is weakened to {keyword}")
        if bound is not None:
            schema[keyword] = bound
    undo = ArgumentUndo(integer=True) if kind == "integer" else None
    return add_annotations(ConvertedPiece(schema, undo), node, (*sentences, *describe_constraints(node, kind)))


def copy_counts(node: Node, schema: Node, keywords: tuple[str, ...]) -> None:
    """Copy bounds that fit into the target's int64."""
    for keyword in keywords:
        value = as_number(node.get(keyword))
        if value is not None and 0 <= value < 2**63 and value == int(value):
            schema[keyword] = int(value)


def _convert_format(
    conversion: TypeConverter, node: Node, kind: str, schema: Node, at: SchemaPosition
) -> tuple[str | None, ...]:
    name = node.get("format")
    if not isinstance(name, str):
        return ()
    # AI Studio answers 400 for other formats; Vertex accepts any.
    if name in FORMATS[kind] or (conversion.vertex and kind == "string"):
        schema["format"] = name
        return ()
    conversion.add_note(f"{at.where}/format", f"format {name} is moved to the description")
    return (describe_keyword(node, "format"),)


def convert_enum(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    """Convert `const` or `enum`."""
    keyword = "const" if "const" in node else "enum"
    values: list[Any] = [node["const"]] if keyword == "const" else as_list(node["enum"])
    members = [value for value in values if value is not None]
    nullable = len(members) < len(values) or node.get("nullable") is True
    null_flag: Node = {"nullable": True} if nullable else {}
    if not members:
        return add_annotations(ConvertedPiece({"type": "NULL"}), node, describe_constraints(node))
    if all(isinstance(value, bool) for value in members):
        return _convert_booleans(conversion, node, members, null_flag, f"{at.where}/{keyword}")
    texts = _build_enum_texts(members)
    schema: Node = {"type": "STRING"}
    sentences: list[str | None] = [*describe_constraints(node)]
    if kept := [text for text in texts if text]:
        schema["enum"] = kept
    if len(kept) < len(texts):
        pointer = f"{at.where}/enum/{values.index('')}" if keyword == "enum" else f"{at.where}/const"
        conversion.add_note(pointer, "the empty string cannot be listed in an enum", "dropped")
        sentences.append("" if kept else 'must be ""')
    changed = {text: to_json_text(value) for text, value in texts.items() if text != value}
    undo = None
    if changed:
        conversion.add_note(f"{at.where}/{keyword}", "values are sent as strings and converted back")
        undo = ArgumentUndo(values=changed, integer=all(isinstance(value, int) for value in members))
    return add_annotations(ConvertedPiece({**schema, **null_flag}, undo), node, tuple(sentences))


def _convert_booleans(
    conversion: TypeConverter, node: Node, members: list[bool], null_flag: Node, where: str
) -> ConvertedPiece:
    sentences = describe_constraints(node)
    if len(set(members)) == 1:
        sentences = (f"must be {to_json_text(members[0])}", *sentences)
        conversion.add_note(where, "the only allowed boolean is moved to the description")
    return add_annotations(ConvertedPiece({"type": "BOOLEAN", **null_flag}), node, sentences)


def _build_enum_texts(members: list[Any]) -> dict[str, Any]:
    """Return a distinct string for each value; a string that equals the text of another value keeps its quotes."""
    others = {to_json_text(value) for value in members if not isinstance(value, str)}
    texts: dict[str, Any] = {}
    for value in members:
        plain = isinstance(value, str) and value not in others
        texts.setdefault(value if plain else to_json_text(value), value)
    return texts


_MAP_DESCRIPTION = "a JSON object, written as JSON text"


def convert_object(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    """Convert an object schema; a map without declared properties becomes JSON text if the target has no maps."""
    declared = properties_of(node)
    if not declared and _is_map(node) and not conversion.vertex:
        return _convert_map(conversion, node, at)
    schema: Node = {"type": "OBJECT"}
    properties: Node = {}
    undos: dict[str, ArgumentUndo] = {}
    for name, child in declared.items():
        if child is False:
            conversion.add_note(at.descend("properties", name).where, "a property that accepts no value", "dropped")
            continue
        piece = conversion.convert(child, at.descend("properties", name))
        properties[name] = piece.schema
        if piece.undo is not None:
            undos[name] = piece.undo
    if properties:
        schema["properties"] = properties
        schema["propertyOrdering"] = _order_properties(node, properties)
    if required := _find_required(conversion, node, properties, at):
        schema["required"] = required
    copy_counts(node, schema, ("minProperties", "maxProperties"))
    others = _convert_additional(conversion, node, schema, at)
    undo = ArgumentUndo(properties=undos, others=others) if undos or others is not None else None
    return add_annotations(ConvertedPiece(schema, undo), node, describe_constraints(node, "object"))


def _is_map(node: Node) -> bool:
    return any(node.get(keyword) not in (None, False) for keyword in ("additionalProperties", "patternProperties"))


def _convert_map(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    conversion.add_note(f"{at.where}/additionalProperties", "a map is sent as JSON text and parsed back")
    members = node.get("additionalProperties")
    constraint = f"; members match {encode(members).decode()[:300]}" if as_node(members) else ""
    undo = ArgumentUndo(parse=True, parsed_kind="object")
    text = add_annotations(ConvertedPiece({"type": "STRING"}, undo), node, describe_constraints(node, "object"))
    return add_description(text, {}, _MAP_DESCRIPTION + constraint)


def _order_properties(node: Node, properties: Node) -> list[str]:
    first = [name for name in list_names(node.get("propertyOrdering")) if name in properties]
    return list(dict.fromkeys([*first, *properties]))


def _find_required(conversion: TypeConverter, node: Node, properties: Node, at: SchemaPosition) -> list[str]:
    for index, name in enumerate(as_list(node.get("required"))):
        if not isinstance(name, str) or name not in properties:
            conversion.add_note(f"{at.where}/required/{index}", f'"{name}" is required but not declared', "dropped")
    return [name for name in list_names(node.get("required")) if name in properties]


def _convert_additional(conversion: TypeConverter, node: Node, schema: Node, at: SchemaPosition) -> ArgumentUndo | None:
    if "additionalProperties" not in node:
        return None
    members = node["additionalProperties"]
    if not conversion.vertex:
        if members is not True:
            conversion.add_note(
                f"{at.where}/additionalProperties", "Gemini's Schema has no additionalProperties", "dropped"
            )
        return None
    if isinstance(members, bool):
        schema["additionalProperties"] = members
        return None
    if not members:
        schema["additionalProperties"] = True
        return None
    piece = conversion.convert(members, at.descend("additionalProperties"))
    schema["additionalProperties"] = piece.schema
    return piece.undo


def convert_array(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    """Convert an array schema; the result always has `items`, because the target rejects an array without."""
    positions, rest, _ = _split_positions(node)
    if positions:
        return _convert_tuple(conversion, node, at)
    schema: Node = {"type": "ARRAY"}
    undo = None
    if rest is None or rest is False:
        schema["items"] = {"type": "STRING"}
        if rest is None:
            conversion.add_note(at.where, "an array without items: its items are declared as strings")
    else:
        piece = conversion.convert(rest, at.descend("items"))
        schema["items"] = piece.schema
        undo = ArgumentUndo(items=piece.undo) if piece.undo is not None else None
    copy_counts(node, schema, ("minItems", "maxItems"))
    if rest is False:
        schema["maxItems"] = 0
    return add_annotations(ConvertedPiece(schema, undo), node, describe_constraints(node, "array"))


def _split_positions(node: Node) -> tuple[list[Any], Any, str]:
    """Return the schemas by position, the schema of further items, and the keyword that has the positions."""
    if positions := as_list(node.get("prefixItems")):
        return positions, node.get("items"), "prefixItems"
    items = node.get("items")
    if isinstance(items, list):
        return as_list(node["items"]), node.get("additionalItems"), "items"
    return [], items, "items"


def _convert_tuple(conversion: TypeConverter, node: Node, at: SchemaPosition) -> ConvertedPiece:
    positions, rest, keyword = _split_positions(node)
    inside, further_at = at.descend(keyword), at.descend("items" if keyword == "prefixItems" else "additionalItems")
    conversion.add_note(inside.where, "the item positions of a tuple are moved to the description")
    pieces = [conversion.convert(child, inside.descend(str(index))) for index, child in enumerate(positions)]
    further = conversion.convert(rest, further_at) if rest not in (None, True, False) else None
    distinct = list({encode(piece.schema): piece for piece in [*pieces, *([further] if further else [])]}.values())
    schema: Node = {"type": "ARRAY"}
    schema["items"] = distinct[0].schema if len(distinct) == 1 else {"anyOf": [piece.schema for piece in distinct]}
    copy_counts(node, schema, ("minItems", "maxItems"))
    if rest in (None, False):
        schema.setdefault("minItems", len(positions))
        schema["maxItems"] = min(len(positions), schema.get("maxItems", len(positions)))
        schema["minItems"] = min(schema["minItems"], schema["maxItems"])
    undos = tuple(piece.undo for piece in pieces)
    items_undo = None if further is None else further.undo
    undo = ArgumentUndo(prefix=undos, items=items_undo) if any(undos) or items_undo is not None else None
    order = ", ".join(_describe_item(child) for child in positions)
    sentences = (f"items in order: {order}", *describe_constraints(node, "array"))
    return add_annotations(ConvertedPiece(schema, undo), node, sentences)


def _describe_item(child: object) -> str:
    node = as_node(child) or {}
    if "const" in node:
        return str(describe_keyword(node, "const"))
    name = node.get("title") or node.get("description") or node.get("type")
    return name if isinstance(name, str) else "any"
