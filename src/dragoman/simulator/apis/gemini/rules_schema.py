"""What schemas must be: Google's subset of OpenAPI in `parameters` and its like, JSON Schema in the other fields.

Keywords outside the subset are unknown names already.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule, field, unable
from dragoman.simulator.apis.gemini.proto import items_of, members_of
from dragoman.simulator.apis.gemini.shape_tools import Schema
from dragoman.simulator.rule import Rule, Situation, Violation
from dragoman.wire.pointer import escape, unescape

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double", "enum"),
    "INTEGER": ("int32", "int64", "enum"),
}
_BESIDE_REF = frozenset({"description", "default"})
_LITERALS = frozenset({"enum", "const", "default", "example", "examples"})


class Node(Struct, frozen=True):
    """A schema, where it stands in Google's words and as a pointer, and the function it belongs to."""

    schema: Schema
    path: str
    where: str
    function: str


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    schema = node.schema
    for name, inner in (schema.properties or {}).items():
        where = f"{node.where}/properties/{escape(name)}"
        yield from _nodes(Node(inner, f"{node.path}.properties[{name}]", where, node.function))
    if schema.items is not None:
        yield from _nodes(Node(schema.items, f"{node.path}.items", f"{node.where}/items", node.function))
    for index, inner in enumerate(schema.any_of or []):
        yield from _nodes(Node(inner, f"{node.path}.any_of[{index}]", f"{node.where}/anyOf/{index}", node.function))
    for name, inner in (schema.defs or {}).items():
        where = f"{node.where}/defs/{escape(name)}"
        yield from _nodes(Node(inner, f"{node.path}.defs[{name}]", where, node.function))


def roots(heard: Heard) -> Iterator[Node]:
    """Yield every schema of a request in Google's own form."""
    for (number, index), function in heard.placed_functions:
        path = f"tools[{number}].function_declarations[{index}]"
        where = f"/tools/{number}/functionDeclarations/{index}"
        for name in ("parameters", "response"):
            schema: Schema | None = getattr(function, name)
            if schema is not None:
                yield Node(schema, f"{path}.{name}", f"{where}/{name}", function.name)
    if heard.config.response_schema is not None:
        where = "/generationConfig/responseSchema"
        yield Node(heard.config.response_schema, "generation_config.response_schema", where, "")


def all_nodes(heard: Heard) -> Iterator[Node]:
    """Yield every schema in Google's own form, and every schema within."""
    for root in roots(heard):
        yield from _nodes(root)


