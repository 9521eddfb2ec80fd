"""The home law: what was read and is written again is the same JSON.

The same means: null is absence; snake_case is camelCase (outside user data); the roles `function` and `tool`, which
Google has dropped, are `user`.
"""

import json

import pytest

import shelf
from dialects.gemini import recordings
from dragoman.core.traits import Traits
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.request import parse_request
from dragoman.dialects.record import Call

USER_DATA = {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"}
TRAITS = Traits(dialect="gemini")


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def normal(value):
    if isinstance(value, list):
        return [normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {camel(name): member for name, member in value.items() if member is not None}
    if members.get("role") in {"function", "tool"}:
        members["role"] = "user"
    return {name: member if name in USER_DATA else normal(member) for name, member in members.items()}


def home(body):
    request = parse_request(Call(body=json.dumps(body).encode(), model="m"))
    return json.loads(DIALECT.render_request(request, TRAITS).body)


@shelf.needs_shelf
def test_every_recorded_request_survives_a_round_trip():
    count = 0
    for name, body in recordings.requests():
        assert normal(home(body)) == normal(body), name
        count += 1
    assert count > 630


@pytest.mark.parametrize(
    "body",
    [
        {"contents": []},
        {"contents": {"parts": {"text": "one content, one part"}}},
        {"contents": [{"role": "user"}]},
        {"contents": [{"role": "user", "parts": []}], "tools": [], "toolConfig": {}, "generationConfig": {}},
        {"contents": [], "systemInstruction": "a text"},
        {"contents": [], "systemInstruction": {"role": "system", "parts": {"text": "x"}}},
        {"contents": [], "toolConfig": {"functionCallingConfig": {}}},
        {"contents": [], "toolConfig": {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": []}}},
        {
            "contents": [],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True}},
        },
        {"contents": [], "generationConfig": {"thinkingConfig": {}}},
        {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}}},
        {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingLevel": "ULTRA", "thinkingBudget": 0}}},
        {"contents": [], "generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}}},
        {"contents": [], "generationConfig": {"responseMimeType": "text/plain", "responseSchema": {"a": 1}}},
        {"contents": [], "generationConfig": {"responseJsonSchema": {"type": "object"}}},
        {
            "contents": [],
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseSchema": {},
                "responseJsonSchema": {},
            },
        },
        {"contents": [], "generationConfig": {"stopSequences": [], "responseModalities": ["TEXT"]}},
        {"contents": [], "tools": {"functionDeclarations": [{"name": "f"}]}},
        {"contents": [], "tools": [{"functionDeclarations": []}]},
        {
            "contents": [],
            "tools": [{"functionDeclarations": [{"name": "f", "description": "", "behavior": "BLOCKING"}]}],
        },
        {
            "contents": [],
            "tools": [
                {"googleSearch": {}},
                {"functionDeclarations": [{"name": "f"}], "codeExecution": {}},
                {"functionDeclarations": [{"name": "g", "parameters": {}, "parametersJsonSchema": {}}]},
            ],
        },
        {"contents": [], "labels": {}, "cachedContent": "c", "safetySettings": [], "model": "models/x", "request": 1},
    ],
)
def test_unusual_spellings_of_a_request_survive_a_round_trip(body):
    assert home(body) == body


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"thoughtSignature": "s"},
        {"thought": True, "thoughtSignature": "s"},
        {"text": "", "thoughtSignature": "s"},
        {"text": "x", "thought": False},
        {"text": "x", "partMetadata": {"a": [1]}},
        {"text": "x", "inlineData": {"mimeType": "a/b", "data": ""}},
        {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "s"},
        {"toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "n"}, "videoMetadata": {"fps": 1}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thought": True},
        {"fileData": {"fileUri": "https://youtu.be/x"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "files/x"}},
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "f", "args": {}, "futureField": 1}, "thought": True},
        {"functionCall": {"name": "f", "willContinue": True, "partialArgs": [{"jsonPath": "$.a"}]}},
        {"functionCall": {"args": {"nameless": 1}}},
        {"functionResponse": {"name": "f"}},
        {
            "functionResponse": {"name": "f", "response": {"error": "no"}, "willContinue": False},
            "thoughtSignature": "s",
        },
        {
            "functionResponse": {
                "id": "1",
                "name": "f",
                "response": {"image": {"$ref": "a.png"}},
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "a.png"}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/c"}, "future": 1},
                    {"future": {}},
                ],
            }
        },
    ],
)
def test_unusual_parts_survive_a_round_trip(part):
    body = {"contents": [{"role": "user", "parts": [{"text": "first"}, part]}]}
    assert home(body) == body


def test_unknown_fields_of_snake_case_documents_survive_a_round_trip_in_place():
    body = {
        "contents": [{"role": "user", "parts": [{"function_response": {"name": "f", "response": {}, "new_field": 1}}]}],
        "system_instruction": {"parts": [{"text": "x", "part_metadata": 1}]},
        "tools": [{"function_declarations": [{"name": "f", "parameters": {"a_b": 1}, "response_json_schema": {}}]}],
        "generation_config": {"max_output_tokens": 1, "response_modalities": ["TEXT"]},
    }
    assert normal(home(body)) == normal(body)


def test_bytes_of_arguments_responses_and_schemas_are_not_altered():
    raw = b'{ "n": 1.0, "big": 12345678901234567890, "e": 1e2 }'
    body = (
        b'{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":%b}}]},'
        b'{"role":"user","parts":[{"functionResponse":{"name":"f","response":%b}}]}],'
        b'"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":%b}]}]}' % (raw, raw, raw)
    )
    request = parse_request(Call(body=body, model="m"))
    assert DIALECT.render_request(request, TRAITS).body.count(raw) == 3


def test_legacy_roles_are_written_as_user():
    for role in ("function", "tool"):
        assert home({"contents": [{"role": role, "parts": []}]})["contents"][0]["role"] == "user"


def test_an_unspecified_mode_is_never_written():
    body = {"contents": [], "toolConfig": {"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}}}
    assert home(body)["toolConfig"] == {"functionCallingConfig": {}}
