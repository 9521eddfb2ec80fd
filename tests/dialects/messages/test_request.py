import json

import pytest

import shelf
from dialects.messages import recordings
from dragoman.core.parts import (
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.request import parse_request
from dragoman.dialects.record import Call

TRAITS = Traits(dialect="messages")


def parse(body, **call):
    return parse_request(Call(json.dumps(body).encode(), **call))


def render(request):
    return json.loads(DIALECT.render_request(request, TRAITS).body)


def ask(*content, **members):
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": list(content)}], **members}


def first(body):
    return parse(body).messages[0].parts[0]


def home(body):
    return render(parse(body))


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@shelf.needs_shelf
def test_every_recorded_request_survives_a_round_trip():
    count = 0
    for name, body in recordings.requests():
        assert without_nulls(home(body)) == without_nulls(body), name
        count += 1
    assert count > 700


@shelf.needs_shelf
def test_rendering_twice_gives_the_same_bytes():
    for name, body in recordings.requests():
        request = parse(body)
        assert DIALECT.render_request(request, TRAITS) == DIALECT.render_request(request, TRAITS), name


def test_arguments_keep_every_byte():
    text = '{ "b" :1.0,\n"a": [ "\\u00e9" , 1e3 ] }'
    body = b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":%s}]}]}'
    request = parse_request(Call(body % text.encode()))
    call = request.messages[0].parts[0]
    assert isinstance(call, ToolCall)
    assert call.arguments == text
    assert text.encode() in DIALECT.render_request(request, TRAITS).body


def test_the_top_level_system_is_the_first_message_and_keeps_its_form():
    plain = parse({**ask(), "system": "be brief"})
    assert plain.messages[0] == Message(role="system", parts=(Text(text="be brief"),))
    assert plain.messages[0].where == "/system"
    blocks = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    marked = parse({**ask(), "system": blocks})
    assert marked.messages[0].parts[0] == Text(text="be brief", cache="1h")
    assert render(plain)["system"] == "be brief"
    assert render(marked)["system"] == blocks


BILLING = "x-anthropic-billing-header: cc_version=2.1.113.92d; cc_entrypoint=sdk-ts;"


@pytest.mark.parametrize("text", [BILLING, BILLING + " cch=aeff9;", BILLING + " cc_is_subagent=true;"])
def test_the_billing_block_of_claude_code_is_no_text_for_a_model(text):
    system = [{"type": "text", "text": text}, {"type": "text", "text": "be brief"}]
    body = {"model": "m", "system": system, "messages": []}
    billing, instructions = parse(body).messages[0].parts
    assert isinstance(billing, Opaque)
    assert billing.is_accounting
    assert isinstance(instructions, Text)
    assert home(body)["system"] == system


@pytest.mark.parametrize(
    "system",
    [
        BILLING,
        [{"type": "text", "text": "be brief"}, {"type": "text", "text": BILLING}],
        [{"type": "text", "text": BILLING + "\nbe brief"}],
        [{"type": "text", "text": "x-anthropic-billing-header: what is this?"}],
        [{"type": "text", "text": "about " + BILLING}],
        [{"type": "text", "text": BILLING, "cache_control": {"type": "ephemeral"}}],
    ],
)
def test_only_the_documented_form_of_the_billing_block_is_taken_for_one(system):
    assert all(isinstance(part, Text) for part in parse(ask(system=system)).messages[0].parts)


def test_the_same_text_of_a_user_is_the_users():
    assert isinstance(first(ask({"type": "text", "text": BILLING})), Text)


def test_a_system_message_among_the_turns_stays_there():
    turns = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
    ]
    body = {"model": "m", "max_tokens": 1, "messages": turns}
    assert [message.role for message in parse(body).messages] == ["user", "system", "assistant"]
    assert home(body) == body


def test_leading_system_messages_of_another_dialect_become_the_system_prompt():
    system = Message(role="system", parts=(Text(text="one"),))
    user = Message(role="user", parts=(Text(text="hi"),))
    single = render(Request(model="m", messages=(system, user)))
    assert single["system"] == "one"
    double = render(Request(model="m", messages=(system, system, user, system)))
    assert double["system"] == [{"type": "text", "text": "one"}] * 2
    assert [message["role"] for message in double["messages"]] == ["user", "system"]


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ({"type": "base64", "media_type": "image/png", "data": "AA=="}, "image", Inline("AA==")),
        ({"type": "url", "url": "https://x/y"}, "image", Link("https://x/y")),
        ({"type": "file", "file_id": "f1"}, "image", Stored("anthropic", "f1")),
        ({"type": "text", "media_type": "text/plain", "data": "hello"}, "document", Plain("hello")),
        ({"type": "base64", "media_type": "application/pdf", "data": "AA=="}, "document", Inline("AA==")),
    ],
)
def test_media_sources_are_read_and_written(source, kind, expected):
    body = ask({"type": kind, "source": source})
    part = first(body)
    assert isinstance(part, Media)
    assert (part.kind, part.source) == (kind, expected)
    assert home(body) == body


