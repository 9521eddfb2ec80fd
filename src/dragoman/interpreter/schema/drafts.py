"""Bring a schema of an older draft, or one that is not quite a schema, to JSON Schema of draft 2020-12.

Anthropic checks every tool's schema by that draft and refuses the whole request otherwise, OpenAI most of it. What is
valid stays as it is, and the document itself is returned where all of it is. Older spellings are said in the new one
and mean the same: tuples, flags beside bounds, `dependencies`, anchors written as ids, `required` on a property. What
means nothing by any draft is said in the description where there are words for it, and noted.

`find_faults` returns what is wrong with a schema: what no draft of JSON Schema gives a meaning.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from dragoman.interpreter.schema.conversion import Note, NoteKind
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
"""What some clients write as a type for none at all."""

Keyword = tuple[str, str, Any]
"""A keyword of draft 2020-12, the place in the caller's schema that says it, and what it holds."""


class ModernSchema(Struct, frozen=True):
    """A schema of draft 2020-12."""

    document: Any
    """The very document that was given where nothing had to change."""
    notes: tuple[Note, ...] = ()
    moved: dict[str, str] = {}
    """Places that have other names now: where they are, where they were."""

    def find_original_pointer(self, where: str) -> str:
        """Return the place in the caller's schema that `where` was."""
        return _map_pointer(where, self.moved) if self.moved else where


def to_draft_2020(document: object) -> ModernSchema:
    """Say a schema in draft 2020-12."""
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
        self.plain_ids = isinstance(dialect, str) and any(word in dialect for word in _IDS_ARE_PLAIN)
        self.notes: list[Note] = []
        self.moved: dict[str, str] = {}

    def add_note(self, where: str, what: str, kind: NoteKind = "dropped") -> None:
        self.notes.append(Note(where, what, kind))

    def convert_schema(self, value: Any, where: str, new_where: str) -> Any:
        """Bring to the draft what stands in the place of a schema: at `where` in the caller's, at `now` in ours."""
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
        said: list[str | None] = []
        for keyword, place, value in self.iterate_keywords(node, where, new_where, said):
            after = self.convert_keyword(keyword, value, place, f"{new_where}/{escape(keyword)}")
            if after is INVALID:
                said.append(self.describe_invalid(keyword, value, place))
            else:
                changed[keyword] = after
        if any(said):
            changed["description"] = append_sentences(changed.get("description"), said)
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
        words = describe_keyword({keyword: value}, keyword)
        if words:
            self.add_note(where, f"{keyword} cannot be so: said in the description only", "approximated")
        else:
            self.add_note(where, f"{keyword} cannot be so")
        return words

    def iterate_keywords(
        self, node: Node, where: str, new_where: str, descriptions: list[str | None]
    ) -> Iterator[Keyword]:
        """Iterate the keywords of a schema as the draft spells them, without those that say nothing."""
        for keyword, value in node.items():
            place = f"{where}/{escape(keyword)}"
            if (value is None and is_known(keyword)) or (keyword in SCHEMA_LISTS and not value):
                continue
            match keyword:
                case "type":
                    yield from self.convert_types(value, place, descriptions)
                case "items" if is_list(value):
                    yield from self.convert_tuple(node, place)
                case "additionalItems" if is_list(node.get("items")):
                    yield "items", place, value
                case "minimum" | "maximum" if node.get(_FLAGGED[keyword]) is True:
                    yield _FLAGGED[keyword], place, value
                case "exclusiveMinimum" | "exclusiveMaximum" if isinstance(value, bool):
                    if value and node.get(_BOUNDS[keyword]) is None:
                        self.add_note(place, f"{keyword} says nothing without {_BOUNDS[keyword]}")
                case "dependencies" if _BY_DEPENDENCY.isdisjoint(node) and as_node(value) is not None:
                    yield from _split_dependencies(as_node(value) or {}, place)
                case "dependencies":
                    descriptions.append(self.describe_invalid(keyword, value, place))
                case "id" if self.plain_ids and "$id" not in node and isinstance(value, str):
                    yield from self.convert_id(node, value, place)
                case "$id" if isinstance(value, str):
                    yield from self.convert_id(node, value, place)
                case "$recursiveRef" if "$ref" not in node:
                    yield "$ref", place, value
                case "$recursiveAnchor" if isinstance(value, bool):
                    pass
                case "required" if isinstance(value, bool):
                    if value and keyword_at(where) != "properties":
                        self.add_note(place, "nothing that could be required")
                case "required" if is_list(value):
                    yield keyword, place, self.convert_names(as_list(value), place, f"{new_where}/required")
                case "required" if not isinstance(value, str) or value not in properties_of(node):
                    descriptions.append(self.describe_invalid(keyword, value, place))
                case _:
                    yield keyword, place, value

    def convert_tuple(self, node: Node, place: str) -> Iterator[Keyword]:
        if not node["items"]:
            return
        if "prefixItems" in node:
            self.add_note(place, "the items are said by position twice")
        else:
            yield "prefixItems", place, node["items"]

    def convert_names(self, names: list[Any], place: str, new_where: str) -> list[Any]:
        """Return each name once; what came after one that is gone has another place."""
        kept: list[Any] = []
        for index, name in enumerate(names):
            if not isinstance(name, str):
                self.add_note(f"{place}/{index}", "not the name of a property")
            elif name not in kept:
                if index != len(kept):
                    self.moved[f"{new_where}/{len(kept)}"] = f"{place}/{index}"
                kept.append(name)
        return names if len(kept) == len(names) else kept

    def convert_types(self, value: Any, place: str, descriptions: list[str | None]) -> Iterator[Keyword]:
        """Name the types that are meant; what no draft knows may be anything, and words say what."""
        words = as_list(value) if is_list(value) else [value]
        meant = read_types({"type": words})
        if meant and all(isinstance(word, str) and read_types({"type": word}) for word in words):
            yield "type", place, value if _is_typed(value) else meant[0] if len(meant) == 1 else meant
        elif not any(isinstance(word, str) and word.lower() == _ANYTHING for word in words):
            descriptions.append(f"type: {value if isinstance(value, str) else to_json_text(value)}")
            self.add_note(place, "no type of JSON Schema: said in the description only", "approximated")

    def convert_id(self, node: Node, value: str, place: str) -> Iterator[Keyword]:
        """An id may not have a fragment any more; what it named is an anchor."""
        name, _, fragment = value.partition("#")
        if not fragment:
            yield "$id", place, value
            return
        if name:
            yield "$id", place, name
        if ANCHOR.fullmatch(fragment) and "$anchor" not in node:
            yield "$anchor", place, fragment
        else:
            self.add_note(place, f"no anchor can be named {fragment}")


