"""Replies of the Chat-compatible servers: whole and streamed they say the same, in the form of the recordings."""

import json
from typing import Any

import httpx2
import openai
import pytest

from dragoman.simulator.apis import APIS, SERVERS
from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection, Chunking, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerUsage, Call, TokenSigner
from dragoman.simulator.apis.rule import CheckContext
from shelf import exchanges, needs_shelf

META = ReplyMeta(id="0123456789abcdef01234567", created=1_794_700_800, signer=TokenSigner(5), chunking=Chunking(size=5))
CALLS = tuple(Call(id=f"{at:024x}", name="add", arguments={"a": at, "b": "ü"}) for at in (1, 2))
USED = AnswerUsage(input=40, output=20, cached=16, thought=8)
ANSWER = Answer(thought="I must add.", text="Adding.", calls=CALLS, end="calls", usage=USED)
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def accept(server: str, **members: Any) -> AcceptedRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [TOOL], **members}
    found = APIS[server].accept(json.dumps(body).encode(), CheckContext(model=""), META.signer)
    assert isinstance(found, AcceptedRequest), found
    return found


def whole(server: str, answer: Answer = ANSWER, **members: Any) -> dict[str, Any]:
    return json.loads(APIS[server].render_reply(answer, accept(server, **members), META))


def frames(server: str, answer: Answer = ANSWER) -> bytes:
    request = accept(server, stream=True, stream_options={"include_usage": True})
    return b"".join(APIS[server].render_stream(answer, request, META))


def chunks(server: str) -> list[dict[str, Any]]:
    lines = frames(server).decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize("server", SERVERS)
def test_the_sdk_reads_the_same_whole_and_streamed(server):
    message = whole(server)["choices"][0]["message"]
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=frames(server))
    )
    client = openai.OpenAI(api_key="k", max_retries=0, http_client=httpx2.Client(transport=transport))
    with client.chat.completions.stream(model="m", messages=[]) as stream:
        streamed = stream.get_final_completion()
    choice = streamed.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == message["content"] == "Adding."
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    assert calls == [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    assert streamed.usage is not None
    assert (streamed.usage.prompt_tokens, streamed.usage.completion_tokens) == (40, 20)
    member = "reasoning" if server in {"vllm", "openrouter"} else "reasoning_content"
    assert getattr(choice.message, member) == message[member] == "I must add."


def test_call_ids_have_the_form_of_the_server():
    ids = {server: whole(server)["choices"][0]["message"]["tool_calls"][1]["id"] for server in SERVERS}
    assert ids["deepseek"].startswith("call_01_")
    assert len(ids["deepseek"]) == 32
    assert ids["kimi"] == "functions.add:1"
    assert ids["glm"].startswith("call_-")
    assert len(ids["vllm"]) == 46
    assert ids["openrouter"].startswith("toolu_bdrk_")


def test_kimi_counts_calls_over_the_whole_conversation():
    call = {"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.add:0", "content": "3"},
    ]
    calls = whole("kimi", messages=history)["choices"][0]["message"]["tool_calls"]
    assert [one["id"] for one in calls] == ["functions.add:1", "functions.add:2"]


RECORDED = {"deepseek": "rig-0028", "glm": "fantasy-0025", "openrouter": "chatlas-0033"}


@needs_shelf
@pytest.mark.parametrize("server", RECORDED)
def test_chunks_have_no_other_fields_than_the_recorded_ones(server):
    (recorded,) = (one for one in exchanges("openai_chat") if one["id"] == f"openai_chat/{RECORDED[server]}")
    lines = [line for line in recorded["sse"].splitlines() if line.startswith("data: {")]
    real = [json.loads(line[6:]) for line in lines]
    known = {name for chunk in real for name in chunk} | {"usage"}
    deltas = {name for chunk in real for choice in chunk["choices"] for name in choice["delta"]}
    for chunk in chunks(server):
        assert chunk.keys() <= known
        for choice in chunk["choices"]:
            assert choice["delta"].keys() <= deltas | {"reasoning", "reasoning_details", "content"}
    last = [chunk for chunk in real if chunk.get("usage")][-1]
    assert bool(chunks(server)[-1]["choices"]) is bool(last["choices"]), "the usage is in a chunk of another kind"


def test_a_call_is_one_delta_or_several_as_at_the_server():
    def deltas(server: str) -> list[dict[str, Any]]:
        found = [choice["delta"] for chunk in chunks(server) for choice in chunk["choices"]]
        return [call for delta in found for call in delta.get("tool_calls", ())]

    assert len(deltas("glm")) == 2
    assert len(deltas("deepseek")) > 4
    first = [call["id"] for call in deltas("qwen") if call["index"] == 0]
    assert first[0].startswith("call_")
    assert set(first[1:]) == {""}


def test_openrouter_begins_with_a_comment_and_vllm_stops_after_a_named_choice():
    assert frames("openrouter").startswith(b": OPENROUTER PROCESSING\n\n")
    named = {"type": "function", "function": {"name": "add"}}
    assert whole("vllm", tool_choice=named)["choices"][0]["finish_reason"] == "stop"
    assert whole("vllm")["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("server", SERVERS)
def test_an_error_has_the_form_of_the_server_whole_and_in_a_stream(server):
    rejection = ApiRejection(status=400, message="no", rule="r")
    reply = APIS[server].render_error(rejection)
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["message"]) == (400, "no [rule: r]")
    assert error["code"] == {"glm": "1210", "vllm": 400, "openrouter": 400, "kimi": None}.get(
        server, "invalid_request_error"
    )
    end = APIS[server].render_stream_error(rejection)
    assert end.startswith(b"data: " + reply.body)
    assert end.endswith(b"data: [DONE]\n\n") is (server == "vllm")


@pytest.mark.parametrize(("end", "reason"), [("length", "length"), ("filtered", "content_filter"), ("stop", "stop")])
def test_other_ends_have_their_finish_reasons(end, reason):
    answer = Answer(text="a", end=end, usage=USED)
    assert whole("qwen", answer)["choices"][0]["finish_reason"] == reason


def test_the_signature_of_a_thought_covers_its_text():
    (detail,) = whole("openrouter")["choices"][0]["message"]["reasoning_details"]
    assert META.signer.judge(detail["signature"], "I must add.") == "genuine"
