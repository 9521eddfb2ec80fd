"""Types that msgspec cannot describe or decode itself.

These are pydantic's, unions of several classes or arrays, paths, and enums of both texts and numbers.
`schema_of` and `decode` are the hooks with which msgspec handles them. A union becomes a class of its own, `OneOf`. Of
its members a value is decoded as the one that leaves the fewest members of an object over, so that nothing is dropped
because another member comes first. Schemas of pydantic and of unions have definitions of their own;
`hoist_definitions` moves them to the root, where references find them.
"""

from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

REF_TEMPLATE = "#/$defs/{name}"
_REF_PREFIX = "#/$defs/"
_MAX_LISTED = 5
_KEY_TYPES = (None, "string", "integer", "number")
"""The types of schemas whose values can be decoded from a text; None for an enum and for any value."""


class _UnionType(type):
    def __instancecheck__(cls, value: object) -> bool:
        """Accept any value: msgspec checks that `decode` returns an instance, and it is one of another class."""
        return True


class Adapted(metaclass=_UnionType):
    """A type that msgspec would decode wrongly or refuse; each one is a subclass with that type."""

    kind: ClassVar[Any]


class OneOf(metaclass=_UnionType):
    """A union that msgspec does not support; each union is a subclass with its members."""

    members: ClassVar[tuple[Any, ...]]


def is_pydantic_model(kind: Any) -> bool:
    """Return whether a type is a pydantic model, without importing pydantic."""
    return isinstance(kind, type) and all(
        callable(getattr(kind, name, None)) for name in ("model_validate", "model_json_schema")
    )


def is_pydantic_field(value: Any) -> bool:
    """Return whether a value is what pydantic's `Field` returns, without importing pydantic."""
    return hasattr(value, "metadata") and all(
        callable(getattr(value, name, None)) for name in ("get_default", "is_required")
    )


def _is_class(kind: Any) -> bool:
    return isinstance(kind, type)


def adapt_leaf(kind: Any) -> Any:
    """Return a type without arguments, as a subclass of `Adapted` if msgspec cannot decode it."""
    if not _is_class(kind) or is_pydantic_model(kind):
        return kind
    kinds: set[Any] = {type(value) for value in _values_of(kind)}
    if len(kinds) > 1:
        return _UnionType("Adapted", (Adapted,), {"kind": kind})
    # msgspec fills the fields of a pydantic dataclass without calling its validators.
    is_pydantic = hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__get_pydantic_core_schema__")
    return _UnionType("Adapted", (Adapted,), {"kind": kind}) if is_pydantic else kind


def _build_adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415  optional: only a program that uses its types has it

    return TypeAdapter(kind)


def build_union(members: tuple[Any, ...]) -> Any:
    """Return a union, as a subclass of `OneOf` if msgspec does not support it."""
    union = Union[members]  # noqa: UP007  a union of a variable number of types has no other form
    try:
        msgspec.json.schema_components([union], schema_hook=schema_of)
    except TypeError:
        others = tuple(member for member in members if member not in (None, type(None)))
        if len(others) < 2:
            return union
        combined: Any = _UnionType("OneOf", (OneOf,), {"members": others})
        return combined if len(others) == len(members) else combined | None
    except (ValueError, NameError, RecursionError):
        pass  # reported with the name of the parameter
    return union


def can_be_key(kind: Any) -> bool:
    """Return whether msgspec can decode the key of a JSON object as a type; True for one that it does not know."""
    try:
        (schema,), components = msgspec.json.schema_components([kind], schema_hook=schema_of)
    except (TypeError, ValueError, NameError, RecursionError):
        return True  # reported with the name of the parameter
    schemas = [
        components.get(each.get("$ref", "").removeprefix(_REF_PREFIX), each) for each in schema.get("anyOf", [schema])
    ]
    return any(each.get("type") in _KEY_TYPES for each in schemas)


def schema_of(kind: type) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know."""
    if is_pydantic_model(kind):
        model: Any = kind
        return _describe(kind, model.model_json_schema)
    if issubclass(kind, OneOf):
        schemas, components = msgspec.json.schema_components(
            kind.members, schema_hook=schema_of, ref_template=REF_TEMPLATE
        )
        return {"anyOf": list(schemas)} | ({"$defs": components} if components else {})
    if issubclass(kind, Adapted) and (values := _values_of(kind.kind)):
        return {"enum": values}
    if issubclass(kind, Adapted):
        return _describe(kind.kind, _build_adapter(kind.kind).json_schema)
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    raise TypeError(f"{kind.__name__} has no JSON form")


def _describe(kind: Any, build_schema: Callable[..., Any]) -> dict[str, Any]:
    """Return pydantic's schema of a type; raises `TypeError` if a field of it has none."""
    try:
        return cast("dict[str, Any]", build_schema(ref_template="#/$defs/{model}"))
    except RuntimeError as error:  # the base of pydantic's own errors about a definition
        raise TypeError(
            f"{getattr(kind, '__name__', kind)} has no JSON form: {error!s:.200}".partition("\n")[0]
        ) from None


