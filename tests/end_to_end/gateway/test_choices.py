"""A request for several choices at an upstream that generates one: whole, streamed, failing and cancelled."""

import itertools
import json
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from typing import Any

import openai
import pytest

from dragoman.config import UpstreamTable
from dragoman.simulator import Answer, Fault
from dragoman.simulator.apis.conversation import AnswerUsage, Call
from oracles.clients import genai, genai_types
from server.conftest import Gateway

USED = AnswerUsage(input=100, output=10, cached=40)
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HELLO = [{"role": "user", "content": "hello"}]
TARGETS = ["gem", "claude", "resp"]


class Counted:
    """A script that answers every request with another text, or with a call."""

    def __init__(self, *, calls: bool = False, fails: dict[int, Fault] | None = None) -> None:
        self._lock = threading.Lock()
        self._number = itertools.count()
        self._calls = calls
        self._fails = fails or {}

    def __call__(self, _received: Any) -> Answer | Fault:
        with self._lock:
            number = next(self._number)
        if number in self._fails:
            return self._fails[number]
        if self._calls:
            call = Call(id=f"toolu_{number}", name="get_weather", arguments={"city": f"city {number}"})
            return Answer(calls=(call,), end="calls", usage=USED)
        return Answer(text=f"answer {number}", usage=USED)


def open_chat(gateway: Gateway) -> openai.OpenAI:
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))


def open_gemini(gateway: Gateway) -> Any:
    return gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))


def collect(chunks: Any) -> tuple[dict[int, str], dict[int, str], list[Any]]:
    """Return the texts and finish reasons of a Chat stream by index, and its usage chunks."""
    texts, finishes, usages = defaultdict(str), {}, []
    for chunk in chunks:
        if chunk.usage is not None:
            usages.append(chunk.usage)
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                assert choice.index not in finishes
                finishes[choice.index] = choice.finish_reason
    return dict(texts), finishes, usages


