"""An upstream's error about a tool or a call reaches the client with its reason, its pointer and a code."""

import json
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from server.asking import CLIENTS, parse_error, send_request

GOOD = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMAS = {"first": GOOD, "second.tool": GOOD}
"""The second has a name that OpenAI and Anthropic do not take: there it has another."""
KINDS = {"gem": "gemini", "claude": "anthropic", "gpt": "openai", "resp": "openai-responses"}
PLACES = {
    "chat": "tools[1].function.parameters",
    "responses": "tools[1].parameters",
    "messages": "",
    "gemini": "tools[0].functionDeclarations[1].parameters_json_schema",
}
FOREIGN = [
    (client, model)
    for client in CLIENTS
    for model, home in (("gem", "gemini"), ("claude", "messages"), ("gpt", "chat"), ("resp", "responses"))
    if client != home
]


def refusal(path: str, words: str, where: str) -> bytes:
    """Say something is wrong as the vendor does whose API that is: `where` is its own way to name the place."""
    if "generateContent" in path:
        violation = {"field": where, "description": words}
        details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
        error: Any = {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": details}
        return json.dumps({"error": error}).encode()
    if path.endswith("/messages"):
        error = {"type": "invalid_request_error", "message": f"{where}: {words}"}
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    error = {"message": words, "type": "invalid_request_error", "param": where, "code": "invalid_function_parameters"}
    return json.dumps({"error": error}).encode()


class Vendor:
    """An upstream that rejects everything with the given message and field."""

    base_url = ""
    words = "the schema is not to our liking"
    where = ""

    async def handle(self, exchange: Exchange) -> None:
        body = refusal(exchange.request.path, self.words, self.where)
        await exchange.send(400, {"content-type": "application/json"}, body)


@pytest.fixture(scope="module")
def vendor() -> Generator[Vendor]:
    found = Vendor()
    with run_in_thread(lambda: listen(found.handle), "vendor") as server:
        found.base_url = server.base_url
        yield found


@pytest.fixture
def refusing(serve, vendor):
    """A gateway before that vendor, in each of its forms."""
    tables = {
        f"no-{name}": UpstreamTable(kind=kind, base_url=vendor.base_url + ("/v1" if "openai" in kind else ""))
        for name, kind in KINDS.items()
    }
    models = {"gem": "gemini-3.8-flash", "claude": "claude-opus-4-8", "gpt": "gpt-5.2", "resp": "gpt-5.2"}
    return serve(upstreams=tables, models={f"no-{name}": (f"no-{name}/{model}",) for name, model in models.items()})


TOOL_PLACES = {
    "gem": "tools[0].function_declarations[1].parameters_json_schema",
    "claude": "tools.1.custom.input_schema",
    "gpt": "tools[1].function.parameters",
    "resp": "tools[1].parameters",
}


@pytest.mark.parametrize(("client", "model"), FOREIGN)
def test_a_tool_that_an_upstream_refuses_is_named_by_the_clients_own_place(refusing, vendor, client, model):
    vendor.where, vendor.words = TOOL_PLACES[model], "the schema is not to our liking"
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, client, f"no-{model}", SCHEMAS)
    error = parse_error(raised.value)
    assert (error.status, error.code, error.param) == (400, "invalid_tool", PLACES[client])
    assert "the schema is not to our liking" in error.message


HISTORIES: dict[str, list[Any]] = {
    "chat": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "first", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "responses": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "first", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "first", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "first", "args": {}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "first", "response": {"a": 1}}}]},
    ],
}  # fmt: skip
CALL_PLACES = {
    "gem": "contents[1].parts[0].function_call",
    "claude": "messages.1.content.0.tool_use.input",
    "gpt": "messages[1].tool_calls[0].function.arguments",
    "resp": "input[1].arguments",
}
CALL_AT = {
    "chat": "messages[1].tool_calls[0]",
    "responses": "input[1]",
    "messages": "",
    "gemini": "contents[1].parts[0]",
}


@pytest.mark.parametrize(("client", "model"), FOREIGN)
def test_a_call_that_an_upstream_refuses_is_named_by_the_clients_own_place(refusing, vendor, client, model):
    vendor.where, vendor.words = CALL_PLACES[model], "these arguments are not to our liking"
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, client, f"no-{model}", SCHEMAS, HISTORIES[client])
    error = parse_error(raised.value)
    assert (error.status, error.code, error.param) == (400, "invalid_tool_call", CALL_AT[client])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("claude", "`tool_use` ids were found without `tool_result` blocks immediately after: c1."),
        ("gpt", "An assistant message with 'tool_calls' must be followed by tool messages: c1"),
        ("resp", "No tool output found for function call c1."),
        ("gem", "the number of function response parts is not that of the function call parts of the turn c1"),
    ],
)
def test_a_message_about_a_call_is_enough_to_classify_the_error(refusing, vendor, model, words):
    vendor.where, vendor.words = "", words
    client = "responses" if model == "gpt" else "chat"
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, client, f"no-{model}", SCHEMAS, HISTORIES[client])
    error = parse_error(raised.value)
    assert (error.code, error.param) == ("invalid_tool_call", CALL_AT[client])
    assert words in error.message


def test_what_is_about_neither_has_no_such_code(refusing, vendor):
    vendor.where, vendor.words = "generation_config.temperature", "temperature must be at most 2"
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, "chat", "no-gem", SCHEMAS)
    assert parse_error(raised.value).code == ""


@pytest.mark.parametrize(
    ("client", "model"), [("chat", "gpt"), ("responses", "resp"), ("messages", "claude"), ("gemini", "gem")]
)
def test_in_the_same_dialect_the_vendors_message_is_unchanged(refusing, vendor, client, model):
    vendor.where, vendor.words = TOOL_PLACES[model], "the schema is not to our liking"
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, client, f"no-{model}", SCHEMAS)
    error = parse_error(raised.value)
    own = {"chat": "invalid_function_parameters", "responses": "invalid_function_parameters", "gemini": ""}
    assert error.code == own.get(client, "invalid_tool")
    assert error.param == ("" if client == "messages" else TOOL_PLACES[model])


@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_the_simulators_own_refusal_of_too_many_tools_is_about_tools(gateway, refusing, vendor, client):
    tools = [{"type": "function", "function": {"name": f"tool_{at}", "parameters": GOOD}} for at in range(129)]
    body = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    url = f"{gateway.simulator.base_url}/v1/chat/completions"
    refused = httpx2.post(url, json=body, headers={"authorization": "Bearer k"})
    assert refused.status_code == 400
    refusal = refused.json()["error"]
    # The gateway sends no more tools than a target takes, so this is what it would get from one that takes fewer.
    vendor.where, vendor.words = refusal["param"], refusal["message"]
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(refusing, client, "no-gpt", SCHEMAS)
    error = parse_error(raised.value)
    assert (error.status, error.code) == (400, "invalid_tool")
    assert error.param in {"", "tools", "tools[0].functionDeclarations"}
