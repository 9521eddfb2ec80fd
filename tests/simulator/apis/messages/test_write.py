"""The vendor's SDK parses replies and streams: its types know all fields, and both accumulate to the same content."""

import json

import httpx2
import pytest
from anthropic import Anthropic
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import BaseModel, TypeAdapter

from dragoman.simulator.apis.api import Chunking, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerSource, AnswerUsage, Call, TokenSigner
from dragoman.simulator.apis.messages import API
from dragoman.simulator.apis.messages.write import REDACTED_THINKING_TRIGGER
from simulator.apis.messages.bodies import NEWEST, WEATHER, asks, on_vertex, require_accepted, user

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
EVENT: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
USAGE = AnswerUsage(input=120, output=34, cached=100, thought=20)
PARIS = Call(id="", name="get_weather", arguments={"city": "Paris", "unit": "celsius"})
TOKYO = Call(id="", name="get_weather", arguments={"city": "東京", "days": [1, 2.5, None]})
PAGE = AnswerSource(url="https://example.com/paris", title="Paris", quote="It is sunny in Paris.")
OTHER = AnswerSource(url="https://example.com/tokyo", title="Tokyo", quote="It rains in Tokyo.")
ANSWERS = {
    "text": Answer(text="Bonjour — здравствуйте 👋, all of you out there.", usage=USAGE),
    "thought": Answer(thought="The user greets me. I greet back.", text="Hello.", usage=USAGE),
    "call": Answer(calls=(PARIS,), end="calls", usage=USAGE),
    "calls": Answer(text="Both.", thought="Two cities.", calls=(PARIS, TOKYO), end="calls", usage=USAGE),
    "no arguments": Answer(calls=(Call(id="", name="now", arguments={}),), end="calls", usage=USAGE),
    "search": Answer(
        text=f"I looked. {PAGE.quote} But: {OTHER.quote}", query="weather", sources=(PAGE, OTHER), usage=USAGE
    ),
    "length": Answer(text="It is", end="length", usage=USAGE),
    "stop sequence": Answer(text="It is", stopped_by="END", usage=USAGE),
    "filtered": Answer(text="I can", end="filtered", usage=USAGE),
    "malformed call": Answer(text="Hm.", end="malformed_call", usage=USAGE),
    "refused": Answer(refusal="I will not do that.", usage=USAGE),
    "nothing": Answer(usage=USAGE),
}
ENDS = {"call": "tool_use", "calls": "tool_use", "no arguments": "tool_use", "length": "max_tokens"} | {
    "stop sequence": "stop_sequence",
    "filtered": "refusal",
    "refused": "refusal",
}
BODIES = {
    "newest": asks(tools=[WEATHER]),
    "shown": asks(tools=[WEATHER], thinking={"type": "adaptive", "display": "summarized"}),
    "sealed": asks(user(REDACTED_THINKING_TRIGGER), tools=[WEATHER]),
    "marked": asks(tools=[WEATHER], cache_control={"type": "ephemeral", "ttl": "1h"}),
    "vertex": on_vertex(tools=[WEATHER]),
}


def occasion(size=5):
    return ReplyMeta(
        id="0123456789abcdef01234567", created=1_790_000_000, signer=TokenSigner(), chunking=Chunking(size=size, seed=4)
    )


def whole(answer, body):
    return API.render_reply(answer, require_accepted(body), occasion())


def frames(answer, body, size=5):
    return list(API.render_stream(answer, require_accepted(body), occasion(size)))


def extras(value):
    """Return the fields at any depth that the SDK's types do not know."""
    if isinstance(value, BaseModel):
        found = [f"{type(value).__name__}.{name}" for name in value.model_extra or {}]
        return found + [one for name in type(value).model_fields for one in extras(getattr(value, name))]
    if isinstance(value, list | tuple):
        return [one for part in value for one in extras(part)]
    return [one for part in value.values() for one in extras(part)] if isinstance(value, dict) else []


def client(content, kind):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=content, headers={"content-type": kind}))
    return Anthropic(
        api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0, _strict_response_validation=True
    )


