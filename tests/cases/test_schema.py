"""Schemas of tools reach each target in a form it takes, and nothing of them is narrowed in silence.

Gemini is sent JSON Schema. Where a target forces Google's OpenAPI subset, `to_openapi` makes it.
"""

import copy
import json

import pytest

from cases.documents import (
    HELLO,
    chat_call,
    chat_calls,
    chat_request,
    chat_tool,
    gemini_reply,
    gemini_request,
    messages_request,
    tool_result,
    tool_use,
)
from cases.through import answer, encode, loss_pointers, translate_to
from dragoman.dialects.record import Call
from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.translate import translate_request

GEMINI = "gemini-3-flash"
CLAUDE = "claude-opus-4-8"


def declare(schema, model=GEMINI):
    """The declaration Gemini gets for a tool with `schema`, and the losses inside the schema."""
    asked = translate_to("chat", "gemini", chat_request(tools=[chat_tool("f", schema)]), model=model)
    (declaration,) = asked.body["tools"][0]["functionDeclarations"]
    return declaration, asked


def subset(schema, **options):
    """`schema` in Google's OpenAPI subset, and its outcome."""
    converted = to_openapi(encode(schema), **options)
    return json.loads(converted.schema), converted


REFERRING = {"schema": {"$defs": {"H": {"type": "string"}}, "properties": {"v": {"$ref": "#/$defs/H"}}}}


@pytest.mark.parametrize("target_model", ["gemini-3-flash", "gemini-2.5-flash"])
def test_t018_a_result_with_references_inside_is_sent_to_gemini_as_text(target_model):
    text = json.dumps(REFERRING)
    body = chat_request(HELLO, chat_calls(chat_call("c", "f")), {"role": "tool", "tool_call_id": "c", "content": text})
    asked = translate_to("chat", "gemini", body, model=target_model)
    (part,) = asked.body["contents"][2]["parts"]
    assert part["functionResponse"]["response"] == {"output": text}


def test_t018_a_structured_result_with_references_from_a_gemini_client_stays_data_for_text_targets():
    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": "c"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "c", "response": REFERRING}}]},
    ]
    asked = translate_to("gemini", "chat", gemini_request(*contents), model="gpt-4.1")
    assert json.loads(asked.body["messages"][2]["content"]) == REFERRING


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_t019_a_tool_without_parameters_stays_callable_on_gemini(schema):
    declaration, _ = declare(schema)
    assert declaration == {"name": "f"}
    result = answer("gemini", "chat", gemini_reply({"functionCall": {"name": "f"}}))
    (call,) = result.body["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": "{}"}


ENUMS = {
    "type": "object",
    "properties": {
        "mode": {"enum": [0, 1, 2]},
        "flag": {"type": "boolean", "enum": [True]},
        "kind": {"enum": ["a", "b"]},
    },
}


def test_t021_enums_are_untouched_in_json_schema():
    declaration, asked = declare(ENUMS)
    assert declaration["parametersJsonSchema"] == ENUMS
    assert asked.losses == ()


def test_t021_enums_are_strings_in_the_subset_and_the_arguments_come_back_in_their_own_type():
    schema, converted = subset(ENUMS)
    assert schema["properties"] == {
        "mode": {"type": "STRING", "enum": ["0", "1", "2"]},
        "flag": {"type": "BOOLEAN", "description": "(must be true)"},
        "kind": {"type": "STRING", "enum": ["a", "b"]},
    }
    assert {note.where for note in converted.notes} == {"/properties/mode/enum", "/properties/flag/enum"}
    restored = restore_arguments('{"mode":"1","flag":true,"kind":"a"}', converted.undo)
    assert json.loads(restored) == {"mode": 1, "flag": True, "kind": "a"}


def test_t022_a_type_with_null_is_nullable_in_the_subset():
    schema, _ = subset({"type": "object", "properties": {"n": {"type": ["integer", "null"]}}})
    assert schema["properties"]["n"] == {"type": "INTEGER", "nullable": True}


def test_t022_several_types_are_any_of_with_the_description_moved_inside_on_vertex():
    node = {"type": ["integer", "string"], "description": "how many"}
    schema, _ = subset({"type": "object", "properties": {"n": node}}, vertex=True)
    union = schema["properties"]["n"]
    assert union.keys() == {"anyOf"}
    assert [(branch["type"], branch["description"]) for branch in union["anyOf"]] == [
        ("INTEGER", "how many"),
        ("STRING", "how many"),
    ]


def test_t022_a_type_array_is_untouched_in_json_schema():
    schema = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}
    assert declare(schema)[0]["parametersJsonSchema"] == schema


