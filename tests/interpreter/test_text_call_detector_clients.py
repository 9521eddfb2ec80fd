"""A reply with calls as text, translated for clients of every dialect, whole and streamed."""

import json

import pytest
from msgspec import structs

from dragoman.core.events import Failed, Finished, PartDelta, PartEnded, PartNative, PartStarted, Started
from dragoman.core.parts import Citation, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.text_call_detector import CallDetector, detect_calls
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.undo import TextCallSettings
from event_grammar import check_events

DIALECTS = ["chat", "responses", "messages", "gemini"]
ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}],
    "tools": [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("get_weather", "get_time")
    ],
}
SAID = """I look it up.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": [1, {"a": "}"}]}}
</tool_call>
<tool_call>{"name": "GetTime"}</tool_call>"""


def build_request(dialect, **more):
    """What a client of a dialect asks, as the context of its reply."""
    plain = Call(json.dumps(ASKED | more).encode(), "m", stream=bool(more.get("stream")))
    return translate_request(plain, "chat", dialect).call if dialect != "chat" else plain


def reply(*parts, reason="stop", reply_id="r1"):
    usage = Usage(input=1, output=2)
    return Response(id=reply_id, model="m", parts=parts, finish=Finish(reason), usage=usage, created=1)


def build_detector(ledger=None, *, runs_calls=False, **content_of):
    content_of = {"names": ("get_weather", "get_time"), **content_of}
    return CallDetector(
        TextCallSettings(**content_of), "call_", "1", Ledger({}) if ledger is None else ledger, runs_calls=runs_calls
    )


def listen(response, **content_of):
    return detect_calls(response, build_detector(**content_of))


def calls(response):
    return [(part.name, json.loads(part.arguments)) for part in response.parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_whole_and_streamed_replies_have_the_same_calls_in_every_dialect(client, upstream):
    context_of = translate_request(build_request(client), client, upstream, text_calls="json")
    context = Context(context_of.request, context_of.undo, now=1)
    source_dialect, target_dialect = dialect_named(upstream), dialect_named(client)
    wording = reply(Text(text=SAID))
    body = source_dialect.build_response(wording, None)
    whole = target_dialect.parse_response(translate_response(body, upstream, client, context).body)
    assert calls(whole) == [("get_weather", {"city": "Paris", "days": [1, {"a": "}"}]}), ("get_time", {})]
    assert [part.text for part in whole.parts if isinstance(part, Text)] == ["I look it up."]
    assert whole.finish.reason == "tool_calls"
    encoder = source_dialect.encoder(None)
    events = [Started("r1", "m", 1), PartStarted(0, Text(text=""))]
    events += [PartDelta(0, SAID[at : at + 3]) for at in range(0, len(SAID), 3)]
    events += [PartEnded(0), *list(replay(wording))[-2:]]
    stream = b"".join(map(encoder.feed, events))
    for size in (1, 7, len(stream)):
        translator = StreamTranslator(upstream, client, context)
        result = b"".join(translator.feed(stream[at : at + size]) for at in range(0, len(stream), size))
        decoder = target_dialect.decoder()
        streamed = collect(check_events([*decoder.feed(result + translator.close()), *decoder.close()]))
        assert (streamed.parts, streamed.finish.reason) == (whole.parts, whole.finish.reason)
        assert translator.finish.reason == "tool_calls"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_ids_are_the_same_whenever_the_same_reply_is_read(dialect):
    context_of = translate_request(build_request(dialect), dialect, "chat", text_calls="json")
    context = Context(context_of.request, context_of.undo)
    body = dialect_named("chat").build_response(reply(Text(text=SAID)), None)
    replies = [translate_response(body, "chat", dialect, context).body for _ in range(2)]
    first, second = (dialect_named(dialect).parse_response(result) for result in replies)
    ids = [part.id for part in first.parts if isinstance(part, ToolCall)]
    assert ids == [part.id for part in second.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 2
    assert all(ids)


def test_a_text_comes_as_it_is_split_and_parts_keep_their_order():
    wording = reply(
        Reasoning(texts=("TOOL_CALL: a",)), Text(text='one <tool_call>{"name":"x"}</tool_call> two'), Text(text="three")
    )
    result = listen(wording)
    kinds = [(type(part), getattr(part, "text", getattr(part, "name", ""))) for part in result.parts]
    assert kinds == [(Reasoning, ""), (Text, "one"), (ToolCall, "x"), (Text, "two"), (Text, "three")]


@pytest.mark.parametrize("part", [Reasoning(texts=(SAID,)), Refusal(text=SAID)])
def test_neither_thoughts_nor_refusals_call_anything(part):
    wording = reply(part, Text(text="Done."))
    assert listen(wording) == wording


def test_a_reply_without_calls_stays_as_it_is():
    wording = reply(
        Reasoning(texts=("hm",), signature=Signature("google", "s")),
        Text(text="Hello\n\n", signature=Signature("google", "t")),
        Text(text=""),
    )
    assert listen(wording) == wording


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("get_weather", "get_weather"),
        ("GetWeather", "get_weather"),
        ("GET-WEATHER", "get_weather"),
        ("getTime", "getTime"),
        ("get_snow", "get_snow"),
    ],
)
def test_a_nearly_correct_name_is_corrected_only_if_it_is_unambiguous(written, name):
    result = listen(reply(Text(text=f"TOOL_CALL: {written}\n")), names=("get_weather", "get_time", "Get_Time"))
    assert calls(result) == [(name, {})]


