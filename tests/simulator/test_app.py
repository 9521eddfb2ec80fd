"""The simulator as clients see it: keys, paths, faults, scripts, and recorded requests."""

import json
from typing import Any

import httpx2
import pytest

from dragoman.simulator import Answer, Call, Fault, Received, Unmet, read_fault
from dragoman.simulator.apis import SERVERS
from dragoman.simulator.apis.conversation import AnswerSource
from dragoman.simulator.runner import Running
from server.processes import until

HELLO = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Say hello."}]}
CLAUDE = {"model": "claude-opus-4-8", "max_tokens": 99, "messages": [{"role": "user", "content": "Say hello."}]}
ASKED = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
KEYS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
PATHS = {
    "chat": ("/v1/chat/completions", HELLO),
    "responses": ("/v1/responses", {"model": "gpt-4.1", "input": "Say hello."}),
    "messages": ("/v1/messages", CLAUDE),
    "gemini": ("/v1beta/models/gemini-3.8-flash:generateContent", ASKED),
}
STREAMS = {
    "chat": ("/v1/chat/completions", HELLO | {"stream": True}),
    "responses": ("/v1/responses", {"model": "gpt-4.1", "input": "Say hello.", "stream": True}),
    "messages": ("/v1/messages", CLAUDE | {"stream": True}),
    "gemini": ("/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", ASKED),
}

SEARCHES = {
    "chat": {"model": "gpt-4o-search-preview"},
    "responses": {"tools": [{"type": "web_search"}]},
    "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "gemini": {"tools": [{"googleSearch": {}}]},
}


def post(simulator: Running, path: str, body: Any, **headers: str) -> httpx2.Response:
    named = {**KEYS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(simulator.base_url + path, content=content, headers=named, timeout=10)


@pytest.mark.parametrize("api", PATHS)
def test_every_api_answers_and_identifies_itself_as_a_simulator(simulator, api):
    reply = post(simulator, *PATHS[api])
    assert reply.status_code == 200
    assert "simulator" in reply.text
    assert simulator.requests[-1].api == api
    assert simulator.requests[-1].json() == PATHS[api][1]


@pytest.mark.parametrize("api", STREAMS)
def test_every_api_streams(simulator, api):
    reply = post(simulator, *STREAMS[api])
    assert reply.headers["content-type"] == "text/event-stream"
    assert "simulator" in reply.text.replace('"}', "")


@pytest.mark.parametrize("api", PATHS)
def test_an_invalid_key_is_rejected_with_the_vendors_wording(simulator, simulate, api):
    for running, key in ((simulator, "invalid-key"), (simulate(key="right"), "wrong")):
        reply = post(running, *PATHS[api], authorization=f"Bearer {key}", x_api_key=key)
        assert reply.status_code in {400, 401}
        assert "key" in reply.json()["error"]["message"].lower()
    assert post(running, *PATHS[api], authorization="Bearer right", x_api_key="right").status_code == 200


@pytest.mark.parametrize("api", PATHS)
def test_what_breaks_a_rule_names_it(simulator, api):
    path, body = PATHS[api]
    reply = post(simulator, path, body | {"no_such_member": 1})
    assert reply.status_code == 400
    assert reply.headers["x-dragoman-rule"] == f"{api}.unknown-field"
    assert reply.json()["error"]["message"].endswith(f"[rule: {api}.unknown-field]")
    assert simulator.requests[-1].rule == f"{api}.unknown-field"


@pytest.mark.parametrize("api", PATHS)
def test_a_body_that_is_not_json_is_refused(simulator, api):
    reply = post(simulator, PATHS[api][0], b'{"a": ')
    assert reply.status_code == 400
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1beta/nothing", "/v1/messages/batches", "/"])
def test_an_unknown_path_is_not_found(simulator, path):
    reply = post(simulator, path, {})
    assert reply.status_code == 404
    assert "error" in reply.json()


@pytest.mark.parametrize("api", PATHS)
def test_a_status_is_a_fault_with_the_time_to_wait(simulator, api):
    reply = post(simulator, *PATHS[api], x_dragoman_fault="429,retry-after=7")
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == "7"
    assert post(simulator, *PATHS[api], x_dragoman_fault="burn").status_code == 400


def test_a_fault_follows_the_model_name_and_can_end(simulator):
    body = HELLO | {"model": "gpt-4.1~503,times=2"}
    statuses = [post(simulator, "/v1/chat/completions", body).status_code for _ in range(3)]
    assert statuses == [503, 503, 200]
    assert post(simulator, "/v1/chat/completions", body).json()["model"] == "gpt-4.1"
    assert post(simulator, "/v1beta/models/gemini-3.8-flash~500:generateContent", ASKED).status_code == 500


@pytest.mark.parametrize("api", STREAMS)
@pytest.mark.parametrize(
    ("fault", "error"),
    [("cut", httpx2.RemoteProtocolError), ("reset", httpx2.ReadError), ("reset,after=0", httpx2.ReadError)],
)
def test_a_connection_breaks(simulator, api, fault, error):
    with pytest.raises(error):
        post(simulator, *STREAMS[api], x_dragoman_fault=fault)


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_ends_early_or_in_an_error(simulator, api):
    whole = post(simulator, *STREAMS[api]).text
    early = post(simulator, *STREAMS[api], x_dragoman_fault="eof").text
    assert 0 < len(early) < len(whole)
    broken = post(simulator, *STREAMS[api], x_dragoman_fault="stream-error").text
    assert "error" in broken
    assert post(simulator, *STREAMS[api], x_dragoman_fault="bad-json").text.count('{"broken": \n') == 1


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    ("fault", "status", "sign"),
    [
        ("html", 502, "<!DOCTYPE html>"),
        ("empty", 200, ""),
        ("no-candidates", 200, "{"),
        ("blocked", 200, "{"),
        ("malformed-call", 200, "{"),
        ("slow-headers,delay=0.01", 200, "{"),
    ],
)
def test_an_answer_is_not_what_it_should_be(simulator, api, fault, status, sign):
    reply = post(simulator, *PATHS[api], x_dragoman_fault=fault)
    assert reply.status_code == status
    assert reply.text.startswith(sign)
    if fault == "empty":
        assert reply.text == ""
    if fault in {"no-candidates", "blocked"}:
        assert "[dragoman simulator]" not in reply.text