def test_t024_the_empty_schema_stays_any_value():
    schema = {"type": "object", "properties": {"value": {}}}
    declaration, asked = declare(schema)
    assert declaration["parametersJsonSchema"] == schema
    assert asked.losses == ()


def test_t024_the_empty_schema_is_widened_and_noted_in_the_subset_never_an_object():
    schema, converted = subset({"type": "object", "properties": {"value": {}}})
    assert schema["properties"]["value"]["type"] == "STRING"
    assert [note.where for note in converted.notes] == ["/properties/value"]
    for value in ("7", "[1]", '{"a":null}', '"text"'):
        arguments = json.dumps({"value": value})
        assert json.loads(restore_arguments(arguments, converted.undo)) == {"value": json.loads(value)}


ARRAY_OR_OBJECT = {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, {"type": "object"}]}}}


def test_t025_an_array_without_items_gets_permissive_items_inside_a_union_too():
    schema, _ = subset(ARRAY_OR_OBJECT)
    arrays = [branch for branch in schema["properties"]["a"]["anyOf"] if branch["type"] == "ARRAY"]
    assert [array["items"]["type"] for array in arrays] == ["STRING"]


def test_t025_an_array_without_items_is_untouched_in_json_schema():
    assert declare(ARRAY_OR_OBJECT)[0]["parametersJsonSchema"] == ARRAY_OR_OBJECT


COMMENTED = {
    "type": "object",
    "$comment": "x",
    "properties": {
        "$comment": {"type": "string"},
        "mode": {"type": "string", "enum": ["a"], "enumDescriptions": ["A"]},
    },
}


def test_t027_unknown_keywords_go_and_properties_of_their_name_stay():
    schema, converted = subset(COMMENTED)
    assert "$comment" not in schema
    assert schema["properties"]["$comment"] == {"type": "STRING"}
    mode = schema["properties"]["mode"]
    assert (mode["type"], mode["enum"]) == ("STRING", ["a"])
    assert "enumDescriptions" not in mode
    assert "/properties/mode/enumDescriptions" in {note.where for note in converted.notes}


def test_t027_a_property_named_like_a_keyword_survives_in_json_schema():
    assert declare(COMMENTED)[0]["parametersJsonSchema"]["properties"] == COMMENTED["properties"]


@pytest.mark.parametrize(("target", "model"), [("responses", "gpt-5.6"), ("chat", "gpt-4.1"), ("messages", CLAUDE)])
def test_t028_a_property_named_type_is_kept_as_a_schema(target, model):
    schema = {"type": "object", "properties": {"type": {"type": "string", "enum": ["choice", "text"]}}}
    tools = [{"functionDeclarations": [{"name": "ask", "parametersJsonSchema": schema}]}]
    (tool,) = translate_to("gemini", target, gemini_request(tools=tools), model=model).body["tools"]
    sent = tool.get("parameters") or tool.get("input_schema") or tool["function"]["parameters"]
    assert sent == schema


BOUNDED = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "exclusiveMinimum": 0},
        "m": {"type": "number", "multipleOf": 0.5},
        "a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
}


def test_t030_bounds_reach_gemini_whole_in_json_schema():
    declaration, asked = declare(BOUNDED)
    assert declaration["parametersJsonSchema"] == BOUNDED
    assert asked.losses == ()


def test_t030_bounds_are_rewritten_or_described_in_the_subset():
    schema, converted = subset(BOUNDED)
    members = schema["properties"]
    assert members["n"]["minimum"] == 1
    assert "exclusiveMinimum" not in members["n"]
    assert "multipleOf" not in members["m"]
    assert "0.5" in members["m"]["description"]
    assert "uniqueItems" not in members["a"]
    assert members["a"]["description"]
    noted = {note.where for note in converted.notes}
    assert {"/properties/m/multipleOf", "/properties/a/uniqueItems"} <= noted


@pytest.mark.parametrize(("target", "model"), [("gemini", GEMINI), ("messages", CLAUDE), ("chat", "gpt-4.1")])
def test_t031_required_names_are_unique_and_exist(target, model):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "a", "ghost"]}
    asked = translate_to("chat" if target != "chat" else "responses", target, _with_tool(target, schema), model=model)
    (tool,) = asked.body["tools"]
    if target == "gemini":
        sent = tool["functionDeclarations"][0]["parametersJsonSchema"]
    else:
        sent = tool["input_schema"] if target == "messages" else tool["function"]["parameters"]
    assert sent["required"] == ["a"]
    assert any(where.endswith("/required/2") for where in loss_pointers(asked, "dropped"))


def _with_tool(target, schema):
    if target == "chat":
        return {"model": "m", "input": "q", "tools": [{"type": "function", "name": "f", "parameters": schema}]}
    return chat_request(tools=[chat_tool("f", schema)])


