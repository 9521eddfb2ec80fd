"""Bring a schema into the subsets that vendors enforce token by token: Anthropic's output, OpenAI's strict mode."""

from msgspec import structs

from dragoman.interpreter.schemas.closing import Closing, Subset
from dragoman.interpreter.schemas.drafts import modernised
from dragoman.interpreter.schemas.nodes import as_node, read_document
from dragoman.interpreter.schemas.notes import Note
from dragoman.interpreter.schemas.object_root import object_root, placed
from dragoman.interpreter.schemas.openapi_words import Piece
from dragoman.interpreter.schemas.outcome import Converted, conversion
from dragoman.wire.json import Malformed, encode

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
