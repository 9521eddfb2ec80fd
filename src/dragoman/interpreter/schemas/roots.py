"""Give a schema the root that every target of tool parameters demands: one plain object.

OpenAI and Anthropic take any JSON Schema whose root says `type: "object"` and has no combinators there. What has no
object at its root is put into one under `value`. Everything below the root stays as it is, save `required` lists that
name what is not there, references to other documents, what draft 2020-12 does not know and, for picky servers, object
schemas without `properties` and array schemas without `items`: OpenAI wants them beside `prefixItems` too.
"""

import hashlib
import re
from typing import Any

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.drafts import modernised
from dragoman.interpreter.schemas.nodes import (
    Node,
    as_list,
    as_node,
    keyword_at,
    names_in,
    properties_of,
    read_document,
    rewrite,
)
from dragoman.interpreter.schemas.object_root import object_root, placed
from dragoman.interpreter.schemas.outcome import Converted, Note, conversion, unchanged
from dragoman.interpreter.schemas.plain import LEGAL_KEY, PlainProof, prove_plain
from dragoman.interpreter.schemas.references import References, reference_of, severed
from dragoman.wire.json import Malformed, encode
from dragoman.wire.pointer import escape

EMPTY = b'{"type":"object","properties":{}}'

_OF_ITEMS = ("items", "$ref")
_BRANCHES = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else"})
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.-]")


def fit_root(
    schema: bytes, *, property_keys: bool = False, add_properties: bool = True, proof: PlainProof | None = None
) -> Converted:
    """Make a JSON Schema acceptable as tool parameters for targets that demand an object root.

    `proof` is what `prove_plain` found of these bytes, if it has read them before.
    """
    proof = prove_plain(schema) if proof is None else proof
    if proof.fits_root and (proof.legal_keys or not property_keys):
        return unchanged(schema)
    return convert_root(schema, property_keys=property_keys, add_properties=add_properties)


@conversion
def convert_root(schema: bytes, *, property_keys: bool = False, add_properties: bool = True) -> Converted:
    """Fit a JSON Schema that is not proven plain."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return Converted(EMPTY, (Note("", f"schema is not readable: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = modernised(document)
    root, undo = object_root(modern.document, notes)
    # Anthropic, who minds the names of properties, takes tuples as they are.
    fitted = _Fitting(root, notes, add_properties=add_properties, plain_tuples=property_keys).node(root, "")
    if property_keys and (renamed := _illegal_keys(properties_of(fitted))):
        fitted = _rename(fitted, renamed, notes)
        # A wrapped root has one member, and its name is legal: there is no other undo here.
        undo = ArgumentUndo(renamed={sent: meant for meant, sent in renamed.items()})
    if fitted is document:
        return unchanged(schema)
    return Converted(encode(fitted), placed(notes, document, undo, modern), undo)


class _Fitting:
    """Repairs that hold at every level."""

    def __init__(self, root: Node, notes: list[Note], *, add_properties: bool, plain_tuples: bool) -> None:
        self.references = References(root)
        self.notes = notes
        self.add_properties = add_properties
        self.of_items = {*_OF_ITEMS, "prefixItems"} if plain_tuples else set(_OF_ITEMS)

    def visit(self, schema: Any, where: str) -> Any:
        node = as_node(schema)
        return schema if node is None else self.node(node, where)

    def node(self, node: Node, where: str) -> Node:
        reference = reference_of(node)
        if reference is not None and self.references.locate(reference, where) is None:
            node = severed(node, where, self.notes)
        node = rewrite(node, where, self.visit)
        if self.add_properties and node.get("type") == "object" and _is_bare(node, where):
            node = {**node, "properties": {}}
        if self.add_properties and node.get("type") == "array" and node.keys().isdisjoint(self.of_items):
            node = {**node, "items": {}}
        return declared_only(node, where, self.notes)


def declared_only(node: Node, where: str, notes: list[Note]) -> Node:
    """Let `required` name each declared property once and nothing else: vendors refuse the whole request otherwise."""
    required: object = node.get("required")
    is_list = isinstance(node.get("required"), list)
    if required is None or (is_list and "properties" not in node):
        return node
    declared = properties_of(node)
    kept = [name for name in names_in(required) if name in declared]
    if kept == required:
        return node
    for index, name in enumerate(as_list(required)):
        if not isinstance(name, str) or name not in declared:
            what = f'"{name}" was required but is not among the properties'
            notes.append(Note(f"{where}/required/{index}", what, "dropped"))
    if not is_list:
        return {keyword: value for keyword, value in node.items() if keyword != "required"}
    return {**node, "required": kept}


def _is_bare(node: Node, where: str) -> bool:
    """Tell whether an object schema lacks properties; a branch may require what the schema around it declares."""
    if "properties" in node or "$ref" in node:
        return False
    return "required" not in node or keyword_at(where) not in _BRANCHES


def _illegal_keys(properties: Node) -> dict[str, str]:
    renamed: dict[str, str] = {}
    taken = set(properties)
    for name in properties:
        if LEGAL_KEY.fullmatch(name):
            continue
        legal = _ILLEGAL.sub("_", name)[:64] or "_"
        if legal in taken:
            legal = f"{legal[:55]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        taken.add(legal)
        renamed[name] = legal
    return renamed


def _rename(node: Node, renamed: dict[str, str], notes: list[Note]) -> Node:
    for meant, sent in renamed.items():
        notes.append(Note(f"/properties/{escape(meant)}", f'sent under the name "{sent}"', "approximated"))
    properties = {renamed.get(name, name): child for name, child in properties_of(node).items()}
    changed = {**node, "properties": properties}
    if "required" in node:
        changed["required"] = [renamed.get(name, name) for name in names_in(node["required"])]
    return changed
