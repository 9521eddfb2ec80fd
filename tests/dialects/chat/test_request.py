"""Requests of OpenAI Chat Completions: home again, and the meaning of each field."""

import json
from typing import Any

import pytest

from dragoman.core.parts import (
    Inline,
    Link,
    Media,
    Opaque,
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
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.request import parse_request
from dragoman.dialects.record import Call
from shelf import needs_shelf

TRAITS = Traits(dialect="chat")


def parse(**body: Any) -> Request:
    return parse_request(Call(json.dumps({"model": "m", "messages": [], **body}).encode()))


def render(request: Request, **traits: Any) -> dict[str, Any]:
    return json.loads(DIALECT.render_request(request, Traits(dialect="chat", **traits)).body)


def home(**body: Any) -> dict[str, Any]:
    return render(parse(**body))


def without_null(value: Any) -> Any:
    """Null is absent: the one liberty a home rendering takes."""
    if isinstance(value, dict):
        return {name: without_null(member) for name, member in value.items() if member is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


@needs_shelf
def test_every_recorded_request_survives_a_round_trip(requests: list[Any]):
    assert len(requests) > 900
    wrong = [name for name, body in requests if without_null(render_of(body)) != without_null(body)]
    assert wrong == []


def render_of(body: Any) -> Any:
    call = Call(json.dumps(body).encode())
    return json.loads(DIALECT.render_request(parse_request(call), TRAITS).body)


@needs_shelf
def test_every_recorded_schema_keeps_its_bytes(requests: list[Any]):
    seen = 0
    for _, body in requests:
        given = [tool.get("function", {}).get("parameters") for tool in body.get("tools") or []]
        parsed = parse(tools=body.get("tools")).tools
        for schema, tool in zip(given, parsed, strict=True):
            if schema is not None:
                assert isinstance(tool, Tool)
                assert tool.parameters == json.dumps(schema).encode()
                seen += 1
    assert seen > 1000


@needs_shelf
def test_rendering_twice_gives_the_same_bytes_and_leaves_the_request_alone(requests: list[Any]):
    for _, body in requests[::20]:
        request = parse_request(Call(json.dumps(body).encode()))
        first = DIALECT.render_request(request, TRAITS)
        assert DIALECT.render_request(request, TRAITS) == first
        assert parse_request(Call(json.dumps(body).encode())) == request


def test_developer_is_parsed_as_system_and_rendered_as_developer():
    body = [
        {"role": "developer", "content": "be brief"},
        {"role": "system", "content": [{"type": "text", "text": "x"}]},
    ]
    messages = parse(messages=body).messages
    assert [message.role for message in messages] == ["system", "system"]
    assert messages[0].spelling == "chat developer"
    assert home(messages=body)["messages"] == body


def test_a_tool_message_is_a_result_in_a_user_turn():
    body = [{"role": "tool", "tool_call_id": "c1", "content": "sunny"}]
    [message] = parse(messages=body).messages
    assert message == Message(role="user", parts=(ToolResult(call_id="c1", content=(Text(text="sunny"),)),))
    assert home(messages=body)["messages"] == body


def test_a_tool_message_without_a_call_id_is_refused_by_its_pointer():
    with pytest.raises(Problem) as caught:
        parse(messages=[{"role": "tool", "content": "x"}])
    assert (caught.value.kind, caught.value.where) == ("invalid_request", "/messages/0/tool_call_id")


def test_legacy_functions_are_rendered_as_functions():
    body: dict[str, Any] = {
        "messages": [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "1"},
        ],
        "functions": [{"name": "f", "parameters": {"type": "object"}}],
        "function_call": {"name": "f"},
    }
    request = parse(**body)
    [call] = request.messages[0].parts
    [result] = request.messages[1].parts
    assert call == ToolCall(id="", name="f", arguments="{}")
    assert result == ToolResult(call_id="", name="f", content=(Text(text="1"),))
    assert request.tool_choice == ToolChoice(mode="required", names=("f",))
    assert without_null(render(request)) == without_null({"model": "m", **body})


def test_an_assistant_message_reads_as_reasoning_text_refusal_calls():
    [message] = parse(
        messages=[
            {
                "role": "assistant",
                "reasoning_content": "hm",
                "content": "hi",
                "refusal": "no",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{ "x":1 }'}}],
            }
        ]
    ).messages
    assert message.parts == (
        Reasoning(texts=("hm",)),
        Text(text="hi"),
        Refusal(text="no"),
        ToolCall(id="a", name="f", arguments='{ "x":1 }'),
    )


def test_reasoning_keeps_the_field_name_of_its_server():
    for words in (
        {"reasoning": "a"},
        {"reasoning_content": "a"},
        {"reasoning": "a", "reasoning_content": "a"},
        {"reasoning_content": ""},
    ):
        body = [{"role": "assistant", "content": "x", **words}]
        assert home(messages=body)["messages"] == body
    assert (
        len(parse(messages=[{"role": "assistant", "reasoning": "a", "reasoning_content": "a"}]).messages[0].parts) == 1
    )


def test_a_google_signature_sits_on_its_call():
    extra = {"google": {"thought_signature": "U0lH"}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    body = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    [part] = parse(messages=body).messages[0].parts
    assert part.signature == Signature("google", "U0lH")
    assert home(messages=body)["messages"] == body


def test_media_are_split_from_their_data_urls():
    body = [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC", "filename": "a.pdf"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"file_data": "data:image/png;base64,DDDD"}},
            ],
        }
    ]
    [message] = parse(messages=body).messages
    shown = [(p.kind, p.media_type, p.source, p.name) for p in message.parts if isinstance(p, Media)]
    assert shown == [
        ("image", "image/png", Inline("AAAA"), ""),
        ("image", "", Link("https://e.org/a.png"), ""),
        ("audio", "audio/mpeg", Inline("BBBB"), ""),
        ("document", "application/pdf", Inline("CCCC"), "a.pdf"),
        ("document", "", Stored("openai", "file-1"), ""),
        ("image", "image/png", Inline("DDDD"), ""),
    ]
    detail = message.parts[0].extras
    assert detail is not None
    assert detail.fields == {"/image_url/detail": b'"low"'}
    assert home(messages=body)["messages"] == body


