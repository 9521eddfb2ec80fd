import json

import pytest
from hypothesis import given

import shelf
import strategies
from dialects.gemini import recordings
from dragoman.core.parts import Media, Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.decoder import GeminiChunkReader
from dragoman.dialects.gemini.response import build_response, parse_response
from dragoman.wire.json import Malformed
from event_grammar import check_events

KNOWN_BROKEN = {
    "gemini/vertexai-sdk-test-data-0060": "no finish reason, which is read as other and written as OTHER",
}
ENVELOPED = Request(model="", messages=(), spelling=frozenset({"code_assist"}))


def parse(**candidate):
    return parse_response(json.dumps({"candidates": [candidate]}).encode())


def parse_parts(*parts, finish="STOP"):
    return parse(content={"parts": list(parts), "role": "model"}, finishReason=finish)


def build(response):
    return json.loads(build_response(response, None))


def decode(stream, size=0):
    decoder = DIALECT.decoder()
    size = size or len(stream)
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    return [*check_events([*events, *decoder.close()])]


def encode(response, request=None):
    encoder = DIALECT.encoder(request)
    return b"".join(encoder.feed(event) for event in replay(response))


def list_everything():
    for name, body in recordings.replies():
        yield name, parse_response(body)
    for name, stream in recordings.streams():
        # An SSE line has no line breaks, so those between the members of what is kept raw are not kept.
        yield name, collect(decode(json.dumps(json.loads(stream)).encode() if stream.startswith(b"[") else stream))


@shelf.needs_shelf
def test_every_recorded_reply_survives_building_and_encoding():
    count = 0
    for name, response in list_everything():
        if name in KNOWN_BROKEN:
            continue
        count += 1
        assert parse_response(build_response(response, ENVELOPED)) == response, name
        assert collect(decode(encode(response, ENVELOPED))) == response, name
    assert count > 640


@shelf.needs_shelf
def test_misfiled_recordings_are_no_replies():
    for row in recordings.exchanges():
        if row["id"] in recordings.MISFILED:
            with pytest.raises(Problem, match="no candidates"):
                parse_response(json.dumps(row["response"]).encode())


@shelf.needs_shelf
def test_a_recorded_whole_reply_and_the_same_as_a_stream_of_one_chunk_are_equal():
    for name, body in recordings.replies():
        if name not in KNOWN_BROKEN:
            line = json.dumps(json.loads(body)).encode()
            assert collect(decode(b"data: " + line + b"\r\n\r\n")) == parse_response(line), name


def test_adjacent_texts_of_one_kind_are_one_part():
    response = parse_parts(
        {"text": "a", "thought": True}, {"text": "b", "thought": True}, {"text": "c"}, {"text": ""}, {"text": "d"}
    )
    assert response.parts == (Reasoning(texts=("ab",)), Text(text="cd"))


