"""Clients whose dialect has no cache marks read Claude's prompt cache; its counts are in their usage."""

import json

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.simulator import Answer, Call
from dragoman.tools import Registry

LONG = "You are a careful assistant. " * 400
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def build_chat(turns):
    messages = [{"role": "system", "content": LONG}, {"role": "user", "content": "Weather in Paris?"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"sunny {number} " * 300},
        ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    return "/v1/chat/completions", {"model": "MODEL", "messages": messages, "tools": tools}


def build_responses(turns):
    items = [{"role": "user", "content": "Weather in Paris?"}]
    for number in range(turns):
        items += [
            {"type": "function_call", "call_id": f"c{number}", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": f"sunny {number} " * 300},
        ]
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]
    return "/v1/responses", {"model": "MODEL", "instructions": LONG, "input": items, "tools": tools, "store": False}


def build_gemini(turns):
    contents = [{"role": "user", "parts": [{"text": "Weather in Paris?"}]}]
    for number in range(turns):
        call = {"functionCall": {"id": f"c{number}", "name": "weather", "args": {}}}
        response = {"id": f"c{number}", "name": "weather", "response": {"output": f"sunny {number} " * 300}}
        contents += [
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    tools = [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": SCHEMA}]}]
    body = {"systemInstruction": {"parts": [{"text": LONG}]}, "contents": contents, "tools": tools}
    return "/v1beta/models/MODEL:VERB", body


BUILDERS = {"chat": build_chat, "responses": build_responses, "gemini": build_gemini}


def post(gateway, client, model, turns, *, stream=False):
    """Send turn `turns` of a conversation; return the usage that the client gets."""
    path, body = BUILDERS_OF_ALL[client](turns)
    if client == "gemini":
        path = path.replace("MODEL", model).replace("VERB", "streamGenerateContent" if stream else "generateContent")
        path += "?alt=sse" if stream else ""
    else:
        body = {**body, "model": model, "stream": stream}
        if stream and client == "chat":
            body["stream_options"] = {"include_usage": True}
    reply = httpx2.post(gateway.base_url + path, json=body, timeout=30)
    assert reply.status_code == 200, reply.text
    if not stream:
        return find_usage(reply.json())
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    found = [find_usage(json.loads(line)) for line in lines if line != "[DONE]"]
    used = [usage for usage in found if usage]
    # In a stream of Messages, the counts of the end replace those of the start.
    return {name: count for usage in used for name, count in usage.items()} if client == "messages" else used[-1]


def find_usage(reply):
    return (
        reply.get("usage")
        or (reply.get("message") or {}).get("usage")
        or reply.get("usageMetadata")
        or (reply.get("response") or {}).get("usage")
    )


def read_counts(client, usage):
    """Input, cached, written and output tokens as the dialect documents them; Gemini does not report what is written."""
    match client:
        case "chat":
            details = usage.get("prompt_tokens_details", {})
            assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
            return usage["prompt_tokens"], details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
        case "responses":
            details = usage["input_tokens_details"]
            assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
            return usage["input_tokens"], details["cached_tokens"], details["cache_write_tokens"]
        case _:
            output = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
            assert usage["totalTokenCount"] == usage["promptTokenCount"] + output
            return usage["promptTokenCount"], usage.get("cachedContentTokenCount", 0), None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["claude", "vclaude"])
@pytest.mark.parametrize("client", BUILDERS)
def test_every_turn_reads_what_the_turn_before_wrote(serve, client, model, stream):
    gateway = serve()
    inputs, reads, writes = zip(
        *(read_counts(client, post(gateway, client, model, turns, stream=stream)) for turns in range(4)), strict=True
    )
    assert reads[0] == 0
    for turn in range(1, 4):
        assert inputs[turn - 1] * 0.9 < reads[turn] < inputs[turn], (inputs, reads, writes)
    if client != "gemini":
        assert all(read + written <= whole for whole, read, written in zip(inputs, reads, writes, strict=True))
        assert writes[0] > 1000
        assert all(0 < written < 1500 for written in writes[1:])
    for request in gateway.simulator.requests:
        assert request.body.count(b'"cache_control"') <= 4


@pytest.mark.parametrize("client", BUILDERS)
def test_marks_can_be_switched_off_for_an_upstream(serve, client):
    gateway = serve(upstreams={"anthropic": UpstreamTable(kind="anthropic", cache_marks="off")})
    counts = [read_counts(client, post(gateway, client, "claude", turns)) for turns in range(2)]
    assert all(b"cache_control" not in request.body for request in gateway.simulator.requests)
    assert [cached for _, cached, _ in counts] == [0, 0]


@pytest.mark.parametrize(
    ("client", "mark"),
    [
        ("chat", {"cache_control": {"type": "ephemeral"}}),
        ("chat", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
        ("responses", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
    ],
)
def test_a_client_with_a_mark_of_its_own_gets_no_others(serve, client, mark):
    gateway = serve()
    for turns in range(3):
        path, body = BUILDERS[client](turns)
        kind = "text" if client == "chat" else "input_text"
        question = {"role": "user", "content": [{"type": kind, "text": LONG, **mark}]}
        if client == "chat":
            body["messages"][1] = question
        else:
            body["input"][0] = question
        reply = httpx2.post(gateway.base_url + path, json={**body, "model": "claude"}, timeout=30)
        assert reply.status_code == 200, reply.text
        sent = json.loads(gateway.simulator.requests[-1].body)
        assert gateway.simulator.requests[-1].body.count(b'"cache_control"') == 1
        assert sent["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("model", ["claude", "vclaude"])
def test_a_client_of_messages_places_its_marks_itself(serve, model):
    gateway = serve()
    body = {"model": model, "max_tokens": 99, "system": LONG, "messages": [{"role": "user", "content": "hi"}]}
    body["tools"] = [{"name": "weather", "input_schema": SCHEMA}]
    assert httpx2.post(f"{gateway.base_url}/v1/messages", json=body).status_code == 200
    assert b"cache_control" not in gateway.simulator.requests[-1].body


def build_tools():
    tools = Registry()

    def look() -> str:
        """Look again."""
        return "nothing new " * 300

    tools.register(look)
    return tools


def look_twice(received):
    """Call the server-side tool twice, then answer."""
    if sum(len(turn.calls) for turn in received.request.turns) < 2:
        return Answer(calls=(Call(id="c1", name="look", arguments={}),), end="calls")
    return Answer(text="I saw what there was.")


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, (3, 4, 4)),
        ({"cache_control": {"type": "ephemeral"}}, (1, 1, 1)),
        ({"system": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]}, (1, 1, 1)),
    ],
    ids=["unmarked", "automatic", "marked"],
)
def test_a_run_of_server_side_tools_is_marked_for_a_client_of_messages_without_marks(serve, more, counts):
    gateway = serve(simulate={"script": look_twice}, tools=build_tools())
    body = {
        "model": "claude",
        "max_tokens": 99,
        "system": LONG,
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }
    reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=body, headers={"x-dragoman-tools": "look"}, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.json()["content"][-1]["text"] == "I saw what there was."
    sent = [request.body.count(b'"cache_control"') for request in gateway.simulator.requests]
    assert tuple(sent) == counts
    if not more:
        assert reply.json()["usage"]["cache_read_input_tokens"] > 0


def test_marks_in_a_run_can_be_switched_off(serve):
    off = {"anthropic": UpstreamTable(kind="anthropic", cache_marks="off")}
    gateway = serve(simulate={"script": look_twice}, tools=build_tools(), upstreams=off)
    body = {"model": "claude", "max_tokens": 99, "system": LONG, "messages": [{"role": "user", "content": "hi"}]}
    reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=body, headers={"x-dragoman-tools": "look"}, timeout=60)
    assert reply.status_code == 200, reply.text
    assert all(b"cache_control" not in request.body for request in gateway.simulator.requests)


