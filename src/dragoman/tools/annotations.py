"""Read the annotations and the docstring of a function: msgspec types, descriptions and bounds.

Descriptions are strings in `Annotated`, or objects with a `description` or `documentation` attribute; bounds are read
from objects with the attribute names that annotated-types, pydantic and msgspec share. Docstrings may follow the
Google, NumPy or reST style: the description is the prose outside the sections, and sections that are not about
parameters are dropped. A docstring in no known style is all description.
"""

import dataclasses
import inspect
import re
import types
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import (
    Annotated,
    Any,
    ClassVar,
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

from dragoman.tools.custom_types import adapt_leaf, build_union, can_be_key

_PARAMETER_SECTIONS = (
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "attributes",
)
_OTHER_SECTIONS = (
    "returns",
    "return",
    "yields",
    "yield",
    "raises",
    "raise",
    "warns",
    "example",
    "examples",
    "note",
    "notes",
)
_MORE_SECTIONS = ("see also", "references", "warnings", "todo")
_SECTIONS = frozenset((*_PARAMETER_SECTIONS, *_OTHER_SECTIONS, *_MORE_SECTIONS))
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = re.compile(r"\s*[:@](\w+)(?:\s+([^:]*?))?\s*:\s*(.*)")
_PARAMETER_FIELDS = ("param", "parameter", "arg", "argument", "key", "keyword")
_UNIONS = (Union, types.UnionType)
_MAPPINGS: tuple[Any, ...] = (dict, Mapping, MutableMapping)
_KEYWORDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
}
_BOUNDS = tuple(_KEYWORDS)


class DocstringInfo(Struct, frozen=True):
    """The description and the parameter descriptions of a docstring."""

    description: str
    parameters: dict[str, str]


def parse_docstring(docstring: str | None) -> DocstringInfo:
    """Parse a docstring in Google, NumPy or reST style."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    prose: list[str] = []
    parameters: dict[str, str] = {}
    at = 0
    while at < len(lines):
        title, body = _find_section(lines, at)
        if title:
            end = _find_section_end(lines, body, underlined=body - at == 2)
            if title in _PARAMETER_SECTIONS:
                items = _parse_numpy_items if body - at == 2 else _parse_google_items
                parameters.update(items(lines[body:end]))
            at = end
        elif field := _FIELD.fullmatch(lines[at]):
            end = _find_field_end(lines, at + 1)
            if field[1] in _PARAMETER_FIELDS and field[2]:
                parameters[field[2].split()[-1].lstrip("*")] = _join_lines([field[3], *lines[at + 1 : end]])
            at = end
        else:
            prose.append(lines[at])
            at += 1
    return DocstringInfo("\n".join(prose).strip(), {name: text for name, text in parameters.items() if text})


def _find_section(lines: list[str], at: int) -> tuple[str, int]:
    """Return the title of the section that starts at line `at` and the first line of its body; "" if none starts."""
    title = lines[at].strip().lower()
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if title in _SECTIONS and re.fullmatch(r"\s*-{3,}\s*", after):
        return title, at + 2
    known = title.endswith(":") and title[:-1].strip() in _SECTIONS and lines[at][:1].strip() != ""
    return (title[:-1].strip(), at + 1) if known and (not after.strip() or after[:1].isspace()) else ("", at)


def _find_section_end(lines: list[str], body: int, *, underlined: bool) -> int:
    """Return the line where a section ends: the next title or, if bodies are indented, the first unindented line."""
    for at in range(body, len(lines)):
        if _find_section(lines, at)[0] or (not underlined and lines[at][:1].strip()):
            return at
    return len(lines)


def _find_field_end(lines: list[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if not lines[at][:1].isspace()), len(lines))


def _parse_google_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    yield from _parse_items(lines, min(indents, default=0), _GOOGLE_ITEM)


def _parse_numpy_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    for names, text in _parse_items(lines, 0, _NUMPY_ITEM):
        for name in names.split(","):
            yield name.strip().lstrip("*"), text


def _parse_items(lines: list[str], indent: int, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the items that start at `indent`; lines with more indentation continue the item before."""
    name, text = "", list[str]()
    for line in lines:
        begins = line.strip() and len(line) - len(line.lstrip()) == indent
        found = pattern.fullmatch(line.strip()) if begins else None
        if found:
            yield name, _join_lines(text)
            name, text = found[1], list(found.groups()[1:])
        else:
            text.append(line)
    yield name, _join_lines(text)


def _join_lines(lines: list[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))


class UnsupportedTypeError(ValueError):
    """An annotation that no JSON value can have the type of."""