def test_a_signature_seals_the_text_it_signs():
    signature = Signature("google", "s")
    assert parse_parts({"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "c"}).parts == (
        Text(text="ab", signature=signature),
        Text(text="c"),
    )
    assert parse_parts({"text": "a"}, {"text": "", "thoughtSignature": "s"}).parts == (
        Text(text="a", signature=signature),
    )
    assert parse_parts({"text": "a", "thought": True}, {"thoughtSignature": "s"}).parts == (
        Reasoning(texts=("a",)),
        Text(text="", signature=signature),
    )


def test_empty_texts_are_no_parts():
    call = {"functionCall": {"name": "f"}}
    assert parse_parts({"text": ""}, call, {"text": ""}).parts == (ToolCall(id="", name="f", arguments="{}"),)


def test_unknown_parts_and_media_keep_their_place():
    response = parse_parts(
        {"executableCode": {"code": "1"}}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {}
    )
    assert [type(part) for part in response.parts] == [Opaque, Media, Opaque]


def test_unknown_fields_are_kept_by_pointer():
    body = {
        "candidates": [
            {
                "content": {"parts": [{"text": "a", "partMetadata": 1}], "later": 2},
                "finishReason": "STOP",
                "safetyRatings": [],
                "groundingMetadata": {"a": 1},
            },
            {"content": {"parts": [{"text": "other"}]}, "index": 1, "finishReason": "STOP"},
        ],
        "createTime": "now",
        "newField": 3,
    }
    response = parse_response(json.dumps(body).encode())
    assert response.parts == (Text(text="a", extras=Extras("gemini", {"/partMetadata": b"1"})),)
    assert {name: json.loads(raw) for name, raw in response.extras.fields.items()} == {
        "/createTime": "now",
        "/candidates/0/content/later": 2,
        "/candidates/0/safetyRatings": [],
        "/candidates/0/groundingMetadata": {"a": 1},
        "/candidates/1": body["candidates"][1],
        "/newField": 3,
    }
    written = build(response)
    assert written["candidates"][0] == {
        **body["candidates"][0],
        "index": 0,
        "content": written["candidates"][0]["content"],
    }
    assert written["candidates"][1] == body["candidates"][1]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("RECITATION", "filtered"),
        ("LANGUAGE", "filtered"),
        ("BLOCKLIST", "filtered"),
        ("PROHIBITED_CONTENT", "filtered"),
        ("SPII", "filtered"),
        ("IMAGE_SAFETY", "filtered"),
        ("IMAGE_OTHER", "filtered"),
        ("MODEL_ARMOR", "filtered"),
        ("MALFORMED_FUNCTION_CALL", "malformed_call"),
        ("UNEXPECTED_TOOL_CALL", "malformed_call"),
        ("TOO_MANY_TOOL_CALLS", "malformed_call"),
        ("MALFORMED_RESPONSE", "malformed_call"),
        ("MISSING_THOUGHT_SIGNATURE", "malformed_call"),
        ("CONTINUATION", "paused"),
        ("OTHER", "other"),
        ("NO_IMAGE", "other"),
        ("FINISH_REASON_UNSPECIFIED", "other"),
        ("A_NEW_WORD", "other"),
    ],
)
def test_every_finish_reason_survives_a_round_trip(word, reason):
    response = parse_parts({"text": "x"}, finish=word)
    assert response.finish == Finish(reason, word)
    assert build(response)["candidates"][0]["finishReason"] == word


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "tool_calls"),
        ("OTHER", "tool_calls"),
        ("MAX_TOKENS", "length"),
        (1, "tool_calls"),
        (2, "length"),
        ("SAFETY", "filtered"),
        (77, "tool_calls"),
    ],
)
def test_a_call_makes_a_plain_end_a_tool_turn(word, reason):
    assert parse_parts({"functionCall": {"name": "f"}}, finish=word).finish.reason == reason


@pytest.mark.parametrize(
    ("finish", "word"),
    [
        (Finish("stop", "end_turn"), "STOP"),
        (Finish("tool_calls", "tool_use"), "STOP"),
        (Finish("length"), "MAX_TOKENS"),
        (Finish("refused", "refusal"), "SAFETY"),
        (Finish("filtered", "content_filter"), "SAFETY"),
        (Finish("malformed_call"), "MALFORMED_FUNCTION_CALL"),
        (Finish("paused", "pause_turn"), "OTHER"),
        (Finish("other", "whatever"), "OTHER"),
        (Finish("length", "STOP"), "MAX_TOKENS"),
    ],
)
def test_foreign_finish_reasons_are_rendered_as_the_nearest_one(finish, word):
    assert build(Response(id="", model="", parts=(), finish=finish))["candidates"][0]["finishReason"] == word


def test_a_blocked_prompt_is_filtered_and_rendered_without_candidates():
    body = {"promptFeedback": {"blockReason": "JAILBREAK", "blockReasonMessage": "m"}}
    response = parse_response(json.dumps(body).encode())
    assert (response.finish, response.parts) == (Finish("filtered", "JAILBREAK"), ())
    assert build(response) == body


def test_counts_are_added_up_and_taken_apart_again():
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4,
        "cachedContentTokenCount": 2,
        "totalTokenCount": 22,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
    }
    body = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}
    response = parse_response(json.dumps(body).encode())
    assert (response.usage.input, response.usage.output) == (15, 7)
    assert (response.usage.reasoning, response.usage.cached) == (4, 2)
    assert build(response)["usageMetadata"] == usage


def test_counts_from_elsewhere_are_consistent():
    response = Response(id="", model="", parts=(), finish=Finish("stop"), usage=Usage(input=9, output=5, reasoning=2))
    assert build(response)["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 14,
    }


