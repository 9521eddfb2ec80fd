"""Each rule of the Chat-compatible servers rejects what breaks it, and nothing that keeps it."""

import json
from typing import Any

import pytest

from dragoman.simulator.apis import APIS, SERVERS
from dragoman.simulator.apis.api import AcceptedRequest, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, Call, TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from dragoman.simulator.apis.servers import ROWS, RULES
from dragoman.simulator.apis.servers.hosts import HOSTS as ROUTERS
from dragoman.simulator.apis.servers.vendors import VENDORS
from shelf import exchanges, needs_shelf

MODELS = {"deepseek": "deepseek-v4-flash", "kimi": "kimi-k2.6", "glm": "glm-5.2", "openrouter": "anthropic/claude-5"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
QUESTION = {"role": "user", "content": "q"}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "3"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SIGNER = TokenSigner(3)
IMAGE = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
FILE = [{"type": "file", "file": {"file_id": "f"}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
OFF = {"thinking": {"type": "disabled"}}
REASONING = {"reasoning": {"enabled": True}}
DEVELOPER = [{"role": "developer", "content": "d"}, QUESTION]


def judge(server: str, body: dict[str, Any]) -> AcceptedRequest | Violation:
    whole = {"model": MODELS.get(server, "m"), "messages": [QUESTION], **body}
    return APIS[server].accept(json.dumps(whole).encode(), CheckContext(model=""), SIGNER)


def turns(**members: Any) -> list[dict[str, Any]]:
    return [QUESTION, {**CALLED, **members}, RESULT]


def detail(text: str, signed: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "signature": SIGNER.issue(signed, "n")}


STRICT = {"tools": [{"type": "function", "function": {**TOOL["function"], "strict": True}}]}
REJECTED: list[tuple[str, str, dict[str, Any]]] = [
    ("deepseek", "server.enum", {"tools": [{"type": "custom", "custom": {"name": "a"}}]}),
    ("deepseek", "server.type", {"max_tokens": "9"}),
    ("qwen", "server.bounds", {"thinking_budget": 0}),
    ("vllm", "server.required", {"messages": [{"role": "tool", "content": "3"}]}),
    ("kimi", "server.unknown-field", {"messages": [{**QUESTION, "mood": "good"}]}),
    ("deepseek", "server.tool-result-unasked", {"messages": [QUESTION, RESULT]}),
    ("kimi", "server.tool-result-unknown-id", {**OFF, "messages": [*turns()[:2], {**RESULT, "tool_call_id": "b"}]}),
    ("glm", "server.tool-calls-unanswered", {"messages": turns()[:2]}),
    *((server, f"{server}.role", {"messages": DEVELOPER}) for server in ("deepseek", "kimi", "glm", "qwen")),
    ("deepseek", "deepseek.part", {"messages": [{"role": "user", "content": IMAGE}]}),
    ("deepseek", "deepseek.tool-choice", {"tools": [TOOL], "tool_choice": "required"}),
    ("deepseek", "deepseek.reasoning", {"messages": turns()}),
    ("deepseek", "deepseek.response-format", {"response_format": SCHEMA}),
    ("kimi", "kimi.reasoning", {"messages": turns()}),
    ("kimi", "kimi.reasoning", {"model": "kimi-k3", "messages": [QUESTION, {"role": "assistant", "content": "a"}]}),
    ("kimi", "kimi.tool-choice", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "add"}}}),
    ("kimi", "kimi.parameter", {"seed": 1}),
    ("kimi", "kimi.parameter", {"top_k": 1}),
    ("kimi", "kimi.parameter", {"reasoning_effort": "high"}),
    ("kimi", "kimi.parameter", {"model": "kimi-k3", **OFF}),
    ("kimi", "kimi.response-format", {"response_format": SCHEMA}),
    ("glm", "glm.parameter", {"max_completion_tokens": 9}),
    ("glm", "glm.parameter", STRICT),
    ("glm", "glm.parameter", {"messages": [{**QUESTION, "name": "ada"}]}),
    ("glm", "glm.thinking", {"model": "glm-5.3", **OFF}),
    ("glm", "glm.thinking", {"model": "glm-5.3", "reasoning_effort": "medium"}),
    ("glm", "glm.response-format", {"response_format": SCHEMA}),
    ("qwen", "qwen.parameter", STRICT),
    ("qwen", "qwen.parameter", {"reasoning_effort": "low"}),
    ("qwen", "qwen.parameter", {"messages": [{"role": "user", "content": FILE}]}),
    ("vllm", "vllm.tool-choice", {"tool_choice": "auto"}),
    ("openrouter", "openrouter.reasoning", {**REASONING, "messages": turns()}),
    ("openrouter", "openrouter.reasoning", {"messages": turns(reasoning_details=[detail("a", "b")])}),
]
ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("deepseek", {**OFF, "tools": [TOOL], "tool_choice": "required"}),
    ("deepseek", {"messages": turns(reasoning_content="")}),
    ("deepseek", {**OFF, "messages": turns()}),
    ("deepseek", {"invented": 1, "response_format": {"type": "json_object"}}),
    ("kimi", {"messages": turns(reasoning_content="")}),
    ("kimi", {"model": "kimi-k3", "reasoning_effort": "low"}),
    ("glm", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "add"}}, "max_tokens": 9}),
    ("qwen", {"enable_thinking": True, "thinking_budget": 100}),
    ("vllm", {"messages": DEVELOPER}),
    ("vllm", {"messages": turns()[:2]}),
    ("openrouter", {**REASONING, "messages": turns(reasoning_details=[detail("a", "a")])}),
    ("openrouter", {"messages": turns()}),
]