class AnnotationReader:
    """Converts annotations to msgspec types and collects the classes that appear in them."""

    def __init__(self) -> None:
        self._classes: dict[type, dict[str, dict[str, Any]]] = {}
        """What the fields of each class add to their schemas: descriptions and bounds."""

    def to_msgspec_type(self, annotation: Any) -> Any:
        """Return the type with the descriptions and bounds of every `Annotated` converted to msgspec's `Meta`."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            metas = [each for each in arguments[1:] if isinstance(each, Meta)]
            text = _read_description(arguments[1:])
            metas += [Meta(description=text)] if text and not any(meta.description for meta in metas) else []
            metas += _read_bounds(arguments[1:])
            kind = self.to_msgspec_type(arguments[0])
            return Annotated[(kind, *metas)] if metas else kind
        if origin is ClassVar or annotation is ClassVar:
            raise UnsupportedTypeError("ClassVar is only for attributes of classes: annotate it with the type alone")
        if origin is Literal or not arguments:
            self._collect_class(annotation)
            return adapt_leaf(annotation)
        if origin is Iterable:
            return list[self.to_msgspec_type(arguments[0])]
        if origin in _UNIONS:
            return build_union(tuple(self.to_msgspec_type(each) for each in arguments))
        if origin in _MAPPINGS and not can_be_key(self.to_msgspec_type(arguments[0])):
            raise UnsupportedTypeError(f"a key of a JSON object is a text, which cannot be a {arguments[0]!r}")
        try:
            return origin[tuple(self.to_msgspec_type(each) for each in arguments)]
        except TypeError:
            return annotation  # msgspec does not support this form either, and reports it

    def find_description(self, annotation: Any) -> str:
        """Return the description in the outermost `Annotated` of the annotation, or ""."""
        if get_origin(annotation) in (Required, NotRequired):
            annotation = get_args(annotation)[0]
        return _read_description(get_args(annotation)[1:]) if get_origin(annotation) is Annotated else ""

    def _collect_class(self, kind: Any) -> None:
        """Collect what the fields of a class and of the classes in it say; msgspec itself reads only `Meta`."""
        if not isinstance(kind, type) or kind in self._classes or not _has_fields(kind):
            return
        self._classes[kind] = {}
        try:
            hints = get_type_hints(kind, include_extras=True)
        except (NameError, TypeError):
            return  # msgspec cannot resolve the hints either, and reports it
        described = parse_docstring(kind.__doc__).parameters
        for name, annotation in hints.items():
            text = self.find_description(annotation) or described.get(name, "")
            self._classes[kind][name] = ({"description": text} if text else {}) | _find_bounds(annotation)
            if get_origin(annotation) is not ClassVar and annotation is not ClassVar:
                self.to_msgspec_type(annotation)

    def add_descriptions(self, components: dict[str, Any]) -> None:
        """Add the descriptions and bounds of the fields of the collected classes to their schemas."""
        for kind, fields in self._classes.items():
            # Two classes with one name get longer names in the schema: no description is better than a wrong one.
            schema = components.get(kind.__name__, {})
            if "description" in schema:
                schema["description"] = parse_docstring(kind.__doc__).description or schema["description"]
            for name, members in fields.items():
                if name in schema.get("properties", {}):
                    schema["properties"][name] = _name_lengths(members, schema["properties"][name])


def _has_fields(kind: type) -> bool:
    return is_typeddict(kind) or dataclasses.is_dataclass(kind) or issubclass(kind, Struct)


def allows_none(kind: Any) -> bool:
    """Return whether a type accepts None."""
    if get_origin(kind) is Annotated:
        return allows_none(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return None in get_args(kind)
    return kind in (Any, None, type(None)) or (get_origin(kind) in _UNIONS and any(map(allows_none, get_args(kind))))


def _read_bounds(metadata: tuple[Any, ...]) -> list[Meta]:
    """Return the bounds of annotated-types or pydantic metadata; a pydantic field has them in its own `metadata`."""
    objects = [each for each in metadata if not isinstance(each, Meta | str)]
    objects += [inner for each in objects for inner in getattr(each, "metadata", None) or ()]
    values = ((name, getattr(each, name, None)) for each in objects for name in _BOUNDS)
    found = {name: value for name, value in values if isinstance(value, int | float | str)}
    return [Meta(**found)] if found else []


def _find_bounds(annotation: Any) -> dict[str, Any]:
    """Return the bounds in the outermost `Annotated` of a field, by their names in a schema."""
    if get_origin(annotation) in (Required, NotRequired):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is not Annotated:
        return {}
    metas = _read_bounds(get_args(annotation)[1:])
    return {_KEYWORDS[name]: value for meta in metas for name in _BOUNDS if (value := getattr(meta, name)) is not None}


def _name_lengths(members: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with more members, those about a length named for its type."""
    subject = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
    named = {name.replace("Length", subject): value for name, value in members.items()}
    return named | schema


def _read_description(metadata: tuple[Any, ...]) -> str:
    for each in metadata:
        found = each if isinstance(each, str) else getattr(each, "description", getattr(each, "documentation", None))
        if isinstance(found, str) and found.strip():
            return found.strip()
    return ""