def test_half_an_answer_is_not_json(simulator):
    with pytest.raises(json.JSONDecodeError):
        post(simulator, *PATHS["chat"], x_dragoman_fault="bad-json").json()


@pytest.mark.parametrize("fault", ["hang", "stall"])
def test_a_client_waits_for_nothing(simulator, fault):
    path, body = STREAMS["chat"]
    headers = {**KEYS, "x-dragoman-fault": fault}
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(simulator.base_url + path, json=body, headers=headers, timeout=0.3)


def test_drips_are_whole_in_the_end(simulator):
    whole = post(simulator, *STREAMS["messages"], x_dragoman_fault="drip,delay=0")
    assert whole.text.endswith('data: {"type":"message_stop"}\n\n')


def test_frames_may_leave_in_pieces(simulate):
    running = simulate(split=3, delay=0.001)
    assert post(running, *STREAMS["chat"]).text.endswith("data: [DONE]\n\n")


def test_a_script_in_python_answers(simulate):
    def script(received: Received) -> Answer | Fault | None:
        if received.body.get("user") == "stranger":
            raise Unmet("no strangers")
        if received.request.turns[-1].text == "fault":
            return read_fault("503")
        return Answer(calls=(Call(id="1", name="f", arguments={"a": 1}),), end="calls")

    running = simulate(script=script)
    body = post(running, "/v1/chat/completions", HELLO).json()["choices"][0]
    assert body["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    refused = post(running, "/v1/chat/completions", HELLO | {"user": "stranger"})
    assert (refused.status_code, refused.headers["x-dragoman-rule"]) == (400, "script")
    faulty = HELLO | {"messages": [{"role": "user", "content": "fault"}]}
    assert post(running, "/v1/chat/completions", faulty).status_code == 503


@pytest.mark.parametrize("api", PATHS)
def test_a_script_searches_only_if_the_request_declares_a_search(simulate, api):
    page = AnswerSource(url="https://example.org/", title="Page", quote="hello")
    running = simulate(script=lambda _received: Answer(text="They say hello.", query="greetings", sources=(page,)))
    path, body = PATHS[api]
    refused = post(running, path, body)
    assert (refused.status_code, refused.headers["x-dragoman-rule"]) == (400, "script")
    assert "declares no web search" in refused.text
    found = post(running, path, body | SEARCHES[api])
    assert found.status_code == 200
    assert page.url in found.text


@pytest.mark.parametrize(
    ("fault", "status", "text"), [("html", 502, "<!DOCTYPE html>"), ("empty", 200, ""), ("bad-json", 200, '{"id"')]
)
def test_a_script_may_fail_in_any_way(simulate, fault, status, text):
    reply = post(simulate(script=lambda _received: read_fault(fault)), *PATHS["chat"])
    assert (reply.status_code, reply.text[: len(text) or 1]) == (status, text)


def test_a_fault_of_a_script_may_be_over(simulate):
    running = simulate(script=lambda _received: read_fault("503,times=1"))
    assert [post(running, *PATHS["chat"]).status_code for _ in range(2)] == [503, 200]


def test_what_a_script_asserts_is_an_expectation(simulate):
    def script(received: Received) -> None:
        assert received.body["model"] == "gpt-5.4", "use the new model"

    reply = post(simulate(script=script), *PATHS["chat"])
    assert (reply.status_code, reply.headers["x-dragoman-rule"]) == (400, "script")
    assert "use the new model" in reply.text


@pytest.mark.parametrize("api", PATHS)
def test_a_whole_reply_cannot_break_off_as_a_stream_does(simulator, api):
    reply = post(simulator, *PATHS[api], x_dragoman_fault="stream-error")
    assert (reply.status_code, reply.headers["x-dragoman-rule"]) == (500, "fault")


@pytest.mark.parametrize("fault", ["cut", "eof"])
def test_a_whole_reply_is_cut_half_way(simulator, fault):
    with pytest.raises(httpx2.RemoteProtocolError):
        post(simulator, *PATHS["chat"], x_dragoman_fault=fault)


def test_a_whole_reply_drips(simulator):
    assert post(simulator, *PATHS["chat"], x_dragoman_fault="drip,delay=0").json()["object"] == "chat.completion"


def test_a_request_that_hangs_is_listed_while_it_does(simulate):
    running = simulate(fault="hang")
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(running.base_url + PATHS["chat"][0], json=HELLO, headers=KEYS, timeout=0.3)
    until(lambda: [(seen.status, seen.rule) for seen in running.requests] == [(0, "fault")])


def test_a_late_reply_is_not_sent_once_its_client_has_left(simulate):
    running = simulate(fault="slow-headers,delay=600")
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(running.base_url + PATHS["chat"][0], json=HELLO, headers=KEYS, timeout=0.3)
    until(lambda: [(seen.status, seen.rule) for seen in running.requests] == [(0, "fault")])


def test_a_stream_in_an_array_breaks_off_with_an_element(simulator):
    path = "/v1beta/models/gemini-3.8-flash:streamGenerateContent"
    first, last = post(simulator, path, ASKED, x_dragoman_fault="stream-error").json()
    assert "candidates" in first
    assert last["error"]["code"] == 500


def test_gemini_streams_one_array_without_alt_sse(simulator):
    reply = post(simulator, "/v1beta/models/gemini-3.8-flash:streamGenerateContent", ASKED)
    assert reply.headers["content-type"] == "application/json"
    assert "candidates" in reply.json()[0]


def test_code_assist_has_an_envelope_both_ways(simulator):
    body = {"model": "gemini-3.8-flash", "project": "p", "request": ASKED}
    whole = post(simulator, "/v1internal:generateContent", body)
    assert "candidates" in whole.json()["response"]
    stream = post(simulator, "/v1internal:streamGenerateContent?alt=sse", body)
    frames = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")]
    assert all("candidates" in frame["response"] for frame in frames)
    assert post(simulator, "/v1internal:loadCodeAssist", {"metadata": {}}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("/v1/messages/count_tokens", {name: CLAUDE[name] for name in ("model", "messages")}, "input_tokens"),
        ("/v1/responses/input_tokens", {"model": "gpt-4.1", "input": "hello"}, "input_tokens"),
        ("/v1beta/models/gemini-3.8-flash:countTokens", ASKED, "totalTokens"),
    ],
)
def test_tokens_are_counted(simulator, path, body, member):
    assert post(simulator, path, body).json()[member] > 0


