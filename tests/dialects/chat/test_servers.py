"""What is sent to each Chat-compatible server; the expected members are those of the servers' documentation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialects.chat.chunks import STOP, chunk
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.servers import SERVERS
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation

TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
DOCS = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "add-an-upstream.md"


def translate(model: str, server: str = "", **members: Any) -> Translation:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], **members}
    return translate_request(Call(json.dumps(body).encode(), "m"), "messages", "chat", model=model, server=server)


def send(model: str, server: str = "", **members: Any) -> dict[str, Any]:
    return json.loads(translate(model, server, **members).call.body)


OFF = {"thinking": {"type": "disabled"}}
HIGH = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
LOW = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 9000}
ENABLED, DISABLED = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}
TEMPLATE_ON = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
TEMPLATE_OFF = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}, "reasoning_effort": "none"}
THINKING = [
    ("deepseek", "deepseek-v4", OFF, DISABLED),
    ("deepseek", "deepseek-v4", HIGH, ENABLED | {"reasoning_effort": "high"}),
    ("deepseek", "deepseek-v4", LOW, ENABLED | {"reasoning_effort": "high"}),
    ("qwen", "qwen3.5-plus", OFF, {"enable_thinking": False}),
    ("qwen", "qwen3.5-plus", HIGH, {"enable_thinking": True}),
    ("qwen", "qwen3.5-plus", BUDGET, {"enable_thinking": True, "thinking_budget": 4096}),
    ("kimi", "kimi-k2.5", OFF, DISABLED),
    ("kimi", "kimi-k2.5", HIGH, ENABLED),
    ("kimi", "kimi-k3", OFF, {"reasoning_effort": "low"}),
    ("kimi", "kimi-k3", HIGH, {"reasoning_effort": "high"}),
    ("glm", "glm-4.7", OFF, DISABLED),
    ("glm", "glm-5.2", HIGH, ENABLED | {"reasoning_effort": "high"}),
    ("glm", "glm-5.3", HIGH, {"reasoning_effort": "high"}),
    ("minimax", "MiniMax-M3", OFF, {"thinking": {"type": "disabled"}, "reasoning_split": True}),
    ("minimax", "MiniMax-M2", HIGH, {"reasoning_split": True}),
    ("groq", "openai/gpt-oss-120b", HIGH, {"reasoning_effort": "high"}),
    ("groq", "qwen/qwen3-32b", OFF, {"reasoning_effort": "none"}),
    ("groq", "qwen/qwen3-32b", HIGH, {"reasoning_effort": "default"}),
    ("together", "deepseek-ai/DeepSeek-V4", OFF, {"reasoning": {"enabled": False}}),
    ("openrouter", "anthropic/claude-sonnet-5", HIGH, {"reasoning": {"effort": "high"}}),
    ("openrouter", "anthropic/claude-sonnet-5", BUDGET, {"reasoning": {"max_tokens": 4096}}),
    ("openrouter", "anthropic/claude-sonnet-5", OFF, {"reasoning": {"enabled": False}}),
    ("vllm", "Qwen/Qwen3.5-27B", OFF, TEMPLATE_OFF),
    ("vllm", "Qwen/Qwen3.5-27B", HIGH, TEMPLATE_ON | {"reasoning_effort": "high"}),
    ("vllm", "Qwen/Qwen3.5-27B", BUDGET, TEMPLATE_ON | {"thinking_token_budget": 4096}),
    ("llama.cpp", "qwen3", OFF, TEMPLATE_OFF),
    ("sglang", "qwen3", LOW, TEMPLATE_ON | {"reasoning_effort": "low"}),
    ("ollama", "qwen3", OFF, {"reasoning_effort": "none"}),
    ("ollama", "qwen3", HIGH, {"reasoning_effort": "high"}),
    ("mistral", "mistral-small-4", LOW, {"reasoning_effort": "high"}),
    ("compatible", "deepseek-v4", HIGH, {"reasoning_effort": "high"}),
]
MEMBERS = (
    "thinking",
    "reasoning",
    "reasoning_effort",
    "reasoning_split",
    "enable_thinking",
    "thinking_budget",
    "thinking_token_budget",
    "chat_template_kwargs",
)


@pytest.mark.parametrize(("server", "model", "members", "expected"), THINKING)
def test_thinking_is_requested_in_the_form_of_the_server(server, model, members, expected):
    body = send(model, server, **members)
    assert {member: body[member] for member in MEMBERS if member in body} == expected


def reply(**members: Any) -> bytes:
    call = {"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": "a", "tool_calls": [call], **members}
    return json.dumps({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()


def answer(client: str, body: bytes) -> bytes:
    """The next request of a client that sends a reply back with the result of its call."""
    value = json.loads(body)
    if client == "messages":
        call = next(block for block in value["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "1"}
        turns = [{"role": "assistant", "content": value["content"]}, {"role": "user", "content": [result]}]
        return json.dumps({"model": "m", "max_tokens": 9, "messages": turns, "tools": [TOOL]}).encode()
    if client == "responses":
        call = next(item for item in value["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}
        tool = {"type": "function", "name": "add", "parameters": TOOL["input_schema"]}
        return json.dumps({"model": "m", "input": [*value["output"], result], "tools": [tool]}).encode()
    content = value["candidates"][0]["content"]
    result = {"functionResponse": {"name": "add", "response": {"output": "1"}}}
    turns = [{"role": "user", "parts": [{"text": "q"}]}, content, {"role": "user", "parts": [result]}]
    return json.dumps({"contents": turns, "tools": [{"functionDeclarations": [{"name": "add"}]}]}).encode()


REASONING = ("reasoning", "reasoning_content", "reasoning_text", "thinking")


def send_back(client: str, server: str, model: str, **members: Any) -> list[dict[str, Any]]:
    """Return the messages that the server gets after it sent a message with these members."""
    translated = translate_response(reply(**members), "chat", client)
    call = Call(answer(client, translated.body), "m")
    sent = translate_request(call, client, "chat", model=model, server=server)
    return json.loads(sent.call.body)["messages"]


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
@pytest.mark.parametrize("member", ["reasoning", "reasoning_content", "reasoning_text", "thinking"])
@pytest.mark.parametrize("server", ["vllm", "deepseek", "groq", "compatible", ""])
def test_reasoning_returns_under_the_name_it_came_with(client, member, server):
    messages = send_back(client, server, "deepseek-v4", **{member: "Hm."})
    (assistant,) = [message for message in messages if message["role"] == "assistant"]
    assert {name: value for name, value in assistant.items() if name in REASONING} == {member: "Hm."}


@pytest.mark.parametrize("server", ["vllm", "groq", "ollama", "deepseek", "kimi", "compatible"])
def test_reasoning_without_an_envelope_is_sent_under_the_name_of_the_server(server):
    member = "reasoning" if server in {"vllm", "groq", "ollama"} else "reasoning_content"
    value = json.loads(answer("responses", translate_response(reply(reasoning_text="Hm."), "chat", "responses").body))
    for item in value["input"]:
        item.pop("encrypted_content", None)
    sent = translate_request(Call(json.dumps(value).encode(), "m"), "responses", "chat", model="m", server=server)
    messages = json.loads(sent.call.body)["messages"]
    (assistant,) = [message for message in messages if message["role"] == "assistant"]
    assert {name: value for name, value in assistant.items() if name.startswith("reasoning")} == {member: "Hm."}


@pytest.mark.parametrize("member", ["reasoning", "reasoning_content", "reasoning_text", "thinking"])
def test_streamed_reasoning_returns_from_a_responses_client_under_the_name_it_came_with(member):
    translator = StreamTranslator("chat", "responses")
    text = translator.feed(chunk({member: "H"}) + chunk({member: "m."}) + chunk({"content": "a"}) + STOP).decode()
    (completed,) = [line for line in text.splitlines() if line.startswith('data: {"type":"response.completed"')]
    output = json.loads(completed.removeprefix("data: "))["response"]["output"]
    question = {"role": "user", "content": "q"}
    body = json.dumps({"model": "m", "input": [question, *output, question]}).encode()
    sent = translate_request(Call(body, "m"), "responses", "chat", model="m", server="groq")
    assert json.loads(sent.call.body)["messages"][1] == {"role": "assistant", "content": "a", member: "Hm."}


def test_reasoning_of_a_chat_server_does_not_reach_openai():
    translated = translate_response(reply(reasoning="Hm."), "chat", "responses")
    sent = translate_request(Call(answer("responses", translated.body), "m"), "responses", "responses")
    assert "reasoning" not in [item.get("type") for item in json.loads(sent.call.body)["input"]]
    assert [loss.where for loss in sent.losses] == ["/input/0"]


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
def test_reasoning_in_the_content_list_returns_there(client):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    messages = send_back(client, "mistral", "mistral-small-4", content=[thinking, {"type": "text", "text": "a"}])
    (assistant,) = [message for message in messages if message["role"] == "assistant"]
    assert assistant["content"] == [thinking, {"type": "text", "text": "a"}]
    assert "reasoning_content" not in assistant


FOREIGN_TURN = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]},
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": "again"},
]


@pytest.mark.parametrize(
    ("server", "model", "expected"),
    [
        ("deepseek", "deepseek-v4", ["", None]),
        ("kimi", "kimi-k2.5", ["", None]),
        ("kimi", "kimi-k3", ["", ""]),
        ("qwen", "qwen3.5-plus", [None, None]),
        ("", "deepseek-v4", ["", None]),
        ("compatible", "deepseek-v4", [None, None]),
    ],
)
def test_a_server_that_requires_reasoning_on_earlier_turns_gets_the_empty_string(server, model, expected):
    messages = send(model, server, messages=FOREIGN_TURN, tools=[TOOL])["messages"]
    turns = [message for message in messages if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in turns] == expected


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
@pytest.mark.parametrize(
    ("model", "server", "expected"),
    [
        ("kimi-k2.5", "", "functions.add:0"),
        ("moonshotai/kimi-k2-thinking", "vllm", "functions.add:0"),
        ("kimi-k3", "sglang", "add:0"),
    ],
)
def test_the_call_ids_of_kimi_are_restored_for_it(client, model, server, expected):
    messages = send_back(client, server, model)
    (assistant,) = [message for message in messages if message["role"] == "assistant"]
    (result,) = [message for message in messages if message["role"] == "tool"]
    assert [call["id"] for call in assistant["tool_calls"]] == [result["tool_call_id"]] == [expected]


def count_calls(turns: int, size: int) -> list[dict[str, Any]]:
    """A conversation whose calls have ids of another vendor."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x" * size}]
    for number in range(turns):
        calls = [{"type": "tool_use", "id": f"toolu_{number}_{at}", "name": "add", "input": {}} for at in (0, 1)]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "1"} for call in reversed(calls)]
        messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    return messages


