"""Bugs of other gateways, by their id in the case collection: the input there, the outcome here."""

import json

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import to_anthropic_output
from shelf import cases, needs_shelf

pytestmark = needs_shelf


def bytes_of(value):
    return json.dumps(value).encode()


def convert(case, *, vertex=False):
    outcome = to_openapi(bytes_of(cases()[case]["input"]), vertex=vertex)
    return json.loads(outcome.schema or b"null"), outcome


def test_a_tool_without_parameters_is_sent_without_a_schema_t019():
    schema = bytes_of(cases()["T019"]["input"]["function"]["parameters"])
    assert to_openapi(schema).schema is None
    assert adapt_gemini(schema).schema is None
    assert adapt_root(schema).schema == b'{"type":"object","properties":{}}'


def test_enums_that_are_not_strings_keep_their_values_and_come_back_typed_t021():
    schema, outcome = convert("T021")
    assert schema["properties"]["mode"] == {"type": "STRING", "enum": ["0", "1", "2"]}
    assert schema["properties"]["flag"]["type"] == "BOOLEAN"
    assert schema["properties"]["kind"] == {"type": "STRING", "enum": ["a", "b"]}
    assert outcome.undo is not None
    assert restore_arguments('{"mode":"2","flag":true,"kind":"a"}', outcome.undo) == '{"mode":2,"flag":true,"kind":"a"}'
    original = bytes_of({"type": "object", **cases()["T021"]["input"]})
    assert adapt_gemini(original).schema is original


def test_type_arrays_become_nullable_or_any_of_t022():
    schema, _ = convert("T022")
    assert schema["properties"]["n"] == {"type": "INTEGER", "nullable": True}
    several = to_openapi(b'{"properties":{"n":{"type":["integer","string"],"description":"d"}}}', vertex=True)
    assert set(json.loads(several.schema or b"")["properties"]["n"]) == {"anyOf"}


def test_any_value_is_never_narrowed_to_object_t024():
    schema, outcome = convert("T024")
    assert schema["properties"]["value"]["type"] != "OBJECT"
    assert outcome.undo is not None
    for meant in ("5", "[1]", "null", '{"a":1}', '"text"'):
        sent = json.dumps({"value": meant})
        assert json.loads(restore_arguments(sent, outcome.undo))["value"] == json.loads(meant)
    assert [note.kind for note in outcome.notes] == ["approximated"]


def test_arrays_get_items_inside_any_of_too_t025():
    schema, _ = convert("T025")
    assert schema["properties"]["a"]["anyOf"] == [{"type": "ARRAY", "items": {"type": "STRING"}}, {"type": "OBJECT"}]


def test_unknown_keywords_go_and_a_property_of_the_same_name_stays_t027():
    schema, outcome = convert("T027")
    assert schema["properties"] == {"$comment": {"type": "STRING"}, "mode": {"type": "STRING", "enum": ["a"]}}
    assert "$comment" not in schema
    assert "/properties/mode/enumDescriptions" in [note.where for note in outcome.notes]


def test_a_property_named_type_is_a_schema_t028():
    schema = bytes_of(cases()["T028"]["input"]["parametersJsonSchema"])
    assert to_json_schema(schema).schema is schema
    assert adapt_root(schema).schema is schema
    assert adapt_gemini(schema).schema is schema


def test_bounds_without_a_counterpart_are_moved_not_sent_t030():
    schema, outcome = convert("T030")
    assert schema["properties"]["n"] == {"type": "INTEGER", "minimum": 1}
    assert schema["properties"]["a"]["description"] == "(items must be unique)"
    assert "/properties/a/uniqueItems" in [note.where for note in outcome.notes]


def test_required_names_are_unique_and_declared_t031():
    schema, _ = convert("T031")
    assert schema["required"] == ["a"]
    adapted = adapt_root(bytes_of(cases()["T031"]["input"]))
    assert json.loads(adapted.schema or b"")["required"] == ["a"]
    assert [note.where for note in adapted.notes] == ["/required/2"]


def test_a_recursive_reference_is_unrolled_to_a_fixed_depth_t033():
    schema, outcome = convert("T033")
    first = schema["properties"]["n"]["properties"]["next"]
    assert first["properties"]["next"] == {"type": "OBJECT", "description": "recursive N: members as above"}
    assert [note.what for note in outcome.notes] == ["recursion of N is cut"]
    original = bytes_of({"type": "object", **cases()["T033"]["input"]})
    assert adapt_gemini(original).schema is original


def test_a_missing_root_type_is_added_t034():
    adapted = adapt_root(bytes_of(cases()["T034"]["input"]["parameters"]))
    assert json.loads(adapted.schema or b"") == {"type": "object", "properties": {"q": {"type": "string"}}}
    assert adapted.notes == ()


def test_objects_without_properties_get_empty_ones_at_every_level_t036():
    assert adapt_root(bytes_of(cases()["T036"]["input"]["input_schema"])).schema == b'{"type":"object","properties":{}}'
    nested = adapt_root(b'{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}')
    assert json.loads(nested.schema or b"")["properties"]["a"]["items"] == {"type": "object", "properties": {}}


def test_output_constraints_are_described_and_objects_closed_t037():
    schema = cases()["T037"]["input"]["response_format"]["json_schema"]["schema"]
    output = to_anthropic_output(bytes_of(schema))
    assert json.loads(output.schema or b"") == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "(must be a multiple of 5)"}},
        "additionalProperties": False,
    }
    assert "/properties/n/multipleOf" in [note.where for note in output.notes]


def test_conversion_leaves_the_callers_bytes_for_the_next_target_t039():
    schema = bytes_of(cases()["T039"]["input"]["tools"][0]["function"]["parameters"])
    before = bytes(bytearray(schema))
    first = to_openapi(schema)
    assert schema == before
    assert json.loads(adapt_root(schema).schema or b"")["properties"] == {"k": {"const": "x"}, "e": {"enum": [1, 2, 3]}}
    assert to_openapi(before) == first


def test_nothing_is_narrowed_or_widened_without_a_note_t040():
    schema, outcome = convert("T040")
    assert schema["properties"]["k"] == {"type": "STRING", "enum": ["x"]}
    assert schema["properties"]["e"] == {"type": "STRING", "enum": ["1", "2", "3"]}
    assert schema["properties"]["o"] == {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}
    noted = {note.where.split("/")[2] for note in outcome.notes}
    assert noted == {"e", "o", "any", "m"}
    assert outcome.undo is not None
    assert json.loads(restore_arguments('{"m":"{\\"a\\":\\"b\\"}"}', outcome.undo)) == {"m": {"a": "b"}}
