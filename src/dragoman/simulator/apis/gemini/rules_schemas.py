"""Rules about schemas: Google's subset of OpenAPI in `parameters` and similar fields, JSON Schema in the others.

Keywords outside the subset are rejected before, as unknown names.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from msgspec import Struct

from dragoman.simulator.apis.gemini.request import GeminiRequest, describe_field, describe_vertex_error, format_path
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation
from dragoman.wire.pointer import escape, unescape

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double", "enum"),
    "INTEGER": ("int32", "int64", "enum"),
}
_ALLOWED_WITH_REF = frozenset({"description", "default"})
_LITERALS = frozenset({"enum", "const", "default", "example", "examples"})
_MAX_STATES = 5000
_TOO_MANY_STATES = (
    "The specified schema produces a constraint that has too many states for serving. Typical causes of this error are "
    "schemas with lots of text (for example, very long property or enum names), schemas with long array length limits "
    "(especially when nested), or schemas using complex value matchers (for example, integers or numbers with "
    "minimum/maximum bounds or strings with complex formats like date-time)"
)
_BINDING = frozenset({"ANY", "VALIDATED"})


class SchemaNode(Struct, frozen=True):
    """A schema in Google's format, its pointer, its root schema, and its function."""

    schema: Json
    where: str
    root: "SchemaNode | None" = None
    function: str = ""


NodeCheck = Callable[[SchemaNode, GeminiRequest], Iterator[Violation]]


def _iterate_nodes(node: SchemaNode) -> Iterator[SchemaNode]:
    yield node
    schema, root = node.schema, node.root or node
    inner = [(f"properties/{escape(name)}", one) for name, one in schema.get("properties", {}).items()]
    if "items" in schema:
        inner.append(("items", schema["items"]))
    inner += ((f"anyOf/{index}", one) for index, one in enumerate(schema.get("anyOf", ())))
    inner += ((f"defs/{escape(name)}", one) for name, one in schema.get("defs", {}).items())
    for steps, one in inner:
        yield from _iterate_nodes(SchemaNode(one, f"{node.where}/{steps}", root, node.function))


def _iterate_roots(request: GeminiRequest) -> Iterator[SchemaNode]:
    """Yield every schema of a request in Google's format."""
    for where, function in request.functions:
        for name in ("parameters", "response"):
            if name in function:
                yield SchemaNode(function[name], f"{where}/{name}", function=function["name"])
    if "responseSchema" in request.config:
        yield SchemaNode(request.config["responseSchema"], "/generationConfig/responseSchema")


def _load_nodes(request: GeminiRequest) -> list[SchemaNode]:
    """Return every schema in Google's format, and all its subschemas."""
    if "schemas" not in request.computed:
        request.computed["schemas"] = [node for root in _iterate_roots(request) for node in _iterate_nodes(root)]
    return request.computed["schemas"]


def _check_each_node(check: NodeCheck) -> Callable[[GeminiRequest, CheckContext], Iterable[Violation]]:
    """Return a check that applies to every schema in Google's format."""
    return lambda request, _: (violation for node in _load_nodes(request) for violation in check(node, request))


def _check_root(node: SchemaNode, request: GeminiRequest) -> Iterator[Violation]:
    is_parameters = node.root is None and node.where.endswith("/parameters")
    if is_parameters and node.schema.get("type", "OBJECT") not in {"OBJECT", "TYPE_UNSPECIFIED"}:
        text = "functionDeclaration parameters schema should be of type OBJECT."
        message = (
            describe_vertex_error(f"`{node.function}` {text}") if request.vertex else describe_field(node.where, text)
        )
        yield Violation(message, f"{node.where}/type")


def _check_items(node: SchemaNode, _: GeminiRequest) -> Iterator[Violation]:
    if node.schema.get("type") == "ARRAY" and "items" not in node.schema:
        yield Violation(describe_field(f"{node.where}/items", "missing field."), node.where)


def _check_enum(node: SchemaNode, _: GeminiRequest) -> Iterator[Violation]:
    schema, values = node.schema, node.schema.get("enum")
    is_number = schema.get("type") in {"INTEGER", "NUMBER"} and schema.get("format") == "enum"
    if values and schema.get("type", "STRING") != "STRING" and not is_number:
        where = f"{node.where}/enum"
        yield Violation(describe_field(where, "only allowed for STRING type"), where)
    for index, word in enumerate(values or ()):
        if not word:
            where = f"{node.where}/enum/{index}"
            yield Violation(describe_field(where, "cannot be empty"), where)


