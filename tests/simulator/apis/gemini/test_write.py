import json

import httpx2
import pytest

from dragoman.simulator.apis.conversation import Answer
from dragoman.simulator.apis.gemini import API, render_array, unwrap_request, wrap_reply
from simulator.apis.gemini.asking import (
    ANSWERS,
    NEW,
    OLD,
    PARIS,
    TEXT,
    TOKYO,
    USAGE,
    build_request,
    client,
    occasion,
    require_accepted,
    situation,
    types,
    user,
)

SHOWN = {"thinkingConfig": {"includeThoughts": True}}
FINISHES = {
    "length": "MAX_TOKENS",
    "nothing": "MAX_TOKENS",
    "filtered": "SAFETY",
    "malformed": "MALFORMED_FUNCTION_CALL",
}
SITUATIONS = {
    "new": situation(NEW),
    "vertex": situation(NEW, vertex=True),
    "vertex v1": situation(NEW, vertex=True, version="v1"),
    "old": situation(OLD),
}
PACES = {"small": {"size": 3}, "usual": {}, "whole": {"size": 0}}


def accept_config(name="new", **config):
    return require_accepted(build_request(user("Hi."), generationConfig={**SHOWN, **config}), SITUATIONS[name])


def collect_replies(replies):
    """Return what the SDK parsed."""
    texts, thoughts, calls, finish, usage = "", "", [], "", None
    for reply in replies:
        usage = reply.usage_metadata or usage
        for candidate in reply.candidates or []:
            finish = candidate.finish_reason.value if candidate.finish_reason else finish
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.thought:
                    thoughts += part.text
                elif part.text:
                    texts += part.text
                if part.function_call:
                    calls.append((part.function_call.name, part.function_call.args, part.function_call.id))
    return texts, thoughts, calls, finish, usage


def build_expected(answer):
    return answer.text, answer.thought, [(call.name, call.arguments) for call in answer.calls]


def check(name, replies):
    answer = ANSWERS[name]
    texts, thoughts, calls, finish, usage = collect_replies(replies)
    assert (texts, thoughts, [call[:2] for call in calls]) == build_expected(answer)
    assert finish == ("" if name == "blocked" else FINISHES.get(name, "STOP"))
    assert usage.prompt_token_count == answer.usage.input
    if name != "blocked":
        assert usage.total_token_count == answer.usage.input + answer.usage.output
        lines = answer.usage.output - answer.usage.thought
        assert (usage.candidates_token_count or 0, usage.thoughts_token_count or 0) == (lines, answer.usage.thought)
    feedback = replies[-1].prompt_feedback
    assert (feedback is not None) == (name == "blocked")
    return calls


@pytest.mark.parametrize("kind", SITUATIONS)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_reply_has_the_sdks_types_and_the_answer(name, kind):
    body = API.render_reply(ANSWERS[name], accept_config(kind), occasion())
    # The types forbid unknown fields.
    types.GenerateContentResponse.model_validate(json.loads(body))
    reply = client(lambda _: httpx2.Response(200, content=body)).models.generate_content(model="m", contents="x")
    calls = check(name, [reply])
    assert all(bool(call[2]) == (kind in {"new", "vertex"}) for call in calls)


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("kind", SITUATIONS)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_has_the_sdks_types_and_the_answer(name, kind, pace):
    frames = list(API.render_stream(ANSWERS[name], accept_config(kind), occasion(**PACES[pace])))
    for frame in frames:
        assert frame.startswith(b"data: {")
        assert frame.endswith(b"}\r\n\r\n")
        types.GenerateContentResponse.model_validate(json.loads(frame[6:]))
    answered = client(lambda _: httpx2.Response(200, content=b"".join(frames)))
    check(name, list(answered.models.generate_content_stream(model="m", contents="x")))


@pytest.mark.parametrize(("end", "finish"), [("stop", "STOP"), ("filtered", "SAFETY")])
def test_a_refusal_is_rendered_as_text(end, finish):
    answer = Answer(text="Well.", refusal="I will not.", end=end, usage=USAGE)
    whole = types.GenerateContentResponse.model_validate(
        json.loads(API.render_reply(answer, accept_config(), occasion()))
    )
    frames = [json.loads(frame[6:]) for frame in API.render_stream(answer, accept_config(), occasion())]
    streamed = [types.GenerateContentResponse.model_validate(frame) for frame in frames]
    for replies in ([whole], streamed):
        assert collect_replies(replies)[0] == "Well.\n\nI will not."
        assert collect_replies(replies)[3] == finish


