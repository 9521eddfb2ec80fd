"""What fuzzing has found, one test a bug."""

import json

import pytest

from dragoman.core.events import Failed, Finished, PartCited, PartDelta
from dragoman.core.problems import MAX_RETRY_AFTER, Problem
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.translate import translate_request
from dragoman.wire.json import Malformed, is_json, one_line
from dragoman.wire.json_stream import JsonStreamReader
from dragoman.wire.lookup import find_leaves
from dragoman.wire.splice import graft
from event_grammar import check_events
from fuzz.targets import in_sequence

HUGE = b"9" * 5000
SCHEMAS = {
    "chat": b'{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":%b}}]}',
    "responses": b'{"model":"m","input":[],"tools":[{"type":"function","name":"f","parameters":%b}]}',
    "messages": b'{"model":"m","max_tokens":1,"messages":[],"tools":[{"name":"f","input_schema":%b}]}',
    "gemini": b'{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":%b}]}]}',
}


def events_of(dialect, data):
    decoder = DIALECTS[dialect].decoder()
    return list(check_events([*decoder.feed(data), *decoder.close()]))


def home(dialect, data):
    encoder = DIALECTS[dialect].encoder(None)
    return b"".join(map(encoder.feed, in_sequence(events_of(dialect, data))))


def sse(*documents):
    return b"".join(
        b"data: " + (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n\n" for one in documents
    )


@pytest.mark.parametrize("dialect", SCHEMAS)
@pytest.mark.parametrize("schema", [b'{"title":"\xff"}', b'{"title":"\xed\xa0\x80"}'])
def test_a_request_that_is_not_utf_8_is_rejected_even_if_it_is_only_forwarded(dialect, schema):
    with pytest.raises(Problem) as caught:
        DIALECTS[dialect].parse_request(Call(SCHEMAS[dialect] % schema))
    assert caught.value.kind == "invalid_request"


def test_utf_8_is_checked_across_the_blocks_it_is_checked_in():
    for padding in range(4090, 4100):
        body = SCHEMAS["chat"] % (b'{"title":"' + b"x" * padding + "漢字😀".encode() * 2000 + b'"}')
        assert DIALECTS["chat"].parse_request(Call(body)).tools
        with pytest.raises(Problem):
            DIALECTS["chat"].parse_request(Call(body.replace("😀".encode(), b"\xf0\x9f\x98", 1)))


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "1e999"])
@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("target", DIALECTS)
def test_an_impossibly_long_retry_delay_is_not_sent(wait, source, target):
    reply = translate_error(429, {"retry-after": wait}, b"{}", source, target)
    assert reply.headers.get("retry-after", "0").isdigit()


def test_a_very_long_wait_is_written_as_digits():
    assert Problem("rate_limit", "slow", retry_after=2.3e9).retry_after == MAX_RETRY_AFTER
    for dialect in DIALECTS.values():
        assert dialect.build_error(Problem("rate_limit", "slow", retry_after=2.3e9)).headers["retry-after"] == "604800"


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        (b'{"a":1e999,"b":[2]}', ["/x/a", "/x/b/0"]),
        (b'{"a":' + HUGE + b"}", ["/x"]),
        (b"[" * 900 + b"]" * 900, ["/x" + "/0" * 899]),
    ],
)
def test_leaves_of_values_that_python_cannot_represent_are_still_returned(raw, result):
    assert list(find_leaves(raw, "/x")) == result


def test_a_dropped_field_that_is_no_python_number_is_a_loss_and_not_a_crash():
    body = b'{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"system_fingerprint":-1e999}'
    assert [loss.where for loss in translate_response(body, "chat", "messages").losses] == ["/system_fingerprint"]


def test_arguments_with_a_number_beyond_floats_are_complete():
    assert is_json('{"a":1e999}')
    assert not is_json('{"a":1e999')


def test_white_space_is_not_taken_out_of_what_is_not_json():
    with pytest.raises(Malformed):
        one_line(b'{"a":\n')


def test_invalid_json_after_a_member_of_another_type_fails_the_stream():
    broken = b'{"type":"response.strange","delta":{"x":1},"object":"assist"ant"}'
    assert isinstance(events_of("responses", sse({"type": "response.created", "response": {}}, broken))[-1], Failed)


@pytest.mark.parametrize("more", [b'"delta":{"no":"text"}', b'"output_index":1e999', b'"type":"response.completed"'])
def test_a_known_event_with_a_member_of_another_type_fails_the_stream(more):
    wrong = b'{"type":{},"type":"response.output_text.delta","output_index":0,%b}' % more
    assert isinstance(events_of("responses", sse({"type": "response.created", "response": {}}, wrong))[-1], Failed)


