"""Every recorded tool schema through every conversion; the results are validated by independent checkers."""

import functools
import json
import warnings
from typing import Any

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict
from shelf import ROOT, needs_shelf

pytestmark = needs_shelf

FILES = [
    "bfcl-normalised",
    "coding-agents",
    "docker-mcp-registry",
    "github-mcp-server",
    "json-schema-test-suite",
    "kubernetes-mcp-server",
    "mcp-servers-live",
]
STUDIO = {
    "type": str,
    "format": str,
    "title": str,
    "description": str,
    "nullable": bool,
    "enum": list,
    "items": dict,
    "minItems": int,
    "maxItems": int,
    "properties": dict,
    "required": list,
    "minProperties": int,
    "maxProperties": int,
    "minimum": (int, float),
    "maximum": (int, float),
    "minLength": int,
    "maxLength": int,
    "pattern": str,
    "example": object,
    "anyOf": list,
    "propertyOrdering": list,
}
VERTEX = {**STUDIO, "additionalProperties": (bool, dict)}
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}


@pytest.fixture(scope="module")
def google_schema():
    """google-genai's own class, which forbids unknown fields."""
    with warnings.catch_warnings():
        # The module has an invalid escape sequence in a docstring.
        warnings.simplefilter("ignore")
        from google.genai import types
    return types.Schema


