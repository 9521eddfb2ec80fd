"""Frames of requests: when they are remembered, how they are told apart, and what must not pass from one to another."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter import translate
from dragoman.interpreter.frames import Frames
from dragoman.interpreter.translate import translate_request

PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]


class Watched(Frames):
    """Notes of each request whether something was made of its frame before."""

    def __init__(self) -> None:
        super().__init__()
        self.used = []
        look = self.outlines.of

        def of(body, name):
            self.used.append(False)
            return look(body, name)

        self.outlines.of = of

    def find(self, around, mark):
        frame = super().find(around, mark)
        self.used[-1] = frame is not None
        return frame


@pytest.fixture
def frames(monkeypatch):
    watched = Watched()
    monkeypatch.setattr(translate, "FRAMES", watched)
    return watched


def said(text):
    return [{"role": "user", "content": text}]


def called(name, arguments="{}"):
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        *said("hi"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
    ]


def body(messages, **rest):
    return json.dumps({"model": "m", "messages": messages, **rest}).encode()


def told(document, target="gemini", model="gemini-2.5-flash", **wishes):
    return translate_request(Call(document), "chat", target, model=model, **wishes)


def contents(translation):
    return json.loads(translation.call.body)["contents"]


def test_a_frame_is_used_from_the_third_time_on(frames):
    for text in ("one", "two", "three", "four"):
        assert contents(told(body(said(text), tools=TOOLS)))[0]["parts"] == [{"text": text}]
    assert frames.used == [False, False, True, True]


def test_frames_that_end_alike_are_told_apart(frames):
    bare = body(said("a"))
    with_tools = body(said("b"), tools=TOOLS)
    assert bare.endswith(b"]}")
    assert with_tools.endswith(b"]}")
    for _ in range(3):
        assert "tools" not in json.loads(told(bare).call.body)
        assert "tools" in json.loads(told(with_tools).call.body)
    assert frames.used[-2:] == [True, True]


def test_a_text_that_looks_like_the_end_of_a_frame_stays_a_text(frames):
    for text in ("a", "b", '],"tools":[]}', '"}],"tools":[]}'):
        assert contents(told(body(said(text), tools=[])))[0]["parts"] == [{"text": text}]
    assert frames.used[-1]


def test_another_model_target_or_way_to_answer_is_another_frame(frames):
    document = body(said("a"), tools=TOOLS, temperature=0.5)
    for _ in range(3):
        told(document)
    assert json.loads(told(document, "messages", "claude-sonnet-4-5").call.body)["model"] == "claude-sonnet-4-5"
    assert told(document, model="gemini-3-flash").call.model == "gemini-3-flash"
    assert translate_request(Call(document, stream=True), "chat", "gemini", model="gemini-2.5-flash").call.stream
    assert frames.used == [False, False, True, False, False, False]


def test_names_that_one_history_calls_are_not_undone_for_another(frames):
    for _ in range(3):
        assert told(body(said("a"), tools=TOOLS)).undo.names == {}
    odd = told(body(called("what is this?"), tools=TOOLS)).undo.names
    assert list(odd.values()) == [("", "what is this?")]
    assert told(body(said("a"), tools=TOOLS)).undo.names == {}
    assert frames.used[-2:] == [True, True]


def test_arguments_of_calls_are_said_as_the_tools_of_a_known_frame_are_told(frames):
    parameters = {"type": "object", "properties": {"a b": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    for _ in range(3):
        told(body(said("a"), tools=tools), "messages", "claude-sonnet-4-5")
    call = told(body(called("f", '{"a b":"x"}'), tools=tools), "messages", "claude-sonnet-4-5")
    assert frames.used[-1]
    assert json.loads(call.call.body)["messages"][1]["content"][0]["input"] == {"a_b": "x"}


def test_what_a_known_frame_asks_for_in_words_is_said_in_every_history(frames):
    for text in ("one", "two", "three"):
        now = told(body(said(text), tools=TOOLS, parallel_tool_calls=False))
        words = json.loads(now.call.body)["systemInstruction"]["parts"]
        assert words == [{"text": "Call at most one tool at a time."}]
        assert now.undo.single
    assert frames.used[-1]


def test_losses_of_the_history_stand_beside_those_of_the_frame(frames):
    named = [{"role": "user", "name": "Ann", "content": "a"}]
    for _ in range(3):
        assert [loss.where for loss in told(body(said("a"), logit_bias={"1": 2})).losses] == ["/logit_bias/1"]
    both = told(body(named, logit_bias={"1": 2})).losses
    assert [loss.where for loss in both] == ["/logit_bias/1", "/messages/0/name"]
    assert frames.used[-1]


def test_strict_refuses_what_a_known_frame_loses(frames):
    for _ in range(3):
        told(body(said("a"), logit_bias={"1": 2}))
    with pytest.raises(Problem, match="logit_bias"):
        told(body(said("a"), logit_bias={"1": 2}), strict=True)
    assert frames.used[-1]


def test_what_depends_on_the_history_is_never_remembered(frames):
    form = {"response_format": {"type": "json_object"}}
    for _ in range(3):
        assert told(body(said("as JSON"), **form), "responses", "gpt-4.1").losses == ()
    assert told(body(said("hello"), **form), "responses", "gpt-4.1").losses != ()
    assert not any(frames.used)


def with_items(items):
    known = body(said("a"), tools=TOOLS)
    for _ in range(3):
        told(known)
    return known.replace(json.dumps(said("a")).encode()[1:-1], items)


@pytest.mark.parametrize("items", [b"}", b'{"role":"user"', b'{"role":"user","content":1}', b'"\xff"'])
def test_what_is_wrong_with_a_history_is_told_as_ever(frames, items):
    document = with_items(items)
    with pytest.raises(Problem) as known:
        told(document)
    Frames.__init__(frames)
    with pytest.raises(Problem) as new:
        told(document)
    assert (known.value.kind, known.value.message, known.value.where) == (
        new.value.kind,
        new.value.message,
        new.value.where,
    )


def test_of_two_histories_the_last_counts_as_ever(frames):
    document = with_items(b'{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}')
    assert contents(told(document))[0]["parts"] == [{"text": "b"}]


def test_what_is_made_of_one_body_for_ever_new_models_is_bounded(frames):
    document = body(said("a"), tools=TOOLS)
    for number in range(300):
        told(document, model=f"gemini-2.5-flash-{number}")
    outline = frames.outlines.of(document, "messages")
    assert 0 < len(outline.around.made) <= 64


@pytest.mark.parametrize("before", [100, 101])
def test_a_frame_is_learned_also_among_many_that_come_once(frames, before):
    for number in range(before):
        told(body(said("a"), user=str(number)))
    for number in range(30):
        told(body(said("a"), user=str(before + number)))
        told(body(said("b"), tools=TOOLS, user="same"))
    assert frames.used[-1]