def _check_required(node: SchemaNode, _: GeminiRequest) -> Iterator[Violation]:
    for index, name in enumerate(node.schema.get("required", ())):
        if name not in node.schema.get("properties", ()):
            where = f"{node.where}/required/{index}"
            yield Violation(describe_field(where, "property is not defined"), where)


def _check_format(node: SchemaNode, request: GeminiRequest) -> Iterator[Violation]:
    kind, given = node.schema.get("type", ""), node.schema.get("format")
    known = _FORMATS.get(kind)
    if given and known and given not in known and not (kind == "STRING" and request.vertex):
        listed = " and ".join(f"'{word}'" for word in known[:2])
        where = f"{node.where}/format"
        yield Violation(describe_field(where, f"only {listed} are supported for {kind} type"), where)


def _check_any_of_alone(node: SchemaNode, request: GeminiRequest) -> Iterator[Violation]:
    if request.vertex and node.schema.get("anyOf") and len(node.schema) > 1:
        place = format_path(node.where).rpartition("].")[2]
        message = f"`{node.function}` functionDeclaration `{place}` schema specified other fields alongside any_of."
        yield Violation(
            describe_vertex_error(f"{message} When using any_of, it must be the only field set."), node.where
        )


def _check_properties(node: SchemaNode, request: GeminiRequest) -> Iterator[Violation]:
    is_empty = node.schema.get("type") == "OBJECT" and node.schema.get("properties") == {}
    if is_empty and request.generation.number < (2, 0):
        where = f"{node.where}/properties"
        yield Violation(describe_field(where, "should be non-empty for OBJECT type"), where)


def _check_definitions(node: SchemaNode, _: GeminiRequest) -> Iterator[Violation]:
    root = node.root or node
    if "defs" in node.schema and root is not node:
        where = f"{node.where}/defs"
        yield Violation(describe_field(where, "only allowed at the root of a schema"), where)
    reference = node.schema.get("ref")
    if reference is not None and reference not in {f"#/defs/{name}" for name in root.schema.get("defs", ())}:
        where = f"{node.where}/ref"
        yield Violation(describe_field(where, f"reference to undefined schema at {reference}"), where)


def _iterate_json_roots(request: GeminiRequest) -> Iterator[tuple[Any, str]]:
    """Yield every JSON schema of a request with its pointer."""
    for where, function in request.functions:
        if "parametersJsonSchema" in function:
            yield function["parametersJsonSchema"], f"{where}/parametersJsonSchema"
    if "responseJsonSchema" in request.config:
        yield request.config["responseJsonSchema"], "/generationConfig/responseJsonSchema"


def _as_object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _iterate_json_nodes(schema: Any, where: str) -> Iterator[tuple[Json, str]]:
    """Yield every object within a JSON schema, itself first, with its pointer."""
    if isinstance(schema, dict):
        members = cast("Json", schema)
        yield members, where
        for name, inner in members.items():
            if name not in _LITERALS:
                yield from _iterate_json_nodes(inner, f"{where}/{escape(name)}")
    for index, inner in enumerate(_as_list(schema)):
        yield from _iterate_json_nodes(inner, f"{where}/{index}")


def _resolve_reference(root: Any, reference: str) -> Any:
    """Return the target of a reference; None if it does not exist."""
    found = root
    for token in reference.removeprefix("#").removeprefix("/").split("/") if reference != "#" else ():
        found = _as_object(found).get(unescape(token))
    return found


