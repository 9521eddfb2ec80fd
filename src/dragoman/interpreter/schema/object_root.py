"""Turn any schema into one object schema without combinators at its root.

A local `$ref` at the root is inlined, `allOf` merged, a union of objects united (`required` is what all variants
require), a union of mere `required` lists said in words. What cannot be an object is put into one under `value`.
"""

from collections.abc import Iterable
from typing import Any

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.drafts import Modern
from dragoman.interpreter.schema.nodes import (
    Node,
    alternatives,
    as_list,
    as_node,
    merge,
    names_in,
    properties_of,
    rewrite,
    sentence,
    types_of,
    with_sentences,
)
from dragoman.interpreter.schema.references import References, existing_part, reference_of, severed, without_reference

WRAPPED = "value"

_FORBIDDEN = ("anyOf", "oneOf", "allOf", "not", "enum", "const")
_DEFINITIONS = ("$defs", "definitions")
_MERGES = 1000
_LONGEST_TRAIL = 50


def object_root(document: object, notes: list[Note]) -> tuple[Node, ArgumentUndo | None]:
    """Return an object schema that means `document`; `document` itself where it is one already."""
    node = as_node(document)
    if document is False:
        notes.append(Note("", "a schema that nothing fits was replaced by one without arguments", "approximated"))
    elif document is not None and document is not True and node is None:
        notes.append(Note("", "not a schema", "dropped"))
    if not node:
        return {"type": "object", "properties": {}}, None
    if node.get("type") == "object" and reference_of(node) is None and not any(word in node for word in _FORBIDDEN):
        return node, None
    return _Rooting(node, notes).root()


def placed(
    notes: list[Note], document: object, undo: ArgumentUndo | None, modern: Modern | None = None
) -> tuple[Note, ...]:
    """Let notes about what `object_root` made of a schema speak of places in the caller's document, once each."""
    inside = f"/properties/{WRAPPED}" if undo is not None and undo.wrapped else ""
    found: dict[Note, None] = dict.fromkeys(modern.notes if modern is not None else ())
    for note in notes:
        where = note.where.removeprefix(inside)
        where = where if modern is None else modern.before(where)
        exists = existing_part(document, where)
        # What is gone from a copy is not all that stands where the copy was put.
        found[Note(exists, note.what, note.kind if exists == where else "approximated")] = None
    return tuple(found)