def test_an_unknown_block_or_role_is_kept_whole():
    body = [
        {"role": "user", "content": [{"type": "hologram", "beams": [1, 2]}]},
        {"role": "oracle", "content": "?", "mood": "dark"},
    ]
    messages = parse(messages=body).messages
    assert isinstance(messages[0].parts[0], Opaque)
    assert isinstance(messages[1].parts[0], Opaque)
    assert home(messages=body)["messages"] == body


def test_a_cache_mark_is_a_breakpoint():
    part = {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
    body = [{"role": "user", "content": [part]}]
    [message] = parse(messages=body).messages
    assert message.parts[0].cache == "30m"
    assert home(messages=body)["messages"] == body


def test_a_breakpoint_of_another_mode_survives():
    body = [{"role": "user", "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "dreamt"}}]}]
    assert home(messages=body)["messages"] == body


def test_every_unread_field_belongs_to_the_nearest_owner():
    request = parse(
        messages=[
            {
                "role": "assistant",
                "mood": 1,
                "content": [{"type": "text", "text": "a", "tone": 2}],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}", "pace": 3}, "x": 4}
                ],
            }
        ],
        tools=[{"type": "function", "function": {"name": "f", "color": 5}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "y": 6}},
        logit_bias={"1": 2},
        absent=None,
    )
    [message] = request.messages
    fields = [value.extras.fields for value in (*message.parts, message, *request.tools, request) if value.extras]
    assert fields == [
        {"/tone": b"2"},
        {"/function/pace": b"3", "/x": b"4"},
        {"/mood": b"1"},
        {"/function/color": b"5"},
        {"/response_format/json_schema/y": b"6", "/logit_bias": b'{"1": 2}'},
    ]


def test_sampling_and_the_rest_are_read_by_name():
    request = parse(
        temperature=0.5,
        top_p=1,
        max_tokens=7,
        stop="x",
        seed=3,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        n=2,
        user="u",
        reasoning_effort="high",
        verbosity="low",
        metadata={"a": "b"},
        stream=True,
    )
    assert request.sampling == Sampling(
        temperature=0.5, top_p=1, max_tokens=7, stop=("x",), seed=3, presence_penalty=0.1, frequency_penalty=0.2
    )
    assert request.thinking == Thinking(effort="high")
    assert (request.candidates, request.user, request.verbosity, request.metadata, request.stream) == (
        2,
        "u",
        "low",
        {"a": "b"},
        True,
    )
    assert request.extras is None


def test_known_fields_with_unknown_values_stay_extras():
    body = {
        "reasoning_effort": "galactic",
        "metadata": {"a": 1},
        "tool_choice": {"type": "tool", "name": "x"},
        "response_format": {"type": "yaml", "indent": 2},
        "max_tokens": 5,
        "max_completion_tokens": 6,
        "user": "a",
        "safety_identifier": "b",
    }
    request = parse(**body)
    assert (request.thinking, request.metadata, request.tool_choice, request.output) == (None, None, None, None)
    assert (request.sampling.max_tokens, request.user) == (6, "b")
    assert render(request) == {"model": "m", "messages": [], **body}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice(mode="auto")),
        ("none", ToolChoice(mode="none")),
        ("required", ToolChoice(mode="required")),
        ("any", ToolChoice(mode="required")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice(mode="required", names=("f",))),
        ({"function": {"name": "f"}}, ToolChoice(mode="required", names=("f",))),
        ({"type": "custom", "custom": {"name": "g"}}, ToolChoice(mode="required", names=("g",))),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            ToolChoice(mode="auto", names=("f",), listed=True),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            ToolChoice(mode="required", names=("f",), listed=True),
        ),
    ],
)
def test_each_form_of_tool_choice_survives_a_round_trip(choice: Any, expected: ToolChoice):
    assert parse(tool_choice=choice).tool_choice == expected
    assert home(tool_choice=choice)["tool_choice"] == choice


