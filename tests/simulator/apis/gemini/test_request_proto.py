import json

import pytest

from dragoman.simulator.apis.gemini import API, unwrap_request
from dragoman.simulator.apis.gemini.request import read_request
from dragoman.simulator.apis.rule import Violation
from simulator.apis.gemini.asking import SIGNER, situation, user


def read(body, *, vertex=False):
    return read_request(json.dumps(body).encode(), "vertex" if vertex else "studio")


def find_violation(body, *, vertex=False):
    found = read(body, vertex=vertex)
    assert isinstance(found, Violation), found
    return found


def test_names_are_known_in_either_case_and_even_mixed():
    body = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [user({"inline_data": {"mimeType": "image/png", "data": "iVBORw=="}})],
        "tools": [{"function_declarations": [{"name": "f", "parametersJsonSchema": {"snake_case": {"keptAs": 1}}}]}],
        "toolConfig": {"function_calling_config": {"allowedFunctionNames": ["f"], "mode": "ANY"}},
        "generation_config": {"thinkingConfig": {"include_thoughts": True, "thinkingLevel": "low"}, "top_k": 2.0},
    }
    found = read(body)
    assert not isinstance(found, Violation)
    assert found["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "image/png"
    assert found["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == {"snake_case": {"keptAs": 1}}
    assert found["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["f"]
    assert found["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "LOW"


def test_protobufs_json_is_lenient_where_google_is():
    body = {
        "contents": {"role": "user", "parts": {"text": "one for a list"}},
        "safetySettings": [{"category": 10, "threshold": 3}],
        "generationConfig": {"maxOutputTokens": "5", "temperature": "0.5", "seed": 7.0, "stopSequences": "x"},
        "toolConfig": None,
        "tools": {"functionDeclarations": {"name": "f", "parameters": {"type": 6, "minProperties": "1"}}},
    }
    found = read(body)
    assert not isinstance(found, Violation)
    assert found["contents"][0]["parts"][0]["text"] == "one for a list"
    config = {"maxOutputTokens": 5, "temperature": 0.5, "seed": 7, "stopSequences": ["x"]}
    assert found["generationConfig"] == config
    assert "toolConfig" not in found
    assert found["tools"][0]["functionDeclarations"][0]["parameters"]["type"] == "OBJECT"


@pytest.mark.parametrize(
    ("body", "fault", "where", "words"),
    [
        ({"x": 1}, "unknown-field", "/x", 'Invalid JSON payload received. Unknown name "x": Cannot find field.'),
        (
            {"contents": [{"parts": [{"type": "text"}]}]},
            "unknown-field",
            "/contents/0/parts/0/type",
            "Invalid JSON payload received. Unknown name \"type\" at 'contents[0].parts[0]': Cannot find field.",
        ),
        (
            {"tools": [{"functionDeclarations": [{"parameters": {"properties": {"a": {}, "b": {"const": 1}}}}]}]},
            "unknown-field",
            "/tools/0/functionDeclarations/0/parameters/properties/b/const",
            (
                'Invalid JSON payload received. Unknown name "const" at '
                "'tools[0].function_declarations[0].parameters.properties[1].value': Cannot find field."
            ),
        ),
        (
            {"generationConfig": {"responseSchema": {"type": ["string", "null"]}}},
            "type",
            "/generationConfig/responseSchema/type",
            (
                "Invalid JSON payload received. Unknown name \"type\" at 'generation_config.response_schema': "
                "Proto field is not repeating, cannot start list."
            ),
        ),
        (
            {"contents": [{"parts": [{"text": 5}]}]},
            "type",
            "/contents/0/parts/0/text",
            "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
        ),
        (
            {"contents": ["hi"]},
            "type",
            "/contents/0",
            "Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"hi\"",
        ),
        (
            {"tool_config": {"functionCallingConfig": {"mode": "REQUIRED"}}},
            "enum",
            "/tool_config/functionCallingConfig/mode",
            (
                "Invalid value at 'tool_config.function_calling_config.mode' (type.googleapis.com/"
                'google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), "REQUIRED"'
            ),
        ),
        (
            {"contents": [{"parts": [{"functionResponse": {"response": "text"}}]}]},
            "type",
            "/contents/0/parts/0/functionResponse/response",
            (
                "Invalid value at 'contents[0].parts[0].function_response.response' "
                '(type.googleapis.com/google.protobuf.Struct), "text"'
            ),
        ),
        (
            {"contents": [{"parts": [{"text": "a", "functionCall": {"name": "f"}}]}]},
            "oneof",
            "/contents/0/parts/0",
            (
                "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. "
                "Cannot set 'functionCall'"
            ),
        ),
        (
            {"contents": [{"parts": [{"thought_signature": "no base64!"}]}]},
            "type",
            "/contents/0/parts/0/thought_signature",
            (
                "Invalid value at 'contents[0].parts[0].thought_signature' (TYPE_BYTES), "
                'Base64 decoding failed for "no base64!"'
            ),
        ),
        (
            {"generationConfig": {"maxOutputTokens": 2**31}},
            "bounds",
            "/generationConfig/maxOutputTokens",
            "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 2147483648",
        ),
        ([], "type", "", 'Invalid JSON payload received. Unknown name "": Root element must be a message.'),
    ],
)
def test_type_errors_have_googles_wording(body, fault, where, words):
    found = find_violation(body)
    assert (found.rule, found.where, found.message) == (f"gemini.{fault}", where, words)


@pytest.mark.parametrize(
    "body",
    [
        {"contents": [{"parts": [{"thought": "yes"}]}]},
        {"generationConfig": {"temperature": True}},
        {"generationConfig": {"topK": {}}},
        {"generationConfig": {"maxOutputTokens": 1.5}},
        {"generationConfig": {"seed": "seven"}},
        {"contents": [{"parts": [{"inlineData": {"data": 5}}]}]},
        {"contents": [{"parts": [{"inlineData": {"data": "abcde"}}]}]},
        {"contents": [None]},
        {"tools": [{"functionDeclarations": [{"parameters": True}]}]},
        {"safetySettings": [{"category": {}}]},
    ],
)
def test_wrong_types_are_refused(body):
    assert find_violation(body).rule in {"gemini.type", "gemini.enum"}


def test_what_no_rule_is_about_is_an_object_and_not_looked_at():
    speech = {"voiceConfig": {"anything": None}}
    assert read({"generationConfig": {"speechConfig": speech}}) == {"generationConfig": {"speechConfig": speech}}
    assert find_violation({"generationConfig": {"speechConfig": "loud"}}).rule == "gemini.type"


@pytest.mark.parametrize("number", [10**400, "1" * 5000, "1e999"], ids=["digits", "text", "power"])
def test_a_number_too_large_to_be_one_is_refused(number):
    for config in ({"temperature": number}, {"maxOutputTokens": number}, {"responseSchema": {"minimum": number}}):
        assert find_violation({"generationConfig": config}).rule == "gemini.bounds"


def test_a_body_nested_too_deeply_is_refused_in_an_envelope_too():
    for depth in range(900, 1000):
        body = b'{"contents": [{"role": "user", "parts": [%b1%b]}]}' % (b"[" * depth, b"]" * depth)
        found = API.accept(body, situation(), SIGNER)
        assert found.rule in {"gemini.json", "gemini.type"}
        opened = unwrap_request(b'{"model": "m", "request": %b}' % body)
        assert isinstance(opened, tuple) or opened.rule == "gemini.json"


@pytest.mark.parametrize("labels", [{"a": 1}, "a"])
def test_labels_are_texts_by_name(labels):
    assert find_violation({"labels": labels}, vertex=True).rule == "gemini.type"


def test_what_is_not_json_is_refused():
    for body in (b"", b"{", b'{"a": NaN}', b"\xff", b"[" * 100_000):
        found = read_request(body, "studio")
        assert isinstance(found, Violation)
        assert found.rule in {"gemini.json", "gemini.type"}


@pytest.mark.parametrize(
    ("body", "vertex"),
    [
        ({"tools": [{"functionDeclarations": [{"parameters": {"additionalProperties": False}}]}]}, True),
        ({"tools": [{"functionDeclarations": [{"parameters": {"defs": {"A": {}}, "ref": "#/defs/A"}}]}]}, True),
        ({"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}, True),
        ({"contents": [{"parts": [{"functionCall": {"name": "f", "willContinue": True}}]}]}, True),
        ({"tools": [{"retrieval": {}}]}, True),
        ({"modelArmorConfig": {}}, True),
        ({"labels": {"team": "sky"}}, True),
        ({"serviceTier": "flex"}, False),
        ({"toolConfig": {"includeServerSideToolInvocations": True}}, False),
        ({"contents": [{"parts": [{"toolCall": {"id": "a"}}]}]}, False),
        ({"contents": [{"parts": [{"functionResponse": {"willContinue": True}}]}]}, False),
        ({"tools": [{"mcpServers": []}]}, False),
        ({"tools": [{"fileSearch": {}}]}, False),
        ({"store": True}, False),
    ],
)
def test_some_names_are_known_to_one_surface_alone(body, vertex):
    assert not isinstance(read(body, vertex=vertex), Violation)
    assert find_violation(body, vertex=not vertex).rule == "gemini.unknown-field"


def test_vertex_names_its_own_package():
    assert "google.cloud.aiplatform.v1beta1.Content" in find_violation({"contents": [5]}, vertex=True).message