RECURSIVE = {
    "type": "object",
    "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}},
    "properties": {"n": {"$ref": "#/$defs/N"}},
}


def test_t033_a_recursive_schema_is_sent_as_json_schema_unchanged():
    declaration, asked = declare(RECURSIVE)
    assert declaration["parametersJsonSchema"] == RECURSIVE
    assert asked.losses == ()


def test_t033_a_recursive_schema_is_unrolled_to_a_fixed_depth_in_the_subset():
    schema, converted = subset(RECURSIVE)
    node, depth = schema["properties"]["n"], 0
    while "next" in node.get("properties", {}):
        node, depth = node["properties"]["next"], depth + 1
    assert 1 <= depth <= 5
    assert node["type"] == "OBJECT"
    assert any("recursion" in note.what for note in converted.notes)


def test_t034_a_schema_without_a_type_is_an_object_for_claude():
    schema = {"properties": {"q": {"type": "string"}}}
    (tool,) = translate_to("chat", "messages", chat_request(tools=[chat_tool("f", schema)]), model=CLAUDE).body["tools"]
    assert tool["input_schema"] == {"type": "object", **schema}


def test_t034_a_tool_without_a_schema_has_an_empty_object_for_claude():
    (tool,) = translate_to("chat", "messages", chat_request(tools=[chat_tool("f")]), model=CLAUDE).body["tools"]
    assert tool["input_schema"] == {"type": "object", "properties": {}}


def test_t036_objects_without_properties_get_them_at_every_level():
    schema = {
        "type": "object",
        "properties": {"o": {"type": "object"}, "l": {"type": "array", "items": {"type": "object"}}},
    }
    tools = [{"name": "f", "input_schema": schema}, {"name": "g", "input_schema": {"type": "object"}}]
    first, second = translate_to("messages", "chat", messages_request(tools=tools), model="local-model").body["tools"]
    empty = {"type": "object", "properties": {}}
    assert second["function"]["parameters"] == empty
    assert first["function"]["parameters"]["properties"] == {"o": empty, "l": {"type": "array", "items": empty}}


def test_t039_conversion_does_not_touch_what_a_second_attempt_starts_from():
    schema = {
        "type": "object",
        "properties": {"k": {"const": "x"}, "e": {"enum": [1, 2, 3]}},
        "additionalProperties": False,
    }
    body = chat_request(tools=[chat_tool("f", schema)])
    before = copy.deepcopy(body)
    call = Call(encode(body), "m")
    translate_request(call, "chat", "gemini", model=GEMINI)
    second = translate_request(call, "chat", "responses", model="gpt-5.6")
    assert call.body == encode(before)
    assert json.loads(second.call.body)["tools"][0]["parameters"] == schema
    assert translate_request(call, "chat", "chat").call.body == encode(before)


MIXED = {
    "type": "object",
    "properties": {
        "k": {"const": "x"},
        "e": {"enum": [1, 2, 3]},
        "o": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "any": {},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def test_t040_nothing_is_narrowed_in_json_schema():
    declaration, asked = declare(MIXED)
    assert declaration["parametersJsonSchema"] == MIXED
    assert asked.losses == ()


def test_t040_in_the_subset_const_is_an_enum_one_of_is_any_of_and_every_change_is_noted():
    schema, converted = subset(MIXED)
    members = schema["properties"]
    assert (members["k"]["type"], members["k"]["enum"]) == ("STRING", ["x"])
    assert members["e"]["enum"] == ["1", "2", "3"]
    assert [branch["type"] for branch in members["o"]["anyOf"]] == ["STRING", "INTEGER"]
    assert members["any"]["type"] == "STRING"
    noted = {note.where for note in converted.notes}
    assert noted >= {"/properties/e/enum", "/properties/o/oneOf", "/properties/any"}
    assert any(where.startswith("/properties/m") for where in noted)


def test_a_subset_argument_of_a_map_comes_back_as_the_map():
    _, converted = subset(MIXED)
    assert json.loads(restore_arguments('{"m":"{\\"a\\":\\"b\\"}"}', converted.undo)) == {"m": {"a": "b"}}


def test_t018_claude_results_are_text_whatever_they_hold():
    history = messages_request(
        HELLO,
        {"role": "assistant", "content": [tool_use("c", "f")]},
        {"role": "user", "content": [tool_result("c", json.dumps(REFERRING))]},
    )
    (part,) = translate_to("messages", "gemini", history, model=GEMINI).body["contents"][2]["parts"]
    assert part["functionResponse"]["response"] == {"output": json.dumps(REFERRING)}