def test_a_document_keeps_its_title_and_context_and_anthropics_own_fields():
    block = {
        "type": "document",
        "source": {"type": "url", "url": "https://x"},
        "title": "T",
        "context": "c",
        "citations": {"enabled": True},
    }
    part = first(ask(block))
    assert isinstance(part, Media)
    assert (part.name, part.context) == ("T", "c")
    assert part.extras == Extras("messages", {"/citations": b'{"enabled": true}'})
    assert home(ask(block)) == ask(block)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}, "title": "t"},
        {"type": "image", "source": {"type": "hologram", "beam": 1}, "later": True},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "block_of_the_future", "text": 5},
    ],
)
def test_a_block_without_a_counterpart_is_kept_whole(block):
    part = first(ask(block))
    assert isinstance(part, Opaque)
    assert json.loads(part.raw) == block
    assert home(ask(block)) == ask(block)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": ""},
        {"content": []},
        {"content": "text", "is_error": False},
        {"content": [{"type": "text", "text": "text"}], "is_error": True},
        {"content": [{"type": "tool_reference", "tool_name": "n"}]},
        {"content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}], "toolset_name": "browser"},
        {"content": "text", "cache_control": {"type": "ephemeral"}},
    ],
)
def test_a_tool_result_is_rendered_in_its_original_form(result):
    body = ask({"type": "tool_result", "tool_use_id": "t", **result})
    part = first(body)
    assert isinstance(part, ToolResult)
    assert part.failed is result.get("is_error", False)
    assert home(body) == body


def test_extras_belong_to_the_nearest_value():
    body = ask(
        {"type": "text", "text": "a", "x": 1},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "b", "y": 2}], "z": 3},
        tools=[{"name": "n", "input_schema": {}, "defer_loading": True, "w": 4}],
        thinking={"type": "adaptive", "block_binding": {"a": 1}},
        service_tier="auto",
        brand_new={"deep": [1]},
    )
    body["messages"][0]["clear_at"] = 5
    request = parse(body)
    message = request.messages[0]
    text, result = message.parts
    assert isinstance(result, ToolResult)
    assert text.extras == Extras("messages", {"/x": b"1"})
    assert result.content[0].extras == Extras("messages", {"/y": b"2"})
    assert result.extras == Extras("messages", {"/z": b"3"})
    assert message.extras == Extras("messages", {"/clear_at": b"5"})
    assert request.tools[0].extras == Extras("messages", {"/w": b"4", "/defer_loading": b"true"})
    assert request.extras == Extras(
        "messages",
        {
            "/service_tier": b'"auto"',
            "/thinking/block_binding": b'{"a": 1}',
            "/brand_new": b'{"deep": [1]}',
        },
    )
    assert render(request) == body


def test_typed_tools_are_kept_whole_and_custom_ones_read():
    native = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
    custom = {"type": "custom", "name": "n", "description": "", "input_schema": {"type": "object"}, "strict": False}
    request = parse(ask(tools=[native, custom]))
    assert isinstance(request.tools[0], NativeTool)
    assert request.tools[1] == Tool(name="n", parameters=b'{"type": "object"}', strict=False)
    assert render(request)["tools"] == [native, custom]


def test_a_tool_without_parameters_takes_an_empty_object():
    tool = render(Request(model="m", messages=(), tools=(Tool(name="n"),)))["tools"][0]
    assert tool == {"name": "n", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("wire", "core"),
    [
        ({"type": "auto"}, ToolChoice(mode="auto")),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(mode="required", parallel=False)),
        ({"type": "auto", "disable_parallel_tool_use": False}, ToolChoice(mode="auto", parallel=True)),
        ({"type": "tool", "name": "n"}, ToolChoice(mode="required", names=("n",))),
        ({"type": "none"}, ToolChoice(mode="none")),
    ],
)
def test_tool_choices_are_read_and_written(wire, core):
    request = parse(ask(tool_choice=wire))
    assert request.tool_choice == core
    assert render(request)["tool_choice"] == wire


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(parallel=True), None),
        (ToolChoice(mode="none", parallel=False), {"type": "none"}),
        (ToolChoice(mode="required", names=("a", "b")), {"type": "any"}),
    ],
)
def test_foreign_tool_choices_take_the_nearest_legal_form(choice, expected):
    request = Request(model="m", messages=(), tools=(Tool(name="n"),), tool_choice=choice)
    assert render(request).get("tool_choice") == expected


