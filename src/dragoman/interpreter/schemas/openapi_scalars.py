"""Strings, numbers and enums in Google's `Schema`, whose enums hold strings only."""

import math
from typing import Any

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.nodes import Node, as_list, as_number, text_of
from dragoman.interpreter.schemas.openapi_words import (
    At,
    Conversion,
    Piece,
    with_annotations,
    worded_constraints,
)
from dragoman.interpreter.schemas.sentences import sentence

FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}


def string_piece(conversion: Conversion, node: Node, at: At) -> Piece:
    """Convert a string schema without enum."""
    schema: Node = {"type": "STRING"}
    copy_counts(node, schema, ("minLength", "maxLength"))
    if isinstance(pattern := node.get("pattern"), str):
        schema["pattern"] = pattern
    words = (*_format(conversion, node, "string", schema, at), *worded_constraints(node, "string"))
    return with_annotations(Piece(schema), node, words)


def number_piece(conversion: Conversion, node: Node, kind: str, at: At) -> Piece:
    """Convert a number or integer schema without enum."""
    schema: Node = {"type": kind.upper()}
    words: list[str | None] = list(_format(conversion, node, kind, schema, at))
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
            words.append(sentence({exclusive: open_bound}, exclusive))
            conversion.note(f"{at.where}/{exclusive}", f"{exclusive} is weakened to {keyword}")
        if bound is not None:
            schema[keyword] = bound
    undo = ArgumentUndo(integer=True) if kind == "integer" else None
    return with_annotations(Piece(schema, undo), node, (*words, *worded_constraints(node, kind)))


def copy_counts(node: Node, schema: Node, keywords: tuple[str, ...]) -> None:
    """Copy bounds that the target reads as int64."""
    for keyword in keywords:
        value = as_number(node.get(keyword))
        if value is not None and 0 <= value < 2**63 and value == int(value):
            schema[keyword] = int(value)


def _format(conversion: Conversion, node: Node, kind: str, schema: Node, at: At) -> tuple[str | None, ...]:
    said = node.get("format")
    if not isinstance(said, str):
        return ()
    # AI Studio answers 400 for other formats; Vertex reads any.
    if said in FORMATS[kind] or (conversion.vertex and kind == "string"):
        schema["format"] = said
        return ()
    conversion.note(f"{at.where}/format", f"format {said} is said in the description only")
    return (sentence(node, "format"),)


def enumeration(conversion: Conversion, node: Node, at: At) -> Piece:
    """Convert `const` or `enum`."""
    keyword = "const" if "const" in node else "enum"
    values: list[Any] = [node["const"]] if keyword == "const" else as_list(node["enum"])
    members = [value for value in values if value is not None]
    nullable = len(members) < len(values) or node.get("nullable") is True
    marks: Node = {"nullable": True} if nullable else {}
    if not members:
        return with_annotations(Piece({"type": "NULL"}), node, worded_constraints(node))
    if all(isinstance(value, bool) for value in members):
        return _booleans(conversion, node, members, marks, f"{at.where}/{keyword}")
    texts = _texts(members)
    schema: Node = {"type": "STRING"}
    words: list[str | None] = [*worded_constraints(node)]
    if kept := [text for text in texts if text]:
        schema["enum"] = kept
    if len(kept) < len(texts):
        place = f"{at.where}/enum/{values.index('')}" if keyword == "enum" else f"{at.where}/const"
        conversion.note(place, "the empty string cannot be listed in an enum", "dropped")
        words.append("" if kept else 'must be ""')
    changed = {text: text_of(value) for text, value in texts.items() if text != value}
    undo = None
    if changed:
        conversion.note(f"{at.where}/{keyword}", "values are sent as strings and changed back")
        undo = ArgumentUndo(values=changed, integer=all(isinstance(value, int) for value in members))
    return with_annotations(Piece({**schema, **marks}, undo), node, tuple(words))


def _booleans(conversion: Conversion, node: Node, members: list[bool], marks: Node, where: str) -> Piece:
    words = worded_constraints(node)
    if len(set(members)) == 1:
        words = (f"must be {text_of(members[0])}", *words)
        conversion.note(where, "the one allowed boolean is said in the description only")
    return with_annotations(Piece({"type": "BOOLEAN", **marks}), node, words)


def _texts(members: list[Any]) -> dict[str, Any]:
    """Give each value a distinct string; a string whose text another value needs is written with its quotes."""
    others = {text_of(value) for value in members if not isinstance(value, str)}
    texts: dict[str, Any] = {}
    for value in members:
        plain = isinstance(value, str) and value not in others
        texts.setdefault(value if plain else text_of(value), value)
    return texts
