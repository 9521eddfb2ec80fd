"""Rules about schemas that the vendor compiles: those of strict tools and of structured output.

They share one subset of JSON Schema and, over the whole request, one set of limits. The library that validates
schemas is imported on first use: that takes long, and few requests need it.
"""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.messages.errors import format_pointer
from dragoman.simulator.apis.messages.request import MessagesRequest, define_rule, find_output_schemas
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation, cache_per_request, when_set

_MOST_TOOLS = 20
_MOST_OPTIONAL = 24
_MOST_UNIONS = 16
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
_UNSUPPORTED = {
    "integer": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "number": ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("contains", "maxContains", "maxItems", "minContains", "uniqueItems"),
    "object": ("maxProperties", "minProperties", "patternProperties", "propertyNames"),
}
_FORBIDDEN_KEYWORDS = ("oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_LOOKAROUND = re.compile(r"\(\?[=!<]|\\[bB1-9]")
_SUBSET = "wire/gemini_schema.md section 7; platform.claude.com structured-outputs, JSON Schema limitations"


def is_schema(schema: Json) -> bool:
    """Return whether a schema is valid by draft 2020-12, regardless of the draft it names."""
    from jsonschema_rs import meta  # noqa: PLC0415  see the module's docstring

    try:
        return meta.is_valid({name: value for name, value in schema.items() if name != "$schema"})
    except ValueError:
        return False


def is_valid(value: Any, schema: Json) -> bool:
    """Return whether a value is valid by a schema; true if the schema has references that cannot be resolved."""
    from jsonschema_rs import ReferencingError, validator_for  # noqa: PLC0415  see the module's docstring

    try:
        return validator_for(schema, offline=True).is_valid(value)
    except (ReferencingError, ValueError):
        return True


def _is_strict(tool: Json) -> bool:
    return "input_schema" in tool and bool(tool.get("strict"))


@cache_per_request
def _find_compiled_schemas(request: MessagesRequest) -> Iterator[tuple[str, str, Json]]:
    """Return every schema that is compiled: its pointer, the vendor's path, and the schema."""
    for number, tool in enumerate(request.list("tools")):
        if _is_strict(tool):
            yield f"/tools/{number}/input_schema", f"tools.{number}.custom", tool["input_schema"]
    for where, schema in find_output_schemas(request):
        yield where, format_pointer(where), schema


def _iterate_nodes(schema: Any) -> Iterator[Json]:
    """Yield every schema within a schema, itself first."""
    if not isinstance(schema, dict):
        return
    node: Json = schema  # pyright: ignore[reportUnknownVariableType]
    yield node
    for word in ("properties", "$defs", "definitions"):
        inner: Any = node.get(word)
        for part in inner.values() if isinstance(inner, dict) else ():  # pyright: ignore[reportUnknownVariableType]
            yield from _iterate_nodes(part)
    for word in ("anyOf", "allOf", "prefixItems"):
        inner = node.get(word)
        for part in inner if isinstance(inner, list) else ():  # pyright: ignore[reportUnknownVariableType]
            yield from _iterate_nodes(part)
    yield from _iterate_nodes(node.get("items"))


def _read_types(node: Json) -> list[str]:
    kind: Any = node.get("type")
    return [kind] if isinstance(kind, str) else [str(one) for one in kind] if isinstance(kind, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _iterate_problems(schema: Json) -> Iterator[str]:
    """Yield the vendor's error texts for keywords outside the supported subset."""
    if not is_schema(schema):
        yield "JSON schema is invalid"
        return
    for node in _iterate_nodes(schema):
        for kind in _read_types(node):
            found = [word for word in _UNSUPPORTED.get(kind, ()) if word in node]
            if found:
                message = "properties {} are" if len(found) > 1 else "property {} is"
                yield f"For '{kind}' type, {message.format(', '.join(found))} not supported"
            if kind == "object" and node.get("additionalProperties") is not False:
                yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
            if kind == "array" and node.get("minItems", 0) not in {0, 1}:
                yield "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            if kind == "string" and "format" in node and node["format"] not in _FORMATS:
                yield f"For 'string' type, format '{node['format']}' is not supported"
        for word in _FORBIDDEN_KEYWORDS:
            if word in node:
                yield f"Schema keyword '{word}' is not supported"
        pattern: Any = node.get("pattern")
        if isinstance(pattern, str) and _LOOKAROUND.search(pattern):
            yield f"Unsupported regex feature in pattern field: {pattern}"
        values: Any = node.get("enum")
        if isinstance(values, list) and any(isinstance(value, dict | list) for value in values):  # pyright: ignore[reportUnknownVariableType]
            yield "Enum values must be strings, numbers, booleans, or null"
        branches: Any = node.get("allOf")
        if isinstance(branches, list) and (
            "$ref" in node or any("$ref" in part for part in _iterate_nodes({"allOf": branches}))
        ):
            yield "allOf with $ref is not supported"
        yield from _iterate_reference_problems(node, schema)


def _iterate_reference_problems(node: Json, root: Json) -> Iterator[str]:
    reference: Any = node.get("$ref")
    if not isinstance(reference, str):
        return
    if not reference.startswith("#"):
        yield f"External $ref '{reference}' is not supported"
    elif _is_circular(reference, root):
        yield f"Circular reference detected in schema definitions: {reference}"


def _is_circular(reference: str, root: Json) -> bool:
    """Return whether a local reference is circular."""
    seen: set[str] = set()
    waiting = [reference]
    while waiting:
        target: Any = root
        for step in waiting.pop().split("/")[1:]:
            target = target.get(step) if isinstance(target, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for node in _iterate_nodes(target):
            inner: Any = node.get("$ref")
            if inner == reference:
                return True
            if isinstance(inner, str) and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return False


@define_rule("schema-subset", _SUBSET)
def _check_subset(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The schemas of strict tools and structured answers use only the subset that can be compiled."""
    for where, path, schema in _find_compiled_schemas(request):
        for message in _iterate_problems(schema):
            yield Violation(f"{path}: {message}", where)


@define_rule("schema-optionals", "platform.claude.com structured-outputs, Explicit limits")
def _check_optional_count(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """All compiled schemas together have at most 24 optional parameters."""
    nodes = (node for _, _, schema in _find_compiled_schemas(request) for node in _iterate_nodes(schema))
    optional = sum(len(set(node.get("properties") or ()) - set(node.get("required") or ())) for node in nodes)
    if optional > _MOST_OPTIONAL:
        yield Violation(
            f"Schemas contains too many optional parameters ({optional}), which would make grammar compilation "
            f"inefficient. Reduce the number of optional parameters in your tool schemas (limit: {_MOST_OPTIONAL})."
        )


@define_rule("schema-unions", "recorded: anthropic/rig-0104")
def _check_union_count(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """All compiled schemas together have at most 16 parameters with a union type."""
    nodes = (node for _, _, schema in _find_compiled_schemas(request) for node in _iterate_nodes(schema))
    unions = sum("anyOf" in node or isinstance(node.get("type"), list) for node in nodes)
    if unions > _MOST_UNIONS:
        yield Violation(
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf). "
            "This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters "
            f"(limit: {_MOST_UNIONS} parameters with unions)."
        )


@define_rule("output-format-model", "platform.claude.com structured-outputs, Supported models")
def _check_output_format_model(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Structured output needs a model from 4.5 on."""
    if find_output_schemas(request) and not request.model.compiles_schemas:
        yield Violation(f"'{request.model.name}' does not support output format.", "/output_config/format")


@define_rule("output-format-citations", "platform.claude.com structured-outputs, Incompatible with")
def _check_output_format_citations(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Structured output and citations are not both enabled."""
    for block in request.blocks("document", "search_result") if find_output_schemas(request) else ():
        citations: Json = block.get("citations") or {}
        if citations.get("enabled"):
            yield Violation(f"{block.path}: Citations are not supported with structured outputs", block.where)


@define_rule("output-format-prefill", "wire/gemini_schema.md section 7; no source for the error text")
def _check_output_format_prefill(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """With structured output the answer is not prefilled."""
    last = request.last
    if last is not None and last.role == "assistant" and find_output_schemas(request) and request.model.takes_prefill:
        yield Violation("Prefilling assistant messages is not supported with structured outputs", last.where)


RULES: tuple[Rule[MessagesRequest], ...] = (
    Rule(
        "messages.strict-tools",
        "At most 20 tools are strict.",
        "recorded: anthropic/rig-0106",
        PathCheck(
            "/tools",
            lambda _, tools: (
                f"Too many strict tools ({sum(map(_is_strict, tools))}). The maximum number of strict tools supported "
                f"is {_MOST_TOOLS}. Try reducing the number of tools marked as strict."
            ),
            lambda tools: sum(map(_is_strict, tools)) > _MOST_TOOLS,
        ),
    ),
    _check_output_format_model,
    Rule(
        "messages.output-format-once",
        "The output format is given in one field only.",
        "no source: not documented",
        PathCheck(
            "/output_format",
            "output_format: Cannot be set together with output_config.format",
            when=when_set("/output_config/format"),
        ),
    ),
    _check_subset,
    _check_optional_count,
    _check_union_count,
    _check_output_format_citations,
    _check_output_format_prefill,
)