QUESTION = {"model": NEWEST, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("form", BODIES)
def test_a_reply_has_no_member_that_the_sdk_does_not_know(name, form):
    reply = MESSAGE.validate_json(whole(ANSWERS[name], BODIES[form]), strict=True)
    assert extras(reply) == []
    assert reply.stop_reason == ENDS.get(name, "end_turn")


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("form", BODIES)
def test_a_stream_has_no_member_that_the_sdk_does_not_know(name, form):
    for frame in frames(ANSWERS[name], BODIES[form]):
        event, data = frame.decode().removesuffix("\n\n").split("\n")
        body = json.loads(data.removeprefix("data: "))
        assert event == f"event: {body['type']}"
        if body["type"] != "ping":
            assert extras(EVENT.validate_python(body, strict=True)) == []


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("size", [0, 1, 24])
def test_a_stream_gathers_to_the_whole_reply(name, form, size):
    expected = json.loads(whole(ANSWERS[name], BODIES[form]))
    streamed = client(b"".join(frames(ANSWERS[name], BODIES[form], size)), "text/event-stream")
    with streamed.messages.stream(**QUESTION) as events:
        gathered = events.get_final_message()
    assert gathered.model_dump(mode="json", exclude_none=True) == _without_none(expected)


def _without_none(value):
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list) else value


def test_the_sdk_reads_a_whole_reply():
    reply = client(whole(ANSWERS["calls"], BODIES["shown"]), "application/json").messages.create(**QUESTION)
    thought, text, paris, tokyo = reply.content
    assert (thought.thinking, text.text) == ("Two cities.", "Both.")
    assert (paris.input, tokyo.input) == (PARIS.arguments, TOKYO.arguments)
    assert paris.id != tokyo.id
    assert paris.id.startswith("toolu_01")


def count(body, **used):
    return json.loads(whole(Answer(text="Hi.", usage=AnswerUsage(output=34, **used)), body))["usage"]


def read_and_written(usage):
    return tuple(usage[f"{name}input_tokens"] for name in ("", "cache_read_", "cache_creation_"))


def test_thoughts_are_counted_within_the_output():
    usage = count(BODIES["newest"], input=120, thought=20)
    assert (usage["output_tokens"], usage["output_tokens_details"]) == (34, {"thinking_tokens": 20})


def test_nothing_is_cached_that_is_not_marked():
    assert read_and_written(count(BODIES["newest"], input=2000, cached=1500)) == (2000, 0, 0)


def test_what_is_marked_is_written_to_the_cache_and_read_from_it():
    marked = asks(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}])
    usage = count(marked, input=2000)
    behind = usage["input_tokens"]
    assert 0 < behind < 100
    assert read_and_written(usage) == (behind, 0, 2000 - behind)
    assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 2000 - behind}
    assert read_and_written(count(marked, input=2000, cached=1999)) == (behind, 2000 - behind, 0)
    assert read_and_written(count(marked, input=900, cached=800)) == (900, 0, 0)


def test_a_breakpoint_that_the_vendor_sets_is_behind_everything():
    automatic = asks(cache_control={"type": "ephemeral"})
    assert read_and_written(count(automatic, input=2000, cached=1500)) == (0, 1500, 500)


def test_the_events_come_in_the_order_of_the_vendor():
    kinds = [
        frame.split(b"\n")[0].decode().removeprefix("event: ") for frame in frames(ANSWERS["call"], BODIES["newest"], 0)
    ]
    assert kinds == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    data = [json.loads(frame.split(b"data: ")[1]) for frame in frames(ANSWERS["call"], BODIES["newest"], 0)]
    assert data[0]["message"]["usage"]["output_tokens"] == 1
    assert data[3]["delta"] == {"type": "input_json_delta", "partial_json": ""}
    assert data[4]["delta"]["partial_json"] == '{"city": "Paris", "unit": "celsius"}'


def test_a_thought_with_omitted_text_has_only_its_signature():
    data = [json.loads(frame.split(b"data: ")[1]) for frame in frames(ANSWERS["thought"], BODIES["newest"])]
    deltas = [one["delta"]["type"] for one in data if one.get("index") == 0 and "delta" in one]
    assert deltas == ["signature_delta"]


