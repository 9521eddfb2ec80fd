"""Tests of the conversion of a Responses request to a `ModelRequest`."""

import pytest

from dragoman.simulator.apis.conversation import Call, RequestResult, RequestTool, RequestToolChoice, RequestTurn
from dragoman.simulator.apis.responses.store import (
    ResponseStore,
    expand_input,
    find_referenced_ids,
    read_conversation_id,
    read_previous_id,
)
from simulator.apis.responses.bodies import PATCH, WEATHER, asks, require_accepted, require_rejected

SEARCH = {"type": "tool_search", "execution": "client", "description": "Find tools", "parameters": {"type": "object"}}
LOOKUP = {**WEATHER, "name": "lookup"}


def ask(**members):
    return require_accepted(asks(**members)).model_request


def test_the_conversation_is_parsed_turn_by_turn():
    turns = ask(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "In French."},
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "Weather?"}, {"type": "input_text", "text": "Please."}],
            },
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Paris"}'},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "+x"},
            {"type": "function_call_output", "call_id": "call_1", "output": "18"},
            {
                "type": "custom_tool_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": "done"}],
            },
            {"role": "user", "content": "And?"},
        ],
    ).turns
    assert turns == (
        RequestTurn(role="system", text="Be brief."),
        RequestTurn(role="system", text="In French."),
        RequestTurn(role="user", text="Weather?\nPlease."),
        RequestTurn(
            role="assistant",
            text="Let me see.",
            calls=(
                Call(id="call_1", name="get_weather", arguments={"city": "Paris"}),
                Call(id="call_2", name="apply_patch", arguments="+x"),
            ),
        ),
        RequestTurn(
            role="user",
            results=(
                RequestResult(call_id="call_1", name="get_weather", text="18"),
                RequestResult(call_id="call_2", name="apply_patch", text="done"),
            ),
        ),
        RequestTurn(role="user", text="And?"),
    )


def test_media_parts_are_parsed_by_type():
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    linked = {"type": "input_image", "image_url": "https://example.com/a.jpg", "detail": "low"}
    paper = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    (turn,) = ask(input=[{"role": "user", "content": [picture, linked, paper, sound]}]).turns
    assert turn.media == ("image/png", "image/*", "application/pdf", "audio/wav")


def test_tools_are_parsed_with_their_kinds():
    group = {
        "type": "namespace",
        "name": "crm",
        "description": "Customers",
        "tools": [{**WEATHER, "name": "get_customer"}],
    }
    tools = ask(tools=[WEATHER, PATCH, group, {"type": "web_search"}, {"type": "local_shell"}, SEARCH]).tools
    assert [(tool.name, tool.kind) for tool in tools] == [
        ("get_weather", "function"),
        ("apply_patch", "custom"),
        ("get_customer", "function"),
        ("web_search", "search"),
        ("local_shell", "function"),
        ("tool_search", "function"),
    ]
    assert tools[0] == RequestTool(name="get_weather", description="Weather in a city", schema=WEATHER["parameters"])


def test_tools_of_one_name_are_distinguished_by_their_namespaces():
    groups = [
        {"type": "namespace", "name": name, "description": name, "tools": [{**WEATHER, "name": "find"}]}
        for name in ("a", "b")
    ]
    assert [tool.name for tool in ask(tools=groups).tools] == ["a.find", "b.find"]


def test_a_tool_without_strict_is_filled_as_the_strict_tool_it_becomes():
    loose = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city"],
    }
    (tool,) = ask(tools=[{"type": "function", "name": "f", "parameters": loose}]).tools
    assert tool.schema["required"] == ["city", "unit"]


def test_tools_that_were_added_or_found_on_the_way_may_be_called():
    items = [
        {"role": "user", "content": "Go."},
        {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"goal": "x"}},
        {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": [LOOKUP]},
        {"type": "additional_tools", "role": "developer", "tools": [WEATHER]},
    ]
    found = ask(tools=[SEARCH], input=items)
    assert {tool.name for tool in found.tools} == {"tool_search", "lookup", "get_weather"}
    assert found.turns[1].calls == (Call(id="call_1", name="tool_search", arguments={"goal": "x"}),)
    assert found.turns[2].results == (RequestResult(call_id="call_1", name="tool_search", text="Loaded: lookup"),)