class _Rooting:
    def __init__(self, document: Node, notes: list[Note]) -> None:
        self.document = document
        self.notes = notes
        self.references = References(document)
        self.merges = _MERGES

    def root(self) -> tuple[Node, ArgumentUndo | None]:
        node = self.flat(self.document, "", ())
        if node is not None:
            node = self.united(node)
        kinds = [] if node is None else types_of(node)
        if node is None or (kinds and "object" not in kinds) or "enum" in node or "const" in node:
            taken = frozenset("number" if kind == "integer" else kind for kind in kinds)
            return self.wrap(), ArgumentUndo(wrapped=WRAPPED, wrapped_kinds=taken)
        if "not" in node:
            node = self.worded(node, "not", sentence(node, "not"))
        if node.get("type") != "object":
            if len(kinds) > 1:
                self.notes.append(Note("/type", "the arguments must be an object", "approximated"))
            node = {"type": "object", **{keyword: value for keyword, value in node.items() if keyword != "type"}}
        return self.mended(node), None

    def flat(self, node: Node, where: str, trail: tuple[str, ...]) -> Node | None:
        """Inline references and merge `allOf`; None for what cannot be told."""
        self.merges -= 1
        if self.merges < 0 or len(trail) > _LONGEST_TRAIL:
            return None
        reference = reference_of(node)
        if reference is not None:
            pointer = self.references.locate(reference, where)
            if pointer is None:
                return severed(node, where, self.notes)
            if pointer in trail:
                return None
            target = self.known(self.references.at(pointer), pointer, (*trail, pointer))
            own = without_reference(node)
            return None if target is None else self.merged(own, target, where, join=False)
        branches = as_list(node.get("allOf"))
        merged = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        for index, branch in enumerate(branches):
            part = self.known(branch, f"{where}/allOf/{index}", trail)
            if part is None:
                return None
            merged = self.merged(merged, part, where, join=True)
        return merged

    def known(self, schema: Any, where: str, trail: tuple[str, ...]) -> Node | None:
        if schema is True:
            return {}
        node = as_node(schema)
        return None if node is None else self.flat(node, where, trail)

    def merged(self, first: Node, second: Node, where: str, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.notes.append(Note(where, f"conflicting values of {keyword}; the first is kept", "approximated"))

        return merge(first, second, clash, join=join)

    def united(self, node: Node) -> Node | None:
        """Unite the variants of `anyOf` and `oneOf`; None if a variant is not an object."""
        for keyword in ("anyOf", "oneOf"):
            if keyword not in node:
                continue
            branches = as_list(node[keyword])
            base = {name: value for name, value in node.items() if name != keyword}
            variants = [self.known(branch, f"/{keyword}/{index}", ()) for index, branch in enumerate(branches)]
            known = [part for part in variants if part is not None and types_of(part) != ["null"]]
            if any(part is None for part in variants) and not _says_object(base):
                return None
            if any(not _may_be_object(part) for part in known) and not _says_object(base):
                return None
            if not any(properties_of(part) for part in known):
                node = self.worded(node, keyword, alternatives(known))
            else:
                node = self.unite(base, known, keyword)
        return node

    def unite(self, base: Node, variants: list[Node], keyword: str) -> Node:
        self.notes.append(Note(f"/{keyword}", "variants were united into one object", "approximated"))
        properties = dict(properties_of(base))
        for variant in variants:
            for name, child in properties_of(variant).items():
                properties[name] = either(properties[name], child) if name in properties else child
        always = set(names_in(variants[0].get("required"))).intersection(
            *(names_in(variant.get("required")) for variant in variants)
        )
        required = [name for name in properties if name in always or name in names_in(base.get("required"))]
        united = {**base, "properties": properties, "required": required}
        united["description"] = with_sentences(base.get("description"), [f"one of: {_listed(variants)}"])
        if not required:
            del united["required"]
        return {**united, "additionalProperties": False} if all(map(_is_closed, variants)) else united

    def worded(self, node: Node, keyword: str, said: str | None) -> Node:
        self.notes.append(Note(f"/{keyword}", "said in the description only", "approximated"))
        rest = {name: value for name, value in node.items() if name != keyword}
        description = with_sentences(node.get("description"), [said])
        return {**rest, "description": description} if description else rest

    def wrap(self) -> Node:
        self.notes.append(Note("", f'not an object: sent as the member "{WRAPPED}" of one', "approximated"))
        inside = {name: value for name, value in self.document.items() if name not in (*_DEFINITIONS, "$schema")}
        hoisted = {name: self.document[name] for name in (*_DEFINITIONS, "$schema") if name in self.document}
        wrapped = {"type": "object", "properties": {WRAPPED: inside}, "required": [WRAPPED], **hoisted}
        return _repoint(wrapped)

    def mended(self, node: Node) -> Node:
        """Replace references to places that the merge has taken away."""
        references = References(node)

        def visit(schema: Any, where: str) -> Any:
            inner = as_node(schema)
            if inner is None:
                return schema
            reference = reference_of(inner)
            was_known = reference is not None and self.references.locate(reference) is not None
            if was_known and references.locate(reference) is None:
                self.notes.append(Note("", f"reference {reference} points into a merged part", "dropped"))
                return without_reference(inner)
            return rewrite(inner, where, visit)

        return rewrite(node, "", visit)


def either(first: Any, second: Any) -> Any:
    """Return the schema of a value that may fit one or the other."""
    return first if first == second and type(first) is type(second) else {"anyOf": [first, second]}


def _repoint(wrapped: Node) -> Node:
    """Make references to the old root and its parts point to where they are now."""

    def visit(schema: Any, where: str) -> Any:
        node = as_node(schema)
        if node is None:
            return schema
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith(_HOISTED) and f"{reference}/".startswith("#/"):
            node = {**node, "$ref": f"#/properties/{WRAPPED}{reference[1:]}"}
        return rewrite(node, where, visit)

    return rewrite(wrapped, "", visit)


_HOISTED = tuple(f"#/{name}/" for name in _DEFINITIONS)


def _says_object(node: Node) -> bool:
    return types_of(node) == ["object"]


def _may_be_object(node: Node) -> bool:
    kinds = types_of(node)
    return not kinds or "object" in kinds


def _is_closed(node: Node) -> bool:
    return node.get("additionalProperties") is False


def _listed(variants: Iterable[Node]) -> str:
    return " | ".join("{" + ", ".join(_marked(variant)) + "}" for variant in variants)


def _marked(variant: Node) -> list[str]:
    required = names_in(variant.get("required"))
    return [name if name in required else f"{name}?" for name in properties_of(variant)]