def test_models_are_listed_in_each_vendors_shape(simulator):
    openai = httpx2.get(simulator.base_url + "/v1/models", headers={"authorization": "Bearer k"}).json()
    anthropic = httpx2.get(simulator.base_url + "/v1/models", headers=KEYS).json()
    google = httpx2.get(simulator.base_url + "/v1beta/models", headers={"x-goog-api-key": "k"}).json()
    assert openai["object"] == "list"
    assert anthropic["data"][0]["type"] == "model"
    assert google["models"][0]["name"].startswith("models/")


def test_responses_are_stored_until_they_are_deleted(simulator):
    first = post(simulator, *PATHS["responses"]).json()
    url = f"{simulator.base_url}/v1/responses/{first['id']}"
    assert httpx2.get(url, headers=KEYS).json() == first
    assert httpx2.get(url + "/input_items", headers=KEYS).json()["data"][0]["role"] == "user"
    following = {"model": "gpt-4.1", "input": "And again.", "previous_response_id": first["id"]}
    assert post(simulator, "/v1/responses", following).status_code == 200
    referring = {"model": "gpt-4.1", "input": [{"type": "item_reference", "id": first["output"][0]["id"]}, *TURN]}
    assert post(simulator, "/v1/responses", referring).status_code == 200
    assert httpx2.delete(url, headers=KEYS).json()["deleted"] is True
    assert httpx2.get(url, headers=KEYS).status_code == 404
    assert post(simulator, "/v1/responses", following).status_code == 400
    assert post(simulator, "/v1/responses", referring).status_code == 404