def test_the_vendors_shell_is_read_like_a_tool_of_the_client():
    exit_2 = {"stdout": "", "stderr": "none", "outcome": {"type": "exit", "exit_code": 2}}
    late = {"stdout": "1", "stderr": "", "outcome": {"type": "timeout"}}
    items = [
        {"role": "user", "content": "Go."},
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls", "sleep 9"], "timeout_ms": None}},
        {"type": "shell_call_output", "call_id": "call_1", "output": [exit_2, late]},
    ]
    found = ask(tools=[{"type": "shell"}], input=items)
    assert [(tool.name, tool.kind, tool.schema["required"]) for tool in found.tools] == [
        ("shell", "function", ["commands"])
    ]
    (call,) = found.turns[1].calls
    assert (call.id, call.name, call.arguments["commands"]) == ("call_1", "shell", ["ls", "sleep 9"])
    assert found.turns[2].results == (
        RequestResult(call_id="call_1", name="shell", text="none\nexit code 2\n1\ntimed out"),
    )
    hosted = ask(tools=[{"type": "shell", "environment": {"type": "container_auto"}}])
    assert [tool.kind for tool in hosted.tools] == ["other"]


RAN = {"type": "exec", "command": ["ls"], "env": {}}


@pytest.mark.parametrize("named", [{"call_id": "call_1"}, {"id": "call_1"}, {"id": "lsh_1"}], ids=str)
def test_the_result_of_a_local_shell_names_its_call_in_either_way(named):
    items = [
        {"role": "user", "content": "Go."},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": RAN, "status": "completed"},
        {"type": "local_shell_call_output", "output": "a.txt", **named},
    ]
    found = ask(tools=[{"type": "local_shell"}], input=items)
    assert found.turns[1].calls == (Call(id="call_1", name="local_shell", arguments=RAN),)
    assert found.turns[2].results == (RequestResult(call_id="call_1", name="local_shell", text="a.txt"),)
    for broken, rule in ((items[:2], "responses.call-answered"), ([items[0], items[2]], "responses.answer-called")):
        assert require_rejected(asks(tools=[{"type": "local_shell"}], input=broken)).rule == rule


def test_a_patch_and_its_failure_are_read():
    operation = {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b\n"}
    items = [
        {"role": "user", "content": "Go."},
        {"type": "apply_patch_call", "call_id": "call_1", "operation": operation, "status": "completed"},
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no such line"},
    ]
    found = ask(tools=[{"type": "apply_patch"}], input=items)
    assert found.turns[1].calls == (Call(id="call_1", name="apply_patch", arguments=operation),)
    assert found.turns[2].results == (
        RequestResult(call_id="call_1", name="apply_patch", text="no such line", failed=True),
    )


@pytest.mark.parametrize(
    ("output", "pointer"),
    [
        ("Linux", "/input/1/output"),
        ([{"stdout": "x", "stderr": ""}], "/input/1/output/0/outcome"),
        ([{"stdout": "x", "stderr": "", "outcome": {"type": "exit"}}], "/input/1/output/0/outcome/exit_code"),
        ([{"stdout": "x", "stderr": "", "outcome": {"type": "killed"}}], "/input/1/output/0/outcome/type"),
    ],
)
def test_a_malformed_result_of_the_vendors_shell_is_rejected(output, pointer):
    call = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}}
    result = {"type": "shell_call_output", "call_id": "call_1", "output": output}
    violation = require_rejected(asks(tools=[{"type": "shell"}], input=[call, result]))
    assert violation.where == pointer


