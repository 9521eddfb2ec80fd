"""Arguments that do not fit: everything that is wrong, where, and what is expected."""

import msgspec
import pytest

from cpu_limit import cpu_limit
from dragoman.core.request import Tool
from dragoman.tools.arguments import InvalidArgumentsError, compile_parameters, read_arguments
from dragoman.tools.handler import ToolDefinitionError
from shelf import ROOT, needs_shelf

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"$ref": "#/$defs/Unit"},
        "a/b~c": {"type": "array", "items": {"type": "boolean"}},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
    "$defs": {"Unit": {"enum": ["C", "F"]}},
}


def read(schema: object, text: str) -> object:
    return read_arguments(Tool(name="t", parameters=msgspec.json.encode(schema)), text)


def wrong(schema: object, text: str) -> str:
    with pytest.raises(InvalidArgumentsError) as refused:
        read(schema, text)
    return str(refused.value)


def test_arguments_that_fit_are_returned_as_they_are():
    assert read(SCHEMA, '{"city": "Oslo", "unit": "C", "days": 2}') == {"city": "Oslo", "unit": "C", "days": 2}


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_text_means_no_arguments(text):
    assert read({"type": "object"}, text) == {}
    assert read_arguments(Tool(name="t"), text) == {}


def test_every_fault_is_reported_with_its_pointer_and_the_expected_value():
    lines = wrong(SCHEMA, '{"days": 9, "a/b~c": [true, 1], "town": "Oslo"}').splitlines()
    assert lines[0] == "5 errors in the arguments:"
    assert set(lines[1:]) == {
        '- the arguments: "city" is a required property (expected {"type":"string","minLength":1})',
        '- the arguments: "unit" is a required property (expected {"enum":["C","F"]})',
        '- /days: 9 is greater than the maximum of 7 (expected {"type":"integer","minimum":1,"maximum":7})',
        '- /a~1b~0c/1: 1 is not of type "boolean" (expected {"type":"boolean"})',
        "- the arguments: Additional properties are not allowed ('town' was unexpected) (expected members: city (required), days, unit (required), a/b~c)",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"city": "Os', "not JSON: Input data was truncated"),
        ('{"city": Oslo}', "not JSON: JSON is malformed: invalid character (byte 9)"),
        ("[" * 100_000, "not JSON"),
        ('["Oslo"]', 'must be a JSON object, not ["Oslo"]'),
        ("null", "must be a JSON object, not null"),
    ],
)
def test_arguments_that_are_not_a_json_object_are_reported(text, words):
    assert words in wrong({"type": "object"}, text)


def test_a_long_list_of_errors_is_cut_and_counted():
    body = wrong(
        {"type": "object", "additionalProperties": {"type": "string"}},
        msgspec.json.encode({str(n): n for n in range(50)}).decode(),
    )
    assert body.splitlines()[0] == "50 errors in the arguments:"
    assert body.splitlines()[-1] == "- and 30 more"


def test_a_huge_value_is_not_repeated_in_the_error():
    body = wrong(
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        msgspec.json.encode({"a": "x" * 1_000_000}).decode(),
    )
    assert len(body) < 1000


def test_free_text_is_not_read_as_json():
    assert read_arguments(Tool(name="t", form="text"), "print({") == "print({"


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"items": [{"type": "integer"}]}},
        },
        {"type": "object", "properties": {"a": {"items": [{"type": "integer"}]}}},
        {"type": "object", "properties": {"a": {"prefixItems": [{"type": "integer"}]}}},
    ],
)
def test_older_drafts_are_understood_named_or_not(schema):
    assert read(schema, '{"a": [1]}') == {"a": [1]}
    assert "/a/0" in wrong(schema, '{"a": ["x"]}')


def test_equal_schemas_are_compiled_once():
    schema = msgspec.json.encode(SCHEMA)
    assert compile_parameters(schema) is compile_parameters(bytes(bytearray(schema)))


