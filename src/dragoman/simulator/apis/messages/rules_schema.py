"""Rules about schemas that the vendor compiles: those of strict tools and of structured output.

They share one subset of JSON Schema and, over the whole request, one set of limits.
"""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.messages.blocks import Document, SearchResult
from dragoman.simulator.apis.messages.json_schema import is_schema
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import OutputFormat
from dragoman.simulator.apis.messages.tools import Custom
from dragoman.simulator.rule import Situation, Violation

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
_REFUSED_WORDS = ("oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_LOOKAROUND = re.compile(r"\(\?[=!<]|\\[bB1-9]")
_SUBSET = "wire/gemini_schema.md section 7; platform.claude.com structured-outputs, JSON Schema limitations"


def _compiled(reading: Reading) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every schema that is compiled: its pointer, the vendor's path, itself."""
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, Custom) and tool.strict:
            yield f"/tools/{number}/input_schema", f"tools.{number}.custom", tool.input_schema
    config = reading.request.output_config
    if config is not None and config.format is not None:
        yield "/output_config/format/schema", "output_config.format.schema", config.format.schema
    if reading.request.output_format is not None:
        yield "/output_format/schema", "output_format.schema", reading.request.output_format.schema


def _formats(reading: Reading) -> list[OutputFormat]:
    config = reading.request.output_config
    found = (config.format if config is not None else None, reading.request.output_format)
    return [one for one in found if one is not None]


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema, itself first."""
    if not isinstance(schema, dict):
        return
    node: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    yield node
    for word in ("properties", "$defs", "definitions"):
        inner: Any = node.get(word)
        for part in inner.values() if isinstance(inner, dict) else ():  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(part)
    for word in ("anyOf", "allOf", "prefixItems"):
        inner = node.get(word)
        for part in inner if isinstance(inner, list) else ():  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(part)
    yield from _nodes(node.get("items"))


def _types(node: dict[str, Any]) -> list[str]:
    kind: Any = node.get("type")
    return [kind] if isinstance(kind, str) else [str(one) for one in kind] if isinstance(kind, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _faults(schema: dict[str, Any]) -> Iterator[str]:
    """What is outside the subset, in the vendor's words."""
    if not is_schema(schema):
        yield "JSON schema is invalid"
        return
    for node in _nodes(schema):
        for kind in _types(node):
            found = [word for word in _UNSUPPORTED.get(kind, ()) if word in node]
            if found:
                words = "properties {} are" if len(found) > 1 else "property {} is"
                yield f"For '{kind}' type, {words.format(', '.join(found))} not supported"
            if kind == "object" and node.get("additionalProperties") is not False:
                yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
            if kind == "array" and node.get("minItems", 0) not in {0, 1}:
                yield "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            if kind == "string" and "format" in node and node["format"] not in _FORMATS:
                yield f"For 'string' type, format '{node['format']}' is not supported"
        for word in _REFUSED_WORDS:
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
            "$ref" in node or any("$ref" in part for part in _nodes({"allOf": branches}))
        ):
            yield "allOf with $ref is not supported"
        yield from _reference_faults(node, schema)


def _reference_faults(node: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    reference: Any = node.get("$ref")
    if not isinstance(reference, str):
        return
    if not reference.startswith("#"):
        yield f"External $ref '{reference}' is not supported"
    elif _returns(reference, root):
        yield f"Circular reference detected in schema definitions: {reference}"


def _returns(reference: str, root: dict[str, Any]) -> bool:
    """Whether following a local reference leads back to it."""
    seen: set[str] = set()
    waiting = [reference]
    while waiting:
        target: Any = root
        for step in waiting.pop().split("/")[1:]:
            target = target.get(step) if isinstance(target, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for node in _nodes(target):
            inner: Any = node.get("$ref")
            if inner == reference:
                return True
            if isinstance(inner, str) and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return False


@rule("schema-subset", _SUBSET)
def schema_subset(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A strict tool and a structured answer keep to the subset that can be compiled."""
    for where, path, schema in _compiled(reading):
        for words in _faults(schema):
            yield Violation(f"{path}: {words}", where)


@rule("strict-tools", "recorded: anthropic/rig-0106")
def strict_tools(reading: Reading, _: Situation) -> Iterator[Violation]:
    """At most 20 tools are strict."""
    strict = sum(isinstance(tool, Custom) and bool(tool.strict) for tool in reading.tools)
    if strict > _MOST_TOOLS:
        words = (
            f"Too many strict tools ({strict}). The maximum number of strict tools supported is {_MOST_TOOLS}. Try "
            "reducing the number of tools marked as strict."
        )
        yield Violation(words, "/tools")


@rule("schema-optionals", "platform.claude.com structured-outputs, Explicit limits")
def schema_optionals(reading: Reading, _: Situation) -> Iterator[Violation]:
    """All compiled schemas together have at most 24 optional parameters."""
    optional = sum(
        len(set(node.get("properties") or ()) - set(node.get("required") or ()))
        for _where, _path, schema in _compiled(reading)
        for node in _nodes(schema)
    )
    if optional > _MOST_OPTIONAL:
        words = (
            f"Schemas contains too many optional parameters ({optional}), which would make grammar compilation "
            f"inefficient. Reduce the number of optional parameters in your tool schemas (limit: {_MOST_OPTIONAL})."
        )
        yield Violation(words)


@rule("schema-unions", "recorded: anthropic/rig-0104")
def schema_unions(reading: Reading, _: Situation) -> Iterator[Violation]:
    """All compiled schemas together have at most 16 parameters of several types."""
    unions = sum(
        "anyOf" in node or isinstance(node.get("type"), list)
        for _where, _path, schema in _compiled(reading)
        for node in _nodes(schema)
    )
    if unions > _MOST_UNIONS:
        words = (
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf). "
            "This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters "
            f"(limit: {_MOST_UNIONS} parameters with unions)."
        )
        yield Violation(words)


@rule("output-format-model", "platform.claude.com structured-outputs, Supported models")
def output_format_model(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Structured output needs a model from 4.5 on."""
    if _formats(reading) and not reading.model.compiles_schemas:
        yield Violation(f"'{reading.model.name}' does not support output format.", "/output_config/format")


@rule("output-format-once", "no source: not documented")
def output_format_once(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The format of the answer stands in one place."""
    if len(_formats(reading)) > 1:
        yield Violation("output_format: Cannot be set together with output_config.format", "/output_format")


@rule("output-format-citations", "platform.claude.com structured-outputs, Incompatible with")
def output_format_citations(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A structured answer cites nothing."""
    if not _formats(reading):
        return
    for _turn, placed in reading.blocks():
        block = placed.block
        if isinstance(block, Document | SearchResult) and block.citations is not None and block.citations.enabled:
            yield Violation(f"{placed.path}: Citations are not supported with structured outputs", placed.where)


@rule("output-format-prefill", "wire/gemini_schema.md section 7; no source for the words")
def output_format_prefill(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A structured answer is not begun for the model."""
    last = reading.turns[-1] if reading.turns else None
    if _formats(reading) and last is not None and last.role == "assistant" and reading.model.takes_prefill:
        yield Violation("Prefilling assistant messages is not supported with structured outputs", last.where)


RULES = (
    strict_tools,
    output_format_model,
    output_format_once,
    schema_subset,
    schema_optionals,
    schema_unions,
    output_format_citations,
    output_format_prefill,
)
