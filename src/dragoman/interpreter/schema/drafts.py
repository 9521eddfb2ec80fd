"""Convert a schema of an older draft, or a schema with mistakes, to JSON Schema draft 2020-12.

Anthropic validates every tool's schema against that draft and rejects the whole request otherwise; OpenAI validates
most of it. Valid schemas are not changed: the same document object is returned. Older keywords are rewritten with the
same meaning: tuples, boolean `exclusiveMinimum`, `dependencies`, anchors written as ids, `required` on a property. What
no draft defines is moved to the description if there is a sentence for it, and noted.

`find_faults` returns what is wrong with a schema: what no draft of JSON Schema defines.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from dragoman.core.losses import LossKind
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.limits import DIALECTS
from dragoman.interpreter.schema.metaschema import (
    ANCHOR,
    INVALID,
    META,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMAS,
    is_known,
    is_list,
    repair_value,
)
from dragoman.interpreter.schema.nodes import (
    TYPES,
    Node,
    append_sentences,
    as_list,
    as_node,
    describe_keyword,
    iterate_children,
    keyword_at,
    list_names,
    properties_of,
    read_types,
    rewrite,
    to_json_text,
)
from dragoman.interpreter.schema.references import REFERENCES, References
from dragoman.wire import json
from dragoman.wire.pointer import escape, split

_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_FLAGGED = {bound: flag for flag, bound in _BOUNDS.items()}
_IDS_ARE_PLAIN = ("draft-03", "draft-04")
"""Drafts that wrote `id` for `$id`."""
_ANYTHING = "any"
"""The type that some clients write for a value of any type."""

Keyword = tuple[str, str, Any]
"""A keyword of draft 2020-12, its pointer in the client's schema, and its value."""


class ModernSchema(Struct, frozen=True):
    """A schema of draft 2020-12."""

    document: Any
    """The document; the same object as in the client's schema if nothing had to change."""
    notes: tuple[Note, ...] = ()
    moved: dict[str, str] = {}
    """Pointers that changed: the new pointer, and the pointer in the client's schema."""

    def find_original_pointer(self, where: str) -> str:
        """Return the pointer in the client's schema for the pointer `where` in this one."""
        return _map_pointer(where, self.moved) if self.moved else where


def to_draft_2020(document: object) -> ModernSchema:
    """Convert a schema to draft 2020-12."""
    node = as_node(document)
    if node is None:
        return ModernSchema(document)
    work = _DraftConverter(node)
    changed = work.convert_node(node, "", "")
    if changed is node:
        return ModernSchema(document, tuple(work.notes))
    if work.moved:
        changed = _update_references(changed, {before: now for now, before in work.moved.items()})
    if _is_older(changed.get("$schema")):
        changed = {**changed, "$schema": META}
    return ModernSchema(changed, tuple(work.notes), work.moved)