def post(gateway: Gateway, path: str, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    """Send a request and return the status and the whole body."""
    request = urllib.request.Request(  # noqa: S310  a loopback address
        gateway.base_url + path, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("model", TARGETS)
def test_a_chat_client_gets_as_many_choices_as_it_asks_for_from_an_upstream_without_them(serve, model):
    gateway = serve(simulate={"script": Counted()})
    reply = open_chat(gateway).chat.completions.create(model=model, messages=HELLO, n=3)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert {choice.message.content for choice in reply.choices} == {"answer 0", "answer 1", "answer 2"}
    assert {choice.finish_reason for choice in reply.choices} == {"stop"}
    assert len(gateway.simulator.requests) == 3
    assert all(seen.status == 200 for seen in gateway.simulator.requests)
    (record,) = gateway.wait_for_records(1)
    assert (record.outcome, record.tries, record.finish) == ("answered", 1, "stop")
    assert record.usage is not None
    assert (record.usage.input, record.usage.output) == (reply.usage.prompt_tokens, reply.usage.completion_tokens)
    single = open_chat(gateway).chat.completions.create(model=model, messages=HELLO).usage
    assert reply.usage.prompt_tokens == 3 * single.prompt_tokens
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@pytest.mark.parametrize("model", TARGETS)
def test_the_choices_of_a_stream_are_interleaved_by_index_with_one_usage_and_one_end(serve, model):
    gateway = serve(simulate={"script": Counted()})
    chunks = list(
        open_chat(gateway).chat.completions.create(
            model=model, messages=HELLO, n=3, stream=True, stream_options={"include_usage": True}
        )
    )
    texts, finishes, usages = collect(chunks)
    assert sorted(texts) == [0, 1, 2]
    assert set(texts.values()) == {"answer 0", "answer 1", "answer 2"}
    assert finishes == {0: "stop", 1: "stop", 2: "stop"}
    single = open_chat(gateway).chat.completions.create(model=model, messages=HELLO).usage
    assert [usage.prompt_tokens for usage in usages] == [3 * single.prompt_tokens]
    assert chunks[-1].choices == []
    assert len({(chunk.id, chunk.created) for chunk in chunks}) == 1
    record, _ = gateway.wait_for_records(2)
    assert (record.outcome, record.tries, record.finish) == ("answered", 1, "stop")
    assert (record.usage.input, record.usage.output) == (usages[0].prompt_tokens, usages[0].completion_tokens)


def test_a_stream_of_several_choices_ends_with_done_once(serve):
    gateway = serve()
    status, body = post(gateway, "/v1/chat/completions", {"model": "claude", "messages": HELLO, "n": 2, "stream": True})
    assert status == 200
    assert body.count(b"data: [DONE]") == 1
    assert body.endswith(b"data: [DONE]\n\n")
    assert b'"usage"' not in body


def test_the_openai_stream_helper_accumulates_the_calls_of_every_choice(serve):
    gateway = serve(simulate={"script": Counted(calls=True)})
    with open_chat(gateway).chat.completions.stream(model="claude", messages=HELLO, n=2, tools=[TOOL]) as stream:
        reply = stream.get_final_completion()
    calls = [choice.message.tool_calls[0] for choice in reply.choices]
    assert {json.loads(call.function.arguments)["city"] for call in calls} == {"city 0", "city 1"}
    assert [choice.finish_reason for choice in reply.choices] == ["tool_calls", "tool_calls"]


@pytest.mark.parametrize("model", ["claude", "resp", "gpt"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_gemini_client_gets_candidates_with_the_summed_usage(serve, model, streamed):
    gateway = serve(simulate={"script": Counted()})
    client, config = open_gemini(gateway), genai_types.GenerateContentConfig(candidate_count=3)
    texts: dict[int, str] = defaultdict(str)
    finishes: dict[int, str] = {}
    if streamed:
        replies = list(client.models.generate_content_stream(model=model, contents="hello", config=config))
    else:
        replies = [client.models.generate_content(model=model, contents="hello", config=config)]
    for reply in replies:
        for candidate in reply.candidates:
            texts[candidate.index or 0] += "".join(part.text or "" for part in candidate.content.parts or ())
            if candidate.finish_reason:
                finishes[candidate.index or 0] = candidate.finish_reason.name
    assert sorted(texts) == [0, 1, 2]
    assert set(texts.values()) == {"answer 0", "answer 1", "answer 2"}
    assert finishes == {0: "STOP", 1: "STOP", 2: "STOP"}
    assert len({reply.response_id for reply in replies}) == 1
    usage = replies[-1].usage_metadata
    assert len(gateway.simulator.requests) == 3
    single = client.models.generate_content(model=model, contents="hello").usage_metadata
    assert usage.prompt_token_count == 3 * single.prompt_token_count
    assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count


def test_a_stream_that_is_a_json_array_has_the_candidates_of_all_choices(serve):
    gateway = serve(simulate={"script": Counted()})
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"candidateCount": 2}}
    status, answer = post(gateway, "/v1beta/models/claude:streamGenerateContent", body)
    chunks = json.loads(answer)
    assert status == 200
    assert {candidate["index"] for chunk in chunks for candidate in chunk["candidates"]} == {0, 1}


def test_a_code_assist_client_gets_the_candidates_in_its_envelope(serve):
    gateway = serve(simulate={"script": Counted()})
    request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"candidate_count": 2}}
    body = {"model": "claude", "project": "p", "request": request}
    _, whole = post(gateway, "/v1internal:generateContent", body)
    reply = json.loads(whole)["response"]
    assert [candidate["index"] for candidate in reply["candidates"]] == [0, 1]
    del request["generationConfig"]
    _, single = post(gateway, "/v1internal:generateContent", body)
    prompt = json.loads(single)["response"]["usageMetadata"]["promptTokenCount"]
    assert reply["usageMetadata"]["promptTokenCount"] == 2 * prompt
    request["generationConfig"] = {"candidateCount": 2}
    _, streamed = post(gateway, "/v1internal:streamGenerateContent?alt=sse", body)
    chunks = [json.loads(line[6:])["response"] for line in streamed.splitlines() if line]
    assert {candidate["index"] for chunk in chunks for candidate in chunk["candidates"]} == {0, 1}
    assert chunks[-1]["usageMetadata"]["promptTokenCount"] == 2 * prompt