def test_a_pattern_cannot_make_a_check_run_on():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    with cpu_limit():
        assert "/a" in wrong(schema, msgspec.json.encode({"a": "a" * 5000 + "!"}).decode())


def test_a_pattern_that_looks_around_is_understood():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?!x).*$"}}}
    assert read(schema, '{"a": "y"}')
    assert "/a" in wrong(schema, '{"a": "x"}')


def double(levels: int) -> dict[str, object]:
    """A schema that refers twice to the next level, at each level."""
    defined: dict[str, object] = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"type": "object", "$ref": "#/$defs/l0", "$defs": {**defined, f"l{levels}": {"type": "object"}}}


def recursive_in_two_ways() -> dict[str, object]:
    branch = {"properties": {"a": {"$ref": "#/$defs/node"}}}
    return {
        "type": "object",
        "$defs": {"node": {"anyOf": [branch, {**branch, "minProperties": 9}]}},
        "$ref": "#/$defs/node",
    }


def nest(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("schema", "text"),
    [(recursive_in_two_ways(), nest(40)), (recursive_in_two_ways(), nest(400))],
    ids=["recursive", "deep"],
)
def test_a_schema_that_doubles_the_work_at_each_level_is_not_validated(schema, text):
    with cpu_limit():
        assert "to be checked against the schema" in wrong(schema, text)


def test_a_schema_whose_references_double_at_each_level_is_refused():
    with cpu_limit(), pytest.raises(ToolDefinitionError, match="expand to more than 10000 schemas"):
        read(double(40), "{}")


def test_a_recursive_schema_is_checked_where_that_is_cheap():
    assert read(recursive_in_two_ways(), nest(5))
    assert read({"type": "object", "properties": {"a": {"$ref": "#"}}}, nest(1).replace("1", "{}"))


def test_anchors_and_an_identity_at_the_root_are_followed():
    schema = {
        "$id": "https://example.com/s",
        "type": "object",
        "properties": {"a": {"$ref": "#word"}, "b": {"$ref": "https://example.com/s#/$defs/w"}},
        "$defs": {"w": {"$anchor": "word", "type": "string"}},
    }
    assert read(schema, '{"a": "x", "b": "y"}')
    assert "/a" in wrong(schema, '{"a": 1}')


STOP = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
STOPS = {
    "type": "object",
    "properties": {"stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}}},
    "$defs": {"Stop": STOP},
}


def test_one_mistake_in_a_long_list_is_still_explained():
    stops = [{"city": "Oslo"}] * 3000 + [{"city": 7}]
    assert '- /stops/3000/city: 7 is not of type "string"' in wrong(
        STOPS, msgspec.json.encode({"stops": stops}).decode()
    )


def test_faults_beyond_the_limit_are_summarized():
    body = wrong(STOPS, msgspec.json.encode({"stops": [{}] * 2000}).decode())
    assert body.startswith("1000 errors or more in the arguments:")


def test_an_explanation_that_would_take_far_longer_than_the_verdict_is_not_given():
    branch = {"properties": {"a": {"$ref": "#/$defs/node", "type": "object"}}}
    schema = {
        "type": "object",
        "$defs": {"node": {"anyOf": [branch, {**branch, "minProperties": 9}]}},
        "$ref": "#/$defs/node",
    }
    assert "they do not fit the schema (expected {" in wrong(schema, nest(13))


@needs_shelf
@pytest.mark.parametrize(
    "source", ["coding-agents", "docker-mcp-registry", "github-mcp-server", "kubernetes-mcp-server", "mcp-servers-live"]
)
def test_schemas_of_real_tools_can_be_used(source):
    lines = (ROOT / "corpus" / "schemas" / f"{source}.jsonl").read_bytes().splitlines()
    assert lines
    for line in lines:
        assert compile_parameters(msgspec.json.encode(msgspec.json.decode(line)["parameters"]))