def _values_of(kind: Any) -> list[Any]:
    """Return the values of an enum; an empty list for another type, or if one is not a text, number or boolean."""
    if not isinstance(kind, type) or not issubclass(kind, Enum):
        return []
    values: list[Any] = [member.value for member in kind.__members__.values()]
    return values if all(isinstance(value, str | int | float) for value in values) else []


def decode(kind: type, value: Any) -> Any:
    """Convert a JSON value to a type that msgspec does not know; raises `ValueError`."""
    if is_pydantic_model(kind):
        model: Any = kind
        return _validate(kind, model.model_validate, value)
    if issubclass(kind, Adapted) and _values_of(kind.kind):
        return kind.kind(value)
    if issubclass(kind, Adapted):
        return _validate(kind.kind, _build_adapter(kind.kind).validate_python, value)
    if not issubclass(kind, OneOf):
        return kind(value)
    failures: list[str] = []
    for member in sorted(kind.members, key=lambda member: _count_unknown(member, value)):
        try:
            return msgspec.convert(value, member, str_keys=True, dec_hook=decode)
        except msgspec.ValidationError as error:
            failures.append(str(error))
    raise ValueError("; or ".join(failures[:_MAX_LISTED]))


def _validate(kind: Any, validate: Callable[[Any], Any], value: Any) -> Any:
    try:
        return validate(value)
    except ValueError as error:
        listed: Any = getattr(error, "errors", None)
        if not callable(listed):
            raise
        faults = cast("list[dict[str, Any]]", listed())[:_MAX_LISTED]
        texts = [f"{'.'.join(map(str, fault['loc'])) or kind.__name__}: {fault['msg']}" for fault in faults]
        raise ValueError("; ".join(texts)) from None


def _count_unknown(kind: Any, value: Any) -> int:
    """Return how many members of the objects in a value a type has no field for."""
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return _count_unknown(arguments[0], value)
    if get_origin(kind) in (Union, UnionType):
        return min(_count_unknown(each, value) for each in arguments)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return sum(_count_unknown(arguments[0], item) for item in items) if arguments else 0
    if not isinstance(value, dict) or not isinstance(kind, type) or get_origin(kind) is not None:
        return 0
    members = cast("dict[str, Any]", value)
    try:
        fields = get_type_hints(kind)
    except (NameError, TypeError):
        return 0
    models = cast("dict[str, Any]", getattr(kind, "model_fields", {}))
    names = {*fields, *(field.alias for field in models.values()), *getattr(kind, "__struct_encode_fields__", ())}
    inner = (_count_unknown(fields[name], member) for name, member in members.items() if name in fields)
    return len(members.keys() - names) + sum(inner)


def hoist_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with all nested `$defs` at its root; a name that is taken gets a number."""
    found: dict[str, Any] = {}
    root = cast("dict[str, Any]", _hoist(schema, {}, found))
    return root | ({"$defs": found} if found else {})


def _hoist(node: Any, renamed: dict[str, str], found: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_hoist(item, renamed, found) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    own = members.get("$defs")
    if isinstance(own, dict):
        definitions = cast("dict[str, Any]", own)
        renamed = renamed | {name: _free_name(name, body, found) for name, body in definitions.items()}
        # The names are taken before the bodies are read, because definitions may refer to one another.
        for name, body in definitions.items():
            found.setdefault(renamed[name], body)
        for name, body in definitions.items():
            found[renamed[name]] = _hoist(body, renamed, found)
    result = {name: _hoist(member, renamed, found) for name, member in members.items() if name != "$defs"}
    reference = result.get("$ref")
    if isinstance(reference, str) and reference.startswith(_REF_PREFIX):
        name = reference.removeprefix(_REF_PREFIX)
        result["$ref"] = _REF_PREFIX + renamed.get(name, name)
    return result


def _free_name(name: str, body: Any, found: dict[str, Any]) -> str:
    free, number = name, 1
    while free in found and found[free] != body:
        number += 1
        free = f"{name}_{number}"
    return free
