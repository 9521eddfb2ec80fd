"""Definitions, choices and messages on their own, from and to each dialect."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Data, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.interpreter.core_request import choice_from, choice_to, messages_from, messages_to, tools_from, tools_to
from interpreter.workbench import build_message, encode

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = Tool(name="f", description="d", parameters=encode(SCHEMA))
TOOLS = {
    "chat": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
    "responses": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}],
    "messages": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
    "gemini": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": SCHEMA}]}],
}
WRITTEN = TOOLS | {"responses": [{**TOOLS["responses"][0], "strict": False}]}
FORCED = {
    "chat": {"type": "function", "function": {"name": "f"}},
    "responses": {"type": "function", "name": "f"},
    "messages": {"type": "tool", "name": "f"},
    "gemini": {"mode": "ANY", "allowedFunctionNames": ["f"]},
}
CALL = ToolCall(id="a", name="f", arguments='{"a":"x"}')
MODELS = {"chat": "gpt-4.1", "responses": "gpt-5.6", "messages": "claude-opus-5", "gemini": "gemini-2.5-pro"}
HISTORY = {
    "chat": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a":"x"}'}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ],
    "responses": [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"a":"x"}'},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
    ],
    "messages": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"a": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": "x"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
    ],
}


@pytest.mark.parametrize("dialect", TOOLS)
def test_tools_are_read_and_written(dialect):
    assert tools_from(dialect, encode(TOOLS[dialect])) == (TOOL,)
    written, losses = tools_to(dialect, [TOOL], MODELS[dialect])
    assert (json.loads(written), losses) == (WRITTEN[dialect], ())


@pytest.mark.parametrize("dialect", FORCED)
def test_a_choice_is_read_and_written(dialect):
    choice = choice_from(dialect, encode(FORCED[dialect]))
    assert choice == ToolChoice(mode="required", names=("f",))
    written, losses = choice_to(dialect, choice, [TOOL], MODELS[dialect])
    assert (json.loads(written), losses) == (FORCED[dialect], ())


@pytest.mark.parametrize(
    ("dialect", "written", "actual"),
    [
        ("chat", "auto", [("dropped", "sent in another field of the request: /parallel_tool_calls is false")]),
        ("responses", "auto", [("dropped", "sent in another field of the request: /parallel_tool_calls is false")]),
        ("messages", {"type": "auto", "disable_parallel_tool_use": True}, []),
    ],
)
def test_parallel_off_is_a_loss_if_the_choice_cannot_express_it(dialect, written, actual):
    choice = ToolChoice(mode="auto", parallel=False)
    found, losses = choice_to(dialect, choice, [TOOL], MODELS[dialect])
    assert (json.loads(found), [(loss.kind, loss.what) for loss in losses]) == (written, actual)


@pytest.mark.parametrize("dialect", FORCED)
def test_parallel_calls_are_the_default_of_every_dialect(dialect):
    assert choice_to(dialect, ToolChoice(mode="auto", parallel=True), [TOOL], MODELS[dialect])[1] == ()


@pytest.mark.parametrize("dialect", HISTORY)
def test_calls_and_results_are_written(dialect):
    history = [
        build_message("assistant", CALL),
        build_message("user", ToolResult(call_id="a", content=(Text(text="ok"),))),
    ]
    written, losses = messages_to(dialect, history, MODELS[dialect])
    actual = json.loads(written)
    if dialect == "chat":
        actual[0].setdefault("content", None)
    assert (actual, losses) == (HISTORY[dialect], ())


@pytest.mark.parametrize("dialect", HISTORY)
def test_calls_and_results_are_read(dialect):
    gemini = dialect == "gemini"
    call = ToolCall(id="" if gemini else "a", name="f", arguments=CALL.arguments)
    content = Data(json=b'{"output":"ok"}') if gemini else Text(text="ok")
    result = ToolResult(call_id="" if gemini else "a", name="f" if gemini else "", content=(content,))
    assert messages_from(dialect, encode(HISTORY[dialect])) == (
        build_message("assistant", call),
        build_message("user", result),
    )


@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini"])
def test_a_fragment_may_start_and_end_with_any_role_and_no_tools_are_added(dialect):
    written, losses = messages_to(dialect, [build_message("assistant", "yes")], MODELS[dialect])
    assert len(json.loads(written)) == 1
    assert losses == ()


def test_a_fragment_is_written_for_its_model():
    words = [
        build_message("assistant", ToolCall(id="a", name="f", arguments="{}")),
        build_message("user", ToolResult(call_id="a")),
    ]
    assert "id" in json.loads(messages_to("gemini", words, "gemini-3-pro")[0])[0]["parts"][0]["functionCall"]
    assert "id" not in json.loads(messages_to("gemini", words, "gemini-2.5-pro")[0])[0]["parts"][0]["functionCall"]


def test_losses_are_returned():
    memory = NativeTool(dialect="messages", raw=b"{}", where="/tools/0")
    assert tools_to("chat", [memory]) == (b"[]", (Loss("/tools/0", "the target has no such kind of tool", "dropped"),))


def test_empty_input_gives_empty_output():
    assert tools_to("messages", []) == (b"[]", ())
    assert choice_to("messages", ToolChoice(), [TOOL]) == (b"null", ())
    assert messages_to("chat", []) == (b"[]", ())
    assert choice_from("chat", b"null") is None


@pytest.mark.parametrize(
    ("read", "where"),
    [(tools_from, "/tools"), (choice_from, "/tool_choice"), (messages_from, "/messages")],
)
def test_what_is_not_json_is_a_problem_at_its_place(read, where):
    with pytest.raises(Problem) as caught:
        read("chat", b"[")
    assert caught.value == Problem("invalid_request", "the value is not JSON", where=where)


def test_a_wrong_fragment_is_a_problem():
    with pytest.raises(Problem) as caught:
        messages_from("chat", b"3")
    assert (caught.value.kind, caught.value.where) == ("invalid_request", "/messages")


@pytest.mark.parametrize("dialect", TOOLS)
def test_nothing_is_written_as_nothing(dialect):
    assert messages_to(dialect, []) == (b"[]", ())
    assert tools_to(dialect, []) == (b"[]", ())


@pytest.mark.parametrize("dialect", TOOLS)
def test_calls_without_declared_tools_are_no_loss_in_a_fragment(dialect):
    history = [
        build_message("assistant", CALL),
        build_message("user", ToolResult(call_id="a", name="f", content=(Text(text="ok"),))),
    ]
    written, losses = messages_to(dialect, history, MODELS[dialect])
    assert (json.loads(written), losses) == (HISTORY[dialect], ())
