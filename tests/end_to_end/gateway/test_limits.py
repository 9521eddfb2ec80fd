"""Bodies that are too large, too deep or compressed get a cheap response in the client's dialect, and affect no others."""

import gzip
import json
import socket

import anthropic
import httpx2
import openai
import pytest
from google.genai.errors import APIError

from cpu_limit import cpu_limit
from dragoman.config import KeyTable
from dragoman.http.admission import ClientLimits
from dragoman.simulator import Answer, Call
from dragoman.tools import Registry
from oracles.clients import genai

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/MODEL:generateContent",
    "assist": "/v1internal:generateContent",
}
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("model", ["gem", "claude", "gpt", "resp"])
@pytest.mark.parametrize("member", ["messages", "input", "contents", "request", "metadata", "unknown"])
@pytest.mark.parametrize("client", PATHS)
def test_a_body_nested_without_end_is_a_bad_request_and_costs_little(gateway, client, member, model):
    body = b'{"model":"%s","max_tokens":1,"%s":%s}' % (model.encode(), member.encode(), DEEP)
    with cpu_limit():
        reply = httpx2.post(gateway.base_url + PATHS[client].replace("MODEL", model), content=body)
    assert reply.status_code == 400, reply.text[:200]
    assert "error" in reply.json()


def nest(levels):
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("model", ["gem", "claude", "gpt", "resp"])
@pytest.mark.parametrize("size", [0, 10_000])
@pytest.mark.parametrize("client", PATHS)
def test_a_body_nested_deeper_than_the_limit_is_rejected_with_the_limit(gateway, client, size, model):
    url = gateway.base_url + PATHS[client].replace("MODEL", model)
    body = b'{"model":"%s","max_tokens":1,"number":%s,"text":"%s","metadata":%s}'
    text = b"[{ " * size
    for number in (b"1", b"1e999"):
        for levels in (200, 500, 900):
            reply = httpx2.post(url, content=body % (model.encode(), number, text, nest(levels)))
            assert reply.status_code == 400
            assert "nested too deeply: at most 200 levels" in reply.json()["error"]["message"]
        allowed = httpx2.post(url, content=body % (model.encode(), number, text, nest(199)))
        assert "nested too deeply" not in allowed.text


SCHEMA = {"type": "object", "properties": {"a": {"type": "object"}}}


def look() -> str:
    """Look again."""
    return "nothing new"


QUESTIONS = {
    "chat": {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    },
    "responses": {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
    "messages": {
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "input_schema": SCHEMA}],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}],
    },
}


# Claude streams arguments to a run as text, which is a malformed call if it is nested too deeply.
@pytest.mark.parametrize(("model", "in_run"), [("gem", False), ("claude", False), ("gem", True)])
@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
def test_a_reply_nested_deeper_than_the_limit_is_an_upstream_error_that_names_it(serve, client, model, in_run):
    def answer(received):
        value = json.loads(b'{"a":' * 195 + b"1" + b"}" * 195)
        return Answer(calls=(Call(id="c1", name="f", arguments=value),), end="calls")

    tools = Registry()
    tools.register(look)
    gateway = serve(simulate={"script": answer}, tools=tools)
    url = gateway.base_url + PATHS[client].replace("MODEL", model)
    headers = {"x-dragoman-tools": "look"} if in_run else {}
    reply = httpx2.post(url, json=QUESTIONS[client] | {"model": model}, headers=headers, timeout=60)
    assert reply.status_code == 502
    assert "nested too deeply: at most 190 levels" in reply.json()["error"]["message"]


@pytest.mark.parametrize("client", PATHS)
def test_a_body_that_is_too_large_is_refused_in_the_clients_dialect(serve, client):
    gateway = serve(limits=ClientLimits(body=1000))
    reply = httpx2.post(gateway.base_url + PATHS[client].replace("MODEL", "gem"), content=b" " * 5000)
    assert reply.status_code == 413
    error = reply.json()["error"]
    assert "too large" in error["message"]
    assert error.get("type") in {"invalid_request_error", "request_too_large", None}
    assert reply.headers["x-dragoman-exchange"]


def test_the_sdks_know_what_too_large_is(serve):
    gateway = serve(limits=ClientLimits(body=1000))
    messages = [{"role": "user", "content": "word " * 1000}]
    claude = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    with pytest.raises(anthropic.RequestTooLargeError) as error:
        claude.messages.create(model="gem", max_tokens=10, messages=messages)
    assert error.value.request_id
    chat = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
    with pytest.raises(openai.APIStatusError) as error:
        chat.chat.completions.create(model="gem", messages=messages)
    assert error.value.status_code == 413


