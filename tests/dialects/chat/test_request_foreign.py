"""Requests of other dialects, written as OpenAI Chat Completions."""

import json
from typing import Any

from dragoman.core.parts import (
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.dialects.chat import DIALECT


def render(request: Request, **traits: Any) -> dict[str, Any]:
    return json.loads(DIALECT.render_request(request, Traits(dialect="chat", **traits)).body)


def test_only_googles_signatures_have_a_place_here():
    call = ToolCall(id="a", name="f", arguments="{}", signature=Signature("anthropic", "x"))
    [message] = render(Request(model="m", messages=(Message(role="assistant", parts=(call,)),)))["messages"]
    assert "extra_content" not in message["tool_calls"][0]


def test_a_plain_text_document_becomes_a_data_url():
    part = Media(kind="document", media_type="text/plain", source=Plain("hi"), name="a.txt")
    [message] = render(Request(model="m", messages=(Message(role="user", parts=(part,)),)))["messages"]
    assert message["content"] == [
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}}
    ]


def test_a_foreign_choice_of_a_custom_tool_has_type_custom():
    request = Request(
        model="m",
        messages=(),
        tools=(Tool(name="g", form="text"), Tool(name="f")),
        tool_choice=ToolChoice(mode="auto", names=("f", "g")),
    )
    tools = render(request)["tool_choice"]["allowed_tools"]["tools"]
    assert tools == [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}]


def foreign(*messages: Message, **fields: Any) -> Request:
    return Request(model="m", messages=messages, **fields)


def test_a_foreign_token_limit_uses_the_field_of_the_target():
    request = foreign(sampling=Sampling(max_tokens=5))
    assert render(request)["max_completion_tokens"] == 5
    assert render(request, max_tokens_member="max_tokens")["max_tokens"] == 5


def test_a_user_turn_with_results_becomes_tool_messages_and_one_user_message():
    message = Message(
        role="user",
        parts=(
            ToolResult(call_id="a", name="f", content=(Data(json=b'{"t":1}'),)),
            ToolResult(call_id="b", name="f", content=(Text(text="x"), Text(text="y"))),
            ToolResult(call_id="c", name="f"),
            Text(text="and now?"),
        ),
    )
    assert render(foreign(message))["messages"] == [
        {"role": "tool", "tool_call_id": "a", "content": '{"t":1}'},
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
        },
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": "and now?"},
    ]


def test_content_is_null_only_with_calls():
    call = ToolCall(id="a", name="f", arguments="{}")
    messages = render(foreign(Message(role="assistant", parts=(call,)), Message(role="assistant", parts=())))[
        "messages"
    ]
    assert [message["content"] for message in messages] == [None, ""]
    assert "tool_calls" not in messages[1]


def test_foreign_reasoning_is_joined_and_redacted_reasoning_left_out():
    parts = (
        Reasoning(texts=("a", "b")),
        Reasoning(redacted=True, signature=Signature("anthropic", "x")),
        Text(text="hi"),
    )
    [message] = render(foreign(Message(role="assistant", parts=parts)))["messages"]
    assert message == {"role": "assistant", "content": "hi", "reasoning_content": "a\n\nb"}


def test_unsupported_parts_are_omitted_without_a_crash():
    opaque = Opaque(dialect="gemini", raw=b"{}")
    request = foreign(
        Message(role="user", parts=(opaque, Text(text="a"))), tools=(NativeTool(dialect="gemini", raw=b"{}"),)
    )
    assert render(request) == {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}


def test_a_foreign_request_satisfies_the_official_types():
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    call = ToolCall(id="a", name="f", arguments="{}")
    request = foreign(
        Message(role="system", parts=(Text(text="s"),)),
        Message(role="user", parts=(Text(text="u"), Media(kind="image", media_type="image/png", source=Inline("AA")))),
        Message(role="assistant", parts=(Text(text="t"), call)),
        Message(role="user", parts=(ToolResult(call_id="a", content=(Text(text="r"),)), Text(text="go on"))),
        tools=(Tool(name="f", parameters=b'{"type":"object"}'), Tool(name="g", form="text")),
        tool_choice=ToolChoice(mode="auto", names=("f", "g"), parallel=False),
        output=OutputFormat(kind="json_schema", schema=b"{}", name="n"),
        sampling=Sampling(max_tokens=5, stop=("x",)),
        thinking=Thinking(effort="low"),
    )
    adapter = TypeAdapter(CompletionCreateParamsNonStreaming)
    adapter.validate_python(render(request))


def test_spellings_of_other_dialects_are_ignored():
    request = foreign(
        Message(role="system", parts=(Text(text="s"),), spelling="item developer list"),
        Message(
            role="user", parts=(Media(kind="image", media_type="", source=Link("https://e.org"), spelling="bare"),)
        ),
        Message(role="assistant", parts=(ToolCall(id="", name="f", arguments="{}", spelling="function_call"),)),
        Message(role="user", parts=(ToolResult(call_id="", name="f", spelling="function named list"),)),
        tools=(Tool(name="f", spelling="functions untyped"),),
        tool_choice=ToolChoice(mode="required", spelling="any"),
    )
    body = render(request)
    assert body["messages"][0] == {"role": "system", "content": "s"}
    assert body["messages"][1]["content"] == [{"type": "image_url", "image_url": {"url": "https://e.org"}}]
    assert "function_call" not in body["messages"][2]
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "", "content": ""}
    assert body["tools"] == [{"type": "function", "function": {"name": "f"}}]
    assert body["tool_choice"] == "required"
