"""Signatures of unknown origin: the vendor judges them, and if it rejects one, the request is sent once without."""

import asyncio
import json

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen
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
