"""Values that were not read from this dialect, each written to its last field."""

import json
from typing import Any

import pytest

from dragoman.core.parts import (
    AnyPart,
    Citation,
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
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.renderer import render_request

HI = Text(text="hi")
MODE = {"mode": "explicit"}


def render(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = Request(model=fields.pop("model", ""), messages=messages, **fields)
    return json.loads(render_request(request, Traits(dialect="responses")).body)


def items(role: Any, *parts: AnyPart, **fields: Any) -> Any:
    return render(Message(role="user", parts=(HI,)), Message(role=role, parts=parts, **fields))["input"][1:]


def image(source: Any, media_type: str = "", **fields: Any) -> Media:
    return Media(kind="image", media_type=media_type, source=source, **fields)


def document(source: Any, media_type: str = "", **fields: Any) -> Media:
    return Media(kind="document", media_type=media_type, source=source, **fields)


def sound(media_type: str) -> Media:
    return Media(kind="audio", media_type=media_type, source=Inline("AA=="))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (Text(text="x", cache=""), {"type": "input_text", "text": "x", "prompt_cache_breakpoint": MODE}),
        (
            Text(text="x", cache="1h"),
            {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {**MODE, "ttl": "1h"}},
        ),
        (
            Text(text="x", extras=Extras("responses", {"/a": b"1", "/item/id": b"2"})),
            {"type": "input_text", "text": "x", "a": 1},
        ),
        (Text(text="x", extras=Extras("chat", {"/a": b"1"})), {"type": "input_text", "text": "x"}),
        (Data(json=b"[1]"), {"type": "input_text", "text": "[1]"}),
        (Refusal(text="no"), {"type": "refusal", "refusal": "no"}),
        (image(Link("https://e.org/a")), {"type": "input_image", "image_url": "https://e.org/a", "detail": "auto"}),
        (image(Stored("openai", "f")), {"type": "input_image", "file_id": "f", "detail": "auto"}),
        (image(Inline("AA==")), {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}),
        (
            image(Inline("AA=="), "image/gif"),
            {"type": "input_image", "image_url": "data:image/gif;base64,AA==", "detail": "auto"},
        ),
        (document(Link("https://e.org/a")), {"type": "input_file", "file_url": "https://e.org/a"}),
        (document(Stored("openai", "f"), name="n"), {"type": "input_file", "file_id": "f", "filename": "n"}),
        (
            document(Inline("AA==")),
            {"type": "input_file", "file_data": "data:application/octet-stream;base64,AA==", "filename": "document"},
        ),
        (
            document(Inline("AA=="), "application/pdf"),
            {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "document.pdf"},
        ),
        (
            document(Inline("AA=="), "text/plain", name="n.txt"),
            {"type": "input_file", "file_data": "data:text/plain;base64,AA==", "filename": "n.txt"},
        ),
        (
            document(Plain("text")),
            {"type": "input_file", "file_data": "data:text/plain;base64,dGV4dA==", "filename": "document.txt"},
        ),
        *(
            (sound(f"audio/{given}"), {"type": "input_audio", "input_audio": {"data": "AA==", "format": word}})
            for given, word in {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "flac": "flac"}.items()
        ),
    ],
)
def test_a_part_of_content_is_written_whole(part: AnyPart, value: Any):
    content = [value, {"type": "input_text", "text": "hi"}]
    assert items("user", part, HI) == [{"type": "message", "role": "user", "content": content}]
    result = ToolResult(call_id="c", content=(part, HI))  # pyright: ignore[reportArgumentType]
    assert items("user", result) == [{"type": "function_call_output", "call_id": "c", "output": content}]


