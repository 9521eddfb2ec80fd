"""Values that were not read from this dialect, each written to its last field."""

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
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Sampling, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.renderer import render_request
from dragoman.dialects.record import Call

HI = Text(text="hi")


def render(*messages: Message, traits: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    request = Request(model=fields.pop("model", ""), messages=messages, **fields)
    return json.loads(render_request(request, Traits(dialect="chat", **(traits or {}))).body)


def write(role: Any, *parts: AnyPart, **fields: Any) -> Any:
    return render(Message(role=role, parts=parts, **fields))["messages"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (HI, {"type": "text", "text": "hi"}),
        (Text(text="hi", cache=""), {"type": "text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}),
        (
            Text(text="hi", cache="1h"),
            {"type": "text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}},
        ),
        (Data(json=b'{"a": 1}'), {"type": "text", "text": '{"a": 1}'}),
        (
            Media(kind="image", media_type="image/png", source=Inline("AA==")),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ),
        (
            Media(kind="image", media_type="", source=Link("https://e.org/a")),
            {"type": "image_url", "image_url": {"url": "https://e.org/a"}},
        ),
        (
            Media(kind="video", media_type="", source=Link("https://e.org/a")),
            {"type": "video_url", "video_url": {"url": "https://e.org/a"}},
        ),
        (
            Media(kind="image", media_type="", source=Stored("openai", "file_1")),
            {"type": "file", "file": {"file_id": "file_1"}},
        ),
        (
            Media(kind="audio", media_type="audio/mpeg", source=Inline("AA==")),
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        ),
        (
            Media(kind="audio", media_type="audio/mp3", source=Inline("AA==")),
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        ),
        (
            Media(kind="audio", media_type="audio/x-wav", source=Inline("AA==")),
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        ),
        (
            Media(kind="audio", media_type="audio/wave", source=Inline("AA==")),
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        ),
        (
            Media(kind="audio", media_type="audio/flac", source=Inline("AA=="), spelling="chat mp3"),
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "flac"}},
        ),
        (
            Media(kind="audio", media_type="", source=Inline("AA==")),
            {"type": "input_audio", "input_audio": {"data": "AA=="}},
        ),
        (
            Media(kind="audio", media_type="audio/wav", source=Link("https://e.org/a")),
            {"type": "file", "file": {"file_data": "https://e.org/a"}},
        ),
        (
            Media(kind="document", media_type="application/pdf", source=Inline("AA=="), name="a.pdf"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        ),
        (
            Media(kind="document", media_type="", source=Plain("text")),
            {"type": "file", "file": {"file_data": "data:text/plain;base64,dGV4dA=="}},
        ),
        (
            Media(kind="document", media_type="text/csv", source=Plain("text")),
            {"type": "file", "file": {"file_data": "data:text/csv;base64,dGV4dA=="}},
        ),
        (Text(text="hi", extras=Extras("chat", {"/a": b"1"})), {"type": "text", "text": "hi", "a": 1}),
        (Text(text="hi", extras=Extras("gemini", {"/a": b"1"})), {"type": "text", "text": "hi"}),
    ],
)
def test_a_part_of_content_is_written_whole(part: AnyPart, value: Any):
    # A foreign spelling says nothing here, also where it has a word of ours.
    for spelling in ("", "messages list bare file", "list"):
        [message] = write("user", part, HI, spelling=spelling)
        assert message == {"role": "user", "content": [value, {"type": "text", "text": "hi"}]}


def test_what_has_no_place_in_content_is_left_out():
    foreign = Opaque(dialect="messages", raw=b"{}")
    call = ToolCall(id="a", name="f", arguments="{}")
    assert write("user", foreign, call, HI, HI)[0]["content"] == [{"type": "text", "text": "hi"}] * 2
    own = Opaque(dialect="chat", raw=b'{"a":1}')
    assert write("user", own) == [{"role": "user", "content": [{"a": 1}]}]
    assert write("assistant", own) == [{"role": "assistant", "content": [{"a": 1}]}]


@pytest.mark.parametrize(
    ("role", "parts", "fields", "message"),
    [
        ("system", (HI,), {"name": "n"}, {"role": "system", "content": "hi", "name": "n"}),
        ("system", (HI,), {"spelling": "responses developer"}, {"role": "system", "content": "hi"}),
        ("user", (), {}, {"role": "user", "content": ""}),
        ("user", (Data(json=b"[1]"),), {}, {"role": "user", "content": "[1]"}),
        ("user", (HI,), {"extras": Extras("chat", {"/a": b"1"})}, {"role": "user", "content": "hi", "a": 1}),
        ("assistant", (), {}, {"role": "assistant", "content": ""}),
        ("assistant", (Refusal(text="no"),), {}, {"role": "assistant", "content": None, "refusal": "no"}),
        (
            "assistant",
            (Reasoning(texts=("a", "b")), Reasoning(texts=("c",)), Reasoning(redacted=True), Reasoning(), HI),
            {},
            {"role": "assistant", "content": "hi", "reasoning_content": "a\n\nb\n\nc"},
        ),
        (
            "assistant",
            (ToolCall(id="a", name="f", arguments="{}", signature=Signature("anthropic", "s")),),
            {"extras": Extras("chat", {"/a": b"1"}), "name": "n"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "name": "n",
                "a": 1,
            },
        ),
        (
            "assistant",
            (
                ToolCall(id="", name="p", arguments="x", form="text", signature=Signature("google", "s")),
                ToolCall(id="b", name="f", arguments="nothing", spelling="chat object"),
                ToolCall(id="c", name="f", arguments="{}", spelling="chat function_call"),
            ),
            {},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "type": "custom",
                        "custom": {"name": "p", "input": "x"},
                        "extra_content": {"google": {"thought_signature": "s"}},
                    },
                    {"id": "b", "type": "function", "function": {"name": "f", "arguments": "nothing"}},
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
        ),
    ],
)
def test_a_message_is_written_whole(role: Any, parts: Any, fields: Any, message: Any):
    assert write(role, *parts, **fields) == [message]


def test_results_come_before_user_text_about_them():
    results = [
        ToolResult(call_id="a", name="f", content=(HI,)),
        ToolResult(call_id="b", content=(HI, Data(json=b"1")), extras=Extras("chat", {"/a": b"1"})),
        ToolResult(call_id="c"),
        ToolResult(call_id="d", content=(Text(text="x", cache=""),), spelling="gemini named"),
        ToolResult(call_id="e", name="f", content=(HI,), spelling="chat function"),
    ]
    texts = [{"type": "text", "text": "hi"}, {"type": "text", "text": "1"}]
    marked = [{"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]
    assert write("user", HI, *results, name="ann") == [
        {"role": "tool", "tool_call_id": "a", "content": "hi"},
        {"role": "tool", "tool_call_id": "b", "content": texts, "a": 1},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "tool", "tool_call_id": "d", "content": marked},
        {"role": "tool", "tool_call_id": "e", "content": "hi"},
        {"role": "user", "content": "hi", "name": "ann"},
    ]
    assert write("user", results[0]) == [{"role": "tool", "tool_call_id": "a", "content": "hi"}]


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        (Tool(name="f"), {"type": "function", "function": {"name": "f"}}),
        (
            Tool(name="f", description="d", parameters=b"{}", strict=True, extras=Extras("chat", {"/a": b"1"})),
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {}, "strict": True},
                "a": 1,
            },
        ),
        (Tool(name="p", form="text", parameters=b"{}", strict=True), {"type": "custom", "custom": {"name": "p"}}),
        (
            Tool(name="p", form="text", grammar=b'{"type":"grammar","syntax":"s","definition":"d"}'),
            {
                "type": "custom",
                "custom": {
                    "name": "p",
                    "format": {"type": "grammar", "grammar": {"syntax": "s", "definition": "d"}},
                },
            },
        ),
        (NativeTool(dialect="chat", raw=b'{"type":"x"}'), {"type": "x"}),
        (NativeTool(dialect="gemini", raw=b"{}"), None),
    ],
)
def test_a_tool_is_written_whole(tool: Any, value: Any):
    assert render(tools=(tool,)) == ({"messages": []} if value is None else {"messages": [], "tools": [value]})