@pytest.mark.parametrize(("client", "model"), [("chat", "gpt"), ("gemini", "gemini/gemini-3.5-flash")])
def test_an_upstream_of_the_clients_dialect_is_asked_once_for_all_choices(serve, client, model):
    gateway = serve()
    if client == "chat":
        reply = open_chat(gateway).chat.completions.create(model=model, messages=HELLO, n=12)
        assert len(reply.choices) == 12
    else:
        config = genai_types.GenerateContentConfig(candidate_count=2)
        reply = open_gemini(gateway).models.generate_content(model=model, contents="hello", config=config)
        assert len(reply.candidates) == 2
    assert len(gateway.simulator.requests) == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_text_calls_are_detected_in_every_choice_of_an_upstream_of_the_clients_dialect(serve, streamed):
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    gateway = serve(simulate={"script": lambda _: Answer(text=text, usage=USED)})
    simulator = gateway.simulator.base_url
    gateway = serve(upstreams={"plain": UpstreamTable(kind="openai", base_url=f"{simulator}/v1", text_calls="json")})
    chat = open_chat(gateway).chat.completions
    if streamed:
        with chat.stream(model="plain/gpt-5.2", messages=HELLO, n=2, tools=[TOOL]) as stream:
            reply = stream.get_final_completion()
    else:
        reply = chat.create(model="plain/gpt-5.2", messages=HELLO, n=2, tools=[TOOL])
    assert [choice.message.tool_calls[0].function.name for choice in reply.choices] == ["get_weather"] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("count", "limit"), [(9, {}), (3, {"max_choices": 2}), (2, {"max_choices": 1})])
