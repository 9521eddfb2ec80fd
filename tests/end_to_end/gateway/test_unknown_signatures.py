"""Signatures of unknown origin: the vendor judges them, and if it rejects one, the request is sent once without."""

import asyncio
import json

import httpx2
import pytest

from dragoman.config import KeyTable, SessionsTable, UpstreamTable
from dragoman.core.parts import Signature
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen
from dragoman.interpreter.signature_envelopes import open_envelope
from dragoman.simulator import Answer
from dragoman.simulator import Call as Made
from dragoman.simulator.runner import in_thread

THINKING = '{"type":"thinking","thinking":"hm","signature":"c2lnbmVkIGVsc2V3aGVyZQ=="}'
REASONING = '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAA"}'
SIGNATURE = '"thoughtSignature":"c2lnbmVkIGVsc2V3aGVyZQ=="'
SKIP = '"thoughtSignature":"skip_thought_signature_validator"'
# Dialect, path, body, and the body that is sent after the vendor has rejected the signature in it.
CLAUDE = (
    '{ "model":"claude-opus-4-8","stream":STREAM, "max_tokens":50,"messages":[{"role":"user","content":"caf\\u00e9"},'
    f'{{"role":"assistant","content":[{THINKING}, {{"type":"text","text":"a"}}]}},'
    f'{{"role":"user","content":"b"}},{{"role":"assistant","content":[{THINKING.replace("hm", "ah")}]}},'
    '{"role":"user","content":"c"}]}'
)
GPT = (
    '{ "model":"resp-5","stream":STREAM, "store":false,"input":[{"role":"user","content":"caf\\u00e9"},'
    f'{REASONING}, {{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{{}}"}},'
    '{"type":"function_call_output","call_id":"c1","output":"x"}]}'
)
GEMINI = (
    '{"contents":[{"role":"user","parts":[{"text":"caf\\u00e9"}]},{"role":"model","parts":['
    f'{{"text":"hm","thought":true,{SIGNATURE}}}, {{"functionCall":{{"name":"f","args":{{}}}},{SIGNATURE}}}]}},'
    '{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}],'
    '"tools":[{"functionDeclarations":[{"name":"f"}]}]}'
)
ROWS = {
    "messages": (
        "/v1/messages",
        CLAUDE,
        [(f'{{"role":"assistant","content":[{THINKING.replace("hm", "ah")}]}},', ""), (f"{THINKING}, ", "")],
        "/messages/1/content/0 /messages/3/content",
    ),
    "responses": (
        "/v1/responses",
        GPT,
        [(f",{REASONING}", ""), ('"id":"fc_1",', ""), ("resp-5", "gpt-5.2")],
        "/input/1 /input/2/id",
    ),
    "gemini": (
        "/v1beta/models/gemini-3-flash:VERB",
        GEMINI,
        [(f'{{"text":"hm","thought":true,{SIGNATURE}}}, ', ""), (SIGNATURE, SKIP)],
        "/contents/1/parts/0 /contents/1/parts/1 /contents/1/parts/1/thoughtSignature",
    ),
}
MODELS = {"resp-5": ("responses/gpt-5.2",)}


def ask(gateway, dialect, *, streamed=False, **headers):
    path, body, *_ = ROWS[dialect]
    path = path.replace("VERB", "streamGenerateContent?alt=sse" if streamed else "generateContent")
    return httpx2.post(gateway.base_url + path, content=prepare(body, streamed=streamed), headers=headers)


def prepare(body, *, streamed=False):
    return body.replace("STREAM", json.dumps(streamed)).encode()


def list_pointers(header):
    return " ".join(sorted(item.split()[1].rstrip(":") for item in header.split("; ")[2:]))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", ROWS)
def test_a_rejected_signature_is_left_out_of_one_more_request(serve, dialect, streamed):
    gateway = serve(models=MODELS)
    reply = ask(gateway, dialect, streamed=streamed)
    assert reply.status_code == 200, reply.text
    _, body, edits, reported = ROWS[dialect]
    first, second = gateway.simulator.requests
    assert first.body == prepare(body.replace("resp-5", "gpt-5.2"), streamed=streamed)
    for old, new in edits:
        assert old in body
        body = body.replace(old, new)
    assert second.body == prepare(body, streamed=streamed)
    assert list_pointers(reply.headers["x-dragoman-losses"]) == reported


@pytest.mark.parametrize("dialect", ROWS)
def test_strict_mode_leaves_the_error_to_the_client(serve, dialect):
    gateway = serve(models=MODELS)
    assert ask(gateway, dialect, **{"x-dragoman-strict": "true"}).status_code == 400
    assert len(gateway.simulator.requests) == 1