FORM = Tool(name="p", form="text")


@pytest.mark.parametrize(
    ("choice", "body"),
    [
        (ToolChoice(), {}),
        (ToolChoice(parallel=False), {"parallel_tool_calls": False}),
        (ToolChoice(mode="auto", parallel=True), {"tool_choice": "auto", "parallel_tool_calls": True}),
        (ToolChoice(mode="required"), {"tool_choice": "required"}),
        (ToolChoice(mode="none", names=("f",)), {"tool_choice": "none"}),
        (ToolChoice(mode="auto", spelling="chat any"), {"tool_choice": "auto"}),
        (
            ToolChoice(mode="required", names=("f",)),
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        ),
        (ToolChoice(mode="required", names=("p",)), {"tool_choice": {"type": "custom", "custom": {"name": "p"}}}),
        (
            ToolChoice(mode="auto", names=("p",)),
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "p"}}]},
                }
            },
        ),
        (
            ToolChoice(mode="required", names=("f", "p")),
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "required",
                        "tools": [
                            {"type": "function", "function": {"name": "f"}},
                            {"type": "custom", "custom": {"name": "p"}},
                        ],
                    },
                }
            },
        ),
    ],
)
def test_a_choice_is_written_whole(choice: ToolChoice, body: Any):
    tools = [{"type": "custom", "custom": {"name": "p"}}]
    native = NativeTool(dialect="gemini", raw=b"{}")
    assert render(tools=(FORM, native), tool_choice=choice) == {"messages": [], "tools": tools, **body}