def test_more_choices_than_the_limit_are_rejected_before_anything_is_sent(serve, count, limit, stream):
    gateway = serve(**limit)
    with pytest.raises(openai.BadRequestError) as error:
        open_chat(gateway).chat.completions.create(model="claude", messages=HELLO, n=count, stream=stream)
    assert error.value.param == "n"
    assert f"n is {count}, but the gateway's limit is {limit.get('max_choices', 8)}" in error.value.message
    assert "max_choices" in error.value.message
    status, body = post(
        gateway,
        "/v1beta/models/claude:generateContent",
        {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"candidateCount": count}},
    )
    assert (status, json.loads(body)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert f"candidateCount is {count}" in json.loads(body)["error"]["message"]
    assert not gateway.simulator.requests


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_choice_is_rejected(serve, count):
    gateway = serve()
    with pytest.raises(openai.BadRequestError, match="must be at least 1"):
        open_chat(gateway).chat.completions.create(model="claude", messages=HELLO, n=count)
    assert not gateway.simulator.requests


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_choice_that_fails_for_a_moment_is_retried_alone(serve, stream):
    fails = {0: Fault(name="status", status=503), 2: Fault(name="status", status=529)}
    gateway = serve(simulate={"script": Counted(fails=fails)})
    reply = open_chat(gateway).chat.completions.create(model="claude", messages=HELLO, n=3, stream=stream)
    texts = collect(reply)[0] if stream else {each.index: each.message.content for each in reply.choices}
    assert set(texts.values()) == {"answer 1", "answer 3", "answer 4"}
    assert sorted(seen.status for seen in gateway.simulator.requests) == [200, 200, 200, 503, 529]
    (record,) = gateway.wait_for_records(1)
    assert record.tries == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_choice_that_keeps_failing_fails_the_request_with_its_error(serve, stream):
    fails = dict.fromkeys(range(20), Fault(name="status", status=429, retry_after=100.0))
    gateway = serve(simulate={"script": Counted(fails=fails)})
    with pytest.raises(openai.RateLimitError) as error:
        open_chat(gateway).chat.completions.create(model="claude", messages=HELLO, n=3, stream=stream)
    assert error.value.response.headers["retry-after"] == "100"
    (record,) = gateway.wait_for_records(1)
    assert (record.outcome, record.status) == ("failed", 429)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_all_choices_move_to_the_next_target_if_one_fails(serve, stream):
    gateway = serve(models={"both": ("anthropic/claude-opus-4-8~503", "gemini/gemini-3.8-flash")})
    reply = open_chat(gateway).chat.completions.create(model="both", messages=HELLO, n=2, stream=stream)
    texts = collect(reply)[0] if stream else {each.index: each.message.content for each in reply.choices}
    assert sorted(texts) == [0, 1]
    (record,) = gateway.wait_for_records(1)
    assert (record.upstream, record.tries) == ("gemini", 2)
    assert [seen.status for seen in gateway.simulator.requests if seen.api == "gemini"] == [200, 200]


def test_a_target_with_choices_of_its_own_after_one_without_is_asked_once(serve):
    models = {"both": ("anthropic/claude-opus-4-8~503", "openai/gpt-5.2")}
    gateway = serve(models=models)
    reply = open_chat(gateway).chat.completions.create(model="both", messages=HELLO, n=2)
    assert len(reply.choices) == 2
    assert [seen.api for seen in gateway.simulator.requests].count("chat") == 1


def test_targets_before_the_one_without_choices_are_not_called_again(serve):
    models = {"both": ("openai/gpt-5.2~503", "anthropic/claude-opus-4-8")}
    gateway = serve(models=models)
    reply = open_chat(gateway).chat.completions.create(model="both", messages=HELLO, n=2)
    assert len(reply.choices) == 2
    assert [seen.api for seen in gateway.simulator.requests] == ["chat", "messages", "messages"]


def test_the_first_of_several_choices_continues_a_conversation(serve):
    gateway = serve(simulate={"script": Counted()})
    headers = {"x-dragoman-conversation": "c1"}
    body = {"model": "claude", "messages": HELLO, "n": 2}
    _, first = post(gateway, "/v1/chat/completions", body, **headers)
    text = json.loads(first)["choices"][0]["message"]["content"]
    status, _ = post(gateway, "/v1/chat/completions", {**body, "n": 1}, **headers)
    assert status == 200
    sent = gateway.simulator.requests[-1].body
    assert text in sent.decode() if isinstance(sent, bytes) else text in json.dumps(sent)


def test_a_streamed_conversation_sends_all_choices_and_saves_the_first(serve):
    gateway = serve(simulate={"script": Counted()})
    chat, headers = open_chat(gateway).chat.completions, {"x-dragoman-conversation": "c1"}
    chunks = chat.create(model="claude", messages=HELLO, n=2, stream=True, extra_headers=headers)
    texts, finishes, _ = collect(chunks)
    assert sorted(finishes) == [0, 1]
    chat.create(model="claude", messages=HELLO, extra_headers=headers)
    sent = gateway.simulator.requests[-1].body
    assert texts[0] in (sent.decode() if isinstance(sent, bytes) else json.dumps(sent))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_call_of_any_choice_can_be_answered_with_its_stored_signature(serve, streamed):
    gateway = serve(simulate={"script": Counted(calls=True)})
    chat = open_chat(gateway).chat.completions
    if streamed:
        with chat.stream(model="gem", messages=HELLO, n=2, tools=[TOOL]) as stream:
            reply = stream.get_final_completion()
    else:
        reply = chat.create(model="gem", messages=HELLO, n=2, tools=[TOOL])
    for choice in reply.choices:
        (call,) = choice.message.tool_calls
        answered = {"role": "assistant", "tool_calls": [call.model_dump(include={"id", "type", "function"})]}
        result = {"role": "tool", "tool_call_id": call.id, "content": "22 degrees"}
        chat.create(model="gem", messages=[*HELLO, answered, result], tools=[TOOL])
        (part,) = gateway.simulator.requests[-1].json()["contents"][1]["parts"]
        assert part["functionCall"]["args"] == json.loads(call.function.arguments)
        assert part["thoughtSignature"]
    assert {seen.status for seen in gateway.simulator.requests} == {200}


def test_several_candidates_do_not_change_a_token_count(serve):
    gateway = serve()
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    counts = []
    for config in ({}, {"candidateCount": 3}):
        body = {"generateContentRequest": {"model": "models/x", "contents": contents, "generationConfig": config}}
        status, answer = post(gateway, "/v1beta/models/claude:countTokens", body)
        assert status == 200
        counts.append(json.loads(answer)["totalTokens"])
    assert counts[0] == counts[1] > 0


def test_choices_with_a_seed_get_seeds_of_their_own(serve):
    gateway = serve()
    open_chat(gateway).chat.completions.create(model="gemini/gemini-3.5-flash", messages=HELLO, n=3, seed=7)
    bodies = [seen.body for seen in gateway.simulator.requests]
    sent = [json.loads(body) if isinstance(body, bytes) else body for body in bodies]
    assert sorted(body["generationConfig"]["seed"] for body in sent) == [7, 8, 9]


def test_several_choices_of_an_agent_with_server_side_tools_are_rejected(serve):
    gateway = serve()
    with pytest.raises(openai.BadRequestError) as error:
        open_chat(gateway).chat.completions.create(
            model="claude", messages=HELLO, n=2, extra_headers={"x-dragoman-tools": "web_fetch"}
        )
    assert error.value.param == "n"