@pytest.mark.parametrize(("server", "rule", "body"), REJECTED)
def test_a_server_rejects_what_breaks_its_rule(server, rule, body):
    found = judge(server, body)
    assert isinstance(found, Violation), "accepted"
    assert found.rule == rule
    assert found.message


@pytest.mark.parametrize(("server", "body"), ACCEPTED)
def test_a_server_accepts_what_keeps_its_rules(server, body):
    found = judge(server, body)
    assert isinstance(found, AcceptedRequest), found


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b'{"model": 1}'])
@pytest.mark.parametrize("server", SERVERS)
def test_a_body_that_is_no_request_is_rejected(server, body):
    assert isinstance(APIS[server].accept(body, CheckContext(model=""), SIGNER), Violation)


def test_every_rule_has_an_example_and_every_server_a_row():
    assert {rule.name for rule in RULES} == {rule for _, rule, _ in REJECTED} | {"server.json"}
    assert tuple(row.name for row in ROWS) == SERVERS == tuple(row.name for row in (*VENDORS, *ROUTERS))
    assert all(rule.says and rule.source for rule in RULES)


HOSTS = {"api.z.ai": "glm", "deepseek": "deepseek", "api.deepseek.com": "deepseek", "alibaba": "qwen"}


@needs_shelf
def test_requests_that_were_recorded_as_answered_are_accepted():
    judged = 0
    for exchange in exchanges("openai_chat"):
        server, request = HOSTS.get(exchange.get("host", "")), exchange.get("request")
        if (
            server is None
            or exchange.get("status") != 200
            or not isinstance(request, dict)
            or "messages" not in request
        ):
            continue
        # The names of models on the shelf are those of their time: what they support is not in the request.
        found = APIS[server].accept(json.dumps(request).encode(), CheckContext(model="", recorded=True), SIGNER)
        assert isinstance(found, AcceptedRequest), (exchange["id"], found)
        judged += 1
    assert judged > 10


def test_a_forced_choice_is_made_by_the_model_of_a_server_that_takes_it():
    found = judge("glm", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "add"}}})
    assert isinstance(found, AcceptedRequest)
    answer = Answer(calls=(Call(id="1", name="add", arguments={}),), end="calls")
    reply = json.loads(APIS["glm"].render_reply(answer, found, ReplyMeta(id="a" * 24, created=1, signer=SIGNER)))
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