class _DraftConverter:
    def __init__(self, root: Node) -> None:
        dialect = root.get("$schema")
        self.plain_ids = isinstance(dialect, str) and any(draft in dialect for draft in _IDS_ARE_PLAIN)
        self.notes: list[Note] = []
        self.moved: dict[str, str] = {}

    def add_note(self, where: str, what: str, kind: LossKind = "dropped") -> None:
        self.notes.append(Note(where, what, kind))

    def convert_schema(self, value: Any, where: str, new_where: str) -> Any:
        """Convert a value in schema position: at `where` in the client's schema, at `new_where` in the result."""
        if isinstance(value, bool):
            return value
        node = as_node(value)
        if node is not None:
            return self.convert_node(node, where, new_where)
        if value is not None:
            self.add_note(where, "not a schema")
        return {}

    def convert_node(self, node: Node, where: str, new_where: str) -> Node:
        changed: Node = {}
        sentences: list[str | None] = []
        for keyword, pointer, value in self.iterate_keywords(node, where, new_where, sentences):
            after = self.convert_keyword(keyword, value, pointer, f"{new_where}/{escape(keyword)}")
            if after is INVALID:
                sentences.append(self.describe_invalid(keyword, value, pointer))
            else:
                changed[keyword] = after
        if any(sentences):
            changed["description"] = append_sentences(changed.get("description"), sentences)
        if flagged := _find_required_flags(node):
            changed["required"] = list_names([*as_list(changed.get("required")), *flagged])
        if len(changed) == len(node) and all(changed.get(keyword) is value for keyword, value in node.items()):
            return node
        return changed

    def convert_keyword(self, keyword: str, value: Any, where: str, new_where: str) -> Any:
        if where.rpartition("/")[2] != new_where.rpartition("/")[2]:
            self.moved[new_where] = where
        if keyword in SCHEMAS:
            return INVALID if is_list(value) else self.convert_schema(value, where, new_where)
        if keyword in SCHEMA_LISTS:
            before = as_list(value)
            after = [
                self.convert_schema(one, f"{where}/{index}", f"{new_where}/{index}") for index, one in enumerate(before)
            ]
            if not after:
                return INVALID
            return value if all(new is old for new, old in zip(after, before, strict=True)) else after
        if keyword in SCHEMA_MAPS:
            members = as_node(value)
            return INVALID if members is None else self.convert_members(members, where, new_where)
        return repair_value(keyword, value)

    def convert_members(self, members: Node, where: str, new_where: str) -> Node:
        after = {
            name: self.convert_schema(child, f"{where}/{escape(name)}", f"{new_where}/{escape(name)}")
            for name, child in members.items()
        }
        return members if all(after[name] is child for name, child in members.items()) else after

    def describe_invalid(self, keyword: str, value: Any, where: str) -> str | None:
        sentence = describe_keyword({keyword: value}, keyword)
        if sentence:
            self.add_note(where, f"invalid value of {keyword}: moved to the description", "approximated")
        else:
            self.add_note(where, f"invalid value of {keyword}")
        return sentence

    def iterate_keywords(
        self, node: Node, where: str, new_where: str, descriptions: list[str | None]
    ) -> Iterator[Keyword]:
        """Yield the keywords of a schema with the names of the draft, without those that have no effect."""
        for keyword, value in node.items():
            pointer = f"{where}/{escape(keyword)}"
            if (value is None and is_known(keyword)) or (keyword in SCHEMA_LISTS and not value):
                continue
            match keyword:
                case "type":
                    yield from self.convert_types(value, pointer, descriptions)
                case "items" if is_list(value):
                    yield from self.convert_tuple(node, pointer)
                case "additionalItems" if is_list(node.get("items")):
                    yield "items", pointer, value
                case "minimum" | "maximum" if node.get(_FLAGGED[keyword]) is True:
                    yield _FLAGGED[keyword], pointer, value
                case "exclusiveMinimum" | "exclusiveMaximum" if isinstance(value, bool):
                    if value and node.get(_BOUNDS[keyword]) is None:
                        self.add_note(pointer, f"{keyword} has no effect without {_BOUNDS[keyword]}")
                case "dependencies" if _BY_DEPENDENCY.isdisjoint(node) and as_node(value) is not None:
                    yield from _split_dependencies(as_node(value) or {}, pointer)
                case "dependencies":
                    descriptions.append(self.describe_invalid(keyword, value, pointer))
                case "id" if self.plain_ids and "$id" not in node and isinstance(value, str):
                    yield from self.convert_id(node, value, pointer)
                case "$id" if isinstance(value, str):
                    yield from self.convert_id(node, value, pointer)
                case "$recursiveRef" if "$ref" not in node:
                    yield "$ref", pointer, value
                case "$recursiveAnchor" if isinstance(value, bool):
                    pass
                case "required" if isinstance(value, bool):
                    if value and keyword_at(where) != "properties":
                        self.add_note(pointer, "required: true has no effect outside of properties")
                case "required" if is_list(value):
                    yield keyword, pointer, self.convert_names(as_list(value), pointer, f"{new_where}/required")
                case "required" if not isinstance(value, str) or value not in properties_of(node):
                    descriptions.append(self.describe_invalid(keyword, value, pointer))
                case _:
                    yield keyword, pointer, value

    def convert_tuple(self, node: Node, pointer: str) -> Iterator[Keyword]:
        if not node["items"]:
            return
        if "prefixItems" in node:
            self.add_note(pointer, "prefixItems is used instead of the list in items")
        else:
            yield "prefixItems", pointer, node["items"]

    def convert_names(self, names: list[Any], pointer: str, new_where: str) -> list[Any]:
        """Return each name once; names after a dropped one get new pointers."""
        kept: list[Any] = []
        for index, name in enumerate(names):
            if not isinstance(name, str):
                self.add_note(f"{pointer}/{index}", "not a property name")
            elif name not in kept:
                if index != len(kept):
                    self.moved[f"{new_where}/{len(kept)}"] = f"{pointer}/{index}"
                kept.append(name)
        return names if len(kept) == len(names) else kept

    def convert_types(self, value: Any, pointer: str, descriptions: list[str | None]) -> Iterator[Keyword]:
        """Yield the JSON types that a `type` means; an unknown type becomes any type and a sentence."""
        names = as_list(value) if is_list(value) else [value]
        types = read_types({"type": names})
        if types and all(isinstance(name, str) and read_types({"type": name}) for name in names):
            yield "type", pointer, value if _is_typed(value) else types[0] if len(types) == 1 else types
        elif not any(isinstance(name, str) and name.lower() == _ANYTHING for name in names):
            descriptions.append(f"type: {value if isinstance(value, str) else to_json_text(value)}")
            self.add_note(pointer, "not a JSON Schema type: moved to the description", "approximated")

    def convert_id(self, node: Node, value: str, pointer: str) -> Iterator[Keyword]:
        """Yield an id without its fragment, which draft 2020-12 does not allow, and the fragment as an anchor."""
        name, _, fragment = value.partition("#")
        if not fragment:
            yield "$id", pointer, value
            return
        if name:
            yield "$id", pointer, name
        if ANCHOR.fullmatch(fragment) and "$anchor" not in node:
            yield "$anchor", pointer, fragment
        else:
            self.add_note(pointer, f"{fragment} is not a valid anchor name")


