"""Tests of the conversion of a Chat Completions request to a `ModelRequest`."""

import pytest

from dragoman.simulator.apis.conversation import Call, RequestResult, RequestTool, RequestToolChoice, RequestTurn
from simulator.apis.chat.bodies import CALCULATOR, STRICT, WEATHER, assistant_calls, require_accepted, tool_result

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M9QDwADhgGAWjTQ7gAAAABJRU5ErkJggg=="
LOOKUP = {"type": "function", "function": {"name": "find"}}
CALCULATE = {"type": "custom", "custom": {"name": "calculate"}}
LEGACY = [WEATHER["function"]]


def read_request(**members):
    return require_accepted(**members).model_request


def test_tools_are_functions_and_custom_tools():
    assert read_request(tools=[WEATHER, CALCULATOR, {"type": "function", "function": {"name": "now"}}]).tools == (
        RequestTool(
            name="get_weather",
            description="Current weather for a city",
            schema=WEATHER["function"]["parameters"],
        ),
        RequestTool(name="calculate", description="Adds numbers", kind="custom"),
        RequestTool(name="now"),
    )


def test_functions_of_old_are_tools():
    assert [tool.name for tool in read_request(functions=LEGACY).tools] == ["get_weather"]


@pytest.mark.parametrize("options", [None, {}, {"search_context_size": "low"}])
def test_a_search_model_searches(options):
    [tool] = read_request(model="gpt-4o-search-preview", web_search_options=options).tools
    assert tool.kind == "search"


CHOICES = [
    ({}, RequestToolChoice()),
    ({"tool_choice": "auto"}, RequestToolChoice(mode="auto")),
    ({"tool_choice": "none"}, RequestToolChoice(mode="none")),
    ({"tool_choice": "required"}, RequestToolChoice(mode="required")),
    ({"tool_choice": "required", "parallel_tool_calls": False}, RequestToolChoice(mode="required", parallel=False)),
    ({"parallel_tool_calls": True}, RequestToolChoice()),
    ({"parallel_tool_calls": False}, RequestToolChoice(parallel=False)),
    ({"tool_choice": LOOKUP}, RequestToolChoice(mode="required", names=("find",))),
    ({"tool_choice": CALCULATE}, RequestToolChoice(mode="required", names=("calculate",))),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [LOOKUP, CALCULATE]}}},
        RequestToolChoice(mode="auto", names=("find", "calculate")),
    ),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [LOOKUP]}}},
        RequestToolChoice(mode="required", names=("find",)),
    ),
]


@pytest.mark.parametrize(("members", "choice"), CHOICES)
def test_a_choice_is_read(members, choice):
    assert read_request(tools=[STRICT, CALCULATOR], **members).choice == choice


@pytest.mark.parametrize(
    ("function_call", "choice"),
    [
        (None, RequestToolChoice(parallel=False)),
        ("none", RequestToolChoice(mode="none", parallel=False)),
        ({"name": "get_weather"}, RequestToolChoice(mode="required", names=("get_weather",), parallel=False)),
    ],
)
def test_a_choice_of_old_allows_one_call(function_call, choice):
    assert read_request(functions=LEGACY, function_call=function_call).choice == choice


def test_turns_are_read_with_calls_and_results():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "kind."}]},
        {"role": "user", "content": "Weather?"},
        {**assistant_calls("a", "b"), "content": "Looking."},
        tool_result("b", "rain"),
        tool_result("a", [{"type": "text", "text": "sun"}]),
        {"role": "assistant", "content": None, "refusal": "No more."},
        {"role": "user", "content": "Thanks"},
    ]
    calls = (Call(id="a", name="get_weather", arguments={}), Call(id="b", name="get_weather", arguments={}))
    results = (
        RequestResult(call_id="b", name="get_weather", text="rain"),
        RequestResult(call_id="a", name="get_weather", text="sun"),
    )
    assert read_request(messages=messages).turns == (
        RequestTurn(role="system", text="Be brief."),
        RequestTurn(role="system", text="Be\nkind."),
        RequestTurn(role="user", text="Weather?"),
        RequestTurn(role="assistant", text="Looking.", calls=calls),
        RequestTurn(role="user", results=results),
        RequestTurn(role="assistant", text="No more."),
        RequestTurn(role="user", text="Thanks"),
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [('{"city": "Paris"}', {"city": "Paris"}), ("", {}), ("not json", "not json"), ("[1]", "[1]")],
)
def test_arguments_that_are_no_object_stay_text(written, read):
    call = {"id": "a", "type": "function", "function": {"name": "find", "arguments": written}}
    turns = read_request(messages=[{"role": "assistant", "tool_calls": [call]}, tool_result("a")]).turns
    assert turns[0].calls == (Call(id="a", name="find", arguments=read),)


def test_a_custom_call_is_read_as_text():
    call = {"id": "a", "type": "custom", "custom": {"name": "calculate", "input": '{"not": "read"}'}}
    turns = read_request(messages=[{"role": "assistant", "tool_calls": [call]}, tool_result("a")]).turns
    assert turns[0].calls == (Call(id="a", name="calculate", arguments='{"not": "read"}'),)


def test_a_call_of_old_and_its_result_are_read():
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "find", "content": "found"},
    ]
    assert read_request(messages=messages).turns == (
        RequestTurn(role="assistant", calls=(Call(id="", name="find", arguments={"a": 1}),)),
        RequestTurn(role="user", results=(RequestResult(call_id="", name="find", text="found"),)),
    )


def test_media_parts_are_parsed_by_type():
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    [turn] = read_request(model="gpt-audio", messages=[{"role": "user", "content": content}]).turns
    assert turn.text == "Look:"
    assert turn.media == ("image/png", "image/*", "audio/wav", "application/pdf", "application/octet-stream")


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("response_format", "schema"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}, SCHEMA),
        ({"type": "json_schema", "json_schema": {"name": "person"}}, {}),
    ],
)
def test_the_form_of_the_answer_is_read(response_format, schema):
    messages = [{"role": "user", "content": "Answer in JSON."}]
    assert read_request(messages=messages, response_format=response_format).output_schema == schema


def test_limits_stops_and_seeds_are_read():
    ask = read_request(model="gpt-4.1", max_tokens=5, stop="END", seed=7, n=3)
    assert (ask.max_tokens, ask.stop, ask.seed, ask.candidates) == (5, ("END",), 7, 3)
    assert read_request(model="gpt-4.1", stop=["a", "b"]).stop == ("a", "b")
    assert read_request(max_completion_tokens=9).max_tokens == 9
    plain = read_request()
    assert (plain.max_tokens, plain.stop, plain.seed, plain.candidates) == (None, (), 0, 1)


@pytest.mark.parametrize(
    ("members", "thinks"),
    [
        ({"model": "gpt-4o"}, False),
        ({"model": "o3"}, True),
        ({"model": "gpt-5"}, True),
        ({"model": "gpt-5.1"}, False),
        ({"model": "gpt-5.1", "reasoning_effort": "low"}, True),
        ({"model": "gpt-6-luna"}, True),
        ({"model": "gpt-6-luna", "reasoning_effort": "none"}, False),
        ({"model": "a-name-nobody-knows"}, True),
    ],
)
def test_a_model_thinks_at_its_own_effort(members, thinks):
    assert read_request(**members).thinks is thinks
