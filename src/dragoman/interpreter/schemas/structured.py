"""The schema subsets that vendors enforce token by token: Anthropic's output, OpenAI's strict mode.

A schema is converted into a subset, or checked without changing it. The check counts only what OpenAI is known to
reject: an object that is open or leaves a property optional, keywords and formats outside its subset. A schema of its
own clients passes; one written for a compatible server may not.
"""

from functools import lru_cache

from msgspec import structs

from dragoman.interpreter.schemas.closing import Closing, Subset
from dragoman.interpreter.schemas.drafts import modernised
from dragoman.interpreter.schemas.nodes import (
    Node,
    as_node,
    children,
    names_in,
    properties_of,
    read_document,
    said_types,
)
from dragoman.interpreter.schemas.object_root import object_root, placed
from dragoman.interpreter.schemas.openapi_words import Piece
from dragoman.interpreter.schemas.outcome import Converted, Note, conversion
from dragoman.wire.json import Malformed, encode

_REFUSED = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "uniqueItems"}
)
_STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@lru_cache(maxsize=1024)
def is_openai_strict(schema: bytes) -> bool:
    """Tell whether OpenAI takes `schema` as strict."""
    try:
        root = as_node(read_document(schema))
    except Malformed:
        return False
    if root is None or said_types(root) != ["object"] or "anyOf" in root:
        return False
    waiting: list[object] = [root]
    while waiting:
        node = as_node(waiting.pop())
        if node is None:
            continue
        if not _is_taken(node):
            return False
        waiting += [child for _, child in children(node)]
    return True


def _is_taken(node: Node) -> bool:
    if not _REFUSED.isdisjoint(node):
        return False
    if "format" in node and node["format"] not in _STRICT_FORMATS:
        return False
    if "object" not in said_types(node):
        return True
    return node.get("additionalProperties") is False and set(properties_of(node)) == set(names_in(node.get("required")))


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_CLOSED = b'{"type":"object","properties":{},"additionalProperties":false}'

ANTHROPIC = Subset(
    keywords=frozenset({"default"}),
    formats=_FORMATS | {"uri"},
    recursion=False,
    all_required=False,
    most_min_items=1,
    simple_patterns=True,
)
OPENAI_STRICT = Subset(
    keywords=frozenset(
        {"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
    ),
    formats=_FORMATS,
    recursion=True,
    all_required=True,
    typed_values=True,
)


@conversion
def to_anthropic_output(schema: bytes) -> Converted:
    """Fit a schema to Anthropic's structured output."""
    return _closed(schema, ANTHROPIC)


@conversion
def to_openai_strict(schema: bytes) -> Converted:
    """Fit a schema to OpenAI's strict mode; members that were optional come back without their nulls."""
    return _closed(schema, OPENAI_STRICT)


def _closed(schema: bytes, subset: Subset) -> Converted:
    try:
        document = read_document(schema)
    except Malformed as error:
        return Converted(_CLOSED, (Note("", f"schema is not readable: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = modernised(document)
    root, wrapping = object_root(modern.document, notes)
    closing = Closing(as_node(root) or {}, notes, subset)
    piece = closing.whole()
    if wrapping is not None:
        inside = wrapping if piece.undo is None else piece.undo
        wrapped = structs.replace(inside, wrapped=wrapping.wrapped, wrapped_kinds=wrapping.wrapped_kinds)
        piece = Piece(piece.schema, wrapped)
    return Converted(encode(piece.schema), placed(notes, document, wrapping, modern), piece.undo, closing.narrowed)
