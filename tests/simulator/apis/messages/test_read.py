"""Tests of the conversion of a Messages request to a `ModelRequest`."""

from dragoman.simulator.apis.conversation import Call, RequestResult, RequestToolChoice, RequestTurn
from simulator.apis.messages.bodies import WEATHER, asks, assistant, call, require_accepted, result, text, user

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M9QDwADhgGAWjTQ7gAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def ask(body):
    return require_accepted(body, recorded=True).model_request


def test_turns_are_merged_and_parsed_with_calls_results_and_media():
    body = asks(
        user(text("Look."), IMAGE),
        assistant(text("Both."), call(1), call(2, input={"city": "Tokyo"})),
        user(result(1), result(2, content=[text("offline")], is_error=True), text("Well?")),
        user("Really?"),
        system=[text("Be brief."), text("Be kind.")],
        tools=[WEATHER],
    )
    assert ask(body).turns == (
        RequestTurn(role="system", text="Be brief.\n\nBe kind."),
        RequestTurn(role="user", text="Look.", media=("image/png",)),
        RequestTurn(
            role="assistant",
            text="Both.",
            calls=(
                Call(id="toolu_1", name="get_weather", arguments={"city": "Paris"}),
                Call(id="toolu_2", name="get_weather", arguments={"city": "Tokyo"}),
            ),
        ),
        RequestTurn(
            role="user",
            text="Well?\n\nReally?",
            results=(
                RequestResult(call_id="toolu_1", name="get_weather", text="18 degrees"),
                RequestResult(call_id="toolu_2", name="get_weather", text="offline", failed=True),
            ),
        ),
    )


def test_a_tool_is_parsed_with_its_schema():
    (tool,) = ask(asks(tools=[WEATHER])).tools
    assert (tool.name, tool.kind, tool.schema) == ("get_weather", "function", WEATHER["input_schema"])


def test_native_tools_are_distinguished():
    tools = [
        {"type": "web_search_20260318", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "code_execution_20260120", "name": "code_execution"},
    ]
    kinds = {tool.name: tool.kind for tool in ask(asks(tools=tools)).tools}
    assert kinds == {
        "web_search": "search",
        "bash": "function",
        "str_replace_based_edit_tool": "function",
        "code_execution": "other",
    }


def test_a_deferred_tool_is_seen_once_it_was_found():
    hidden = {**WEATHER, "name": "hidden", "defer_loading": True}
    assert [tool.name for tool in ask(asks(tools=[WEATHER, hidden])).tools] == ["get_weather"]
    found = result(content=[{"type": "tool_reference", "tool_name": "hidden"}])
    body = asks(user("a"), assistant(call()), user(found), tools=[WEATHER, hidden])
    assert [tool.name for tool in ask(body).tools] == ["get_weather", "hidden"]


def test_a_deferred_tool_is_seen_once_the_vendors_search_has_found_it():
    hidden = {**WEATHER, "name": "hidden", "defer_loading": True}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": search["name"], "input": {"query": "hidden"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "hidden"}],
            },
        },
        {"type": "text", "text": "Found."},
    ]
    body = asks(user("a"), assistant(*blocks), user("b"), tools=[search, WEATHER, hidden])
    assert [tool.name for tool in ask(body).tools] == [search["name"], "get_weather", "hidden"]


def test_a_tool_that_was_withdrawn_is_not_seen():
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}}
    body = asks(user("a"), {"role": "system", "content": [removal]}, tools=[WEATHER])
    assert ask(body).tools == ()


def test_the_tool_choice_is_parsed():
    old = {"model": "claude-sonnet-4-5", "tools": [WEATHER]}
    assert ask(asks(**old)).choice == RequestToolChoice()
    assert ask(asks(**old, tool_choice={"type": "none"})).choice == RequestToolChoice(mode="none")
    assert ask(asks(**old, tool_choice={"type": "any"})).choice == RequestToolChoice(mode="required")
    named = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}
    assert ask(asks(**old, tool_choice=named)).choice == RequestToolChoice(
        mode="required", names=("get_weather",), parallel=False
    )
    assert not ask(asks(**old, tool_choice={"type": "auto", "disable_parallel_tool_use": True})).choice.parallel


def test_limits_and_the_output_format_are_parsed():
    reply = ask(
        asks(stop_sequences=["END"], max_tokens=77, output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
    )
    assert (reply.stop, reply.max_tokens, reply.output_schema) == (("END",), 77, SCHEMA)


def test_thinking_has_a_default_by_generation():
    assert ask(asks()).thinks
    assert ask(asks(model="claude-sonnet-5")).thinks
    assert not ask(asks(model="claude-sonnet-5", thinking={"type": "disabled"})).thinks
    assert not ask(asks(model="claude-opus-4-8")).thinks
    assert ask(asks(model="claude-opus-4-8", thinking={"type": "adaptive"})).thinks


def test_between_tools_the_model_thinks_after_results_only():
    setting = {"model": "claude-sonnet-5-5", "thinking": {"type": "between_tools"}, "tools": [WEATHER]}
    assert not ask(asks(**setting)).thinks
    assert ask(asks(user("a"), assistant(call()), user(result()), **setting)).thinks


def test_a_stream_is_requested_in_the_body():
    assert require_accepted(asks(stream=True)).stream
    assert not require_accepted(asks()).stream
