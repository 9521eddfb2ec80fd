"""Objects and arrays in Google's `Schema`, which on AI Studio knows neither maps nor tuples."""

from typing import Any

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.nodes import Node, as_list, as_node, names_in, properties_of
from dragoman.interpreter.schemas.openapi_scalars import copy_counts
from dragoman.interpreter.schemas.openapi_words import (
    At,
    Conversion,
    Piece,
    described,
    with_annotations,
    worded_constraints,
)
from dragoman.interpreter.schemas.sentences import sentence
from dragoman.wire.json import encode

_MAP_WORDS = "a JSON object, written as JSON text"


def object_piece(conversion: Conversion, node: Node, at: At) -> Piece:
    """Convert an object schema; a map without declared members becomes JSON text where the target has no maps."""
    declared = properties_of(node)
    if not declared and _is_map(node) and not conversion.vertex:
        return _map_as_text(conversion, node, at)
    schema: Node = {"type": "OBJECT"}
    properties: Node = {}
    undos: dict[str, ArgumentUndo] = {}
    for name, child in declared.items():
        if child is False:
            conversion.note(at.below("properties", name).where, "a property that nothing fits", "dropped")
            continue
        piece = conversion.convert(child, at.below("properties", name))
        properties[name] = piece.schema
        if piece.undo is not None:
            undos[name] = piece.undo
    if properties:
        schema["properties"] = properties
        schema["propertyOrdering"] = _order(node, properties)
    if required := _required(conversion, node, properties, at):
        schema["required"] = required
    copy_counts(node, schema, ("minProperties", "maxProperties"))
    others = _additional(conversion, node, schema, at)
    undo = ArgumentUndo(properties=undos, others=others) if undos or others is not None else None
    return with_annotations(Piece(schema, undo), node, worded_constraints(node, "object"))


def _is_map(node: Node) -> bool:
    return any(node.get(keyword) not in (None, False) for keyword in ("additionalProperties", "patternProperties"))


def _map_as_text(conversion: Conversion, node: Node, at: At) -> Piece:
    conversion.note(f"{at.where}/additionalProperties", "a map: sent as JSON text and read back")
    members = node.get("additionalProperties")
    said = f"; members match {encode(members).decode()[:300]}" if as_node(members) else ""
    undo = ArgumentUndo(parse=True, parsed_kind="object")
    text = with_annotations(Piece({"type": "STRING"}, undo), node, worded_constraints(node, "object"))
    return described(text, {}, _MAP_WORDS + said)


def _order(node: Node, properties: Node) -> list[str]:
    wished = [name for name in names_in(node.get("propertyOrdering")) if name in properties]
    return list(dict.fromkeys([*wished, *properties]))


def _required(conversion: Conversion, node: Node, properties: Node, at: At) -> list[str]:
    for index, name in enumerate(as_list(node.get("required"))):
        if not isinstance(name, str) or name not in properties:
            conversion.note(f"{at.where}/required/{index}", f'"{name}" is required but not declared', "dropped")
    return [name for name in names_in(node.get("required")) if name in properties]


def _additional(conversion: Conversion, node: Node, schema: Node, at: At) -> ArgumentUndo | None:
    if "additionalProperties" not in node:
        return None
    members = node["additionalProperties"]
    if not conversion.vertex:
        if members is not True:
            conversion.note(f"{at.where}/additionalProperties", "additionalProperties has no counterpart", "dropped")
        return None
    if isinstance(members, bool):
        schema["additionalProperties"] = members
        return None
    if not members:
        schema["additionalProperties"] = True
        return None
    piece = conversion.convert(members, at.below("additionalProperties"))
    schema["additionalProperties"] = piece.schema
    return piece.undo


def array_piece(conversion: Conversion, node: Node, at: At) -> Piece:
    """Convert an array schema; `items` is always there, because the target refuses an array without."""
    positions, rest, _ = _positions(node)
    if positions:
        return _tuple(conversion, node, at)
    schema: Node = {"type": "ARRAY"}
    undo = None
    if rest is None or rest is False:
        schema["items"] = {"type": "STRING"}
        if rest is None:
            conversion.note(at.where, "an array without items: they are declared as strings")
    else:
        piece = conversion.convert(rest, at.below("items"))
        schema["items"] = piece.schema
        undo = ArgumentUndo(items=piece.undo) if piece.undo is not None else None
    copy_counts(node, schema, ("minItems", "maxItems"))
    if rest is False:
        schema["maxItems"] = 0
    return with_annotations(Piece(schema, undo), node, worded_constraints(node, "array"))


def _positions(node: Node) -> tuple[list[Any], Any, str]:
    """Return the schemas by position, the one of further items, and the keyword that holds the positions."""
    if positions := as_list(node.get("prefixItems")):
        return positions, node.get("items"), "prefixItems"
    items = node.get("items")
    if isinstance(items, list):
        return as_list(node["items"]), node.get("additionalItems"), "items"
    return [], items, "items"


def _tuple(conversion: Conversion, node: Node, at: At) -> Piece:
    positions, rest, keyword = _positions(node)
    inside, behind = at.below(keyword), at.below("items" if keyword == "prefixItems" else "additionalItems")
    conversion.note(inside.where, "positions of a tuple are said in the description only")
    pieces = [conversion.convert(child, inside.below(str(index))) for index, child in enumerate(positions)]
    further = conversion.convert(rest, behind) if rest not in (None, True, False) else None
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
    order = ", ".join(_named(child) for child in positions)
    words = (f"items in order: {order}", *worded_constraints(node, "array"))
    return with_annotations(Piece(schema, undo), node, words)


def _named(child: object) -> str:
    node = as_node(child) or {}
    if "const" in node:
        return str(sentence(node, "const"))
    said = node.get("title") or node.get("description") or node.get("type")
    return said if isinstance(said, str) else "any"
