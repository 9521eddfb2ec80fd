"""Choices among tools, and tools of every type."""

import json

import pytest

from cases.documents import (
    call_item,
    chat_reply,
    chat_request,
    chat_tool,
    gemini_chunk,
    gemini_reply,
    message_item,
    messages_reply,
    messages_request,
    of_type,
    responses_reply,
    responses_request,
    tool_use,
)
from cases.through import answer, flow, loss_pointers, translate_to

CLAUDE = "claude-opus-4-8"
GEMINI = "gemini-3-flash"
EMPTY = {"type": "object", "properties": {}}
ACT = {"name": "act", "input_schema": EMPTY}
COLOURS = [chat_tool(name, EMPTY) for name in ("red", "green", "blue")]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ({"type": "tool", "name": "act"}, {"mode": "ANY", "allowedFunctionNames": ["act"]}),
        ({"type": "any"}, {"mode": "ANY"}),
        ({"type": "none"}, {"mode": "NONE"}),
        ({"type": "auto"}, {"mode": "AUTO"}),
    ],
)
def test_t072_a_messages_choice_reaches_gemini(choice, config):
    asked = translate_to("messages", "gemini", messages_request(tools=[ACT], tool_choice=choice), model=GEMINI)
    assert asked.body["toolConfig"]["functionCallingConfig"] == config
    assert asked.losses == ()


SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def test_t073_a_forced_choice_follows_a_tool_that_is_retyped():
    body = messages_request(tools=[SEARCH], tool_choice={"type": "tool", "name": "web_search"})
    asked = translate_to("messages", "responses", body, model="gpt-5.6")
    assert asked.body["tools"] == [{"type": "web_search"}]
    assert asked.body["tool_choice"] == {"type": "web_search"}


def test_t073_a_forced_choice_of_a_tool_that_was_dropped_is_dropped_and_reported():
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}
    body = messages_request(tools=[fetch, ACT], tool_choice={"type": "tool", "name": "web_fetch"})
    asked = translate_to("messages", "responses", body, model="gpt-5.6")
    assert [tool["name"] for tool in asked.body["tools"]] == ["act"]
    assert asked.body["tool_choice"] == "auto"
    assert loss_pointers(asked, "dropped") >= {"/tool_choice", "/tools/0"}


def test_t073_a_forced_choice_follows_a_tool_that_is_renamed():
    name = "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_console_message"
    body = messages_request(tools=[{"name": name, "input_schema": EMPTY}], tool_choice={"type": "tool", "name": name})
    asked = translate_to("messages", "chat", body, model="gpt-4.1")
    (tool,) = asked.body["tools"]
    assert asked.body["tool_choice"]["function"]["name"] == tool["function"]["name"] != name


def test_t075_parallel_off_alone_does_not_force_a_tool():
    asked = translate_to("chat", "messages", chat_request(tools=COLOURS, parallel_tool_calls=False), model=CLAUDE)
    assert asked.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_t076_no_parallel_flag_is_sent_with_the_choice_none():
    body = chat_request(tools=COLOURS, tool_choice="none", parallel_tool_calls=False)
    assert translate_to("chat", "messages", body, model=CLAUDE).body["tool_choice"] == {"type": "none"}


def _list_allowed(*names, mode="required"):
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
    return chat_request(tools=COLOURS, tool_choice=choice)


@pytest.mark.parametrize("names", [("red",), ("red", "blue")])
def test_t078_an_allowed_subset_reaches_gemini_as_a_list_of_names(names):
    asked = translate_to("chat", "gemini", _list_allowed(*names), model=GEMINI)
    assert asked.body["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": list(names)}
    assert len(asked.body["tools"][0]["functionDeclarations"]) == 3


def test_t078_one_allowed_and_required_tool_is_forced_on_claude():
    asked = translate_to("chat", "messages", _list_allowed("red"), model=CLAUDE)
    assert asked.body["tool_choice"] == {"type": "tool", "name": "red"}
    assert len(asked.body["tools"]) == 3


def test_t078_several_allowed_tools_are_sent_alone_to_claude_and_reported():
    asked = translate_to("chat", "messages", _list_allowed("red", "blue"), model=CLAUDE)
    assert [tool["name"] for tool in asked.body["tools"]] == ["red", "blue"]
    assert asked.body["tool_choice"] == {"type": "any"}
    assert any(where.startswith("/tools/1") for where in loss_pointers(asked, "dropped"))
    assert any(where.startswith("/tool_choice") for where in loss_pointers(asked, "approximated"))


EFFORT = chat_request(tools=COLOURS, reasoning_effort="high")


