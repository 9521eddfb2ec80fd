"""What the annotation of a parameter says: its type in terms of msgspec, and the words in `Annotated`.

Words may be a plain text, or anything with a `description` or a `documentation`: what other libraries put there. Bounds
are read likewise, from whatever has them by the names that annotated-types, pydantic and msgspec share.
"""

import dataclasses
import types
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import Meta, Struct

_UNIONS = (Union, types.UnionType)
_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


class Annotations:
    """Reads annotations, and remembers the classes met in them."""

    def __init__(self) -> None:
        self._classes: dict[type, dict[str, str]] = {}

    def said(self, annotation: Any) -> Any:
        """Return the type with the words of `Annotated`, at every level, where msgspec finds them."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            metas = [each for each in arguments[1:] if isinstance(each, Meta)]
            words = _words(arguments[1:])
            metas += [Meta(description=words)] if words and not any(meta.description for meta in metas) else []
            metas += _bounds(arguments[1:])
            kind = self.said(arguments[0])
            return Annotated[(kind, *metas)] if metas else kind
        if origin is Literal or not arguments:
            self._meet(annotation)
            return annotation
        if origin in _UNIONS:
            return Union[tuple(self.said(each) for each in arguments)]  # noqa: UP007  there is no other word for many
        try:
            return origin[tuple(self.said(each) for each in arguments)]
        except TypeError:
            return annotation  # a form that msgspec does not know either, and says so

    def description(self, annotation: Any) -> str:
        """Return the words that stand at the annotation itself."""
        if get_origin(annotation) in (Required, NotRequired):
            annotation = get_args(annotation)[0]
        return _words(get_args(annotation)[1:]) if get_origin(annotation) is Annotated else ""

    def _meet(self, kind: Any) -> None:
        """Remember what a class says of its fields, and the classes in it; msgspec itself reads only `Meta`."""
        if not isinstance(kind, type) or kind in self._classes or not _has_fields(kind):
            return
        self._classes[kind] = {}
        try:
            hints = get_type_hints(kind, include_extras=True)
        except (NameError, TypeError):
            return  # msgspec cannot read it either, and says so
        for name, annotation in hints.items():
            self._classes[kind][name] = self.description(annotation)
            self.said(annotation)

    def describe(self, components: dict[str, Any]) -> None:
        """Put the words of classes into their schemas."""
        for kind, words in self._classes.items():
            # Two classes of one name get longer names in a schema: no words are better than another's.
            properties = components.get(kind.__name__, {}).get("properties", {})
            for name, text in words.items():
                if text and name in properties:
                    properties[name].setdefault("description", text)


def _has_fields(kind: type) -> bool:
    return is_typeddict(kind) or dataclasses.is_dataclass(kind) or issubclass(kind, Struct)


def allows_none(kind: Any) -> bool:
    """Tell whether a type takes None."""
    if get_origin(kind) is Annotated:
        return allows_none(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return None in get_args(kind)
    return kind in (Any, None, type(None)) or (get_origin(kind) in _UNIONS and any(map(allows_none, get_args(kind))))


def _bounds(metadata: tuple[Any, ...]) -> list[Meta]:
    """Return bounds that are said in another library's way; a field of pydantic's has them in its own metadata."""
    said = [each for each in metadata if not isinstance(each, Meta | str)]
    said += [inner for each in said for inner in getattr(each, "metadata", None) or ()]
    values = ((name, getattr(each, name, None)) for each in said for name in _BOUNDS)
    found = {name: value for name, value in values if isinstance(value, int | float | str)}
    return [Meta(**found)] if found else []


def _words(metadata: tuple[Any, ...]) -> str:
    for each in metadata:
        found = each if isinstance(each, str) else getattr(each, "description", getattr(each, "documentation", None))
        if isinstance(found, str) and found.strip():
            return found.strip()
    return ""