def test_a_call_that_the_end_cut_off_is_not_taken_for_one_without_arguments():
    wording = "I erase.\n\nTOOL_CALL: erase"
    cut = listen(reply(Text(text=wording), reason="length"))
    assert [part.text for part in cut.parts] == [wording]
    assert cut.finish.reason == "length"
    whole = listen(reply(Text(text=wording)))
    assert (calls(whole), whole.finish.reason) == ([("erase", {})], "tool_calls")


def test_a_complete_call_before_a_truncated_end_is_emitted():
    result = listen(reply(Text(text='TOOL_CALL: a\nARGUMENTS: {}\nTOOL_CALL: b\nARGUMENTS: {"x'), reason="length"))
    assert calls(result) == [("a", {})]
    assert result.parts[-1].text == 'TOOL_CALL: b\nARGUMENTS: {"x'
    assert result.finish.reason == "length"


def test_with_parallel_off_one_call_is_emitted_and_the_others_are_losses():
    ledger = Ledger({})
    result = detect_calls(reply(Text(text=SAID, where="/t")), build_detector(ledger, single_call=True))
    assert [name for name, _ in calls(result)] == ["get_weather"]
    assert [(loss.where, loss.kind) for loss in ledger.losses()] == [("/t", "dropped")]


def test_an_unparsable_call_is_emitted_as_text_and_is_a_loss():
    ledger = Ledger({})
    wording = reply(Text(text='TOOL_CALL: a\nARGUMENTS: {"x": }', where="/t"))
    assert detect_calls(wording, build_detector(ledger)) == wording
    assert [(loss.where, loss.what, loss.kind) for loss in ledger.losses()] == [
        ("/t", "a call in the text cannot be parsed: sent as text", "approximated")
    ]


def test_what_signs_a_text_that_held_a_call_is_reported():
    ledger = Ledger({"part.signature": ("/signature",)})
    wording = reply(Text(text=SAID, where="/t", signature=Signature("google", "s")))
    result = detect_calls(wording, build_detector(ledger))
    assert all(part.signature is None for part in result.parts)
    assert [(loss.where, loss.kind) for loss in ledger.losses()] == [("/t/signature", "dropped")]


def test_fields_of_a_text_that_is_only_a_call_are_losses():
    ledger = Ledger({})
    extras = Extras("chat", {"/logprobs": b"[1]"})
    called = Text(text="TOOL_CALL: get_time\n", where="/t", extras=extras)
    assert detect_calls(reply(called), build_detector(ledger)).parts[0].extras is None
    assert [(loss.where, loss.kind) for loss in ledger.losses()] == [("/t/logprobs", "dropped")]
    ledger = Ledger({})
    beside = Text(text="Now.\nTOOL_CALL: get_time\nTOOL_CALL: get_time\nThen.", where="/t", extras=extras)
    result = detect_calls(reply(beside), build_detector(ledger)).parts
    assert [part.extras for part in result] == [extras, None, None, None]
    assert ledger.losses() == ()


def test_citations_of_a_text_are_kept_unless_a_call_was_removed_from_it():
    source = Citation("chat", b"{}", url="https://a.example")
    plain = reply(Text(text="Look.", citations=(source,)))
    assert listen(plain) == plain
    ledger = Ledger({})
    cut = reply(Text(text="Look.\nTOOL_CALL: get_time\n", where="/t", citations=(source,)))
    assert detect_calls(cut, build_detector(ledger)).parts[0].citations == ()
    assert [(loss.where, loss.kind) for loss in ledger.losses()] == [("/t", "approximated")]


