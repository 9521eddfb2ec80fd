"""Invalid tools are rejected before any upstream call, with all faults at once."""

import threading

import httpx2
import pytest

from dragoman.interpreter import tools
from server.asking import CLIENTS, parse_error, send_request, tools_of

GOOD = {"type": "object", "properties": {"city": {"type": "string"}}}
BAD = {"type": "object", "properties": {"a": {"type": "strin"}, "b": {"$ref": "#/$defs/none"}}, "required": [3]}
FOREIGN = {"chat": "claude", "responses": "gem", "messages": "gpt", "gemini": "resp"}
FIRST = {
    "chat": "tools[1].function.parameters.properties.a.type",
    "responses": "tools[1].parameters.properties.a.type",
    "messages": "",
    "gemini": "tools[0].functionDeclarations[1].parameters_json_schema.properties.a.type",
}
SCHEMA_AT = {
    "chat": "/tools/1/function/parameters",
    "responses": "/tools/1/parameters",
    "messages": "/tools/1/input_schema",
    "gemini": "/tools/0/functionDeclarations/1/parameters_json_schema",
}
HISTORY = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
CHOICES = {
    "chat": {"tool_choice": {"type": "function", "function": {"name": "other"}}},
    "responses": {"tool_choice": {"type": "function", "name": "other"}},
    "messages": {"tool_choice": {"type": "tool", "name": "other"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["other"]}}},
}


def post(gateway, dialect, model, **body):
    path = PATHS.get(dialect, f"/v1beta/models/{model}:generateContent")
    named = {} if dialect == "gemini" else {"model": model}
    return httpx2.post(gateway.base_url + path, json={**named, **HISTORY[dialect], **body})


@pytest.mark.parametrize("dialect", CLIENTS)
def test_all_faults_of_tool_schemas_are_reported_at_once(gateway, dialect):
    received = len(gateway.simulator.requests)
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(gateway, dialect, FOREIGN[dialect], {"fine": GOOD, "broken": BAD})
    error = parse_error(raised.value)
    assert (error.status, error.code) == (400, "invalid_tool")
    assert error.param == FIRST[dialect]
    for place in ("/properties/a/type", "/required/0", "/properties/b/$ref"):
        assert f"{SCHEMA_AT[dialect]}{place}: " in error.message
    assert "3 errors in the definitions of tools" in error.message
    assert len(gateway.simulator.requests) == received


NOT_AN_OBJECT = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_function_whose_parameters_are_no_object_is_refused_by_its_name(gateway, dialect):
    received = len(gateway.simulator.requests)
    with pytest.raises(Exception) as raised:  # noqa: PT011  each SDK has its own, which `parse_error` parses
        send_request(gateway, dialect, FOREIGN[dialect], {"fine": GOOD, "listing": NOT_AN_OBJECT})
    error = parse_error(raised.value)
    assert (error.status, error.code) == (400, "invalid_tool")
    assert f"{SCHEMA_AT[dialect]}: the parameters of 'listing' must be an object" in error.message
    assert len(gateway.simulator.requests) == received


def test_tools_are_validated_before_the_request_is_translated(gateway):
    body = {"model": "gem", **HISTORY["chat"], "logit_bias": {"1734": 5}, "tools": tools_of("chat", {"broken": BAD})}
    reply = httpx2.post(gateway.base_url + PATHS["chat"], json=body, headers={"x-dragoman-strict": "true"})
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_tool"


@pytest.mark.parametrize("same", [False, True], ids=["translated", "passed"])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_tool_that_cannot_be_read_is_refused_wherever_it_would_go(gateway, dialect, same):
    received = len(gateway.simulator.requests)
    home = {"chat": "gpt", "responses": "resp", "messages": "claude", "gemini": "gem"}
    tools = tools_of(dialect, {"fine": GOOD, "broken": GOOD})
    broken = (tools[0]["function_declarations"] if dialect == "gemini" else tools)[1]
    (broken["function"] if dialect == "chat" else broken).update(name=5, description=["no", "words"])
    reply = post(gateway, dialect, home[dialect] if same else FOREIGN[dialect], tools=tools)
    assert reply.status_code == 400
    assert reply.text.count("Expected `str") in {2, 4}
    assert "invalid_tool" in reply.text
    assert len(gateway.simulator.requests) == received


@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_rejection_in_the_same_dialect_lists_all_faults(gateway, dialect):
    home = {"chat": "gpt", "responses": "resp", "messages": "claude", "gemini": "gem"}
    tools = tools_of(dialect, {"unreadable": GOOD, "broken": BAD})
    unreadable = (tools[0]["function_declarations"] if dialect == "gemini" else tools)[0]
    (unreadable["function"] if dialect == "chat" else unreadable).update(name=5)
    passed = post(gateway, dialect, home[dialect], tools=tools)
    translated = post(gateway, dialect, FOREIGN[dialect], tools=tools)
    assert "4 errors in the definitions of tools" in passed.text
    words = [reply.json()["error"]["message"] for reply in (passed, translated)]
    assert words[0] == words[1]


@pytest.mark.parametrize("dialect", CLIENTS)
def test_what_a_vendor_may_take_it_judges_itself(serve, dialect):
    gateway = serve()
    home = {"chat": "gpt", "responses": "resp", "messages": "claude", "gemini": "gem"}
    reply = post(gateway, dialect, home[dialect], tools=tools_of(dialect, {"fine": GOOD, "broken": BAD}))
    assert reply.status_code == 400
    assert [seen.status for seen in gateway.simulator.requests] == [400]


@pytest.mark.parametrize("dialect", CLIENTS)
def test_the_choice_of_a_tool_that_is_not_there_is_refused(gateway, dialect):
    received = len(gateway.simulator.requests)
    reply = post(gateway, dialect, FOREIGN[dialect], tools=tools_of(dialect, {"fine": GOOD}), **CHOICES[dialect])
    assert reply.status_code == 400
    assert "invalid_tool" in reply.text
    assert ", which is not in tools" in reply.text
    assert len(gateway.simulator.requests) == received


@pytest.mark.parametrize("dialect", CLIENTS)
def test_two_tools_of_one_name_that_are_not_the_same_are_refused(gateway, dialect):
    one, other = (tools_of(dialect, {"same": schema}) for schema in (GOOD, {"type": "object"}))
    reply = post(gateway, dialect, FOREIGN[dialect], tools=[*one, *other])
    assert reply.status_code == 400
    assert 'has the same name, \\"same\\"' in reply.text
    assert post(gateway, dialect, FOREIGN[dialect], tools=[*one, *one]).status_code == 200


def test_many_tools_are_validated_once_and_outside_the_event_loop(serve, monkeypatch):
    gateway = serve()
    looked_at = []
    whole = tools.find_schema_faults

    def watch(schema, **options):
        looked_at.append(threading.current_thread().name)
        return whole(schema, **options)

    monkeypatch.setattr(tools, "find_schema_faults", watch)
    schemas = {
        f"tool_{at}": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "string", "description": f"{at} " * 2000}},
        }
        for at in range(50)
    }
    for _ in range(2):
        assert post(gateway, "messages", "gem", tools=tools_of("messages", schemas)).status_code == 200
    assert len(looked_at) == 50
    assert "gateway" not in looked_at


def test_a_call_in_the_history_that_cannot_be_read_has_a_code_of_its_own(gateway):
    call = {"id": 5, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]
    reply = post(gateway, "chat", "gem", messages=messages)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_tool_call"