@functools.cache
def rows(name: str) -> tuple[tuple[str, bytes], ...]:
    lines = (ROOT / "corpus" / "schemas" / f"{name}.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return tuple((row["name"], json.dumps(row["parameters"]).encode()) for row in map(json.loads, lines))


def scalar_offences(schema: dict[str, Any], *, vertex: bool, where: str) -> list[str]:
    """What is refused of enums and formats."""
    found: list[str] = []
    if "enum" in schema:
        values = schema["enum"]
        if (
            schema.get("type") != "STRING"
            or not values
            or not all(isinstance(v, str) and v for v in values)
            or len(set(values)) < len(values)
        ):
            found.append(f"{where}: enum {values}")
    if (
        schema.get("format")
        and not vertex
        and (schema["type"], schema["format"])
        not in {
            ("STRING", "date-time"),
            ("STRING", "enum"),
            ("NUMBER", "float"),
            ("NUMBER", "double"),
            ("INTEGER", "int32"),
            ("INTEGER", "int64"),
        }
    ):
        found.append(f"{where}: format")
    return found


def object_offences(schema: dict[str, Any], *, where: str) -> list[str]:
    """Forbidden and descriptive keywords of properties."""
    found: list[str] = []
    properties = schema.get("properties", {})
    if "properties" in schema and (not properties or schema.get("type") != "OBJECT"):
        found.append(f"{where}: properties")
    if (
        not set(schema.get("required", ())) <= set(properties)
        or len(set(schema.get("required", ()))) < len(schema.get("required", ()))
        or schema.get("required") == []
    ):
        found.append(f"{where}: required")
    if properties and sorted(schema.get("propertyOrdering", ())) != sorted(properties):
        found.append(f"{where}: propertyOrdering")
    return found


def offences(schema: Any, *, vertex: bool, where: str = "") -> list[str]:
    """What Google's backend would refuse in a `Schema`, by the list of known rejections."""
    if not isinstance(schema, dict):
        return [f"{where}: not an object"]
    fields = VERTEX if vertex else STUDIO
    found = [
        f"{where}/{name}: unknown or mistyped"
        for name, value in schema.items()
        if name not in fields or not isinstance(value, fields[name])
    ]
    branches = schema.get("anyOf")
    if branches is None and schema.get("type") not in TYPES:
        found.append(f"{where}: type {schema.get('type')!r}")
    if branches is not None:
        if vertex and set(schema) != {"anyOf"}:
            found.append(f"{where}: anyOf must stand alone")
        if len(branches) < 2:
            found.append(f"{where}: anyOf of one")
        for index, branch in enumerate(branches):
            found += offences(branch, vertex=vertex, where=f"{where}/anyOf/{index}")
    if (schema.get("type") == "ARRAY") != ("items" in schema):
        found.append(f"{where}: items")
    if "items" in schema:
        found += offences(schema["items"], vertex=vertex, where=f"{where}/items")
    found += scalar_offences(schema, vertex=vertex, where=where)
    found += object_offences(schema, where=where)
    for name, child in schema.get("properties", {}).items():
        found += offences(child, vertex=vertex, where=f"{where}/properties/{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        found += offences(schema["additionalProperties"], vertex=vertex, where=f"{where}/additionalProperties")
    return found


@pytest.mark.parametrize("vertex", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_every_recorded_schema_becomes_a_schema_that_google_accepts(name, vertex, google_schema):
    for tool, schema in rows(name):
        converted = to_openapi(schema, vertex=vertex)
        assert converted == to_openapi(bytes(bytearray(schema)), vertex=vertex)
        if converted.schema is None:
            continue
        document = json.loads(converted.schema)
        assert document["type"] == "OBJECT", tool
        assert offences(document, vertex=vertex) == [], tool
        assert google_schema.model_validate(document).type == "OBJECT", tool


@pytest.mark.parametrize("name", FILES)
def test_a_converted_schema_brought_back_is_plain_json_schema(name):
    import jsonschema_rs

    for tool, schema in rows(name):
        converted = to_openapi(schema).schema
        if converted is not None:
            plain = to_json_schema(converted).schema
            assert plain is not None
            assert jsonschema_rs.meta.is_valid(json.loads(plain)), tool
            assert b'"STRING"' not in plain
            assert b'"propertyOrdering"' not in plain


@pytest.mark.parametrize("name", [name for name in FILES if name != "json-schema-test-suite"])
def test_recorded_json_schema_needs_nothing_to_become_json_schema(name):
    for tool, schema in rows(name):
        assert to_json_schema(schema).schema is schema, tool


@pytest.mark.parametrize("name", FILES)
def test_every_adapted_root_is_one_plain_object(name):
    for tool, schema in rows(name):
        adapted = adapt_root(schema, property_keys=True)
        assert adapted.schema is not None
        document = json.loads(adapted.schema)
        assert document["type"] == "object", tool
        assert isinstance(document["properties"], dict), tool
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & document.keys(), tool
        assert all(isinstance(name, str) and name in document["properties"] for name in document.get("required", ())), (
            tool
        )
        again = adapt_root(adapted.schema, property_keys=True)
        assert again.schema is adapted.schema, tool


@pytest.mark.parametrize("name", FILES)
def test_a_recorded_schema_that_needs_no_change_is_returned_as_the_same_bytes(name):
    same = 0
    for _, schema in rows(name):
        document = json.loads(schema)
        plain = (
            isinstance(document, dict)
            and document.get("type") == "object"
            and isinstance(document.get("properties"), dict)
        )
        if plain and adapt_root(schema, add_properties=False).schema is schema:
            same += 1
            copy = bytes(bytearray(schema))
            assert adapt_root(copy, add_properties=False).schema is copy
    assert name == "json-schema-test-suite" or same >= 0.95 * len(rows(name))


def walk(schema: Any):
    if isinstance(schema, dict):
        yield schema
        for keyword in ("properties", "$defs", "definitions"):
            for child in schema.get(keyword, {}).values():
                yield from walk(child)
        for child in schema.get("anyOf", []):
            yield from walk(child)
        if isinstance(schema.get("items"), dict):
            yield from walk(schema["items"])


@pytest.mark.parametrize("name", FILES)
def test_a_schema_for_gemini_has_no_reference_with_siblings_and_no_boolean_properties(name):
    for tool, schema in rows(name):
        adapted = adapt_gemini(schema)
        if adapted.schema is None:
            continue
        document = json.loads(adapted.schema)
        assert document["type"] == "object", tool
        for node in walk(document):
            assert "definitions" not in node, tool
            if "$ref" in node:
                assert node["$ref"].startswith("#"), tool
                assert all(key.startswith("$") for key in node), tool
            assert not any(isinstance(child, bool) for child in node.get("properties", {}).values()), tool


@pytest.mark.parametrize("name", FILES)
def test_strict_schemas_close_every_object_and_require_every_member(name):
    allowed = {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "const",
        "$ref",
        "$defs",
        "definitions",
        "title",
        "description",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    }
    for tool, schema in rows(name):
        strict = json.loads(to_openai_strict(schema).schema or b"")
        assert strict["type"] == "object", tool
        for node in walk(strict):
            assert node.keys() <= allowed, tool
            assert {"type", "anyOf", "enum", "const", "$ref"} & node.keys(), tool
            if "properties" in node:
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])


@pytest.mark.parametrize("name", FILES)
def test_output_schemas_for_anthropic_pass_its_own_sdk_without_leftovers(name):
    from anthropic.lib._parse._transform import transform_schema

    for tool, schema in rows(name):
        output = json.loads(to_anthropic_output(schema).schema or b"")
        for node in walk(output):
            # The API knows these two, the SDK's transformation does not: it would say them in words.
            node.pop("default", None)
            node.pop("pattern", None)
            node.pop("definitions", None)
            if isinstance(node.get("type"), list):
                # The SDK's transformation knows single types only.
                node["type"] = next((kind for kind in ("object", "array") if kind in node["type"]), node["type"][0])
        before = [node.get("description") for node in walk(output)]
        assert [node.get("description") for node in walk(transform_schema(output))] == before, tool


@pytest.mark.parametrize("name", FILES)
def test_no_conversion_changes_arguments_that_were_never_adapted(name):
    for _, schema in rows(name):
        for converted in (
            to_openapi(schema),
            adapt_gemini(schema),
            adapt_root(schema, property_keys=True),
            to_openai_strict(schema),
        ):
            if converted.undo is not None:
                text = '{ "unheard": [1.50, "é"] , "of" :{} }'
                assert restore_arguments(text, converted.undo) is text
