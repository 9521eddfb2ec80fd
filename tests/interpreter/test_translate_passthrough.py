"""What is passed on in its own dialect: streams of any shape, requests in an envelope or with foreign signatures."""

import json

import pytest

from cpu_limit import cpu_limit
from dragoman.core.losses import Loss
from dragoman.core.parts import Signature
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter import stream as streams
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import TranslatedResponse, translate_response
from dragoman.interpreter.signature_envelopes import seal_signature
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation
from dragoman.interpreter.turns import SKIP_SIGNATURE
from interpreter.workbench import encode

HELLO = b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
LIMIT = 1000


def test_a_long_frame_that_arrives_line_by_line_is_scanned_once():
    translator = StreamTranslator("chat", "chat")
    with cpu_limit(20):
        for _ in range(400_000):
            assert translator.feed(b": keep waiting\n") == b""
    assert translator.feed(HELLO[:-2]) == b""
    assert translator.feed(b"\n\n") == b": keep waiting\n" * 400_000 + HELLO


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_end_of_a_frame_is_seen_wherever_it_is_cut(end, size):
    raw = HELLO.replace(b"\n\n", end)
    translator = StreamTranslator("chat", "chat")
    result = [translator.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
    assert (b"".join(result[:-1]), result[-1]) == (b"", raw)


def test_a_frame_without_an_end_is_refused_as_it_is_between_two_dialects(monkeypatch):
    monkeypatch.setattr(streams, "MAX_EVENT_BYTES", LIMIT)
    translator = StreamTranslator("chat", "chat")
    assert translator.feed(HELLO + b"data: ") == HELLO
    assert translator.feed(b"x" * (LIMIT - 6)) == b""
    error = json.loads(translator.feed(b"x").removeprefix(b"data: "))["error"]
    assert (error["code"], error["message"]) == ("malformed_reply", f"an event is larger than {LIMIT} bytes")
    assert (translator.feed(b"x\n\n"), translator.close()) == (b"", b"")


def test_a_frame_that_is_too_large_for_one_dialect_is_so_for_all():
    errors = []
    for client in ("chat", "responses"):
        translator = StreamTranslator("chat", client)
        result = b"".join(translator.feed(b"x" * (32 << 20)) for _ in range(3))
        errors.append(b"an event is larger than 67108864 bytes" in result)
    assert errors == [True, True]


INNER = b'{"contents": [ {"parts":[{"text":"hi"}], "role":"user"} ], "labels":{"a":"b"}}'
ENVELOPE = b'{"model":"models/gemini-3-pro","project":"p","a/b":1,"request": ' + INNER + b"}"
LEFT = "a field of the envelope: this upstream takes requests without one"


def test_a_request_to_plain_gemini_is_taken_out_of_its_envelope_and_not_changed():
    translation = translate_request(Call(ENVELOPE, stream=True), "gemini", "gemini")
    assert translation.call == Call(INNER, "gemini-3-pro", stream=True)
    assert translation.losses == (Loss("/a~1b", LEFT, "dropped"), Loss("/project", LEFT, "dropped", "informational"))
    assert translation.request.spelling >= {"code_assist"}
    named = translate_request(Call(ENVELOPE), "gemini", "gemini", model="gemini-3.8-flash").call
    assert named == Call(INNER, "gemini-3.8-flash")
    with pytest.raises(Problem):
        translate_request(Call(ENVELOPE), "gemini", "gemini", strict=True)


@pytest.mark.parametrize("word", ["session_id", "sessionId"])
def test_fields_that_only_code_assist_has_are_not_sent_elsewhere(word):
    body = encode({"request": {"contents": [], word: "s", "x": 1.50}})
    translation = translate_request(Call(body, "m"), "gemini", "gemini")
    assert translation.call == Call(b'{"contents":[],"x":1.5}', "m")
    assert [loss.where for loss in translation.losses] == [f"/request/{word}"]


@pytest.mark.parametrize(
    "body",
    [
        INNER,
        b'{"contents":[{"parts":[{"text":"\\"request\\""}]}]}',
        b'{"contents":[],"request":{}}',
        b'{"request":[]}',
        b'{"request":{}',
        b'{"x":"request"}',
    ],
)
def test_what_is_no_envelope_passes_byte_for_byte(body):
    call = Call(body, "m")
    assert translate_request(call, "gemini", "gemini") == Translation(call=call)


PLAIN = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}