def _root(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in roots(heard):
        if node.path.endswith(".parameters") and node.schema.type not in {None, "OBJECT", "TYPE_UNSPECIFIED"}:
            words = "functionDeclaration parameters schema should be of type OBJECT."
            message = unable(f"`{node.function}` {words}") if heard.vertex else field(node.path, words)
            yield Violation(message, f"{node.where}/type")


def _items(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in all_nodes(heard):
        if node.schema.type == "ARRAY" and node.schema.items is None:
            yield Violation(field(f"{node.path}.items", "missing field."), node.where)


def _enum(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in all_nodes(heard):
        schema = node.schema
        numbers = schema.type in {"INTEGER", "NUMBER"} and schema.format == "enum"
        if schema.enum and schema.type not in {None, "STRING"} and not numbers:
            yield Violation(field(f"{node.path}.enum", "only allowed for STRING type"), f"{node.where}/enum")
        for index, word in enumerate(schema.enum or []):
            if not word:
                yield Violation(field(f"{node.path}.enum[{index}]", "cannot be empty"), f"{node.where}/enum/{index}")


def _required(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in all_nodes(heard):
        for index, name in enumerate(node.schema.required or []):
            if name not in (node.schema.properties or {}):
                words = field(f"{node.path}.required[{index}]", "property is not defined")
                yield Violation(words, f"{node.where}/required/{index}")


def _format(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in all_nodes(heard):
        known = _FORMATS.get(node.schema.type or "")
        strings = node.schema.type == "STRING"
        if node.schema.format and known and node.schema.format not in known and not (strings and heard.vertex):
            said = " and ".join(f"'{word}'" for word in known[:2])
            words = f"only {said} are supported for {node.schema.type} type"
            yield Violation(field(f"{node.path}.format", words), f"{node.where}/format")


def _alone(heard: Heard, _: Situation) -> Iterator[Violation]:
    if not heard.vertex:
        return
    for node in all_nodes(heard):
        beside = [name for name in Schema.__struct_fields__ if getattr(node.schema, name) is not None]
        if node.schema.any_of and len(beside) > 1:
            place = node.path.rpartition("].")[2]
            words = f"`{node.function}` functionDeclaration `{place}` schema specified other fields alongside any_of."
            yield Violation(unable(f"{words} When using any_of, it must be the only field set."), node.where)


def _properties(heard: Heard, _: Situation) -> Iterator[Violation]:
    for node in all_nodes(heard):
        empty = node.schema.type == "OBJECT" and node.schema.properties == {}
        if empty and heard.generation.number < (2, 0):
            words = field(f"{node.path}.properties", "should be non-empty for OBJECT type")
            yield Violation(words, f"{node.where}/properties")


def json_roots(heard: Heard) -> Iterator[tuple[Any, str, str]]:
    """Yield every JSON schema of a request: itself, where it stands in Google's words, its pointer."""
    for (number, index), function in heard.placed_functions:
        path = f"tools[{number}].function_declarations[{index}].parameters_json_schema"
        where = f"/tools/{number}/functionDeclarations/{index}/parametersJsonSchema"
        if function.parameters_json_schema is not None:
            yield function.parameters_json_schema, path, where
    if heard.config.response_json_schema is not None:
        path = "generation_config.response_json_schema"
        yield heard.config.response_json_schema, path, "/generationConfig/responseJsonSchema"


def _json_root(heard: Heard, _: Situation) -> Iterator[Violation]:
    for schema, path, where in json_roots(heard):
        members = members_of(schema)
        typed = None if members is None else members.get("type", "object")
        if typed is None or ("parameters" in path and typed != "object"):
            yield Violation(field(path, "schema must be of type object"), where)


def json_nodes(schema: Any, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every object within a JSON schema, itself first, with its pointer."""
    members = members_of(schema)
    if members is not None:
        yield members, where
        for name, inner in members.items():
            if name not in _LITERALS:
                yield from json_nodes(inner, f"{where}/{escape(name)}")
    for index, inner in enumerate(items_of(schema) or []):
        yield from json_nodes(inner, f"{where}/{index}")


def _found(schema: Any, reference: str) -> bool:
    if reference == "#":
        return True
    at = schema
    for token in reference.removeprefix("#/").split("/"):
        at = (members_of(at) or {}).get(unescape(token))
    return at is not None


def _reference(heard: Heard, _: Situation) -> Iterator[Violation]:
    for root, path, start in json_roots(heard):
        anchors = {f"#{node['$anchor']}" for node, _where in json_nodes(root, "") if "$anchor" in node}
        for node, where in json_nodes(root, start):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                continue
            if not reference.startswith("#") or (reference not in anchors and not _found(root, reference)):
                yield Violation(field(path, f"reference to undefined schema at {reference}"), f"{where}/$ref")
            beside = [name for name in node if not name.startswith("$") and name not in _BESIDE_REF]
            if beside:
                words = f"$ref must not stand beside other properties, but stands beside {beside[0]}"
                yield Violation(field(path, words), where)


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.schema-root",
        "Parameters are an object.",
        "wire/gemini_schema.md section 4.3; the words are ours",
        _root,
    ),
    Rule(
        "gemini.schema-items",
        "An array in `parameters` or `responseSchema` says what its items are.",
        "wire/gemini_schema.md section 2",
        _items,
    ),
    Rule(
        "gemini.schema-enum",
        "An enum is of strings that are not empty, for strings, or for numbers with the format enum.",
        "wire/gemini_schema.md sections 2 and 4.2; Google's words from public threads",
        _enum,
    ),
    Rule(
        "gemini.schema-required",
        "What is required is a declared property.",
        "wire/gemini_schema.md section 2",
        _required,
    ),
    Rule(
        "gemini.schema-format",
        "A format is one Google knows for the type; Vertex takes any for strings.",
        "wire/gemini_schema.md section 2",
        _format,
    ),
    Rule(
        "gemini.schema-any-of",
        "On Vertex anyOf stands alone.",
        "wire/gemini_schema.md section 2; AI Studio takes it: gemini/mastra-0003",
        _alone,
    ),
    Rule(
        "gemini.schema-properties",
        "Before Gemini 2 an object has properties.",
        "wire/gemini_schema.md section 2 (older backends); later ones take it: gemini/ruby-llm-0051",
        _properties,
    ),
    Rule(
        "gemini.json-schema-root",
        "parametersJsonSchema is an object schema; responseJsonSchema is a schema.",
        "wire/gemini_schema.md section 3; the words are ours",
        _json_root,
    ),
    Rule(
        "gemini.json-schema-ref",
        "A $ref in a JSON schema leads to a place in it, and stands beside $ members, description and default only.",
        "wire/gemini_schema.md section 3; the words are ours",
        _reference,
    ),
)