@pytest.mark.parametrize("model", ["gem", "gpt", "resp"])
def test_vendors_that_cache_by_themselves_get_no_marks(serve, model):
    gateway = serve()
    for client in BUILDERS:
        post(gateway, client, model, 0)
        sent = gateway.simulator.requests[-1].body
        assert b"cache_control" not in sent
        assert b"prompt_cache_breakpoint" not in sent


def test_automatic_marks_are_no_loss(serve):
    gateway = serve(strict="all")
    path, body = build_chat(1)
    reply = httpx2.post(gateway.base_url + path, json={**body, "model": "claude"}, timeout=30)
    assert reply.status_code == 200, reply.text
    assert b"cache_control" in gateway.simulator.requests[-1].body
    assert gateway.wait_for_records(1)[0].losses == ()


def build_claude_code(number, model):
    """A request as older versions of Claude Code send it: the first block differs every time."""
    billing = f"x-anthropic-billing-header: cc_version=2.1.113.92d; cc_entrypoint=sdk-ts; cch=a{number};"
    system = [{"type": "text", "text": billing}, {"type": "text", "text": LONG}]
    return {"model": model, "max_tokens": 99, "system": system, "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("model", ["gem", "vgem", "assist", "gpt", "resp"])
def test_the_billing_block_of_claude_code_does_not_end_the_prefix_at_other_vendors(serve, model):
    gateway = serve(strict=True)
    usages = []
    for number in range(2):
        reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=build_claude_code(number, model))
        assert reply.status_code == 200, reply.text
        assert "a block for the vendor's own accounting" in reply.headers["x-dragoman-losses"]
        assert b"billing" not in gateway.simulator.requests[-1].body
        usages.append(reply.json()["usage"])
    assert usages[0].get("cache_read_input_tokens", 0) == 0
    assert usages[1]["cache_read_input_tokens"] > 1000
    assert sum(usages[1][name] for name in ("input_tokens", "cache_read_input_tokens")) == usages[0]["input_tokens"]


@pytest.mark.parametrize("model", ["claude", "vclaude"])
def test_claude_gets_the_billing_block_unchanged(gateway, model):
    body = build_claude_code(1, model)
    assert httpx2.post(f"{gateway.base_url}/v1/messages", json=body).status_code == 200
    assert json.loads(gateway.simulator.requests[-1].body)["system"] == body["system"]


def build_messages(turns):
    """A Messages client marks its instructions and its last turn itself."""
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Weather in Paris?", **mark}]}]
    system = [{"type": "text", "text": LONG * (turns + 1), **mark}]
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    return "/v1/messages", {"max_tokens": 99, "system": system, "messages": messages, "tools": tools}


BUILDERS_OF_ALL = {**BUILDERS, "messages": build_messages}


def read_all(client, usage):
    """The whole prompt, and what of it was read from the cache and written to it."""
    if client != "messages":
        return read_counts(client, usage)
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    return usage["input_tokens"] + read + written, read, written


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gem", "vgem", "assist", "claude", "vclaude", "gpt", "resp"])
@pytest.mark.parametrize("client", ["chat", "responses", "gemini", "messages"])
def test_cached_tokens_are_counted_once_and_reported_to_every_client(serve, client, model, stream):
    gateway = serve()
    first, second = (read_all(client, post(gateway, client, model, 0, stream=stream)) for _ in range(2))
    assert first[1] == 0
    assert second[1] > 1000
    assert first[0] == second[0] >= second[1] + (second[2] or 0)
    if "claude" in model and client != "gemini":
        assert first[2] >= second[1] > first[2] - 5
        assert second[2] < 5