_BY_DEPENDENCY = frozenset({"dependentRequired", "dependentSchemas"})


def _split_dependencies(members: Node, pointer: str) -> Iterator[Keyword]:
    names = {name: demand for name, demand in members.items() if isinstance(demand, str) or is_list(demand)}
    schemas = {name: demand for name, demand in members.items() if name not in names}
    if names:
        yield "dependentRequired", pointer, names
    if schemas:
        yield "dependentSchemas", pointer, schemas


def _find_required_flags(node: Node) -> list[str]:
    """Return the properties with `required: true` in their own schema, as in the oldest drafts."""
    members = properties_of(node).items()
    return [name for name, child in members if (as_node(child) or {}).get("required") is True]


def _is_typed(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return all(name in TYPES for name in value) and len(set(value)) == len(value)


def _is_older(dialect: object) -> bool:
    return isinstance(dialect, str) and dialect.rstrip("#") in DIALECTS and dialect.rstrip("#") != META


def _map_pointer(where: str, moved: dict[str, str]) -> str:
    """Return a pointer with its longest moved prefix replaced."""
    part, rest = where, ""
    while part not in moved and part:
        part, _, step = part.rpartition("/")
        rest = f"/{step}{rest}"
    return f"{moved.get(part, part)}{rest}"


def _update_references(root: Node, moved: dict[str, str]) -> Node:
    """Rewrite references whose targets have moved."""

    def visit(schema: Any, where: str) -> Any:
        node = as_node(schema)
        if node is None:
            return schema
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            pointer = unquote(reference[1:])
            if (now := _map_pointer(pointer, moved)) != pointer:
                node = {**node, "$ref": f"#{now}"}
        return rewrite(node, where, visit)

    return visit(root, "")


Fault = tuple[str, str]
"""A pointer and an error message."""


_FAULT_TEMPLATES = {
    "invalid value of": "is not a valid value of",
    "not a schema": "is not a schema (an object or a boolean), at",
    "not a JSON Schema type": "is not a JSON Schema type, at",
    "not a property name": "is not a property name, at index",
}
"""Notes about what no draft defines, by a part of their text, and the error message for each."""


_MAX_SHOWN = 60


def find_faults(schema: bytes, *, openapi: bool = False) -> tuple[Fault, ...]:
    """Return all errors of a schema that `prove_plain` did not prove valid."""
    document = json.peek(schema)
    if isinstance(document, bool):
        return ()
    if as_node(document) is None:
        return (("", f"{_shorten(document)} is not a schema: the parameters of a tool must be an object"),)
    try:
        return (*_find_undefined(document, openapi), *_find_broken_references(document))
    except RecursionError:
        return (("", "the schema is nested too deeply"),)


def _find_undefined(document: Any, openapi: bool) -> Iterator[Fault]:
    for note in to_draft_2020(document).notes:
        message = next((message for what, message in _FAULT_TEMPLATES.items() if what in note.what), None)
        value = _get_value(document, note.where)
        keyword = split(note.where)[-1] if note.where else ""
        # Google's enumerations may be written as numbers.
        if message is not None and not (openapi and keyword == "type" and isinstance(value, int)):
            yield note.where, f"{_shorten(value)} {message} {keyword!r}"


def _find_broken_references(document: Any) -> Iterator[Fault]:
    references = References(document)
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        where, schema = waiting.pop()
        node = as_node(schema)
        if node is None:
            continue
        for keyword in REFERENCES:
            named = node.get(keyword)
            if isinstance(named, str) and named.startswith("#") and references.locate(named, where) is None:
                yield f"{where}/{keyword}", f"{_shorten(named)} points to nothing in the schema"
        waiting.extend((where + relative, child) for relative, child in iterate_children(node))


def _get_value(document: Any, where: str) -> Any:
    value = document
    for token in split(where):
        node = as_node(value)
        value = as_list(value)[int(token)] if node is None and is_list(value) else (node or {}).get(token)
    return value


def _shorten(value: Any) -> str:
    text = json.encode(value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