@pytest.mark.parametrize("model", ["gem", "gpt"])
def test_a_compressed_request_is_answered_and_forwarded_uncompressed(gateway, model):
    asked = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello there"}]}).encode()
    packed = {"content-encoding": "gzip", "content-type": "application/json"}
    url = gateway.base_url + PATHS["chat"]
    assert httpx2.post(url, content=gzip.compress(asked), headers=packed).status_code == 200
    assert b"hello there" in gateway.simulator.requests[-1].body
    refused = httpx2.post(url, content=b"x", headers={**packed, "content-encoding": "zstd"})
    assert refused.status_code == 415
    assert "gzip" in refused.json()["error"]["message"]


TEN_MB = "ten words of a long prompt that goes on and " * 230_000
KEYS = (KeyTable(key="the-key", name="one"),)


def ask_openai(gateway, key):
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key=key, max_retries=0))
    with pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(model="gem", messages=[{"role": "user", "content": TEN_MB}])
    return error.value.status_code, error.value.message


def ask_anthropic(gateway, key):
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key=key, max_retries=0))
    with pytest.raises(anthropic.APIStatusError) as error:
        client.messages.create(model="gem", max_tokens=10, messages=[{"role": "user", "content": TEN_MB}])
    return error.value.status_code, error.value.message


def ask_gemini(gateway, key):
    client = gateway.open(genai.Client(api_key=key, http_options={"base_url": gateway.base_url}))
    with pytest.raises(APIError) as error:
        client.models.generate_content(model="gem", contents=TEN_MB)
    return error.value.code, error.value.message


@pytest.mark.parametrize("ask", [ask_openai, ask_anthropic, ask_gemini])
@pytest.mark.parametrize(
    ("key", "limits", "error"),
    [
        ("wrong", ClientLimits(), (401, "API key")),
        ("the-key", ClientLimits(body=1 << 20), (413, "too large")),
        ("the-key", ClientLimits(connections=1), (503, "`connections`")),
        ("the-key", ClientLimits(body=8 << 20, buffered=8 << 20), (413, "too large")),
    ],
)
def test_the_sdks_read_an_error_that_is_sent_before_a_body_of_ten_megabytes(serve, ask, key, limits, error):
    gateway = serve(keys=KEYS, limits=limits)
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))):
        code, message = ask(gateway, key)
    status, part = error
    assert code == status
    assert part in message


@pytest.mark.parametrize("client", PATHS)
def test_an_overloaded_gateway_sends_503_with_retry_after_in_the_clients_dialect(serve, client):
    gateway = serve(limits=ClientLimits(connections=1))
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))):
        reply = httpx2.post(gateway.base_url + PATHS[client].replace("MODEL", "gem"), json={})
        assert httpx2.get(f"{gateway.base_url}/health").json() == {"status": "ok"}
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert "`connections`" in reply.json()["error"]["message"]


def test_an_unknown_path_is_rejected_before_its_body(gateway):
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    for method, status in ((b"POST /nowhere", b"404"), (b"PUT /v1/messages", b"405")):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(method + b" HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("client", PATHS)
def test_a_body_with_too_many_values_is_rejected_before_it_is_parsed(serve, client):
    gateway = serve(limits=ClientLimits(separators=1000))
    url = gateway.base_url + PATHS[client].replace("MODEL", "gem")
    reply = httpx2.post(url, content=b'{"a":[%b1' % (b"1," * 1000))
    assert reply.status_code == 400
    assert "1001 commas and colons; the limit is 1000 (`separators`" in reply.json()["error"]["message"]
    few = httpx2.post(url, content=b'{"a":[%b1' % (b"1," * 999))
    assert "separators" not in few.text


def test_a_large_body_with_few_values_is_not_rejected(serve):
    gateway = serve(limits=ClientLimits(separators=1000))
    body = {"model": "gem", "messages": [{"role": "user", "content": "word " * 10_000}]}
    assert httpx2.post(gateway.base_url + PATHS["chat"], json=body).status_code == 200


def test_a_file_may_have_any_number_of_commas(serve):
    gateway = serve(limits=ClientLimits(separators=1000))
    files = {"file": ("a.csv", b"1," * 10_000), "purpose": (None, "batch")}
    reply = httpx2.post(f"{gateway.base_url}/upstreams/openai/v1/files", files=files)
    assert "separators" not in reply.text