def test_fields_that_come_with_a_text_stay_on_it():
    events = [Started("r", "m"), PartStarted(0, Text(text="")), PartNative(0, "chat", "/x", b"1"), PartDelta(0, "Hi")]
    result = collect(check_events(build_detector().feed([*events, PartEnded(0), Finished(Finish("stop"))])))
    assert result.parts == (Text(text="Hi", extras=Extras("chat", {"/x": b"1"})),)


def test_a_call_at_the_end_of_a_text_is_complete_if_the_finish_reason_is_tool_calls():
    result = listen(reply(Text(text="TOOL_CALL: get_time"), reason="tool_calls"))
    assert (calls(result), result.finish.reason) == ([("get_time", {})], "tool_calls")
    followed = listen(reply(Text(text="TOOL_CALL: get_time"), Text(text="x"), reason="length"))
    assert calls(followed) == [("get_time", {})]


def test_interleaved_parts_are_parsed_in_their_order():
    events = [
        Started("r", "m"),
        PartStarted(0, Text(text="")),
        PartStarted(1, Reasoning()),
        PartDelta(1, "hm"),
        PartDelta(0, "TOOL_CALL: get"),
        PartEnded(1),
        PartDelta(0, "_time\n"),
        PartEnded(0),
        Finished(Finish("stop")),
    ]
    result = collect(check_events(build_detector().feed(events)))
    assert [type(part) for part in result.parts] == [ToolCall, Reasoning]


def test_a_stream_that_fails_within_a_call_does_not_emit_it():
    stage = build_detector()
    result = stage.feed([Started("r", "m"), PartStarted(0, Text(text="")), PartDelta(0, "Hi <tool_call>{")])
    result += stage.feed([Failed(Problem("unreachable", "gone"))])
    assert [event.text for event in result if isinstance(event, PartDelta)] == ["Hi"]
    assert isinstance(result[-1], Failed)


def test_the_stop_sequence_against_made_up_results_is_not_emitted():
    stopped = structs.replace(reply(Text(text="Done.")), finish=Finish("stop", "stop_sequence", "<tool_result"))
    assert listen(stopped, stop="<tool_result").finish == Finish("stop")
    own = structs.replace(reply(Text(text="Done.")), finish=Finish("stop", "", "END"))
    assert listen(own, stop="<tool_result").finish.sequence == "END"


BROKEN = "TOOL_CALL: get_time\nARGUMENTS: {,}"


def test_the_tool_loop_is_notified_of_text_that_is_an_unparsable_call():
    wording = reply(Text(text=f"{SAID}\nAnd:\n{BROKEN}", signature=Signature("google", "s")), Text(text="Done."))
    result = collect(check_events(build_detector(runs_calls=True).feed(replay(wording))))
    texts = [(part.text, part.unread) for part in result.parts if isinstance(part, Text)]
    assert texts == [("I look it up.", False), ("And:", False), (f"\n{BROKEN}", True), ("Done.", False)]
    assert result.finish.reason == "tool_calls"
    alone = listen(reply(Text(text=BROKEN)), runs_calls=True)
    assert [(part.text, part.unread) for part in alone.parts] == [(BROKEN, True)]
    assert alone.finish.reason == "malformed_call"


def test_the_tool_loop_is_notified_of_a_truncated_call():
    (part,) = listen(reply(Text(text="TOOL_CALL: get_time"), reason="length"), runs_calls=True).parts
    assert (part.text, part.unread) == ("TOOL_CALL: get_time", True)


def test_every_other_client_gets_every_character_as_text():
    wording = reply(Text(text=f"Look.\n\n{BROKEN}"))
    assert listen(wording).parts == wording.parts


def test_a_forbidden_call_is_dropped_and_a_loss_but_the_tool_loop_is_notified():
    wording = reply(Text(text=SAID + "\nSo.", where="/x"))
    ledger = Ledger({})
    result = detect_calls(wording, build_detector(ledger, forbidden=True))
    assert [part.text for part in result.parts] == ["I look it up.", "So."]
    assert result.finish.reason == "stop"
    assert ("/x", "dropped") in {(loss.where, loss.kind) for loss in ledger.losses()}
    assert len(calls(listen(wording, forbidden=True, runs_calls=True))) == 2