def test_parallel_off_without_tools_is_ignored():
    assert "tool_choice" not in render(Request(model="m", messages=(), tool_choice=ToolChoice(parallel=False)))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, Thinking(mode="adaptive", visible=False)),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"}},
            Thinking(mode="enabled", budget=2048, visible=True),
        ),
        ({"thinking": {"type": "between_tools"}}, Thinking(mode="disabled")),
        ({"thinking": {"type": "disabled", "budget_tokens": 0}}, Thinking(mode="disabled")),
        ({"output_config": {"effort": "xhigh"}}, Thinking(effort="xhigh")),
        ({"output_config": {"effort": "heroic", "task_budget": 3}}, None),
        ({"thinking": {"type": "dreaming", "depth": 3}}, None),
        ({"thinking": {"type": "adaptive", "display": "sung"}}, Thinking(mode="adaptive")),
    ],
)
def test_thinking_survives_a_round_trip(members, expected):
    body = ask(**members)
    assert parse(body).thinking == expected
    assert home(body) == body


@pytest.mark.parametrize(
    "members",
    [
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
    ],
)
def test_both_spellings_of_an_output_schema_are_read(members):
    request = parse(ask(**members))
    assert request.output == OutputFormat(kind="json_schema", schema=b'{"type": "object"}')
    assert render(request) == ask(**members)


@pytest.mark.parametrize(
    "members",
    [
        {"tools": [], "stop_sequences": [], "metadata": {}, "output_config": {}, "system": [], "stream": False},
        {"metadata": {"user_id": "u", "tenant": 1}, "stream": True},
        {"output_config": {"format": {"type": "grammar", "rule": 1}}},
        {"tool_choice": {"type": "oracle"}},
        {"tool_choice": {"type": "auto", "mood": 1}},
        {"tool_choice": {"type": "any", "name": "n"}},
        {"tools": [{"name": "n"}]},
        {"temperature": 1.0, "top_p": 1, "top_k": 5, "stop_sequences": ["a", "b"]},
    ],
)
def test_empty_and_unknown_fields_survive_a_round_trip_too(members):
    assert home(ask(**members)) == ask(**members)


def test_model_and_streaming_may_be_in_the_url():
    body = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 1, "messages": []}
    request = parse(body, model="claude@1", stream=True)
    assert (request.model, request.stream) == ("claude@1", True)
    call = DIALECT.render_request(request, TRAITS)
    assert json.loads(call.body) == body
    assert (call.model, call.stream) == ("claude@1", True)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"not json", ""),
        (b'{"messages": 5}', "/messages"),
        (b'{"messages": [{"role": "wizard", "content": "x"}]}', "/messages/0/role"),
        (b'{"messages": [{"role": "user", "content": [{"type": "text"}]}]}', "/messages/0/content/0"),
        (b'{"messages": [], "tools": [{"input_schema": {}}]}', "/tools/0/name"),
        (b'{"messages": [], "tools": [{"name": 5}]}', "/tools/0/name"),
        (b'{"messages": [], "thinking": {"type": "enabled", "budget_tokens": "x"}}', "/thinking/budget_tokens"),
        (b'{"messages": [], "tool_choice": "auto"}', "/tool_choice"),
        (b'{"messages": [], "tool_choice": {"type": "tool"}}', "/tool_choice/name"),
        (b'{"messages": [], "tools": [{"name": "n", "cache_control": {"type": "x"}}]}', "/tools/0/cache_control/type"),
    ],
)
def test_a_broken_request_is_a_problem_with_a_pointer(body, where):
    with pytest.raises(Problem) as caught:
        parse_request(Call(body))
    assert caught.value.kind == "invalid_request"
    assert caught.value.status == 400
    assert caught.value.where == where


def test_input_that_is_not_utf8_is_a_problem():
    body = b'{"messages":[{"role":"user","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":"\xff"}}]}]}'
    with pytest.raises(Problem) as caught:
        parse_request(Call(body))
    assert caught.value.kind == "invalid_request"
