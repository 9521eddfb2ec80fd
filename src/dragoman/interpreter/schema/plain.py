"""Fast path for converting the schema of a tool: if one typed decoding proves it plain, its bytes are sent unchanged.

Walking a schema keyword by keyword costs hundreds of microseconds, and nearly every tool in use needs no change. The
types below accept only keywords and values that `find_faults` accepts and that no conversion changes; rules about two
keywords are checked after decoding. The proof may fail for a schema that needs no change: then the general conversion
runs. It must never hold for a schema that the general conversion changes or adds a note to.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.json import Decoder

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedSchema
from dragoman.interpreter.schema.from_openapi import convert_google
from dragoman.interpreter.schema.gemini_json import NO_INTEGER, convert_gemini, merge_undos
from dragoman.interpreter.schema.roots import LEGAL_KEY, convert_root
from dragoman.wire.json import Malformed, decode_with

_MAX_DEPTH = 32
"""Well below the depths at which the general conversions stop."""
_INTEGER = ArgumentUndo(integer=True)

_Type = Literal["string", "number", "integer", "boolean", "array", "object", "null"]
_Scalar = str | int | float | bool | None
_Value = _Scalar | list[_Scalar] | dict[str, _Scalar]
_Count = Annotated[int, Meta(ge=0)]
_Branches = Annotated[list["_Schema"], Meta(min_length=1)] | UnsetType


class _Names(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """The schema of property names, which are strings."""

    type: Literal["string"] = "string"
    pattern: str = ""
    min_length: _Count = 0
    max_length: _Count = 0


class _Members(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Keywords that may be in every schema, the root included."""

    title: str = ""
    description: str = ""
    default: _Value = None
    examples: list[_Value] | UnsetType = UNSET
    properties: "dict[str, _Schema] | UnsetType" = UNSET
    required: list[str] | UnsetType = UNSET
    additional_properties: "bool | _Schema" = True
    property_names: _Names | UnsetType = UNSET
    min_properties: _Count = 0
    max_properties: _Count = 0
    items: "_Schema | UnsetType" = UNSET


class _Schema(_Members, rename="camel", forbid_unknown_fields=True, gc=False):
    """The schema of one value."""

    type: _Type | list[_Type] | UnsetType = UNSET
    enum: list[_Value] | UnsetType = UNSET
    const: _Value = None
    format: str = ""
    pattern: str = ""
    minimum: float = 0
    maximum: float = 0
    exclusive_minimum: float = 0
    exclusive_maximum: float = 0
    multiple_of: Annotated[float, Meta(gt=0)] = 1
    min_length: _Count = 0
    max_length: _Count = 0
    min_items: _Count = 0
    max_items: _Count = 0
    unique_items: bool = False
    any_of: _Branches = UNSET
    one_of: _Branches = UNSET
    all_of: _Branches = UNSET


class _Root(_Members, rename="camel", forbid_unknown_fields=True, gc=False, kw_only=True):
    """An object schema without combinators, which every target accepts as the parameters of a tool."""

    type: Literal["object"]
    schema: str = field(default="", name="$schema")


_DECODER = Decoder(_Root)


class PlainProof(Struct, frozen=True, gc=False):
    """What one typed decoding proves about the bytes of a schema; by default nothing."""

    valid: bool = False
    """`find_faults` finds nothing, and `to_json_schema` changes nothing."""
    fits_gemini: bool = False
    """`adapt_gemini` changes nothing, and its undo is `integers`."""
    fits_root: bool = False
    """`adapt_root` changes nothing."""
    legal_keys: bool = False
    """The names of all root properties are legal, so `adapt_root` renames none."""
    integers: ArgumentUndo | None = None


UNPROVEN = PlainProof()


def prove_plain(schema: bytes) -> PlainProof:
    """Decode a schema once and return what that proves."""
    check = _Check()
    try:
        root = decode_with(_DECODER, schema)
        integers = check.check_members(root, _MAX_DEPTH)
    except (Malformed, _NotPlainError):
        return UNPROVEN
    # As in `convert_gemini`, which searches for integers only if the bytes contain the word: an escaped one is missed.
    if integers is not None and b"integer" in schema:
        integers = ArgumentUndo(
            properties=integers.properties, others=integers.others, items=integers.items, only_integers=True
        )
    else:
        integers = None
    properties = root.properties or {}
    return PlainProof(
        valid=True,
        fits_gemini=check.is_required_declared and bool(properties),
        fits_root=check.is_required_declared and check.is_complete and root.properties is not UNSET,
        legal_keys=all(map(LEGAL_KEY.fullmatch, properties)),
        integers=integers,
    )


