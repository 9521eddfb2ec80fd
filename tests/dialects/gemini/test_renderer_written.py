"""Values that were not read from Gemini, each written to its last field."""

import json
from typing import Any

import pytest

from dragoman.core.parts import (
    AnyPart,
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
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.gemini.renderer import render_request

SIGNED = Signature("google", "s")


def render(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = Request(model="m", messages=messages, **fields)
    return json.loads(render_request(request, Traits(dialect="gemini")).body)


def own(**fields: bytes) -> Extras:
    return Extras("gemini", {f"/{name}": raw for name, raw in fields.items()})


def image(source: Any, media_type: str = "", **fields: Any) -> Media:
    return Media(kind="image", media_type=media_type, source=source, **fields)


def result(*content: Any, **fields: Any) -> ToolResult:
    return ToolResult(call_id="c", name="f", content=content, **fields)


def answer(response: Any, **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": "c", "name": "f", "response": response, **fields}}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (Text(text="x"), {"text": "x"}),
        (Text(text="x", signature=SIGNED), {"text": "x", "thoughtSignature": "s"}),
        (Text(text="", signature=SIGNED), {"text": "", "thoughtSignature": "s"}),
        (Text(text="x", signature=SIGNED, spelling="no_text"), {"text": "x", "thoughtSignature": "s"}),
        (Text(text="", spelling="no_text"), {"text": ""}),
        (Text(text="x", extras=own(a=b"1")), {"text": "x", "a": 1}),
        (Text(text="x", extras=Extras("chat", {"/a": b"1"})), {"text": "x"}),
        (Reasoning(texts=("a", "b")), {"text": "a\n\nb", "thought": True}),
        (Reasoning(signature=SIGNED), {"text": "", "thought": True, "thoughtSignature": "s"}),
        (Reasoning(texts=("a",), spelling="thought:false"), {"text": "a", "thought": True}),
        (Reasoning(), None),
        (Refusal(text="no"), {"text": "no"}),
        (Data(json=b"[1]"), {"text": "[1]"}),
        (Opaque(dialect="gemini", raw=b'{"a":1}'), {"a": 1}),
        (Opaque(dialect="chat", raw=b'{"a":1}'), None),
        (ToolCall(id="c", name="f", arguments='{"a":1}'), {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}),
        (
            ToolCall(id="c", name="f", arguments="{}", signature=SIGNED),
            {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "s"},
        ),
        (ToolCall(id="", name="f", arguments=""), {"functionCall": {"name": "f"}}),
        (ToolCall(id="c", name="f", arguments=""), {"functionCall": {"id": "c", "name": "f"}}),
        (
            ToolCall(id="c", name="f", arguments="{}", extras=own(a=b"1")),
            {"functionCall": {"id": "c", "name": "f", "args": {}}, "a": 1},
        ),
        (image(Inline("AA=="), "image/png", name="n"), {"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
        (
            image(Inline("AA=="), "image/png", name="n", spelling="display_name"),
            {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "n"}},
        ),
        (image(Plain("x")), {"inlineData": {"mimeType": "text/plain", "data": "eA=="}}),
        (image(Plain("x"), "text/csv"), {"inlineData": {"mimeType": "text/csv", "data": "eA=="}}),
        (
            image(Link("https://e.org"), "image/png"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://e.org"}},
        ),
        (image(Stored("google", "files/1")), {"fileData": {"fileUri": "files/1"}}),
        (result(Text(text="x")), answer({"output": "x"})),
        (result(Text(text="x"), failed=True), answer({"error": "x"})),
        (result(Text(text='{"a": 1}')), answer({"output": {"a": 1}})),
        (result(Text(text=' \n{"a": 1}\n')), answer({"output": {"a": 1}})),
        (result(Text(text='{"a": 1}'), failed=True), answer({"error": {"a": 1}})),
        (result(Text(text='{"a": 1}'), extras=own(b=b"2")), {**answer({"output": {"a": 1}}), "b": 2}),
        (result(Text(text='{"a": ')), answer({"output": '{"a": '})),
        (result(Text(text='{"a": 1} 2')), answer({"output": '{"a": 1} 2'})),
        (result(Text(text="[1]")), answer({"output": "[1]"})),
        (result(Text(text="12")), answer({"output": "12"})),
        (result(Text(text='{"$ref": "x"}')), answer({"output": '{"$ref": "x"}'})),
        (result(Text(text='{"a": 1}'), Text(text="b")), answer({"output": '{"a": 1}\nb'})),
        (result(Text(text="x"), signature=SIGNED), {**answer({"output": "x"}), "thoughtSignature": "s"}),
        (result(Text(text="x"), Data(json=b"1")), answer({"output": "x\n1"})),
        (result(Data(json=b'{"a":1}')), answer({"output": {"a": 1}})),
        (result(Data(json=b'{"a":1}'), failed=True), answer({"error": {"a": 1}})),
        (result(Data(json=b'{"$ref":1}')), answer({"output": '{"$ref":1}'})),
        (result(Data(json=b'{"a":1}'), spelling="response"), answer({"a": 1})),
        (result(Text(text="x"), spelling="response"), answer({"output": "x"})),
        (result(), answer({"output": ""})),
        (result(spelling="no_response"), {"functionResponse": {"id": "c", "name": "f"}}),
        (
            ToolResult(call_id="", name="f", content=(Text(text="x"),)),
            {"functionResponse": {"name": "f", "response": {"output": "x"}}},
        ),
        (
            result(
                image(Inline("AA=="), "image/png", extras=own(a=b"1")),
                image(Link("u")),
                Opaque(dialect="gemini", raw=b'{"b":2}'),
                Opaque(dialect="chat", raw=b"{}"),
                extras=own(c=b"3"),
            ),
            {
                **answer(
                    {"output": ""},
                    parts=[
                        {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "a": 1},
                        {"fileData": {"fileUri": "u"}},
                        {"b": 2},
                    ],
                ),
                "c": 3,
            },
        ),
    ],
)
def test_a_part_is_written_whole(part: AnyPart, value: Any):
    contents = [{"role": "user", "parts": [] if value is None else [value]}]
    assert render(Message(role="user", parts=(part,)))["contents"] == contents
    assert render(Message(role="user", parts=(part,), spelling="string item"))["contents"] == contents


def test_messages_are_written_whole():
    hi = Text(text="hi")
    system = Message(role="system", parts=(hi,), extras=own(a=b"1"), spelling="string")
    later = Message(role="system", parts=(Text(text="x"),))
    assert render(
        system, later, Message(role="assistant", parts=(hi,), extras=own(a=b"1")), Message(role="user", parts=())
    ) == {
        "systemInstruction": {"parts": [{"text": "hi"}, {"text": "x"}], "a": 1},
        "contents": [{"role": "model", "parts": [{"text": "hi"}], "a": 1}, {"role": "user", "parts": []}],
    }
    quoted = Message(role="system", parts=(hi,), spelling="string_instruction")
    assert render(quoted)["systemInstruction"] == "hi"
    assert render(quoted, later)["systemInstruction"] == {"parts": [{"text": "hi"}, {"text": "x"}]}
    single = Message(role="assistant", parts=(hi, hi), spelling="one_part no_parts")
    assert render(single)["contents"] == [{"role": "model", "parts": [{"text": "hi"}, {"text": "hi"}]}]


def test_tools_from_elsewhere_share_one_object():
    tools = (
        Tool(name="f"),
        NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}'),
        NativeTool(dialect="chat", raw=b"{}"),
        Tool(name="g", description="d", parameters=b"{}", extras=own(a=b"1"), spelling="no strict described"),
        Tool(name="h", parameters=b'{"type":"OBJECT"}', openapi=True),
        NativeTool(dialect="gemini", raw=b'{"urlContext":{}}'),
    )
    assert render(tools=tools)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f"},
                {"name": "g", "description": "d", "parametersJsonSchema": {}, "a": 1},
                {"name": "h", "parameters": {"type": "OBJECT"}},
            ]
        },
        {"googleSearch": {}},
        {"urlContext": {}},
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(), None),
        (ToolChoice(parallel=True), None),
        (ToolChoice(mode="auto"), {"mode": "AUTO"}),
        (ToolChoice(mode="auto", validated=True), {"mode": "VALIDATED"}),
        (ToolChoice(mode="auto", names=("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
        (ToolChoice(mode="required", names=("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (ToolChoice(mode="required", spelling="auto any"), {"mode": "any"}),
        (ToolChoice(mode="none"), {"mode": "NONE"}),
    ],
)
def test_a_choice_is_written_whole(choice: ToolChoice, config: Any):
    expected = {"contents": []} if config is None else {"contents": [], "toolConfig": {"functionCallingConfig": config}}
    assert render(tool_choice=choice) == expected


LEVELS = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}


@pytest.mark.parametrize(("effort", "level"), LEVELS.items())
def test_every_effort_has_its_level(effort: Any, level: str):
    body = render(thinking=Thinking(effort=effort))
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingLevel": level}}
    own_word = frozenset({f"thinkingLevel:{effort}"})
    body = render(thinking=Thinking(effort=effort), spelling=own_word)
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingLevel": effort}}


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        (
            {
                "sampling": Sampling(
                    temperature=0,
                    top_p=1,
                    top_k=2,
                    max_tokens=3,
                    stop=("a",),
                    seed=4,
                    presence_penalty=5,
                    frequency_penalty=6,
                )
            },
            {
                "temperature": 0,
                "topP": 1,
                "topK": 2,
                "maxOutputTokens": 3,
                "stopSequences": ["a"],
                "seed": 4,
                "presencePenalty": 5,
                "frequencyPenalty": 6,
            },
        ),
        ({"candidates": 0}, {"candidateCount": 0}),
        ({"output": OutputFormat(kind="text")}, {"responseMimeType": "text/plain"}),
        ({"output": OutputFormat(kind="json", schema=b"{}")}, {"responseMimeType": "application/json"}),
        ({"output": OutputFormat(kind="json_schema")}, {"responseMimeType": "application/json"}),
        (
            {"output": OutputFormat(kind="json_schema", schema=b"{}")},
            {"responseMimeType": "application/json", "responseJsonSchema": {}},
        ),
        (
            {"output": OutputFormat(kind="json_schema", schema=b"{}", openapi=True)},
            {"responseMimeType": "application/json", "responseSchema": {}},
        ),
        (
            {"thinking": Thinking(visible=False, budget=-1)},
            {"thinkingConfig": {"includeThoughts": False, "thinkingBudget": -1}},
        ),
        (
            {"thinking": Thinking(visible=True), "spelling": frozenset({"thinkingLevel:THINKING_LEVEL_UNSPECIFIED"})},
            {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}},
        ),
        ({"thinking": Thinking(), "spelling": frozenset({"thinkingConfig"})}, {"thinkingConfig": {}}),
        ({"thinking": Thinking()}, None),
        ({"spelling": frozenset({"thinkingLevel:high"})}, None),
        ({"spelling": frozenset({"generationConfig"})}, {}),
    ],
)
def test_settings_are_written_whole(fields: Any, config: Any):
    body = {"contents": []} if config is None else {"contents": [], "generationConfig": config}
    assert render(**fields) == body


def test_a_request_from_elsewhere_keeps_the_envelope_it_goes_into():
    spelling = frozenset({"code_assist", "one_content", "tools_object", "tools"})
    message = Message(role="user", parts=(Text(text="x"),))
    body = render(message, message, spelling=spelling, metadata={"a": "b"}, extras=own(c=b"1"))
    turn = {"role": "user", "parts": [{"text": "x"}]}
    assert body == {"model": "m", "request": {"contents": [turn, turn], "tools": [], "labels": {"a": "b"}, "c": 1}}