def test_calls_that_are_not_whole_are_left_out():
    parts = (
        ToolCall(id="1", name="cut", arguments='{"a":', complete=False),
        ToolCall(id="2", name="text", arguments="not an object"),
        ToolCall(id="3", name="fine", arguments=""),
    )
    response = Response(id="", model="", parts=parts, finish=Finish("length"))
    assert build(response)["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"id": "3", "name": "fine", "args": {}}}
    ]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"{}", b'{"candidates":[]}', b'{"candidates":3}'])
def test_what_is_no_reply_is_a_problem(body):
    with pytest.raises(Problem) as caught:
        parse_response(body)
    assert caught.value.kind == "malformed_reply"


def test_an_error_in_place_of_a_reply_is_its_problem():
    with pytest.raises(Problem) as caught:
        parse_response(b'{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}')
    assert (caught.value.kind, caught.value.status) == ("overloaded", 503)


def as_one_chunk(body):
    reader = GeminiChunkReader()
    reader.feed(body.strip())
    reader.finish()
    return collect(reader.events)


def assert_read_as_a_chunk_is(body):
    whole, chunk = parse_response(body), as_one_chunk(body)
    assert whole == chunk
    assert [part.where for part in whole.parts] == [part.where for part in chunk.parts]


@shelf.needs_shelf
def test_every_recorded_reply_is_read_as_a_stream_of_one_chunk_is():
    for _, body in recordings.replies():
        assert_read_as_a_chunk_is(body)


@given(strategies.responses("gemini"))
def test_every_generated_reply_is_read_as_a_stream_of_one_chunk_is(response):
    try:
        body = build_response(response, None)
        as_one_chunk(body)
    except (Problem, Malformed):
        return
    assert_read_as_a_chunk_is(body)


CALLED = {"functionCall": {"name": "f", "args": {"a": 1}}}


def whole(*parts, **candidate):
    result = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", **candidate}
    return json.dumps({"candidates": [result], "responseId": "r"}).encode()


@pytest.mark.parametrize(
    "body",
    [
        whole({"text": "a"}, CALLED, {"text": "b"}),
        whole({"text": "a", "thought": True}, {"text": "b"}, {**CALLED, "thoughtSignature": "c2ln"}),
        whole({"text": "a", "thoughtSignature": "c2ln"}),
        whole({"functionCall": {"name": "f", "args": None, "id": "x"}}),
        whole({"functionCall": {"name": "f"}}, safetyRatings=[{"category": "A"}], finishReason="MAX_TOKENS"),
        whole(),
        whole({"text": "a"}, {"text": "b"}),
        whole({"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}),
        whole({"text": "a", "thought": True, "thoughtSignature": "c2ln"}, {"text": "b", "thought": True}),
        whole({"text": "a", "unheard": 1}),
        whole({"text": "a"}, groundingMetadata={}),
        whole({"text": "a", **CALLED}),
        whole({"functionCall": {"name": "", "args": {}}}),
        whole({"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "aa"}}, {"text": "b"}),
        whole({"text": "a", "inlineData": {"mimeType": "image/png", "data": "aa"}}),
        whole({"functionCall": {"name": "f", "willContinue": True}}, {"functionCall": {"args": {"a": 1}}}),
        b'{"candidates":[{"content":{"parts":{"text":"a"}},"finish_reason":"STOP"}]}',
        b'[{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}]',
    ],
)
def test_a_whole_reply_is_read_as_a_stream_of_one_chunk_is(body):
    assert_read_as_a_chunk_is(body)


@pytest.mark.parametrize(
    "body",
    [
        whole({"text": "a"}).replace(b'"a"', b'"\xff"'),
        whole({"functionCall": {"name": "f", "args": {"a": "x"}}}).replace(b'"x"', b'"\xff"'),
        whole({"text": "a"}, safetyRatings=[{"category": "x"}]).replace(b'"x"', b'"\xff"'),
        whole({"text": "a"})[:-1] + b',"usageMetadata":{"promptTokensDetails":["\xff"]}}',
        b'{"candidates":[]}',
        b"[]",
    ],
)
def test_an_invalid_or_empty_document_is_not_a_reply(body):
    with pytest.raises(Problem):
        parse_response(body)
