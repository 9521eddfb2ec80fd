"""A Chat request whose model is mapped to a Chat-compatible server: what the server requires or refuses is spliced."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation

QUESTION = {"role": "user", "content": "q"}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def translate(server: str, model: str, **members: Any) -> Translation:
    body = {"model": "m", "messages": [QUESTION], **members}
    return translate_request(Call(json.dumps(body).encode(), "m"), "chat", "chat", model=model, server=server)


def send(server: str, model: str, **members: Any) -> dict[str, Any]:
    """Return the members that the server gets, without the model and, if they are the question alone, the messages."""
    result = translate(server, model, **members)
    body = json.loads(result.call.body)
    assert body.pop("model") == model
    # What was adapted is accepted as it is.
    again = translate_request(Call(result.call.body, model), "chat", "chat", model=model, server=server)
    assert json.loads(again.call.body) == json.loads(result.call.body)
    if body["messages"] == [QUESTION]:
        del body["messages"]
    return body


ENABLED, DISABLED = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}
TEMPLATE_OFF = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}, "reasoning_effort": "none"}
THINKING = [
    ("deepseek", "deepseek-v4", {"reasoning_effort": "none"}, DISABLED),
    ("deepseek", "deepseek-v4", {"reasoning_effort": "low"}, ENABLED | {"reasoning_effort": "high"}),
    ("deepseek", "deepseek-v4", {"enable_thinking": False}, DISABLED),
    ("deepseek", "deepseek-v4", {"chat_template_kwargs": {"thinking": True, "x": 1}}, ENABLED),
    ("", "deepseek-v4", {"reasoning": {"enabled": False}}, DISABLED),
    ("qwen", "qwen3.5-plus", ENABLED, {"enable_thinking": True}),
    ("qwen", "qwen3.5-plus", {"reasoning_effort": "high"}, {"enable_thinking": True}),
    ("kimi", "kimi-k3", DISABLED, {"reasoning_effort": "low"}),
    ("glm", "glm-4.7", {"reasoning_effort": "none"}, DISABLED),
    ("minimax", "MiniMax-M3", ENABLED, {"thinking": {"type": "adaptive"}}),
    ("minimax", "MiniMax-M2", {"reasoning_effort": "low"}, {}),
    ("groq", "qwen/qwen3-32b", ENABLED, {"reasoning_effort": "default"}),
    ("together", "deepseek-ai/DeepSeek-V4", DISABLED, {"reasoning": {"enabled": False}}),
    ("openrouter", "openai/gpt-5.6", {"enable_thinking": False}, {"reasoning": {"enabled": False}}),
    ("vllm", "Qwen/Qwen3.5-27B", DISABLED, TEMPLATE_OFF),
    ("mistral", "mistral-small-4", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
]


@pytest.mark.parametrize(("server", "model", "members", "expected"), THINKING)
def test_thinking_is_requested_in_the_form_of_the_server(server, model, members, expected):
    assert send(server, model, **members) == expected
    assert translate(server, model, **members).losses


ACCEPTED = [
    ("deepseek", "deepseek-v4", {"reasoning_effort": "max", "max_tokens": 9}),
    ("deepseek", "deepseek-v4", DISABLED | {"tools": [TOOL], "tool_choice": "required"}),
    ("qwen", "qwen3.5-plus", {"enable_thinking": True, "thinking_budget": 9}),
    ("kimi", "kimi-k2.5", {"thinking": {"type": "enabled", "keep": "all"}}),
    ("vllm", "Qwen/Qwen3.5-27B", {"chat_template_kwargs": {"enable_thinking": False, "x": 1}}),
    ("openrouter", "openai/gpt-5.6", {"reasoning": {"effort": "high", "exclude": True}, "tools": [TOOL]}),
    ("openrouter", "openai/gpt-5.6", {"reasoning_effort": "high", "tools": [TOOL]}),
    ("together", "any", {"response_format": {"type": "json_object"}, "parallel_tool_calls": False, "user": "u"}),
    ("compatible", "deepseek-v4", {"enable_thinking": False, "max_tokens": 9, "seed": 1}),
]


@pytest.mark.parametrize(("server", "model", "members"), ACCEPTED)
def test_what_the_server_takes_stays_byte_for_byte(server, model, members):
    body = b'{ "messages" : [{"role":"user", "content":"q"}], ' + json.dumps(members).encode()[1:]
    result = translate_request(Call(body, "m"), "chat", "chat", model=model, server=server)
    assert result.call.body == body
    assert not result.losses


def test_a_request_for_the_model_itself_is_not_changed():
    body = b'{"model":"deepseek-v4","max_completion_tokens":5,"enable_thinking":false,"messages":[]}'
    result = translate_request(Call(body, "deepseek-v4"), "chat", "chat", server="deepseek")
    assert result.call.body == body


def test_the_token_limit_has_the_name_that_the_server_takes():
    assert send("deepseek", "deepseek-v4", max_completion_tokens=9) == {"max_tokens": 9}
    assert send("kimi", "kimi-k3", max_tokens=9) == {"max_completion_tokens": 9}


REFUSED = [
    ("mistral", "mistral-small-4", {"user": "u"}, "/user"),
    ("mistral", "mistral-small-4", {"service_tier": "flex"}, "/service_tier"),
    ("mistral", "mistral-small-4", {"seed": 1}, "/seed"),
    ("glm", "glm-4.7", {"presence_penalty": 0.5}, "/presence_penalty"),
    ("xai", "grok-4.5", {"stop": ["x"]}, "/stop"),
    ("minimax", "MiniMax-M2", {"reasoning_effort": "low"}, "/reasoning_effort"),
    ("deepseek", "deepseek-v4", {"chat_template_kwargs": {"thinking": True, "x": 1}}, "/chat_template_kwargs/x"),
]


@pytest.mark.parametrize(("server", "model", "members", "where"), REFUSED)
def test_members_that_the_server_refuses_are_removed_and_reported(server, model, members, where):
    assert members.keys().isdisjoint(send(server, model, **members))
    assert where in [loss.where for loss in translate(server, model, **members).losses]


def test_stream_options_are_removed_where_usage_comes_without_them():
    members = {"stream": True, "stream_options": {"include_usage": True}}
    assert send("mistral", "mistral-small-4", **members) == {"stream": True}
    assert [loss.grade for loss in translate("mistral", "mistral-small-4", **members).losses] == ["informational"]


def test_strict_is_removed_from_tools_where_the_server_cannot_enforce_it():
    strict = {"type": "function", "function": {**TOOL["function"], "strict": True}}
    assert send("deepseek", "deepseek-v4", tools=[TOOL, strict])["tools"] == [TOOL, TOOL]
    losses = translate("deepseek", "deepseek-v4", tools=[TOOL, strict]).losses
    assert [(loss.where, loss.grade) for loss in losses] == [("/tools/1/function/strict", "material")]


SYSTEM = {"role": "system", "content": "s"}
PROMPTED = [
    ("deepseek", "deepseek-v4", {"tool_choice": "required"}, "Call one of the tools."),
    ("deepseek", "deepseek-v4", {"tool_choice": TOOL | {"function": {"name": "add"}}}, "Call the tool add."),
    ("glm", "glm-4.7", {"parallel_tool_calls": False}, "Call at most one tool at a time."),
]


@pytest.mark.parametrize("before", [[], [SYSTEM], [SYSTEM, {"role": "developer", "content": "d"}]])
@pytest.mark.parametrize(("server", "model", "members", "text"), PROMPTED)
def test_what_the_server_has_no_member_for_is_requested_after_the_system_messages(server, model, members, text, before):
    turns = [QUESTION, {"role": "assistant", "content": "a"}, QUESTION, QUESTION]
    body = send(server, model, tools=[TOOL], messages=[*before, *turns], **members)
    before = [{**message, "role": "system"} for message in before]
    assert body["messages"] == [*before, {"role": "system", "content": text}, *turns]
    assert body.get("tool_choice", "auto") == "auto"
    assert "parallel_tool_calls" not in body


def test_an_output_schema_is_requested_in_the_prompt_where_the_server_takes_none():
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": PARAMETERS}}
    body = send("deepseek", "deepseek-v4", response_format=form)
    assert body.keys() == {"messages"}
    assert json.dumps(PARAMETERS) in body["messages"][0]["content"]
    assert "/response_format" in [
        loss.where for loss in translate("deepseek", "deepseek-v4", response_format=form).losses
    ]


RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
TURN = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("server", "model", "members", "expected"),
    [
        ("deepseek", "deepseek-v4", {}, {"reasoning_content": ""}),
        ("deepseek", "deepseek-v4", {"reasoning_content": "r"}, {"reasoning_content": "r"}),
        ("deepseek", "deepseek-v4", {"reasoning_content": None}, {"reasoning_content": ""}),
        ("deepseek", "deepseek-v4", {"reasoning": "r"}, {"reasoning_content": "r"}),
        ("kimi", "kimi-k2.5", {}, {"reasoning_content": ""}),
        ("openrouter", "deepseek/deepseek-v4", {}, {}),
        ("vllm", "deepseek-v4", {"reasoning_content": "r"}, {"reasoning_content": "r"}),
    ],
)
def test_turns_with_calls_get_the_reasoning_member_that_the_server_requires(server, model, members, expected):
    messages = [QUESTION, TURN | members, RESULT, ANSWER, QUESTION]
    body = send(server, model, messages=messages)
    assert body["messages"] == [QUESTION, TURN | expected, RESULT, ANSWER, QUESTION]


def test_kimi_k3_gets_the_reasoning_member_on_every_turn_of_the_model():
    body = send("kimi", "kimi-k3", messages=[QUESTION, ANSWER, QUESTION])
    assert body["messages"] == [QUESTION, ANSWER | {"reasoning_content": ""}, QUESTION]


@pytest.mark.parametrize(
    ("server", "model"),
    [("deepseek", "deepseek-v4"), ("qwen", "qwen3.5-plus"), ("kimi", "kimi-k2.6"), ("glm", "glm-4.7")],
)
def test_a_developer_message_gets_the_role_that_the_server_knows(server, model):
    messages = [
        {"role": "developer", "content": "Be brief."},
        QUESTION,
        {"role": "developer", "content": '"developer"'},
    ]
    sent = send(server, model, messages=messages)["messages"]
    assert sent == [{**messages[0], "role": "system"}, QUESTION, {**messages[2], "role": "system"}]
    losses = translate(server, model, messages=messages).losses
    assert [(loss.kind, loss.where, loss.grade) for loss in losses if loss.where.endswith("/role")] == [
        ("approximated", "/messages/0/role", "informational"),
        ("approximated", "/messages/2/role", "informational"),
    ]


@pytest.mark.parametrize(("server", "model"), [("vllm", "Qwen/Qwen3.5-27B"), ("openrouter", "openai/gpt-5.6")])
def test_a_developer_message_stays_where_the_server_knows_the_role(server, model):
    messages = [{"role": "developer", "content": "Be brief."}, QUESTION]
    assert send(server, model, messages=messages)["messages"] == messages


def test_names_of_speakers_are_removed_where_the_server_has_none():
    tools = [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "3"}]
    messages = [{**QUESTION, "name": "ada"}, *tools, {**QUESTION, "name": "bob"}]
    result = translate("glm", "glm-4.7", messages=messages)
    assert json.loads(result.call.body)["messages"] == [QUESTION, *tools, QUESTION]
    assert [(loss.kind, loss.where) for loss in result.losses] == [
        ("dropped", "/messages/0/name"),
        ("dropped", "/messages/3/name"),
    ]
    assert send("vllm", "Qwen/Qwen3.5-27B", messages=messages)["messages"] == messages


def test_reasoning_that_is_added_is_an_informational_loss_and_every_other_byte_stays():
    body = b'{"messages" : [ {"role":"user","content":"q"} ,\n{"role":"assistant","tool_calls":[ %b ]} ]}'
    body %= json.dumps(CALL).encode()
    result = translate_request(Call(body, "m"), "chat", "chat", model="deepseek-v4", strict=True)
    assert result.call.body == body.replace(b" ]} ]}", b' ],"reasoning_content":""} ]}')
    where = "/messages/1/reasoning_content"
    assert [(loss.where, loss.grade) for loss in result.losses] == [(where, "informational")]


def test_a_material_loss_is_refused_in_strict_mode():
    body = json.dumps({"messages": [QUESTION], "seed": 1}).encode()
    with pytest.raises(Problem) as caught:
        translate_request(Call(body, "m"), "chat", "chat", model="mistral-small-4", server="mistral", strict=True)
    assert caught.value.where == "/seed"


@pytest.mark.parametrize("messages", [b"7", b"[7]", b'[{"role":"assistant","tool_calls":{"a":1}}]', b"null"])
def test_a_history_that_is_not_valid_is_left_to_the_server(messages):
    body = b'{"messages":%b}' % messages
    assert translate_request(Call(body, "m"), "chat", "chat", model="deepseek-v4").call.body == body