_BY_DEPENDENCY = frozenset({"dependentRequired", "dependentSchemas"})


def _split_dependencies(members: Node, place: str) -> Iterator[Keyword]:
    names = {name: demand for name, demand in members.items() if isinstance(demand, str) or is_list(demand)}
    schemas = {name: demand for name, demand in members.items() if name not in names}
    if names:
        yield "dependentRequired", place, names
    if schemas:
        yield "dependentSchemas", place, schemas


def _find_required_flags(node: Node) -> list[str]:
    """Return the properties that say of themselves that they are required, as the oldest drafts had it."""
    members = properties_of(node).items()
    return [name for name, child in members if (as_node(child) or {}).get("required") is True]


def _is_typed(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return all(word in TYPES for word in value) and len(set(value)) == len(value)


def _is_older(dialect: object) -> bool:
    return isinstance(dialect, str) and dialect.rstrip("#") in DIALECTS and dialect.rstrip("#") != META


def _map_pointer(where: str, moved: dict[str, str]) -> str:
    """Return a place by its other name: the innermost part of it that has one decides."""
    part, rest = where, ""
    while part not in moved and part:
        part, _, step = part.rpartition("/")
        rest = f"/{step}{rest}"
    return f"{moved.get(part, part)}{rest}"


def _update_references(root: Node, moved: dict[str, str]) -> Node:
    """Let references to places that have other names now use those."""

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
"""A place and what is wrong there."""


_MEANINGLESS = {
    "cannot be so": "is no value for",
    "not a schema": "is no schema, which is an object or a boolean, at",
    "no type of JSON Schema": "is no type of JSON Schema, at",
    "not the name of a property": "is not the name of a property, at number",
}
"""What notes say of what no draft knows, and how it is told."""


_MAX_SHOWN = 60


def find_faults(schema: bytes, *, openapi: bool = False) -> tuple[Fault, ...]:
    """Return all that is wrong with a schema that is not proven plain."""
    document = json.peek(schema)
    if isinstance(document, bool):
        return ()
    if as_node(document) is None:
        return (("", f"{_shorten(document)} is no schema: the parameters of a tool are an object"),)
    try:
        return (*_find_meaningless(document, openapi), *_find_broken_references(document))
    except RecursionError:
        return (("", "the schema is nested too deeply"),)


def _find_meaningless(document: Any, openapi: bool) -> Iterator[Fault]:
    for note in to_draft_2020(document).notes:
        words = next((words for said, words in _MEANINGLESS.items() if said in note.what), None)
        value = _get_value(document, note.where)
        keyword = split(note.where)[-1] if note.where else ""
        # Google's enumerations may be written as numbers.
        if words is not None and not (openapi and keyword == "type" and isinstance(value, int)):
            yield note.where, f"{_shorten(value)} {words} {keyword!r}"


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
                yield f"{where}/{keyword}", f"{_shorten(named)} is not in the schema"
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