@pytest.mark.parametrize("kind", SITUATIONS)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_has_the_same_content_as_a_whole_reply(name, kind):
    answer, request = ANSWERS[name], accept_config(kind)
    whole = json.loads(API.render_reply(answer, request, occasion()))
    chunks = [json.loads(frame[6:]) for frame in API.render_stream(answer, request, occasion())]
    last = chunks[-1]
    for member in ("usageMetadata", "modelVersion", "responseId", "promptFeedback"):
        assert last.get(member) == whole.get(member)
    for member in ("finishReason", "groundingMetadata", "safetyRatings", "finishMessage"):
        ends = [candidate.get(member) for candidate in last.get("candidates", [])]
        assert ends == [candidate.get(member) for candidate in whole.get("candidates", [])]
        assert not [one for chunk in chunks[:-1] for one in chunk["candidates"] if member in one]
    assert signatures(chunks) == signatures([whole])


def signatures(replies):
    parts = [
        part
        for reply in replies
        for candidate in reply.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]
    return [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]


def parts_of(name, kind="new", **config):
    return json.loads(API.render_reply(ANSWERS[name], accept_config(kind, **config), occasion()))["candidates"][0][
        "content"
    ]["parts"]


def test_the_first_of_parallel_calls_is_signed_and_an_answers_last_text():
    assert [("thoughtSignature" in part) for part in parts_of("calls")] == [False, True, False]
    assert [("thoughtSignature" in part) for part in parts_of("thought")] == [False, True]
    assert [("thoughtSignature" in part) for part in parts_of("call", "old")] == [False, True]
    assert [("thoughtSignature" in part) for part in parts_of("text", "old")] == [False]


def test_a_streamed_text_is_signed_on_an_empty_part_at_its_end():
    chunks = [json.loads(frame[6:]) for frame in API.render_stream(ANSWERS["text"], accept_config(), occasion(size=5))]
    [part] = chunks[-1]["candidates"][0]["content"]["parts"]
    assert part["text"] == ""
    assert part["thoughtSignature"]


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("new", ["text", "functionCall", "functionCall", "text"]),
        ("vertex", ["text", "functionCall", "functionCall"]),
        ("old", ["text", "functionCall functionCall"]),
    ],
)
def test_streamed_calls_end_as_they_were_recorded(kind, shapes):
    chunks = [
        json.loads(frame[6:]) for frame in API.render_stream(ANSWERS["calls"], accept_config(kind), occasion(size=0))
    ]
    parts = [chunk["candidates"][0]["content"]["parts"] for chunk in chunks]
    assert [" ".join(next(iter(part)) for part in one) for one in parts] == shapes


def test_thoughts_are_included_only_if_requested():
    hidden = require_accepted(build_request())
    reply = json.loads(API.render_reply(ANSWERS["thought"], hidden, occasion()))
    assert [part["text"] for part in reply["candidates"][0]["content"]["parts"]] == [TEXT]
    assert reply["usageMetadata"]["thoughtsTokenCount"] == USAGE.thought


def test_ids_are_googles_own_unless_a_script_gives_them():
    calls = [part["functionCall"]["id"] for part in parts_of("calls") if "functionCall" in part]
    assert len(set(calls)) == 2
    assert all(len(one) == 8 and one.isalnum() for one in calls)
    scripted = ANSWERS["call"].__class__(calls=(PARIS.__class__(id="mine", name="f", arguments={}),), end="calls")
    reply = json.loads(API.render_reply(scripted, accept_config(), occasion()))
    assert reply["candidates"][0]["content"]["parts"][0]["functionCall"] == {"name": "f", "args": {}, "id": "mine"}


def test_places_of_sources_are_counted_in_bytes():
    reply = json.loads(API.render_reply(ANSWERS["search"], accept_config(), occasion()))
    metadata = reply["candidates"][0]["groundingMetadata"]
    text = ANSWERS["search"].text.encode()
    assert len(metadata["groundingSupports"]) == 2
    for support in metadata["groundingSupports"]:
        segment = support["segment"]
        assert text[segment["startIndex"] : segment["endIndex"]].decode() == segment["text"]
    assert [chunk["web"]["title"] for chunk in metadata["groundingChunks"]] == ["Weather", "Sky", "Other"]
    assert metadata["webSearchQueries"] == ["weather in Paris"]


def test_a_search_is_included_if_requested():
    request = require_accepted(
        {
            "contents": [user("Hi.")],
            "tools": [{"googleSearch": {}}],
            "toolConfig": {"includeServerSideToolInvocations": True},
        }
    )
    reply = json.loads(API.render_reply(ANSWERS["search"], request, occasion()))
    types.GenerateContentResponse.model_validate(reply)
    parts = reply["candidates"][0]["content"]["parts"]
    assert [next(iter(part)) for part in parts] == ["toolCall", "toolResponse", "text"]
    segments = [one["segment"] for one in reply["candidates"][0]["groundingMetadata"]["groundingSupports"]]
    assert {segment["partIndex"] for segment in segments} == {2}
    require_accepted(
        {
            "contents": [user("Hi."), reply["candidates"][0]["content"], user("And?")],
            "tools": [{"googleSearch": {}}],
            "toolConfig": {"includeServerSideToolInvocations": True},
        }
    )