def adapt_gemini(schema: bytes, proof: PlainProof | None = None) -> ConvertedSchema:
    """Adapt a JSON Schema to `parametersJsonSchema`; its `schema` is None if the tool takes no arguments.

    `proof` is the result of `prove_plain` for these bytes, if it has already run.
    """
    proof = prove_plain(schema) if proof is None else proof
    return ConvertedSchema(schema, undo=proof.integers) if proof.fits_gemini else convert_gemini(schema)


def adapt_root(
    schema: bytes, *, property_keys: bool = False, add_properties: bool = True, proof: PlainProof | None = None
) -> ConvertedSchema:
    """Adapt a JSON Schema as tool parameters for targets that require an object root.

    `proof` is the result of `prove_plain` for these bytes, if it has already run.
    """
    proof = prove_plain(schema) if proof is None else proof
    if proof.fits_root and (proof.legal_keys or not property_keys):
        return ConvertedSchema(schema)
    return convert_root(schema, property_keys=property_keys, add_properties=add_properties)


def to_json_schema(schema: bytes, proof: PlainProof | None = None) -> ConvertedSchema:
    """Convert Google's `Schema` to JSON Schema.

    `proof` is the result of `prove_plain` for these bytes, if it has already run.
    """
    proof = prove_plain(schema) if proof is None else proof
    return ConvertedSchema(schema) if proof.valid else convert_google(schema)


class _NotPlainError(Exception):
    """The combination of keywords is not plain, although each keyword is."""


class _Check:
    """Checks rules that types cannot express, and finds the integers that `find_integers` finds."""

    def __init__(self) -> None:
        self.is_complete = True
        """Every object schema has properties and every array schema has items."""
        self.is_required_declared = True
        """Types and required properties have no duplicates, and every required property is declared."""

    def check_schema(self, schema: _Schema, depth: int) -> ArgumentUndo | None:
        """Check one schema and return the undo for its integers."""
        if depth == 0:
            raise _NotPlainError
        kind, properties, items = schema.type, schema.properties, schema.items
        own = _INTEGER if kind == "integer" else None
        if isinstance(kind, list):
            own = self.check_types(kind)
        elif (kind == "object" and properties is UNSET) or (kind == "array" and items is UNSET):
            self.is_complete = False
        if schema.format == "enum":
            raise _NotPlainError  # `to_json_schema` treats that format as Google's
        inner = None
        if not (properties is items is schema.required is UNSET and schema.additional_properties is True):
            inner = self.check_members(schema, depth)
        if schema.any_of is schema.one_of is schema.all_of is UNSET:
            return own if inner is None else inner if own is None else merge_undos([own, inner])
        branches = [*(schema.any_of or ()), *(schema.one_of or ()), *(schema.all_of or ())]
        found = [own, inner, *(self.check_schema(branch, depth - 1) for branch in branches)]
        return merge_undos([undo for undo in found if undo is not None])

    def check_types(self, types: list[_Type]) -> ArgumentUndo | None:
        """Check a list of types."""
        if not types:
            raise _NotPlainError
        self.is_required_declared = self.is_required_declared and len(set(types)) == len(types)
        return _INTEGER if "integer" in types else None

    def check_members(self, schema: _Members, depth: int) -> ArgumentUndo | None:
        """Check the schemas of members and items and return the undo for the integers in them."""
        declared, required, additional = schema.properties, schema.required, schema.additional_properties
        if required:
            names = set(required)
            if len(names) < len(required) or not (declared is UNSET or names <= declared.keys()):
                self.is_required_declared = False
        others = None if isinstance(additional, bool) else self.check_schema(additional, depth - 1)
        items = None if schema.items is UNSET else self.check_schema(schema.items, depth - 1)
        properties: dict[str, ArgumentUndo] = {}
        for name, child in declared.items() if declared else ():
            undo = self.check_schema(child, depth - 1)
            if undo is not None:
                properties[name] = undo
            elif others is not None:
                properties[name] = NO_INTEGER  # `others` must not apply to a declared property
        if not properties and items is None and others is None:
            return None
        return ArgumentUndo(properties=properties, items=items, others=others)