@pytest.mark.parametrize("size", [1, 80_000], ids=["short", "from the cache of long conversations"])
def test_calls_are_numbered_over_the_whole_conversation(size):
    for turns in (1, 2, 5):
        messages = send("kimi-k2.5", messages=count_calls(turns, size), tools=[TOOL])["messages"]
        ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        assert ids == [f"functions.add:{number}" for number in range(2 * turns)]
        assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


FORCED = {"tools": [TOOL], "tool_choice": {"type": "any"}}


def test_a_forced_call_is_requested_in_the_prompt_where_the_server_rejects_it():
    for server in ("kimi", "glm", "ollama", "deepseek"):
        translation = translate("m", server, **FORCED)
        assert json.loads(translation.call.body)["tool_choice"] == "auto"
        assert "/tool_choice" in {loss.where for loss in translation.losses} | {"/tool_choice/type"}
    assert send("m", "deepseek", **FORCED, **OFF)["tool_choice"] == "required"
    assert send("m", "vllm", **FORCED)["tool_choice"] == "required"


def test_members_that_a_server_does_not_know_are_not_sent():
    assert "parallel_tool_calls" not in send(
        "m", "ollama", tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True}
    )
    assert "stream_options" not in send("m", "mistral", stream=True)
    assert "stream_options" in send("m", "vllm", stream=True)
    assert send("m", "minimax")["max_completion_tokens"] == send("m", "openrouter")["max_tokens"] == 9
    assert send("openai/gpt-5.6", "openrouter")["max_tokens"] == 9


def test_a_row_changes_only_traits_that_exist_and_every_host_names_one_server():
    places = [host for row in SERVERS.values() for host in row.hosts]
    assert len(set(places)) == len(places)
    for name in SERVERS:
        for model in ("m", *(pattern.replace("*", "") for row in SERVERS.values() for pattern, _ in row.variants)):
            assert traits_for("chat", model, "", name).dialect == DIALECT.name


def test_the_table_of_the_guide_has_every_server_with_its_hosts():
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*)\|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: set(re.findall(r"`([^`]+)`", hosts)) for name, hosts in rows[1:]} == {
        name: set(row.hosts) for name, row in SERVERS.items()
    }