def test_a_quotation_is_a_block_of_its_own_with_its_citation():
    content = json.loads(whole(ANSWERS["search"], BODIES["newest"]))["content"]
    assert [block["type"] for block in content] == ["server_tool_use", "web_search_tool_result", *["text"] * 4]
    quoted = [block for block in content if block.get("citations")]
    assert [(block["text"], block["citations"][0]["url"]) for block in quoted] == [
        (page.quote, page.url) for page in (PAGE, OTHER)
    ]
    assert "".join(block.get("text", "") for block in content) == ANSWERS["search"].text


def test_white_space_between_quotations_is_no_block_of_its_own():
    answer = Answer(text=f"{PAGE.quote} {OTHER.quote}\n", query="weather", sources=(PAGE, OTHER), usage=USAGE)
    texts = [block["text"] for block in json.loads(whole(answer, BODIES["newest"]))["content"] if "text" in block]
    assert texts == [PAGE.quote, f" {OTHER.quote}"]


@pytest.mark.parametrize(("variant", "member"), [("bm25", "query"), ("regex", "pattern")])
def test_a_deferred_tool_is_found_by_a_search_before_it_is_called(variant, member):
    hidden = {**WEATHER, "name": "hidden", "defer_loading": True}
    search = {"type": f"tool_search_tool_{variant}_20251119", "name": f"tool_search_tool_{variant}"}
    answer = Answer(calls=(Call(id="toolu_1", name="hidden", arguments={}),), end="calls", usage=USAGE)
    content = json.loads(whole(answer, asks(tools=[search, WEATHER, hidden])))["content"]
    kinds = [block["type"] for block in content if block["type"] != "thinking"]
    assert kinds == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    use, result = content[-3:-1]
    assert (use["name"], use["input"], result["tool_use_id"]) == (search["name"], {member: "hidden"}, use["id"])
    Message.model_validate(json.loads(whole(answer, asks(tools=[search, WEATHER, hidden]))))
    seen = json.loads(whole(answer, asks(tools=[search, WEATHER, {**hidden, "defer_loading": False}])))["content"]
    assert [block["type"] for block in seen if block["type"] != "thinking"] == ["tool_use"]


def test_a_refusal_is_rendered_with_its_explanation():
    reply = json.loads(whole(Answer(text="Well.", refusal="I will not.", usage=USAGE), BODIES["newest"]))
    assert [block["text"] for block in reply["content"]] == ["Well.", "I will not."]
    assert reply["stop_details"] == {"type": "refusal", "category": None, "explanation": "I will not."}


def test_an_id_that_a_script_gave_is_kept_and_a_neutral_one_is_not():
    calls = (Call(id="toolu_mine", name="a", arguments={}), Call(id=f"{1:024x}", name="b", arguments={}))
    mine, generated = json.loads(whole(Answer(calls=calls, end="calls"), BODIES["newest"]))["content"]
    assert mine["id"] == "toolu_mine"
    assert generated["id"].startswith("toolu_01")


def test_vertex_has_ids_of_its_own():
    reply = json.loads(whole(ANSWERS["call"], BODIES["vertex"]))
    assert reply["id"].startswith("msg_vrtx_01")
    assert reply["content"][0]["id"].startswith("toolu_vrtx_01")


def test_a_request_that_only_fills_the_cache_gets_nothing():
    reply = json.loads(whole(ANSWERS["text"], asks(max_tokens=0)))
    assert (reply["content"], reply["stop_reason"], reply["usage"]["output_tokens"]) == ([], "max_tokens", 0)


def test_an_answer_can_be_silenced():
    assert json.loads(API.drop_answer(whole(ANSWERS["text"], BODIES["newest"])))["content"] == []
    left = [API.drop_answer(frame.split(b"data: ")[1].strip()) for frame in frames(ANSWERS["text"], BODIES["newest"])]
    assert [json.loads(data)["type"] for data in left if data] == [
        "message_start",
        "ping",
        "message_delta",
        "message_stop",
    ]


def test_tokens_are_counted():
    assert json.loads(API.render_token_count(require_accepted(BODIES["newest"]), 17)) == {"input_tokens": 17}