TURN = [{"role": "user", "content": "Go on."}]


def test_a_streamed_response_is_stored_too(simulator):
    stream = post(simulator, *STREAMS["responses"]).text
    last = json.loads([line for line in stream.splitlines() if line.startswith("data: ")][-1][6:])
    url = f"{simulator.base_url}/v1/responses/{last['response']['id']}"
    assert httpx2.get(url, headers=KEYS).json()["output"] == last["response"]["output"]


def test_tokens_for_tests_of_credentials_are_given(simulator):
    form = {"grant_type": "refresh_token", "refresh_token": "r", "client_id": "c"}
    assert httpx2.post(simulator.base_url + "/token", data=form).json()["expires_in"] > 0
    bad = httpx2.post(simulator.base_url + "/token", data=form | {"refresh_token": "invalid"})
    assert (bad.status_code, bad.json()["error"]) == (400, "invalid_grant")
    assert httpx2.post(simulator.base_url + "/token", data={"grant_type": "password"}).status_code == 400


def test_a_head_request_gets_no_body(simulator):
    reply = httpx2.head(simulator.base_url + "/health")
    assert (reply.status_code, reply.text, int(reply.headers["content-length"]) > 0) == (200, "", True)


def test_rules_and_requests_are_listed(simulator):
    post(simulator, *PATHS["chat"])
    rules = httpx2.get(simulator.base_url + "/rules").json()
    assert {rule["api"] for rule in rules} == {*PATHS, "server", *SERVERS}
    assert all(rule["name"].startswith(rule["api"]) and rule["says"] and rule["source"] for rule in rules)
    assert len({rule["name"] for rule in rules}) == len(rules)
    seen = httpx2.get(simulator.base_url + "/requests").json()
    assert json.dumps(HELLO) in [one["body"] for one in seen if one["status"] == 200]
    assert httpx2.get(simulator.base_url + "/health").json()["status"] == "ok"