def test_settings_are_written_whole():
    sampling = Sampling(temperature=1, top_p=2, top_k=3, max_tokens=4, stop=("a",), seed=5, presence_penalty=6)
    body = {"messages": [], "temperature": 1, "top_p": 2, "top_k": 3, "stop": ["a"], "seed": 5, "presence_penalty": 6}
    assert render(sampling=sampling) == {**body, "max_completion_tokens": 4}
    assert render(sampling=sampling, traits={"max_tokens_member": "max_tokens"}) == {**body, "max_tokens": 4}
    assert render(sampling=sampling, spelling=frozenset({"max_tokens", "stop text"})) == {
        **body,
        "max_tokens": 4,
        "stop": "a",
    }
    assert render(sampling=Sampling(frequency_penalty=0, max_tokens=0)) == {
        "messages": [],
        "frequency_penalty": 0,
        "max_completion_tokens": 0,
    }
    assert render(user="u", verbosity="low", candidates=0, metadata={}, stream=True) == {
        "messages": [],
        "safety_identifier": "u",
        "verbosity": "low",
        "n": 0,
        "metadata": {},
        "stream": True,
    }


@pytest.mark.parametrize(
    ("output", "form"),
    [
        (OutputFormat(kind="text"), {"type": "text"}),
        (OutputFormat(kind="json", name="n"), {"type": "json_object"}),
        (OutputFormat(kind="json_schema"), {"type": "json_schema", "json_schema": {"name": "answer"}}),
        (
            OutputFormat(kind="json_schema", name="n", description="d", schema=b"{}", strict=False),
            {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": {}, "strict": False}},
        ),
    ],
)
def test_the_form_of_the_answer_is_written_whole(output: OutputFormat, form: Any):
    assert render(output=output) == {"messages": [], "response_format": form}


def test_a_model_in_the_url_stays_there():
    request = DIALECT.parse_request(Call(b'{"messages":[]}', "m", stream=True))
    assert (request.model, request.stream) == ("m", True)
    call = render_request(request, Traits(dialect="chat"))
    assert (json.loads(call.body), call.model, call.stream) == ({"messages": [], "stream": True}, "m", True)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"messages": [{"content": "x"}]}, "/messages/0/role"),
        ({"messages": [{"role": "user", "content": 1}]}, "/messages/0/content"),
        ({"messages": [{"role": "tool", "content": "1", "x": 1}]}, "/messages/0/tool_call_id"),
        ({"messages": [], "tools": [{"type": "function", "function": {}}]}, "/tools/0/function/name"),
        ({"messages": [], "functions": [{}]}, "/functions/0/name"),
        ({"messages": [], "temperature": "hot"}, "/temperature"),
        ({}, ""),
    ],
)
def test_a_broken_request_is_refused_by_its_pointer(body: Any, where: str):
    with pytest.raises(Problem) as caught:
        DIALECT.parse_request(Call(json.dumps(body).encode()))
    assert (caught.value.kind, caught.value.status, caught.value.where) == ("invalid_request", 400, where)