def test_parallel_alone_does_not_set_the_mode():
    assert parse(parallel_tool_calls=False).tool_choice == ToolChoice(parallel=False)
    assert home(parallel_tool_calls=False) == {"model": "m", "messages": [], "parallel_tool_calls": False}


def test_tools_of_every_kind_are_read():
    grammar = {"syntax": "lark", "definition": "start: X"}
    body = [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
        },
        {"type": "custom", "custom": {"name": "g", "format": {"type": "grammar", "grammar": grammar}}},
        {"type": "custom", "custom": {"name": "h", "format": {"type": "text"}}},
        {"function": {"name": "i"}},
        {"type": "web", "depth": 3},
    ]
    tools = parse(tools=body).tools
    assert tools[0] == Tool(name="f", description="d", parameters=b'{"type": "object"}', strict=True)
    assert isinstance(tools[1], Tool)
    assert tools[1].grammar is not None
    assert json.loads(tools[1].grammar) == {"type": "grammar", **grammar}
    assert tools[2:4] == (Tool(name="h", form="text"), Tool(name="i"))
    assert isinstance(tools[4], NativeTool)
    assert home(tools=body)["tools"] == body


def test_structured_output_is_read():
    schema = {"type": "object"}
    body = {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": schema, "strict": True}}
    assert parse(response_format=body).output == OutputFormat(
        kind="json_schema", schema=b'{"type": "object"}', name="n", description="d", strict=True
    )
    assert parse(response_format={"type": "json_object"}).output == OutputFormat(kind="json")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"{", ""),
        (b'{"model":"m"}', ""),
        (b'{"model":"m","messages":[{"role":"user","content":5}]}', "/messages/0/content"),
        (b'{"model":"m","messages":[{"content":"x"}]}', "/messages/0/role"),
        (b'{"model":"m","messages":[],"tools":[{"type":"function","function":{}}]}', "/tools/0/function/name"),
    ],
)
def test_a_broken_request_is_refused_by_its_pointer(body: bytes, where: str):
    with pytest.raises(Problem) as caught:
        parse_request(Call(body))
    assert (caught.value.kind, caught.value.status, caught.value.where) == ("invalid_request", 400, where)


def test_the_model_may_be_only_in_the_url():
    request = parse_request(Call(b'{"messages":[]}', model="deployment", stream=True))
    assert (request.model, request.stream) == ("deployment", True)
    assert "model" not in render(request)


def test_empty_text_with_calls_is_no_part_but_survives_a_round_trip():
    body = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    ]
    assert [type(part) for part in parse(messages=body).messages[0].parts] == [ToolCall]
    assert home(messages=body)["messages"] == body
