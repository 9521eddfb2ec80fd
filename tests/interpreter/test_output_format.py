"""The shape of the answer and who asks for it, as each model takes them."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import OutputFormat, Tool
from dragoman.interpreter.parameters import adapt_output
from dragoman.interpreter.request_fields import adapt_identity
from interpreter.workbench import adaptation_for, build_message, build_request, encode, loss_pointers

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
FORMAT = OutputFormat(kind="json_schema", schema=encode(SCHEMA), name="plan", description="A plan.", strict=True)
TOOLS = (Tool(name="f"),)


def adapt_format(dialect, model, output, *, source="chat", **request):
    adaptation = adaptation_for(dialect, model, source=source)
    return (
        adapt_output(build_request(output=output, **request), adaptation),
        loss_pointers(adaptation),
        adaptation.instructions,
    )


@pytest.mark.parametrize("output", [None, OutputFormat(kind="text")])
def test_plain_text_needs_no_format(output):
    assert adapt_format("chat", "gpt-4.1", output) == (None, [], [])


@pytest.mark.parametrize(
    ("dialect", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6"), ("gemini", "gemini-3-pro")]
)
def test_json_without_a_schema_is_requested(dialect, model):
    adaptation = adaptation_for(dialect, model)
    request = build_request(build_message("user", "Some Json, please."), output=OutputFormat(kind="json", name="x"))
    assert adapt_output(request, adaptation) == OutputFormat(kind="json")
    assert (loss_pointers(adaptation), adaptation.instructions) == ([], [])


@pytest.mark.parametrize(("dialect", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6")])
def test_the_word_json_is_added_for_openai_if_it_is_missing(dialect, model):
    assert adapt_format(dialect, model, OutputFormat(kind="json")) == (
        OutputFormat(kind="json"),
        [("approximated", "/response_format")],
        ["Answer with one JSON object and nothing else."],
    )


def test_json_without_a_schema_is_requested_from_claude_as_text():
    assert adapt_format("messages", "claude-opus-5", OutputFormat(kind="json")) == (
        None,
        [("approximated", "/response_format")],
        ["Answer with one JSON object and nothing else."],
    )


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (
            TOOLS,
            (
                None,
                [("approximated", "/response_format")],
                ["When you call no tool, answer with one JSON object and nothing else."],
            ),
        ),
        ((), (OutputFormat(kind="json"), [], [])),
    ],
)
def test_gemini_2_5_takes_tools_or_a_format(tools, expected):
    assert adapt_format("gemini", "gemini-2.5-pro", OutputFormat(kind="json"), tools=tools) == expected


@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_openai_takes_the_format_as_it_is_and_demands_a_name(dialect):
    assert adapt_format(dialect, "gpt-5.1", FORMAT) == (FORMAT, [], [])
    bare = OutputFormat(kind="json_schema", schema=encode(SCHEMA))
    named = OutputFormat(kind="json_schema", schema=encode(SCHEMA), name="answer")
    assert adapt_format(dialect, "gpt-5.1", bare) == (named, [], [])


@pytest.mark.parametrize(("dialect", "model"), [("gemini", "gemini-3-pro"), ("messages", "claude-opus-5")])
def test_name_and_description_go_into_the_schema_where_there_is_no_other_place(dialect, model):
    output, losses, words = adapt_format(dialect, model, FORMAT)
    assert json.loads(output.schema) == {**SCHEMA, "title": "plan", "description": "A plan."}
    assert output == OutputFormat(kind="json_schema", schema=output.schema)
    assert (losses, words) == ([], [])


def test_a_schema_with_its_own_title_and_description_keeps_them():
    own = {**SCHEMA, "title": "mine", "description": "My own."}
    output = OutputFormat(kind="json_schema", schema=encode(own), name="plan", description="A plan.")
    adapted, losses, _ = adapt_format("gemini", "gemini-3-pro", output)
    assert json.loads(adapted.schema) == own
    assert losses == [
        ("dropped", "/response_format/json_schema/description"),
        ("dropped", "/response_format/json_schema/name"),
    ]


@pytest.mark.parametrize("schema", [None, b"{}"])
def test_a_format_without_a_schema_is_any_value(schema):
    output = OutputFormat(kind="json_schema", schema=schema, name="n")
    result, losses, _ = adapt_format("gemini", "gemini-3-pro", output)
    assert (json.loads(result.schema), losses) == ({"title": "n"}, [])


def test_a_schema_that_is_no_object_becomes_any_value_and_is_reported():
    output = OutputFormat(kind="json_schema", schema=b"true", name="n")
    result, losses, _ = adapt_format("gemini", "gemini-3-pro", output)
    assert json.loads(result.schema)["title"] == "n"
    assert losses == [("approximated", "/response_format/json_schema/schema")]


@pytest.mark.parametrize(
    "schema", [None, b"{}", b"true", b'{"anyOf":[{"type":"object"}]}', b'{"type":"object","$ref":"#/$defs/a"}']
)
@pytest.mark.parametrize(("dialect", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6")])
def test_output_that_is_not_an_object_is_requested_from_openai_as_text(dialect, model, schema):
    result, losses, words = adapt_format(dialect, model, OutputFormat(kind="json_schema", schema=schema, name="n"))
    assert (result, losses, len(words)) == (None, [("approximated", "/response_format")], 1)


def test_an_array_of_anything_has_explicit_items_for_openai():
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    result, losses, _ = adapt_format(
        "responses", "gpt-5.6", OutputFormat(kind="json_schema", schema=encode(schema), name="n")
    )
    assert json.loads(result.schema)["properties"] == {"a": {"type": "array", "items": {}}}
    assert losses == []


@pytest.mark.parametrize("model", ["claude-3-5-sonnet", "claude-3-7-sonnet", "claude-sonnet-4"])
def test_older_claude_gets_the_schema_as_text(model):
    result, losses, (words,) = adapt_format("messages", model, FORMAT)
    assert (result, losses) == (None, [("approximated", "/response_format")])
    assert words.startswith("Answer with one JSON value (plan: A plan.) that matches this JSON Schema")


def test_googles_own_schema_language_is_translated():
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "propertyOrdering": ["a"]}
    output = OutputFormat(kind="json_schema", schema=encode(schema), openapi=True)
    adapted, losses, _ = adapt_format("chat", "gpt-4.1", output, source="gemini")
    assert adapted == OutputFormat(kind="json_schema", schema=adapted.schema, name="answer")
    assert json.loads(adapted.schema) == {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert losses == []


def test_claude_gets_the_supported_subset_of_the_schema():
    schema = {**SCHEMA, "properties": {"a": {"type": "integer", "minimum": 1}}}
    adapted, losses, _ = adapt_format(
        "messages", "claude-opus-5", OutputFormat(kind="json_schema", schema=encode(schema))
    )
    assert "minimum" not in json.loads(adapted.schema)["properties"]["a"]
    assert [where for _, where in losses] == ["/response_format/json_schema/schema/properties/a/minimum"]


def identity(dialect, model="", **request):
    adaptation = adaptation_for(dialect, model, source=request.pop("source", "chat"))
    return adapt_identity(build_request(**request), adaptation), loss_pointers(adaptation)


WHO = {"user": "u", "metadata": {"k": "v"}, "verbosity": "low"}
IN_CHAT = {"user": "/safety_identifier", "metadata": "/metadata", "verbosity": "/verbosity"}


@pytest.mark.parametrize(
    ("dialect", "model", "gone"),
    [
        ("chat", "gpt-5.6", []),
        ("chat", "gpt-4.1", ["verbosity"]),
        ("chat", "nobody", ["metadata", "verbosity"]),
        ("responses", "gpt-5.6", []),
        ("messages", "claude-opus-5", ["metadata", "verbosity"]),
        ("gemini", "gemini-3-pro", ["metadata", "user", "verbosity"]),
    ],
)
def test_the_end_user_id_is_sent_if_the_target_has_a_field_for_it(dialect, model, gone):
    losses = sorted(("dropped", IN_CHAT[name]) for name in gone)
    assert identity(dialect, model, **WHO) == (dict.fromkeys(gone), losses)
    assert identity(dialect, model) == ({}, [])


@pytest.mark.parametrize(("dialect", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6")])
def test_a_users_name_is_shortened_to_what_the_target_takes_and_stays_apart_from_others(dialect, model):
    assert identity(dialect, model, user="u" * 128, source="messages") == ({}, [])
    (one, losses), (other, _) = (
        identity(dialect, model, user="u" * 128 + end, source="messages") for end in ("a", "b")
    )
    assert losses == [("approximated", "/metadata/user_id")]
    assert one["user"].startswith("u" * 103)
    assert len(one["user"]) == 128
    assert one["user"] != other["user"]
    assert identity(dialect, model, user="u" * 128 + "a", source="messages")[0] == one


def test_one_candidate_is_the_default_of_every_target():
    assert identity("messages", candidates=1) == ({"candidates": None}, [])


def test_several_candidates_are_rejected_with_the_pointer_of_the_field():
    with pytest.raises(Problem) as caught:
        identity("messages", candidates=2)
    message = "2 candidates cannot be requested across dialects: ask for 1 candidate and send the request 2 times"
    problem = caught.value
    assert (problem.kind, problem.message, problem.where) == ("unsupported", message, "/n")


def test_a_stored_conversation_can_only_continue_at_its_vendor():
    assert identity("responses", continues="resp_1") == ({}, [])
    with pytest.raises(Problem) as caught:
        identity("chat", source="responses", continues="resp_1")
    message = "the target does not store earlier responses: send the whole conversation"
    assert caught.value == Problem("unsupported", message, where="/previous_response_id")


def test_googles_own_schema_format_becomes_json_schema():
    google = OutputFormat(kind="json_schema", schema=b'{"type":"STRING","nullable":true}', openapi=True)
    _, _, words = adapt_format("gemini", "gemini-2.5-pro", google, source="gemini", tools=TOOLS)
    assert words[0].endswith('and nothing else:\n{"type":["string","null"]}')


@pytest.mark.parametrize(
    ("dialect", "model", "keyword"),
    [("gemini", "gemini-3-pro", "$defs"), ("chat", "gpt-4.1", "definitions"), ("responses", "gpt-5.6", "definitions")],
)
def test_definitions_have_the_name_that_the_target_reads(dialect, model, keyword):
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}},
        "definitions": {"A": {"type": "string"}},
    }
    output = OutputFormat(kind="json_schema", schema=encode(schema), name="plan")
    shape, *_ = adapt_format(dialect, model, output)
    result = json.loads(shape.schema)
    assert result["properties"] == {"a": {"$ref": f"#/{keyword}/A"}}
    assert result[keyword] == {"A": {"type": "string"}}


@pytest.mark.parametrize(("dialect", "model"), [("messages", "claude-opus-5"), ("gemini", "gemini-3.8-flash")])
@pytest.mark.parametrize("strict", [False, None, True])
def test_an_answer_that_need_not_fit_is_held_to_its_schema_where_all_are(dialect, model, strict):
    _, losses, _ = adapt_format(dialect, model, OutputFormat(kind="json_schema", schema=encode(SCHEMA), strict=strict))
    assert losses == ([("approximated", "/response_format/json_schema/strict")] if strict is False else [])


@pytest.mark.parametrize(("dialect", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6")])
def test_a_non_strict_schema_is_marked_if_the_target_has_a_field_for_it(dialect, model):
    loose = OutputFormat(kind="json_schema", schema=encode(SCHEMA), strict=False)
    output, losses, _ = adapt_format(dialect, model, loose, source="responses" if dialect == "chat" else "chat")
    assert (output.strict, losses) == (False, [])


@pytest.mark.parametrize(("source", "target"), [("chat", "responses"), ("responses", "chat")])
def test_an_answer_cannot_be_held_to_a_schema_that_openai_refuses_as_strict(source, target):
    place = {"chat": "/response_format/json_schema/strict", "responses": "/text/format/strict"}[source]
    odd = {**SCHEMA, "properties": {"a": {"type": "integer", "format": "uint8"}}}
    for schema, strict, losses in ((SCHEMA, True, []), (odd, None, [("dropped", place)])):
        asked_for = OutputFormat(kind="json_schema", schema=encode(schema), name="n", strict=True)
        output, found, _ = adapt_format(target, "gpt-5.6", asked_for, source=source)
        assert (output.strict, json.loads(output.schema), found) == (strict, schema, losses)