@pytest.mark.parametrize(
    ("role", "parts", "fields", "written"),
    [
        ("system", (HI,), {}, [{"type": "message", "role": "developer", "content": "hi"}]),
        ("system", (HI,), {"spelling": "item system string easy"}, [{"role": "system", "content": "hi"}]),
        ("user", (), {}, []),
        ("user", (), {"spelling": "item user list typed"}, [{"type": "message", "role": "user", "content": []}]),
        ("user", (HI,), {"spelling": "blocks list"}, [{"type": "message", "role": "user", "content": "hi"}]),
        (
            "user",
            (HI,),
            {"extras": Extras("responses", {"/a": b"1"})},
            [{"type": "message", "role": "user", "content": "hi", "a": 1}],
        ),
        ("assistant", (HI,), {}, [{"type": "message", "role": "assistant", "content": "hi"}]),
        (
            "assistant",
            (
                Text(
                    text="x",
                    citations=(
                        Citation("chat", b"{}", url="u", title="t", start=1, end=2),
                        Citation("chat", b"{}", url="v"),
                        Citation("chat", b"{}"),
                    ),
                ),
                Data(json=b"1"),
            ),
            {},
            [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {
                            "type": "output_text",
                            "text": "x",
                            "annotations": [
                                {"type": "url_citation", "url": "u", "title": "t", "start_index": 1, "end_index": 2},
                                {"type": "url_citation", "url": "v", "title": "", "start_index": 0, "end_index": 1},
                            ],
                        },
                        {"type": "output_text", "text": "1"},
                    ],
                }
            ],
        ),
        (
            "assistant",
            (
                HI,
                Reasoning(texts=("a", "b"), signature=Signature("openai", "s")),
                HI,
                ToolCall(id="c", name="f", arguments="{}", namespace="n"),
                ToolCall(id="d", name="p", arguments="x", form="text", extras=Extras("responses", {"/id": b'"i"'})),
                Opaque(dialect="gemini", raw=b"{}"),
                Opaque(dialect="responses", raw=b'{"type":"odd"}'),
            ),
            {},
            [
                {"type": "message", "role": "assistant", "content": "hi"},
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                    "encrypted_content": "s",
                },
                {"type": "message", "role": "assistant", "content": "hi"},
                {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "d", "name": "p", "input": "x", "id": "i"},
                {"type": "odd"},
            ],
        ),
        (
            "user",
            (
                HI,
                ToolResult(call_id="a", name="f", content=(HI,)),
                ToolResult(
                    call_id="b",
                    content=(Data(json=b'{"a":1}'),),
                    form="text",
                    extras=Extras("responses", {"/id": b'"i"'}),
                ),
                ToolResult(call_id="c"),
                ToolResult(call_id="d", content=(Text(text="x", cache=""),)),
            ),
            {},
            [
                {"type": "function_call_output", "call_id": "a", "output": "hi"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": '{"a":1}', "id": "i"},
                {"type": "function_call_output", "call_id": "c", "output": ""},
                {
                    "type": "function_call_output",
                    "call_id": "d",
                    "output": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": MODE}],
                },
                {"type": "message", "role": "user", "content": "hi"},
            ],
        ),
    ],
)
def test_a_message_is_written_whole(role: Any, parts: Any, fields: Any, written: Any):
    assert items(role, *parts, **fields) == written


def test_a_first_system_message_is_instructions():
    system = Message(role="system", parts=(HI, Text(text="x")))
    user = Message(role="user", parts=(HI,))
    assert render(system, user)["instructions"] == "hi\n\nx"
    assert render(Message(role="user", parts=(HI,)), system)["input"][1]["role"] == "developer"
    marked = Message(role="system", parts=(HI, Text(text="x", cache="")))
    assert "instructions" not in render(marked, user)
    alone = render(Message(role="system", parts=(HI,)))
    assert alone == {"input": [{"type": "message", "role": "developer", "content": "hi"}]}
    assert render(Message(role="system", parts=())) == {"input": []}
    quoted = Message(role="user", parts=(HI,), spelling="string")
    assert render(quoted) == {"input": [{"type": "message", "role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        (
            Tool(name="f"),
            {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        ),
        (
            Tool(name="f", description="d", parameters=b"{}", strict=True, extras=Extras("responses", {"/a": b"1"})),
            {"type": "function", "name": "f", "description": "d", "parameters": {}, "strict": True, "a": 1},
        ),
        (Tool(name="p", form="text", strict=True), {"type": "custom", "name": "p"}),
        (
            Tool(name="p", form="text", grammar=b'{"type":"grammar"}'),
            {"type": "custom", "name": "p", "format": {"type": "grammar"}},
        ),
        (
            Tool(name="f", parameters=b"{}", namespace="n"),
            {
                "type": "namespace",
                "name": "n",
                "description": "",
                "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}],
            },
        ),
        (NativeTool(dialect="responses", raw=b'{"type":"x"}'), {"type": "x"}),
    ],
)
def test_a_tool_is_written_whole(tool: Any, value: Any):
    foreign = NativeTool(dialect="gemini", raw=b"{}")
    assert render(tools=(tool, foreign)) == {"input": [], "tools": [value]}


def test_tools_of_one_namespace_are_grouped():
    def tool(name: str, namespace: str, spelling: str = "no strict,no parameters") -> Tool:
        return Tool(name=name, namespace=namespace, spelling=spelling)

    tools = (tool("a", "n"), tool("b", "n"), tool("c", "o"), tool("d", ""), tool("e", "n"), tool("f", "n", "group"))
    grouped = [(one["name"], [inner["name"] for inner in one.get("tools", [])]) for one in render(tools=tools)["tools"]]
    assert grouped == [("n", ["a", "b"]), ("o", ["c"]), ("d", []), ("n", ["e"]), ("n", ["f"])]


@pytest.mark.parametrize(
    ("choice", "body"),
    [
        (ToolChoice(), {}),
        (ToolChoice(parallel=False), {"parallel_tool_calls": False}),
        (ToolChoice(mode="none", names=("f", "g")), {"tool_choice": "none"}),
        (ToolChoice(mode="required"), {"tool_choice": "required"}),
        (ToolChoice(mode="required", names=("p",)), {"tool_choice": {"type": "custom", "name": "p"}}),
        (
            ToolChoice(mode="auto", names=("f",), extras=Extras("responses", {"/a": b"1"})),
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "f"}],
                    "a": 1,
                }
            },
        ),
    ],
)
def test_a_choice_is_written_whole(choice: ToolChoice, body: Any):
    tools = [{"type": "custom", "name": "p"}]
    assert render(tools=(Tool(name="p", form="text"),), tool_choice=choice) == {"input": [], "tools": tools, **body}