CHOICES = [
    (None, RequestToolChoice()),
    ("auto", RequestToolChoice()),
    ("none", RequestToolChoice(mode="none")),
    ("required", RequestToolChoice(mode="required")),
    ({"type": "function", "name": "get_weather"}, RequestToolChoice(mode="required", names=("get_weather",))),
    ({"type": "custom", "name": "apply_patch"}, RequestToolChoice(mode="required", names=("apply_patch",))),
    ({"type": "web_search_preview"}, RequestToolChoice(mode="required", names=("web_search",))),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]},
        RequestToolChoice(mode="auto", names=("get_weather",)),
    ),
    (
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "custom", "name": "apply_patch"}, {"type": "web_search"}],
        },
        RequestToolChoice(mode="required", names=("apply_patch", "web_search")),
    ),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES, ids=str)
def test_a_tool_choice_is_parsed(choice, expected):
    assert ask(tools=[WEATHER, PATCH, {"type": "web_search"}], tool_choice=choice).choice == expected


def test_parallel_off_is_parsed():
    assert ask(tools=[WEATHER], parallel_tool_calls=False).choice == RequestToolChoice(parallel=False)


def test_limits_and_formats_are_parsed():
    schema = {"type": "object", "properties": {}}
    assert ask(max_output_tokens=99).max_tokens == 99
    assert ask(text={"format": {"type": "json_schema", "name": "n", "schema": schema}}).output_schema == schema
    assert ask(text={"format": {"type": "json_object"}}, input="As json.").output_schema == {}
    assert ask(text={"format": {"type": "text"}}).output_schema is None


THINKING = [
    ({"model": "gpt-4o"}, False),
    ({"model": "gpt-5.4"}, False),
    ({"model": "gpt-5.4", "reasoning": {"effort": "low"}}, True),
    ({"model": "gpt-5.5"}, True),
    ({"model": "gpt-5.6", "reasoning": {"effort": "none"}}, False),
    ({"model": "o3"}, True),
    ({"model": "openai/gpt-5-nano"}, True),
    ({"model": "gpt-5.2-chat"}, False),
]


@pytest.mark.parametrize(("members", "thinks"), THINKING, ids=str)
def test_whether_the_model_thinks_depends_on_its_name_and_the_effort(members, thinks):
    assert ask(**members).thinks is thinks


def test_the_last_effort_setting_counts():
    update = {"type": "configuration_update", "reasoning": {"effort": "none"}}
    members = {"model": "gpt-6-sol", "reasoning": {"effort": "high"}}
    assert ask(**members, input=[{"role": "user", "content": "Hi"}]).thinks
    assert not ask(**members, input=[update, {"role": "user", "content": "Hi"}]).thinks


def test_what_a_request_needs_of_the_past_is_named():
    assert read_previous_id({"previous_response_id": "resp_1"}) == "resp_1"
    assert read_previous_id({}) == read_previous_id({"previous_response_id": 7}) == ""
    assert (
        read_conversation_id({"conversation": "conv_1"})
        == read_conversation_id({"conversation": {"id": "conv_1"}})
        == "conv_1"
    )
    assert read_conversation_id({}) == read_conversation_id({"conversation": 7}) == ""
    items = [{"type": "item_reference", "id": "rs_1"}, {"id": "fc_1"}, {"role": "user", "id": "msg_1"}]
    assert find_referenced_ids({"input": items}) == ["rs_1", "fc_1"]
    assert ResponseStore().expand_request(b"[") == b"["


def test_a_joined_request_holds_what_is_stored_before_its_own_input():
    output = {"type": "message", "role": "assistant", "id": "msg_1", "content": "Hi."}
    body = asks(previous_response_id="resp_1", input="And?")
    found = expand_input(body, [{"role": "user", "content": "Hello"}, output], {})
    assert [item["role"] for item in found["input"]] == ["user", "assistant", "user"]
    assert found["previous_response_id"] == "resp_1"


def test_referenced_items_are_inserted_at_their_reference():
    output = {"type": "message", "role": "assistant", "id": "msg_1", "content": "Hi."}
    again = [{"role": "user", "content": "Hello"}, {"type": "item_reference", "id": "msg_1"}]
    found = expand_input(asks(input=again), [output], {"msg_1": output})
    assert found["input"] == [again[0], output]