def test_an_enum_answer_is_written_without_quotes():
    config = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}}
    request = require_accepted({"contents": [user("Hi.")], "generationConfig": config})
    reply = json.loads(API.render_reply(ANSWERS["text"].__class__(text='"a"', usage=USAGE), request, occasion()))
    assert reply["candidates"][0]["content"]["parts"][0]["text"] == "a"


def test_several_candidates_are_numbered():
    request = require_accepted({"contents": [user("Hi.")], "generationConfig": {"candidateCount": 2}}, situation(OLD))
    reply = json.loads(API.render_reply(ANSWERS["text"], request, occasion()))
    assert [candidate["index"] for candidate in reply["candidates"]] == [0, 1]


def rebuilt(chunks):
    """Assemble arguments from their pieces, as Google documents them."""
    calls, paths = [], {}
    for chunk in chunks:
        for part in chunk["candidates"][0]["content"]["parts"]:
            call = part.get("functionCall")
            if call is None:
                continue
            if "name" in call:
                calls.append(call["name"])
                paths = {}
            for piece in call.get("partialArgs", []):
                path = piece["jsonPath"]
                value = next((piece[name] for name in piece if name.endswith("Value")), None)
                paths[path] = paths.get(path, "") + value if isinstance(value, str) else value
            if not call:
                yield calls[-1], paths


@pytest.mark.parametrize("asked", [True, False])
def test_vertex_streams_partial_arguments_if_requested(asked):
    calling = {"streamFunctionCallArguments": True} if asked else {}
    request = require_accepted(build_request(toolConfig={"functionCallingConfig": calling}), situation(vertex=True))
    frames = list(API.render_stream(ANSWERS["calls"], request, occasion(size=2, partial_args=not asked)))
    chunks = [json.loads(frame[6:]) for frame in frames]
    for chunk in chunks:
        types.GenerateContentResponse.model_validate(chunk)
    assert list(rebuilt(chunks)) == [
        ("get_weather", {"$.city": "Paris", "$.days": 3}),
        ("get_weather", {"$.city": "Tōkyō", "$.at.hours[0]": 1, "$.at.hours[1]": 2.5, "$.at.none[]": None}),
    ]
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert len(signatures(chunks)) == 1


def test_other_surfaces_send_arguments_whole_whatever_the_pace():
    chunks = [
        json.loads(frame[6:])
        for frame in API.render_stream(ANSWERS["call"], accept_config(), occasion(partial_args=True))
    ]
    assert not [chunk for chunk in chunks if "partialArgs" in json.dumps(chunk)]


def test_odd_names_and_values_have_paths_of_their_own():
    arguments = {"a b": None, "it's": True, "": 1, "empty": {}, "text": ""}
    call = TOKYO.__class__(id="", name="get_weather", arguments=arguments)
    answer = ANSWERS["call"].__class__(calls=(call,), end="calls", usage=USAGE)
    request = require_accepted(build_request(), situation(vertex=True))
    chunks = [json.loads(frame[6:]) for frame in API.render_stream(answer, request, occasion(partial_args=True))]
    pieces = [
        piece
        for chunk in chunks
        for part in chunk["candidates"][0]["content"]["parts"]
        for piece in part["functionCall"].get("partialArgs", [])
    ]
    assert pieces == [
        {"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"},
        {"jsonPath": "$['it\\'s']", "boolValue": True},
        {"jsonPath": "$['']", "numberValue": 1},
        {"jsonPath": "$.empty"},
        {"jsonPath": "$.text", "stringValue": ""},
    ]


@pytest.mark.parametrize("name", ANSWERS)
def test_without_alt_sse_a_stream_is_one_array_of_the_same_chunks(name):
    frames = list(API.render_stream(ANSWERS[name], accept_config(), occasion()))
    pieces = list(render_array(frames))
    chunks = [json.loads(frame[6:]) for frame in frames]
    assert json.loads(b"".join(pieces)) == chunks
    assert len(pieces) == len(chunks) + 1


def test_code_assist_wraps_replies_and_chunks_with_one_trace():
    whole = API.render_reply(ANSWERS["text"], accept_config(), occasion())
    wrap = json.loads(wrap_reply(whole))
    assert wrap["response"] == json.loads(whole)
    frames = [
        json.loads(wrap_reply(frame[6:])) for frame in API.render_stream(ANSWERS["text"], accept_config(), occasion())
    ]
    assert {one["traceId"] for one in frames} == {wrap["traceId"]}


def test_an_answer_can_be_taken_out_of_a_reply():
    reply = json.loads(API.drop_answer(API.render_reply(ANSWERS["text"], accept_config(), occasion())))
    assert "candidates" not in reply
    assert reply["usageMetadata"]["promptTokenCount"] == USAGE.input
    types.GenerateContentResponse.model_validate(reply)


def test_the_api_has_an_envelope_and_an_array_form():
    assert API.name == "gemini"
    assert (API.envelope.unwrap, API.envelope.wrap, API.render_array) == (unwrap_request, wrap_reply, render_array)