def test_settings_are_written_whole():
    assert render(
        model="m",
        sampling=Sampling(temperature=0, top_p=1, top_k=2, max_tokens=3, stop=("a",), seed=4),
        thinking=Thinking(effort="low", visible=True),
        output=OutputFormat(kind="json_schema"),
        verbosity="low",
        user="u",
        metadata={},
        continues="r",
        stream=True,
    ) == {
        "model": "m",
        "input": [],
        "temperature": 0,
        "top_p": 1,
        "max_output_tokens": 3,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "output", "schema": {}}, "verbosity": "low"},
        "safety_identifier": "u",
        "metadata": {},
        "previous_response_id": "r",
        "stream": True,
    }
    assert render(thinking=Thinking(visible=False)) == {"input": []}
    assert render(output=OutputFormat(kind="text"))["text"] == {"format": {"type": "text"}}
    assert render(output=OutputFormat(kind="json"))["text"] == {"format": {"type": "json_object"}}
    form = OutputFormat(kind="json_schema", name="n", description="d", schema=b"[]", strict=False)
    assert render(output=form)["text"]["format"] == {
        "type": "json_schema",
        "name": "n",
        "description": "d",
        "schema": [],
        "strict": False,
    }


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"input": 7}, "/input"),
        ({"input": [7]}, "/input/0"),
        ({"input": [{"content": "x"}]}, "/input/0/type"),
        ({"input": [{}]}, "/input/0/type"),
        ({"input": [{"type": 7}]}, "/input/0/type"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "/input/0/call_id"),
        ({"input": [{"type": "custom_tool_call", "call_id": "c"}]}, "/input/0/name"),
        ({"input": [{"type": "function_call_output"}]}, "/input/0/call_id"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "/input/0/content/0"),
        ({"input": [{"role": "user", "content": 7}]}, "/input/0/content"),
        ({"tools": [{"type": "function"}]}, "/tools/0"),
        ({"tool_choice": {"type": "function"}}, "/tool_choice"),
        ({"reasoning": {"effort": 7}}, "/reasoning/effort"),
        ({"text": {"verbosity": 7}}, "/text/verbosity"),
        ({"temperature": "hot"}, "/temperature"),
        ({"previous_response_id": 7}, "/previous_response_id"),
    ],
)
def test_a_broken_request_is_refused_by_its_pointer(body: Any, where: str):
    with pytest.raises(Problem) as caught:
        DIALECT.parse_request(Call(json.dumps(body).encode()))
    assert (caught.value.kind, caught.value.where) == ("invalid_request", where)


def test_the_url_counts_where_the_body_has_no_value():
    request = DIALECT.parse_request(Call(b"{}", "m", stream=True))
    assert (request.model, request.stream) == ("m", True)
    call = render_request(request, Traits(dialect="responses"))
    assert (json.loads(call.body), call.model, call.stream) == ({"model": "m", "stream": True}, "m", True)


@pytest.mark.parametrize(
    "content",
    [
        {"type": "input_text", "text": "a"},
        {"type": "output_text", "text": "a"},
        {"type": "output_text", "text": "a", "annotations": []},
        {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
        {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "auto", "ttl": "1h"}},
    ],
)
def test_a_text_keeps_its_kind_in_any_mouth(content: Any):
    body = {"input": [{"role": role, "content": [content]} for role in ("assistant", "user", "system", "developer")]}
    request = DIALECT.parse_request(Call(json.dumps(body).encode()))
    assert json.loads(render_request(request, Traits(dialect="responses")).body) == body


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ({"type": "text"}, OutputFormat(kind="text")),
        ({"type": "json_object"}, OutputFormat(kind="json")),
        ({"type": "json_schema", "name": "n", "schema": {}}, OutputFormat(kind="json_schema", name="n", schema=b"{}")),
    ],
)
def test_every_output_format_survives_a_round_trip(form: Any, read: OutputFormat):
    body = {"input": [], "text": {"format": form}}
    request = DIALECT.parse_request(Call(json.dumps(body).encode()))
    assert request.output == read
    assert json.loads(render_request(request, Traits(dialect="responses")).body) == body
