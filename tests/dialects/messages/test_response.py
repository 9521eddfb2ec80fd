import json

import pytest
from msgspec import structs

import shelf
from dialects.messages import official, recordings
from dragoman.core.parts import Citation, Media, Opaque, Plain, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras
from dragoman.dialects.messages.response import build_response, parse_response

UNSAYABLE_WORD = {
    "anthropic/vercel-ai-0033": "says end_turn though it made calls; written back as tool_use",
}


def parse(**members):
    return parse_response(json.dumps({"id": "msg_1", "model": "m", "content": [], **members}).encode())


def build(response):
    return json.loads(build_response(response, None))


def reply(*parts, finish=None, usage=None):
    return Response(id="msg_1", model="m", parts=parts, finish=finish or Finish("stop"), usage=usage)


@shelf.needs_shelf
def test_every_recorded_reply_survives_being_read_and_written():
    count = 0
    for name, body in recordings.replies():
        response = parse_response(body)
        again = parse_response(build_response(response, None))
        if name in UNSAYABLE_WORD:
            again = structs.replace(again, finish=response.finish)
        assert again == response, name
        count += 1
    assert count > 450


@shelf.needs_shelf
def test_no_reply_we_build_has_a_fault_by_the_official_types_that_the_recorded_one_had_not():
    passed = 0
    for name, body in recordings.replies():
        built = build_response(parse_response(body), None)
        assert official.reply_faults(built) <= official.reply_faults(body), name
        passed += not official.reply_faults(built)
    assert passed > 440


@shelf.needs_shelf
def test_every_recorded_reply_matches_the_official_types():
    from anthropic.types.beta import BetaMessage

    for name, body in recordings.replies():
        if official.reply_faults(body):
            continue
        response, message = parse_response(body), BetaMessage.model_validate_json(body)
        assert (response.id, response.model, response.finish.raw) == (message.id, message.model, message.stop_reason)
        texts = [part.text for part in response.parts if isinstance(part, Text)]
        assert texts == [block.text for block in message.content if block.type == "text"], name
        calls = [
            (part.id, part.name, json.loads(part.arguments)) for part in response.parts if isinstance(part, ToolCall)
        ]
        assert calls == [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        assert len(response.parts) == len(message.content), name


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "paused"),
        ("refusal", "refused"),
        ("compaction", "other"),
    ],
)
def test_stop_reasons_survive_a_round_trip(word, reason):
    response = parse(stop_reason=word)
    assert response.finish == Finish(reason, word)
    assert build(response)["stop_reason"] == word


def test_a_stop_sequence_is_named():
    response = parse(stop_reason="stop_sequence", stop_sequence="END")
    assert response.finish == Finish("stop", "stop_sequence", "END")
    written = build(reply(finish=Finish("stop", "STOP", "END")))
    assert (written["stop_reason"], written["stop_sequence"]) == ("stop_sequence", "END")


@pytest.mark.parametrize(
    ("finish", "word"),
    [
        (Finish("stop", "STOP"), "end_turn"),
        (Finish("length", "MAX_TOKENS"), "max_tokens"),
        (Finish("tool_calls", "stop"), "tool_use"),
        (Finish("filtered", "SAFETY"), "refusal"),
        (Finish("refused", "stop"), "refusal"),
        (Finish("paused"), "pause_turn"),
        (Finish("length", "end_turn"), "max_tokens"),
    ],
)
def test_foreign_finish_reasons_become_the_nearest_one(finish, word):
    assert build(reply(finish=finish))["stop_reason"] == word


@pytest.mark.parametrize(
    ("finish", "code"),
    [
        (Finish("malformed_call", "MALFORMED_FUNCTION_CALL"), "malformed_function_call"),
        (Finish("other", "OTHER"), "OTHER"),
        (Finish("other"), None),
    ],
)
def test_a_missing_stop_reason_is_a_problem_and_never_end_turn(finish, code):
    with pytest.raises(Problem) as caught:
        build_response(reply(finish=finish), None)
    assert (caught.value.kind, caught.value.status, caught.value.code) == ("malformed_reply", 502, code)