@pytest.mark.parametrize("dialect", ROWS)
def test_an_exact_upstream_gets_one_request(serve, dialect):
    exact = {
        "anthropic": UpstreamTable(kind="anthropic", passthrough="exact"),
        "gemini": UpstreamTable(kind="gemini", passthrough="exact"),
    }
    gateway = serve(models={"resp-5": ("r/gpt-5.2",)}, upstreams=exact)
    if dialect == "responses":
        base = f"{gateway.simulator.base_url}/v1"
        table = UpstreamTable(kind="openai-responses", base_url=base, passthrough="exact")
        gateway = serve(models={"resp-5": ("r/gpt-5.2",)}, upstreams={"r": table})
    assert ask(gateway, dialect).status_code == 400


def test_the_conversation_goes_on_after_a_fallback_to_another_server_of_the_same_dialect(serve):
    """Claude, another vendor's server with the same API, and Claude again."""
    with in_thread(seed=7) as other:
        table = UpstreamTable(kind="anthropic", base_url=other.base_url)
        gateway = serve(upstreams={"other": table}, models={"glm": ("other/glm-5",)})
        asked = {"max_tokens": 5000, "thinking": {"type": "adaptive"}, "messages": []}
        asked["tools"] = [{"name": "get_weather", "input_schema": {"type": "object"}}]
        for model in ("claude-opus-4-8", "glm", "claude-opus-4-8", "glm", "claude-opus-4-8"):
            asked["messages"].append({"role": "user", "content": "hello"})
            reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=asked | {"model": model})
            assert reply.status_code == 200, reply.text
            content = reply.json()["content"]
            assert content[0]["type"] == "thinking"
            asked["messages"].append({"role": "assistant", "content": content})
        assert "signature" in reply.headers["x-dragoman-losses"]


