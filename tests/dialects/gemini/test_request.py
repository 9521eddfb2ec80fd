import json

import pytest

from dragoman.core.parts import (
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.request import parse_request
from dragoman.dialects.record import Call


def parse(body, model="m", *, stream=False):
    return parse_request(Call(body=json.dumps(body).encode(), model=model, stream=stream))


def parts(*wire_parts, role="user"):
    return parse({"contents": [{"role": role, "parts": list(wire_parts)}]}).messages[0].parts


def render(**fields):
    request = Request(**{"model": "m", "messages": (), **fields})
    return json.loads(DIALECT.render_request(request, Traits(dialect="gemini")).body)


def write(*core_parts, role="user"):
    return render(messages=(Message(role=role, parts=core_parts),))["contents"][0]["parts"]


def answer(*content, failed=False, **fields):
    result = ToolResult(call_id="c", name="f", content=content, failed=failed, **fields)
    return write(result)[0]["functionResponse"]


def test_model_and_streaming_come_from_the_call():
    request = parse({"contents": []}, "gemini-x", stream=True)
    assert (request.model, request.stream) == ("gemini-x", True)
    call = DIALECT.render_request(request, Traits(dialect="gemini"))
    assert (call.model, call.stream) == ("gemini-x", True)


def test_a_model_in_the_body_counts_only_when_the_call_names_none():
    assert parse({"contents": [], "model": "models/body"}, "").model == "body"
    assert parse({"contents": [], "model": "models/body"}, "url").model == "url"


def test_contents_become_messages_one_to_one_after_the_system_instruction():
    request = parse(
        {
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [
                {"parts": [{"text": "a"}]},
                {"role": "user", "parts": [{"text": "b"}]},
                {"role": "model", "parts": [{"text": "c"}]},
                {"role": "function", "parts": []},
            ],
        }
    )
    assert [(message.role, message.where) for message in request.messages] == [
        ("system", "/systemInstruction"),
        ("user", "/contents/0"),
        ("user", "/contents/1"),
        ("assistant", "/contents/2"),
        ("user", "/contents/3"),
    ]
    assert request.messages[1].parts[0].where == "/contents/0/parts/0"


def test_a_thought_is_reasoning_and_keeps_its_signature():
    assert parts({"text": "t", "thought": True, "thoughtSignature": "s"}) == (
        Reasoning(texts=("t",), signature=Signature("google", "s")),
    )


def test_a_call_keeps_its_arguments_and_has_an_empty_id_when_none_was_sent():
    call = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}
    assert parts(call, role="model") == (
        ToolCall(id="", name="f", arguments='{"a": 1}', signature=Signature("google", "s")),
    )
    assert parts({"functionCall": {"id": "i", "name": "f"}})[0].arguments == ""


def test_a_response_is_one_datum_whatever_its_keys_and_fails_only_by_its_error():
    assert parts({"functionResponse": {"name": "f", "response": {"output": 1}}}) == (
        ToolResult(call_id="", name="f", content=(Data(json=b'{"output": 1}'),)),
    )
    assert parts({"functionResponse": {"name": "f", "response": {"error": "x"}}})[0].failed
    assert not parts({"functionResponse": {"name": "f", "response": {"error": "x", "output": 1}}})[0].failed


def test_media_of_a_response_follow_its_data():
    result = parts(
        {
            "functionResponse": {
                "name": "f",
                "response": {},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "n"}}],
            }
        }
    )[0]
    assert result.content[1] == Media(kind="image", media_type="image/png", source=Inline("aGk="), name="n")
    assert result.content[1].where == "/contents/0/parts/0/functionResponse/parts/0"


@pytest.mark.parametrize(
    ("uri", "mime_type", "source", "kind"),
    [
        ("files/abc", "image/png", Stored("google", "files/abc"), "image"),
        (
            "https://generativelanguage.googleapis.com/v1beta/files/a",
            "audio/mp3",
            Stored("google", "https://generativelanguage.googleapis.com/v1beta/files/a"),
            "audio",
        ),
        ("gs://bucket/files/x", "video/mp4", Link("gs://bucket/files/x"), "video"),
        ("https://www.youtube.com/watch?v=x", "", Link("https://www.youtube.com/watch?v=x"), "video"),
        ("https://example.com/a.pdf", "application/pdf", Link("https://example.com/a.pdf"), "document"),
    ],
)
def test_a_file_is_stored_with_google_or_linked(uri, mime_type, source, kind):
    file = {"fileUri": uri, "mimeType": mime_type}
    assert parts({"fileData": file}) == (Media(kind=kind, media_type=mime_type, source=source),)