def test_an_unknown_or_missing_stop_reason_is_not_a_good_end():
    assert parse(stop_reason="solar_flare").finish == Finish("other", "solar_flare")
    assert parse(stop_reason=None).finish == Finish("other", "")


def test_a_complete_call_outweighs_end_turn_but_not_max_tokens():
    content = [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]
    assert parse(content=content, stop_reason="end_turn").finish.reason == "tool_calls"
    assert parse(content=content, stop_reason="max_tokens").finish.reason == "length"


def test_usage_counts_the_cache_once():
    wire = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 30,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4, "more": 1},
        "service_tier": "standard",
    }
    usage = parse(stop_reason="end_turn", usage=wire).usage
    assert usage == Usage(
        input=60,
        output=7,
        cached=30,
        cache_written=20,
        reasoning=4,
        extras=Extras("messages", {"/service_tier": b'"standard"', "/output_tokens_details/more": b"1"}),
    )
    assert build(reply(usage=usage))["usage"] == wire


def test_unreported_usage_is_written_as_the_two_numbers_clients_need():
    assert build(reply())["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert build(reply(usage=Usage(output=3)))["usage"] == {"input_tokens": 0, "output_tokens": 3}


def test_a_call_without_input_means_the_empty_object():
    call = parse(content=[{"type": "tool_use", "id": "t", "name": "n"}], stop_reason="tool_use").parts[0]
    assert call == ToolCall(id="t", name="n", arguments="{}")


def test_an_empty_thinking_block_keeps_its_signature():
    content = [{"type": "thinking", "thinking": "", "signature": "s"}]
    response = parse(content=content, stop_reason="end_turn")
    assert response.parts == (Reasoning(signature=Signature("anthropic", "s")),)
    assert build(response)["content"] == content


def test_a_call_that_was_cut_off_is_left_out_of_a_whole_reply():
    parts = (Text(text="a"), ToolCall(id="t", name="n", arguments='{"ci', complete=False))
    written = build(reply(*parts, finish=Finish("length")))
    assert [block["type"] for block in written["content"]] == ["text"]
    assert written["stop_reason"] == "max_tokens"


def test_foreign_parts_take_the_nearest_block():
    parts = (
        Reasoning(texts=("a", "b")),
        Refusal(text="no"),
        Text(
            text="see",
            citations=(
                Citation("gemini", b"{}", url="https://x", title="X", quote="q"),
                Citation("gemini", b"{}", title="no address"),
            ),
        ),
        Opaque(dialect="gemini", raw=b"{}"),
        Media(kind="image", media_type="", source=Plain("x")),
    )
    body = build_response(reply(*parts), None)
    assert official.reply_faults(body) == set()
    thinking, refusal, text = json.loads(body)["content"]
    assert thinking == {"type": "thinking", "thinking": "a\n\nb", "signature": ""}
    assert refusal == {"type": "text", "text": "no"}
    assert [citation["url"] for citation in text["citations"]] == ["https://x"]


def test_citations_have_the_fields_that_other_dialects_share():
    raw = {
        "type": "web_search_result_location",
        "url": "https://x",
        "title": "X",
        "cited_text": "q",
        "encrypted_index": "e",
    }
    part = parse(content=[{"type": "text", "text": "t", "citations": [raw]}], stop_reason="end_turn").parts[0]
    assert isinstance(part, Text)
    citation = part.citations[0]
    assert (citation.url, citation.title, citation.quote) == ("https://x", "X", "q")
    assert json.loads(citation.raw) == raw


def test_a_reply_always_has_an_id():
    assert build(structs.replace(reply(), id=""))["id"] == "msg_0"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"content": 5}', b'{"content":[{"type":"text"}]}'])
def test_a_reply_that_is_none_is_a_problem(body):
    with pytest.raises(Problem) as caught:
        parse_response(body)
    assert (caught.value.kind, caught.value.status) == ("malformed_reply", 502)