REJECTIONS = [
    {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block", "type": "x", "code": 400}},
    {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": "Corrupted thought signature."}}},
    {"error": {"message": "The encrypted content gA could not be verified.", "code": "invalid_encrypted_content"}},
]
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "created": 1,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
STREAM = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
DETAILS = {"type": "reasoning.text", "text": "hm", "signature": "abc", "format": "anthropic-claude-v1", "index": 0}
EXTRA = {"google": {"thought_signature": "abc"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = {
    "model": "mine/m",
    "messages": [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_details": [DETAILS],
            "tool_calls": [CALL | {"extra_content": EXTRA}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "y"},
    ],
}


def ask_chat_server(serve, rejection, *, rejections, streamed=False):
    """Send a request to a compatible server that rejects some requests; return the reply and what the server got."""
    received = []

    async def upstream(exchange: Exchange) -> None:
        received.append(json.loads(exchange.request.body))
        if len(received) <= rejections:
            await exchange.send(400, {"content-type": "application/json"}, json.dumps(rejection).encode())
        elif streamed:
            await exchange.send(200, {"content-type": "text/event-stream"}, STREAM)
        else:
            await exchange.send(200, {"content-type": "application/json"}, json.dumps(ANSWER).encode())

    async def steps():
        async with listen(upstream, grace=0.1) as server:
            host, port = server.address
            gateway = serve(upstreams={"mine": UpstreamTable(kind="openai", base_url=f"http://{host}:{port}/v1")})
            async with httpx2.AsyncClient() as client:
                return await client.post(f"{gateway.base_url}/v1/chat/completions", json=CHAT | {"stream": streamed})

    return asyncio.run(steps()), received


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("rejection", REJECTIONS)
def test_a_compatible_server_is_asked_again_without_signed_reasoning(serve, rejection, streamed):
    reply, (first, second) = ask_chat_server(serve, rejection, rejections=1, streamed=streamed)
    assert reply.status_code == 200
    assert first["messages"] == CHAT["messages"]
    answer = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert second["messages"] == [CHAT["messages"][0], answer, CHAT["messages"][2]]
    assert "/messages/1/reasoning_details" in reply.headers["x-dragoman-losses"]


def test_a_server_that_rejects_both_requests_is_asked_no_third_time(serve):
    reply, received = ask_chat_server(serve, REJECTIONS[0], rejections=9)
    assert reply.status_code == 400
    assert "Invalid `signature`" in reply.json()["error"]["message"]
    assert len(received) == 2


def test_another_error_is_not_retried(serve):
    reply, received = ask_chat_server(serve, {"error": {"message": "Bad `thinking` block"}}, rejections=9)
    assert reply.status_code == 400
    assert len(received) == 1


def call_once(received):
    """Call a tool, then answer."""
    if any(turn.results for turn in received.request.turns):
        return Answer(text="Mild.")
    made = Made(id="0123456789abcdef01234567", name="f", arguments={"a": 1})
    return Answer(text="I look.", thought="Hm.", calls=(made,), end="calls")


KEYS = (KeyTable(key="the-first-key-of-two", name="one"), KeyTable(key="the-second-key-of-two", name="two"))


def get_signed_call(gateway, model, key="any"):
    """Return the id of a call, and a vendor's signature of it, from the reply to a Chat client."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    body = {"model": model, "messages": [{"role": "user", "content": "x"}], "tools": tools, "reasoning_effort": "high"}
    headers = {"authorization": f"Bearer {key}"}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body, headers=headers)
    message = reply.json()["choices"][0]["message"]
    call = message["tool_calls"][0]
    if "extra_content" in call:
        return call["id"], call["extra_content"]["google"]["thought_signature"]
    values = [value for item in message["reasoning_details"] for value in item.values() if isinstance(value, str)]
    opened = [found for value in values if (found := open_envelope(Signature("", value))) is not None]
    return call["id"], opened[0][0].value


RECORDED = {
    "messages": ("gem", "google"),
    "responses": ("gem", "google"),
    "gemini": ("claude-opus-4-8", "anthropic"),
}


def build_signed_request(dialect, call_id, signature):
    if dialect == "messages":
        thinking = {"type": "thinking", "thinking": "Hm.", "signature": signature}
        made = {"type": "tool_use", "id": call_id, "name": "f", "input": {"a": 1}}
        turns = [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [thinking, made]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "y"}]},
        ]
        tools = [{"name": "f", "input_schema": {"type": "object"}}]
        return "/v1/messages", {"model": "claude-opus-4-8", "max_tokens": 99, "messages": turns, "tools": tools}
    if dialect == "responses":
        items = [
            {"role": "user", "content": "x"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": signature},
            {"type": "function_call", "call_id": call_id, "name": "f", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": call_id, "output": "y"},
        ]
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
        return "/v1/responses", {"model": "resp-5", "store": False, "input": items, "tools": tools}
    parts = [{"functionCall": {"id": call_id, "name": "f", "args": {"a": 1}}, "thoughtSignature": signature}]
    turns = [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [{"functionResponse": {"id": call_id, "name": "f", "response": {"y": 1}}}]},
    ]
    tools = [{"functionDeclarations": [{"name": "f"}]}]
    return "/v1beta/models/gemini-3-flash:generateContent", {"contents": turns, "tools": tools}


@pytest.mark.parametrize("dialect", RECORDED)
def test_a_signature_that_the_store_recorded_for_another_vendor_is_not_sent(serve, dialect):
    gateway = serve(models=MODELS, simulate={"script": call_once})
    model, issuer = RECORDED[dialect]
    call_id, signature = get_signed_call(gateway, model)
    path, body = build_signed_request(dialect, call_id, signature)
    count = len(gateway.simulator.requests)
    for _ in range(2):
        reply = httpx2.post(gateway.base_url + path, json=body)
        assert reply.status_code == 200, reply.text
        assert f"signed by {issuer}" in reply.headers["x-dragoman-losses"]
    sent = list(gateway.simulator.requests)[count:]
    assert len(sent) == 2  # nothing was rejected
    assert all(signature.encode() not in request.body for request in sent)
    assert all(call_id.encode() in request.body for request in sent)


def test_a_gateway_that_was_restarted_knows_what_the_store_recorded(serve, tmp_path):
    sessions = SessionsTable(url=f"sqlite:///{tmp_path}/s.db")
    before = serve(models=MODELS, simulate={"script": call_once}, sessions=sessions)
    path, body = build_signed_request("messages", *get_signed_call(before, "gem"))
    gateway = serve(models=MODELS, simulate={"script": call_once}, sessions=sessions)
    for _ in range(2):
        reply = httpx2.post(gateway.base_url + path, json=body)
        assert reply.status_code == 200, reply.text
        assert "signed by google" in reply.headers["x-dragoman-losses"]
    assert [request.status for request in gateway.simulator.requests] == [200, 200]


@pytest.mark.parametrize("dialect", ["messages", "responses"])
def test_strict_mode_rejects_reasoning_that_the_store_recorded_for_another_vendor(serve, dialect):
    gateway = serve(models=MODELS, simulate={"script": call_once})
    path, body = build_signed_request(dialect, *get_signed_call(gateway, RECORDED[dialect][0]))
    reply = httpx2.post(gateway.base_url + path, json=body, headers={"x-dragoman-strict": "true"})
    assert reply.status_code == 400
    assert "signed by google" in reply.json()["error"]["message"]


def test_what_the_store_recorded_for_one_owner_says_nothing_about_anothers_signature(serve):
    gateway = serve(models=MODELS, simulate={"script": call_once}, keys=KEYS)
    call_id, signature = get_signed_call(gateway, "gem", key=KEYS[0].key)
    path, body = build_signed_request("messages", call_id, signature)
    reply = httpx2.post(gateway.base_url + path, json=body, headers={"x-api-key": KEYS[1].key})
    assert reply.status_code == 200
    assert "signed by google" not in reply.headers["x-dragoman-losses"]