@pytest.mark.parametrize(
    "part",
    [{}, {"executableCode": {"code": "1"}}, {"toolCall": {"id": "1"}}, {"functionCall": {"args": {}}}, {"later": 1}],
)
def test_a_part_of_unknown_content_is_kept_whole(part):
    (opaque,) = parts(part)
    assert isinstance(opaque, Opaque)
    assert json.loads(opaque.raw) == part


def test_unread_members_belong_to_the_nearest_value():
    request = parse(
        {
            "contents": [{"role": "user", "parts": [{"text": "x", "partMetadata": 1}], "later": 2}],
            "tools": [{"functionDeclarations": [{"name": "f", "behavior": "B"}]}],
            "safetySettings": [],
            "generationConfig": {"responseModalities": ["TEXT"]},
        }
    )
    assert request.messages[0].parts[0].extras == Extras("gemini", {"/partMetadata": b"1"})
    assert request.messages[0].extras == Extras("gemini", {"/later": b"2"})
    assert request.tools[0].extras == Extras("gemini", {"/behavior": b'"B"'})
    assert request.extras == Extras(
        "gemini", {"/safetySettings": b"[]", "/generationConfig/responseModalities": b'["TEXT"]'}
    )


def test_settings_are_read():
    request = parse(
        {
            "contents": [],
            "generationConfig": {
                "temperature": 0.5,
                "topP": 1,
                "topK": 40,
                "maxOutputTokens": 9,
                "stopSequences": ["x"],
                "seed": 3,
                "presencePenalty": 0.1,
                "frequencyPenalty": 0.2,
                "candidateCount": 2,
                "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
                "responseMimeType": "application/json",
                "responseSchema": {"type": "OBJECT"},
            },
            "labels": {"team": "a"},
        }
    )
    assert request.sampling == Sampling(
        temperature=0.5,
        top_p=1,
        top_k=40,
        max_tokens=9,
        stop=("x",),
        seed=3,
        presence_penalty=0.1,
        frequency_penalty=0.2,
    )
    assert request.thinking == Thinking(effort="high", visible=True)
    assert request.output == OutputFormat(kind="json_schema", schema=b'{"type": "OBJECT"}', openapi=True)
    assert (request.candidates, request.metadata) == (2, {"team": "a"})


@pytest.mark.parametrize(
    ("config", "output"),
    [
        ({"responseMimeType": "application/json"}, OutputFormat(kind="json")),
        ({"responseMimeType": "text/plain"}, OutputFormat(kind="text")),
        ({"responseMimeType": "text/x.enum", "responseSchema": {}}, None),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": {}},
            OutputFormat(kind="json_schema", schema=b"{}"),
        ),
    ],
)
def test_the_shape_of_the_answer_is_read(config, output):
    assert parse({"contents": [], "generationConfig": config}).output == output


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, ToolChoice(mode="auto")),
        ({"mode": "NONE"}, ToolChoice(mode="none")),
        ({"mode": "any", "allowedFunctionNames": ["f"]}, ToolChoice(mode="required", names=("f",))),
        ({"mode": "VALIDATED"}, ToolChoice(mode="auto", validated=True)),
        ({"mode": "MODE_UNSPECIFIED"}, ToolChoice()),
    ],
)
def test_modes_are_read(config, choice):
    assert parse({"contents": [], "toolConfig": {"functionCallingConfig": config}}).tool_choice == choice


def test_declarations_and_googles_own_tools_are_read():
    request = parse(
        {
            "contents": [],
            "tools": [
                {"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}], "googleSearch": {}},
                {"functionDeclarations": [{"name": "g", "parametersJsonSchema": {"type": "object"}}]},
            ],
        }
    )
    assert request.tools == (
        Tool(name="f", parameters=b'{"type": "OBJECT"}', openapi=True),
        NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}'),
        Tool(name="g", parameters=b'{"type": "object"}'),
    )
    assert request.tools[2].where == "/tools/1/functionDeclarations/0"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"{", ""),
        (b"[]", ""),
        (b"{}", "/contents"),
        (b'{"contents":[{"parts":[{"text":1}]}]}', "/contents/0/parts/0/text"),
        (b'{"contents":[{"role":"system","parts":[]}]}', "/contents/0/role"),
        (b'{"contents":[],"tools":[{"functionDeclarations":[{}]}]}', "/tools/0/functionDeclarations/0"),
        (b'{"request":{"contents":[{"parts":3}]}}', "/request/contents/0/parts"),
        (b'{"request":{}}', "/request/contents"),
    ],
)
def test_a_broken_request_is_a_problem_that_names_the_place(body, where):
    with pytest.raises(Problem) as caught:
        parse_request(Call(body=body))
    assert (caught.value.kind, caught.value.status, caught.value.where) == ("invalid_request", 400, where)