def test_t079_tools_and_effort_go_through_responses_and_the_reply_comes_back():
    asked = translate_to("chat", "responses", EFFORT, model="gpt-5.4")
    assert asked.body["reasoning"]["effort"] == "high"
    assert [tool["name"] for tool in asked.body["tools"]] == ["red", "green", "blue"]
    assert not any(where.startswith(("/reasoning", "/tools")) for where in loss_pointers(asked))

    reply = responses_reply(message_item(0, "hm"), call_item("c", "red", '{"a":1}'))
    choice = answer("responses", "chat", reply, asked).body["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "hm"
    assert [call["function"] for call in choice["message"]["tool_calls"]] == [{"name": "red", "arguments": '{"a":1}'}]


def test_t079_where_only_chat_is_left_the_effort_gives_way_to_the_tools_and_is_reported():
    body = messages_request(tools=[ACT], thinking={"type": "adaptive"}, output_config={"effort": "high"})
    asked = translate_to("messages", "chat", body, model="gpt-5.4")
    assert asked.body["reasoning_effort"] == "none"
    assert len(asked.body["tools"]) == 1
    assert "/output_config/effort" in loss_pointers(asked, "approximated")


SEARCH_AND_MORE = {
    "tools": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
        ACT,
    ]
}


def test_t081_older_gemini_keeps_functions_and_code_execution_and_drops_search():
    asked = translate_to("messages", "gemini", messages_request(**SEARCH_AND_MORE), model="gemini-2.5-flash")
    members = {member for tool in asked.body["tools"] for member in tool}
    assert members == {"functionDeclarations", "codeExecution"}
    assert any(where.startswith("/tools/0") for where in loss_pointers(asked, "dropped"))


def test_t081_gemini_3_takes_them_all():
    asked = translate_to("messages", "gemini", messages_request(**SEARCH_AND_MORE), model=GEMINI)
    members = {member for tool in asked.body["tools"] for member in tool}
    assert members == {"functionDeclarations", "codeExecution", "googleSearch"}


@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI)])
def test_t082_a_vendors_tool_is_mapped_where_there_is_one_like_it(target, model):
    asked = translate_to(
        "chat", target, chat_request(tools=[{"type": "code_interpreter"}, {"google_search": {}}]), model=model
    )
    text = json.dumps(asked.body["tools"])
    expected = ("code_execution", "web_search") if target == "messages" else ("codeExecution", "googleSearch")
    assert all(word in text for word in expected)


def test_t082_a_vendors_tool_without_a_counterpart_is_reported():
    asked = translate_to("chat", "gemini", chat_request(tools=[{"type": "image_generation"}, COLOURS[0]]), model=GEMINI)
    assert [d["name"] for tool in asked.body["tools"] for d in tool["functionDeclarations"]] == ["red"]
    assert any(where.startswith("/tools/0") for where in loss_pointers(asked, "dropped"))


CODEX = [
    {
        "type": "namespace",
        "name": "multi_agent_v1",
        "description": "agents",
        "tools": [{"type": "function", "name": "close_agent", "parameters": {"type": "object", "properties": {}}}],
    },
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Patch files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: PATCH"},
    },
]


def test_t084_a_namespace_is_flattened_and_comes_back_on_the_call():
    asked = translate_to("responses", "messages", responses_request(tools=CODEX), model=CLAUDE)
    first, _ = asked.body["tools"]
    assert first["name"] == "multi_agent_v1__close_agent"

    reply = messages_reply(tool_use("t1", first["name"], {"id": 7}), stop_reason="tool_use")
    (item,) = answer("messages", "responses", reply, asked).body["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "multi_agent_v1", "close_agent")
    assert json.loads(item["arguments"]) == {"id": 7}


def test_t084_a_custom_tool_is_a_function_with_one_text_and_comes_back_as_a_custom_call():
    asked = translate_to("responses", "gemini", responses_request(tools=CODEX), model=GEMINI)
    _, patch = asked.body["tools"][0]["functionDeclarations"]
    assert patch["parametersJsonSchema"]["properties"] == {"input": {"type": "string"}}
    assert "start: PATCH" in patch["description"]

    part = {"functionCall": {"name": "apply_patch", "args": {"input": "*** Begin\n"}}}
    (item,) = answer("gemini", "responses", gemini_reply(part), asked).body["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin\n")

    frames = flow("gemini", "responses", [gemini_chunk(part, finish="STOP")], asked).body
    (done,) = of_type(frames, "response.output_item.done")
    assert (done["item"]["type"], done["item"]["input"]) == ("custom_tool_call", "*** Begin\n")


def test_t084_additional_tools_in_the_input_are_declared_with_the_others_and_reported():
    item = {"type": "additional_tools", "role": "developer", "tools": [CODEX[1]]}
    asked = translate_to(
        "responses", "messages", responses_request({"role": "user", "content": "q"}, item), model=CLAUDE
    )
    assert asked.body["messages"] == [{"role": "user", "content": "q"}]
    assert [tool["name"] for tool in asked.body["tools"]] == [CODEX[1]["name"]]
    assert "/input/1" in loss_pointers(asked, "approximated")


def test_t088_stop_with_calls_is_passed_on_in_chat_and_is_tool_use_in_messages():
    call = {"id": "c", "type": "function", "function": {"name": "red", "arguments": "{}"}}
    reply = chat_reply({"tool_calls": [call]}, "stop")
    assert answer("chat", "chat", reply).body["choices"][0]["finish_reason"] == "stop"
    assert answer("chat", "messages", reply).body["stop_reason"] == "tool_use"