def test_a_client_that_spoke_through_the_envelope_is_answered_through_it():
    context = Context(translate_request(Call(ENVELOPE), "gemini", "gemini").request)
    result = json.loads(translate_response(encode(PLAIN), "gemini", "gemini", context).body)
    assert result["response"]["candidates"][0]["content"] == PLAIN["candidates"][0]["content"]
    translator = StreamTranslator("gemini", "gemini", context)
    stream = translator.feed(b"data: " + encode(PLAIN) + b"\r\n\r\n") + translator.close()
    frames = [json.loads(line[6:]) for line in stream.splitlines() if line]
    assert frames
    assert all(frame.keys() == {"response"} for frame in frames)
    wrapped = encode({"response": PLAIN})
    assert translate_response(wrapped, "gemini", "gemini", context) == TranslatedResponse(wrapped)


LETTER = seal_signature(Signature("anthropic", "s"), "self", "google").value
THOUGHT = {"text": "hm", "thought": True, "thoughtSignature": LETTER}


def call_part(name, **more):
    return {"functionCall": {"id": name, "name": name, "args": {}}, **more}


def result_part(name):
    return {"functionResponse": {"id": name, "name": name, "response": {"output": ""}}}


def content_of(role, *parts):
    return {"role": role, "parts": list(parts)}


STEPS = [
    content_of("user", {"text": "go"}),
    content_of("model", THOUGHT, call_part("a"), call_part("b")),
    content_of("user", result_part("a"), result_part("b")),
    content_of("model", THOUGHT),
    content_of("model", call_part("c")),
    content_of("model", call_part("d")),
    content_of("user", result_part("c"), result_part("d")),
    content_of("model", call_part("e", thoughtSignature="own")),
    content_of("user", result_part("e")),
]


@pytest.mark.parametrize(("model", "skips"), [("gemini-3.8-flash", True), ("gemini-2.5-pro", False)])
def test_calls_of_another_vendor_have_the_skip_signature_in_the_same_dialect_too(model, skips):
    translation = translate_request(Call(encode({"contents": STEPS})), "gemini", "gemini", model=model)
    skipped = {"thoughtSignature": SKIP_SIGNATURE.value} if skips else {}
    assert json.loads(translation.call.body)["contents"] == [
        STEPS[0],
        content_of("model", call_part("a", **skipped), call_part("b")),
        STEPS[2],
        content_of("model", call_part("c", **skipped)),
        *STEPS[5:],
    ]
    written = [loss.where for loss in translation.losses if loss.kind == "approximated"]
    assert written == ["/contents/1/parts/1"] * skips


def test_a_history_without_foreign_signatures_stays_as_it_is_though_its_calls_are_unsigned():
    call = Call(encode({"contents": [STEPS[0], content_of("model", call_part("a"))]}), "gemini-3.8-flash")
    assert translate_request(call, "gemini", "gemini") == Translation(call=call)


def test_signatures_are_taken_out_of_a_history_in_an_envelope_too():
    body = encode({"model": "gemini-3-pro", "project": "p", "request": {"contents": STEPS[:3]}})
    translation = translate_request(Call(body), "gemini", "gemini")
    assert "thought" not in json.dumps(json.loads(translation.call.body)["contents"][1]["parts"][1:])
    assert translation.call.model == "gemini-3-pro"
    lost = [(loss.where, loss.grade, loss.leaves) for loss in translation.losses if loss.kind == "dropped"]
    assert lost == [("/project", "informational", 1), ("/request/contents/1/parts/0", "material", len(THOUGHT))]


def sign_as_google(model):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    written = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [signed]}]
    return json.dumps({"model": model, "messages": written}, indent=1).encode()


@pytest.mark.parametrize("model", ["gemini-3-flash", "google/gemini-3-flash"])
def test_a_signature_is_unchanged_for_its_issuers_models_over_chat(model):
    body = sign_as_google(model)
    passed = translate_request(Call(body), "chat", "chat")
    assert passed.call.body == body
    assert not passed.losses


@pytest.mark.parametrize("model", ["gpt-5.2", "o3"])
def test_a_signature_is_removed_for_other_models_over_chat(model):
    passed = translate_request(Call(sign_as_google("gem")), "chat", "chat", model=model)
    assert b"extra_content" not in passed.call.body
    where = "/messages/1/tool_calls/0/extra_content"
    assert [(loss.where, loss.grade) for loss in passed.losses] == [(where, "informational")]
    assert translate_request(Call(sign_as_google("gem")), "chat", "chat", model=model, strict=True) == passed
    with pytest.raises(Problem):
        translate_request(Call(sign_as_google("gem")), "chat", "chat", model=model, strict="all")