def test_leading_system_messages_are_one_instruction():
    system = [Message(role="system", parts=(Text(text=text),)) for text in "ab"]
    body = render(messages=(*system, Message(role="user", parts=(Text(text="c"),))))
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "c"}]}]


def test_foreign_functions_share_one_tool_object_next_to_native_tools():
    tools = (
        Tool(name="f", spelling="strict", parameters=b'{"type":"object"}'),
        NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}'),
        Tool(name="g", description="d", openapi=True, parameters=b'{"type":"OBJECT"}'),
        NativeTool(dialect="chat", raw=b"{}"),
    )
    assert render(tools=tools)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "parametersJsonSchema": {"type": "object"}},
                {"name": "g", "description": "d", "parameters": {"type": "OBJECT"}},
            ]
        },
        {"googleSearch": {}},
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(mode="auto"), {"mode": "AUTO"}),
        (ToolChoice(mode="auto", names=("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
        (ToolChoice(mode="auto", validated=True), {"mode": "VALIDATED"}),
        (ToolChoice(mode="required", names=("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice(mode="none"), {"mode": "NONE"}),
    ],
)
def test_choices_from_elsewhere_are_written(choice, config):
    assert render(tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}


def test_a_choice_without_a_gemini_counterpart_is_not_rendered():
    assert "toolConfig" not in render(tool_choice=ToolChoice(parallel=False))


@pytest.mark.parametrize(
    ("effort", "level"),
    [
        ("none", "MINIMAL"),
        ("minimal", "MINIMAL"),
        ("low", "LOW"),
        ("medium", "MEDIUM"),
        ("high", "HIGH"),
        ("max", "HIGH"),
    ],
)
def test_efforts_are_written_as_levels(effort, level):
    assert render(thinking=Thinking(effort=effort))["generationConfig"] == {"thinkingConfig": {"thinkingLevel": level}}


@pytest.mark.parametrize(
    ("content", "failed", "response"),
    [
        ((), False, {"output": ""}),
        ((Text(text="a"),), False, {"output": "a"}),
        ((Text(text="a"), Text(text="b")), False, {"output": "a\nb"}),
        ((Text(text="a"),), True, {"error": "a"}),
        ((Data(json=b'{"a": 1}'),), False, {"output": {"a": 1}}),
        ((Data(json=b"[1]"),), True, {"error": [1]}),
        ((Data(json=b'{"output": 1}'),), False, {"output": {"output": 1}}),
        ((Data(json=b'{"$ref": "x"}'),), False, {"output": '{"$ref": "x"}'}),
        ((Text(text="a"), Data(json=b"[1]")), False, {"output": "a\n[1]"}),
    ],
)
def test_results_from_elsewhere_are_written_by_one_rule(content, failed, response):
    assert answer(*content, failed=failed) == {"id": "c", "name": "f", "response": response}


def test_media_of_a_foreign_result_are_next_to_its_response():
    image = Media(kind="image", media_type="image/png", source=Inline("aGk="), name="a.png")
    assert answer(Text(text="see"), image, Opaque(dialect="chat", raw=b"{}")) == {
        "id": "c",
        "name": "f",
        "response": {"output": "see"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    }


def test_parts_from_elsewhere_are_written():
    assert write(
        Reasoning(texts=("a", "b"), signature=Signature("google", "s")),
        Reasoning(redacted=True),
        Refusal(text="no"),
        Data(json=b"[1]"),
        ToolCall(id="", name="f", arguments="{}"),
        Media(kind="document", media_type="", source=Plain("hi"), name="n"),
        Media(kind="document", media_type="application/pdf", source=Link("https://x/y")),
        Opaque(dialect="messages", raw=b"{}"),
    ) == [
        {"text": "a\n\nb", "thought": True, "thoughtSignature": "s"},
        {"text": "no"},
        {"text": "[1]"},
        {"functionCall": {"name": "f", "args": {}}},
        {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/y"}},
    ]