@pytest.mark.parametrize("kind", [b'"a\\"b"', b'"x\\n\\ndata: {}"', b"1e999", b'""'])
def test_the_name_of_a_strange_event_cannot_break_out_of_its_frame(kind):
    strange = b'{"type":%b,"more":1}' % kind
    done = {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": []}}
    result = home("responses", sse({"type": "response.created", "response": {}}, strange, done))
    assert isinstance(events_of("responses", result)[-1], Finished)
    assert b'"more"' not in result


@pytest.mark.parametrize("schema", [True, [1]])
def test_an_output_schema_without_members_becomes_json(schema):
    form = {"type": "json_schema", "name": "colors", "schema": schema}
    body = json.dumps({"model": "m", "input": "x", "text": {"format": form}}).encode()
    translation = translate_request(Call(body), "responses", "gemini", model="gemini-3-flash")
    assert json.loads(translation.call.body)["generationConfig"]["responseJsonSchema"] == {"title": "colors"}


def test_values_before_a_broken_one_are_returned_wherever_the_chunks_are_cut():
    reader = JsonStreamReader()
    assert reader.feed(b'[{"a":1}]x') == [b'{"a":1}']
    with pytest.raises(Malformed):
        reader.close()


def test_a_call_that_turns_out_to_be_text_stays_a_call():
    added = {"type": "response.output_item.added", "item": {"type": "function_call", "call_id": "c", "name": "f"}}
    text = {"type": "output_text", "text": "é", "annotations": [{"type": "url_citation", "url": "https://e.com"}]}
    done = {"type": "response.content_part.done", "part": text}
    delta = {"type": "response.output_text.delta", "delta": "words"}
    cited = {"type": "response.output_text.annotation.added", "annotation": text["annotations"][0]}
    events = events_of("responses", sse(added, done, delta, cited))
    assert not [event for event in events if isinstance(event, PartCited | PartDelta)]


def test_an_unknown_format_is_not_treated_as_a_grammar():
    tool = {"type": "custom", "name": "shell", "format": {"type": "new"}}
    body = json.dumps({"model": "m", "input": "x", "tools": [tool]}).encode()
    translation = translate_request(Call(body), "responses", "chat", model="gpt-5.5")
    assert json.loads(translation.call.body)["tools"] == [{"type": "custom", "custom": {"name": "shell"}}]
    home = DIALECTS["responses"].render_request(
        DIALECTS["responses"].parse_request(Call(body)), Traits(dialect="responses")
    )
    assert json.loads(home.body)["tools"] == [tool]


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("responses", {"status": "completed", "output": [{"type": "function_call", "call_id": "c", "name": ""}]}),
        ("messages", {"content": [{"type": "tool_use", "id": "t", "name": "", "input": {}}]}),
    ],
)
def test_a_call_without_a_name_is_a_malformed_reply(dialect, reply):
    with pytest.raises(Problem) as caught:
        DIALECTS[dialect].parse_response(json.dumps(reply).encode())
    assert caught.value.kind == "malformed_reply"


def test_a_streamed_call_without_a_name_is_a_malformed_reply():
    block = {"type": "tool_use", "id": "t", "name": "", "input": {}}
    events = events_of("messages", sse({"type": "content_block_start", "index": 0, "content_block": block}))
    assert isinstance(events[-1], Failed)


@pytest.mark.parametrize("pieces", [(b"1e999", b"2"), (b'{"tool_calls":[]}', b'{"tool_calls":[null]}')])
def test_vendor_fields_in_pieces_that_do_not_join_do_not_break_the_stream(pieces):
    chunk = b'{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"x"}}],"strange":%b}'
    end = {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events = events_of("chat", sse(*(chunk % piece for piece in pieces), end, b"[DONE]"))
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("tool", [b'{"type":1e999}', b'{"googleSearch":{"x":' + HUGE + b"}}"])
@pytest.mark.parametrize("target", ["chat", "messages", "responses"])
def test_a_native_tool_with_a_number_beyond_python_is_dropped_or_replaced(tool, target):
    body = b'{"contents":[{"parts":[{"text":"x"}]}],"tools":[%b]}' % tool
    assert translate_request(Call(body), "gemini", target).losses


def test_a_cache_mark_with_a_number_beyond_floats_is_no_cache_mark():
    part = b'{"type":"text","text":"x","cache_control":{"ttl":1e999}}'
    body = b'{"model":"m","messages":[{"role":"user","content":[%b]}]}' % part
    assert translate_request(Call(body), "chat", "messages").losses


@pytest.mark.parametrize("name", ["text", 'a"b', "a\nb", "signature"])
def test_a_strange_delta_cannot_break_out_of_its_frame_or_pass_for_a_known_one(name):
    documents = (
        {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "odd", name: {"a": 1}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    assert isinstance(events_of("messages", home("messages", sse(*documents)))[-1], Finished)


@pytest.mark.parametrize("index", [2**63, 10**30])
def test_an_answer_may_have_any_number(index):
    assert graft(b'{"candidates":[1]}', {f"/candidates/{index}": b"2"}) == b'{"candidates":[1,2]}'


def test_a_refused_prompt_may_still_have_an_empty_candidate():
    body = b'{"candidates":[{"strange":1}],"promptFeedback":{"blockReasonMessage":"no"}}'
    gemini = DIALECTS["gemini"]
    written = gemini.build_response(gemini.parse_response(body), None)
    assert json.loads(written)["candidates"] == [{"strange": 1}]


@pytest.mark.parametrize(
    "block",
    [{"type": "dragoman:unknown", "raw": 1}, {"type": "dragoman:unknown", "raw": {"type": "text", "text": "x"}}],
)
def test_no_document_can_pass_for_our_own_mark_of_the_unknown(block):
    messages = DIALECTS["messages"]
    reply = json.dumps({"content": [block], "stop_reason": "end_turn"}).encode()
    assert json.loads(messages.build_response(messages.parse_response(reply), None))["content"] == [block]


def test_a_required_list_may_hold_anything():
    schema = b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a",{"b":1},[2]]}'
    translation = translate_request(Call(SCHEMAS["chat"] % schema), "chat", "messages")
    assert json.loads(translation.call.body)["tools"][0]["input_schema"]["required"] == ["a"]