def _check_json_root(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for schema, where in _iterate_json_roots(request):
        kind = _as_object(schema).get("type", "object") if isinstance(schema, dict) else None
        if kind is None or (where.endswith("/parametersJsonSchema") and kind != "object"):
            yield Violation(describe_field(where, "schema must be of type object"), where)


def _check_references(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for root, start in _iterate_json_roots(request):
        anchors = {f"#{node['$anchor']}" for node, _where in _iterate_json_nodes(root, "") if "$anchor" in node}
        for node, where in _iterate_json_nodes(root, start):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                continue
            is_pointer = reference == "#" or reference.startswith("#/")
            if reference not in anchors and not (is_pointer and _resolve_reference(root, reference) is not None):
                yield Violation(describe_field(start, f"reference to undefined schema at {reference}"), f"{where}/$ref")
            others = [name for name in node if not name.startswith("$") and name not in _ALLOWED_WITH_REF]
            if others:
                message = f"a schema with $ref must not have other properties, but it has {others[0]}"
                yield Violation(describe_field(start, message), where)


def _check_state_count(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    binds_answer = "responseSchema" in request.config or "responseJsonSchema" in request.config
    if not binds_answer and request.calling.get("mode") not in _BINDING:
        return
    states = sum(1 + len(node.schema.get("enum", ())) for node in _load_nodes(request))
    for root, where in _iterate_json_roots(request):
        states += sum(1 + len(_as_list(node.get("enum"))) for node, _where in _iterate_json_nodes(root, where))
    if states > _MAX_STATES:
        yield Violation(_TOO_MANY_STATES)


def _iterate_required_references(schema: Any) -> Iterator[str]:
    """Yield the references within a schema that are not below an optional property."""
    for inner in _as_list(schema):
        yield from _iterate_required_references(inner)
    members = _as_object(schema)
    if isinstance(members.get("$ref"), str):
        yield members["$ref"]
    required = _as_list(members.get("required"))
    for name, inner in _as_object(members.get("properties")).items():
        if name in required:
            yield from _iterate_required_references(inner)
    for word in ("items", "prefixItems", "anyOf", "oneOf", "additionalProperties"):
        if word in members:
            yield from _iterate_required_references(members[word])


def _check_cycles(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for root, where in _iterate_json_roots(request):
        for begin in {one["$ref"] for one, _where in _iterate_json_nodes(root, "") if isinstance(one.get("$ref"), str)}:
            seen: set[str] = set()
            waiting = [begin]
            while waiting:
                for reference in _iterate_required_references(_resolve_reference(root, waiting.pop())):
                    if reference == begin:
                        message = f"cyclic reference {begin} is only supported within non-required properties"
                        yield Violation(describe_field(where, message), where)
                        return
                    if reference not in seen:
                        seen.add(reference)
                        waiting.append(reference)


RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.schema-root",
        "Parameters are a schema of type object.",
        "wire/gemini_schema.md section 4.3; the error text is invented",
        _check_each_node(_check_root),
    ),
    Rule(
        "gemini.schema-items",
        "An array in `parameters` or `responseSchema` has `items`.",
        "wire/gemini_schema.md section 2",
        _check_each_node(_check_items),
    ),
    Rule(
        "gemini.schema-enum",
        "An enum has non-empty strings, and is for strings, or for numbers with the format enum.",
        "wire/gemini_schema.md sections 2 and 4.2; Google's error text from public threads",
        _check_each_node(_check_enum),
    ),
    Rule(
        "gemini.schema-required",
        "Every name in `required` is a declared property.",
        "wire/gemini_schema.md section 2",
        _check_each_node(_check_required),
    ),
    Rule(
        "gemini.schema-format",
        "A format is one that Google supports for the type; Vertex accepts any for strings.",
        "wire/gemini_schema.md section 2",
        _check_each_node(_check_format),
    ),
    Rule(
        "gemini.schema-any-of",
        "On Vertex anyOf has no other fields next to it.",
        "wire/gemini_schema.md section 2; AI Studio accepts it: gemini/mastra-0003",
        _check_each_node(_check_any_of_alone),
    ),
    Rule(
        "gemini.schema-properties",
        "Before Gemini 2 an object has properties.",
        "wire/gemini_schema.md section 2 (older backends); later models accept none: gemini/ruby-llm-0051",
        _check_each_node(_check_properties),
    ),
    Rule(
        "gemini.json-schema-root",
        "`parametersJsonSchema` is a schema of type object; `responseJsonSchema` is a schema.",
        "wire/gemini_schema.md section 3; the error text is invented",
        _check_json_root,
    ),
    Rule(
        "gemini.json-schema-ref",
        "A $ref in a JSON schema points into it, and has only $ members, description and default next to it.",
        "wire/gemini_schema.md section 3; the error text is invented",
        _check_references,
    ),
    Rule(
        "gemini.schema-states",
        "Schemas that constrain the model (in the modes ANY and VALIDATED, or for the answer) are not too large.",
        "wire/gemini.md section 4, wire/gemini_schema.md section 2; no source for the limit",
        _check_state_count,
    ),
    Rule(
        "gemini.schema-defs",
        "On Vertex definitions are at the root of a schema, and a reference points to one of them.",
        "wire/gemini_schema.md section 2; the error text is invented",
        _check_each_node(_check_definitions),
    ),
    Rule(
        "gemini.json-schema-cycle",
        "A JSON schema is recursive only within properties that are not required.",
        "wire/gemini_schema.md section 3; the error text is invented",
        _check_cycles,
    ),
)
