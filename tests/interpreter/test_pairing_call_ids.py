"""Every call has an id for a reader who has no dialect: the same each time, and of each call its own."""

import json

import pytest

from dragoman.core.parts import Signature, Text, ToolCall, ToolResult
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.interpreter.chunks import ChunkReader, read_chunks
from dragoman.interpreter.ids import alias_id
from dragoman.interpreter.job import TranslationJob, open_stream, perform
from dragoman.interpreter.pairing import add_ids, find_call_id, identify_parts
from dragoman.interpreter.signature_recorder import digest_call
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import SavedSignatures
from interpreter.workbench import build_message, encode


def gemini(*names, **more):
    parts = [{"functionCall": {"name": name, "args": {"a": 1}}} for name in names]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}], **more}


def render_frame(body):
    return b"data: " + encode(body) + b"\r\n\r\n"


def read_ids(body, size=0):
    raw = render_frame(body)
    step = size or len(raw)
    reader = ChunkReader("gemini")
    chunks = [output for at in range(0, len(raw), step) for output in reader.feed(raw[at : at + step])] + reader.close()
    return [chunk.call.id for chunk in chunks if chunk.call is not None and chunk.call.name]


def core_ids(operation, body):
    if operation == "stream":
        stream = open_stream("gemini", "core")
        view = json.loads(stream.feed(render_frame(body)) + stream.close())
    else:
        view = json.loads(
            perform(TranslationJob(operation=operation, source="gemini", target="core", body=encode(body))).body
        )
    return [part["id"] for part in view["parts"]]


@pytest.mark.parametrize("named", [{}, {"responseId": "r"}])
def test_a_stream_and_a_whole_reply_give_calls_the_same_ids_and_each_its_own(named):
    body = gemini("f", "f", "g", **named)
    ids = read_ids(body)
    assert len(set(ids)) == 3
    assert all(call_id.startswith("call_") for call_id in ids)
    assert read_ids(body, size=1) == ids
    assert core_ids("stream", body) == ids
    assert core_ids("response", body) == ids


def test_replies_differ_in_the_ids_of_their_calls():
    assert read_ids(gemini("f", responseId="r")) != read_ids(gemini("f", responseId="s"))
    other = gemini("f")
    other["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] = {"a": 2}
    assert read_ids(gemini("f")) != read_ids(other)


def test_a_call_without_an_id_is_emitted_when_it_is_complete():
    def frame(delta, finish=None):
        return b"data: " + encode({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"

    pieces = [{"name": "f", "arguments": '{"a":'}, {"arguments": "1}"}]
    stream = [frame({"tool_calls": [{"index": 0, "function": piece}]}) for piece in pieces]
    output = [chunk.call for chunk in read_chunks([*stream, frame({}, "tool_calls")], "chat") if chunk.call is not None]
    expected = find_call_id(ToolCall(id="", name="f", arguments='{"a":1}'), "", 1)
    assert [(call.index, call.id, call.name, call.arguments) for call in output] == [
        (0, expected, "f", ""),
        (0, "", "", '{"a":1}'),
    ]


def test_an_id_that_was_given_is_kept():
    own = ToolCall(id="own", name="f", arguments="{}")
    bare = ToolCall(id="", name="f", arguments="{}")
    parts = identify_parts((Text(text="x"), own, bare), "r")
    assert parts[:2] == (Text(text="x"), own)
    assert parts[2].id == find_call_id(bare, "r", 2) != find_call_id(bare, "r", 1)


def test_a_reply_that_fails_shows_its_calls_with_ids():
    body = gemini("f", responseId="r")
    del body["candidates"][0]["finishReason"]
    stream = open_stream("gemini", "core")
    view = json.loads(stream.feed(render_frame(body)) + stream.close())
    assert view["problem"]["kind"] == "malformed_reply"
    assert [part["id"] for part in view["parts"]] == core_ids("response", gemini("f", responseId="r"))


# Histories


def call(name, call_id=""):
    return ToolCall(id=call_id, name=name, arguments="{}")


def result(name="", call_id=""):
    return ToolResult(call_id=call_id, name=name)


def ids_of(messages):
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_a_result_gets_the_id_of_the_call_it_answers():
    def step():
        return build_message("assistant", call("f"), call("g")), build_message("user", result("g"), result("f"))

    f, g, answered_g, answered_f, *later = ids_of(add_ids((*step(), *step())))
    assert (answered_f, answered_g) == (f, g)
    assert len({f, g, *later}) == 4
    assert ids_of(add_ids(step())) == [f, g, g, f]


def test_a_history_with_ids_is_the_same_object_and_ids_that_were_given_stay():
    whole = (
        build_message("user", "hi"),
        build_message("assistant", "x", call("f", "a")),
        build_message("user", result("f", "a")),
    )
    assert add_ids(whole) is whole
    mixed = (
        build_message("assistant", call("f", "a"), call("f", "a"), call("g")),
        build_message("user", result("f", "a"), result("g")),
    )
    named = ids_of(add_ids(mixed))
    assert named[:2] == ["a", "a"]
    assert named[3:] == ["a", named[2]]


def test_a_result_without_a_call_stays_without_an_id():
    orphan = (build_message("user", result("f"), call("f")),)
    assert add_ids(orphan) == orphan


def test_a_request_is_shown_with_ids():
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]
    done = perform(
        TranslationJob(operation="request", source="gemini", target="core", body=encode({"contents": contents}))
    )
    made, answered = (message["parts"][0] for message in json.loads(done.body)["messages"])
    assert made["id"] == answered["call_id"]
    assert made["id"].startswith("call_")


# Ids that Gemini gave (recorded) and ids of others: OpenAI, Anthropic, Mistral, Kimi, Ollama, the gateway, a Gemini client's SDK.
GIVEN = ("96c1su3s", "whZntcQw", "call_1421923")
FOREIGN = (
    "call_9q7TKHJVZ9bcdeZDPfghijkl",
    "toolu_01A09q90qw90lq917835lq9",
    "a1B2c3D4e",
    "functions.read:0",
    "call_8xq1",
    "call_0123456789abcdef01234567",
    "pyd_ai_cc6e16722f9a428db81532521a689ea7",
)


def ask_with_call(dialect, call_id):
    if dialect == "chat":
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        turns = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "1"},
        ]
        return {"model": "m", "messages": turns}
    if dialect == "responses":
        called = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
        return {"input": [called, {"type": "function_call_output", "call_id": call_id, "output": "1"}], "model": "m"}
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "1"}]},
    ]
    return {"model": "m", "max_tokens": 9, "messages": turns}


class Signer:
    """What the store has for every call."""

    scope = "one"
    is_empty = False

    def __init__(self, issuer):
        self._issuer = issuer

    def find_signatures(self, section_id):
        return {digest_call("f", "{}"): SavedSignatures(Signature(self._issuer, "c2lnbmVk"))}


def find_sent_ids(dialect, call_id, *, model="gemini-2.5-flash", form="", signer=None):
    body = encode(ask_with_call(dialect, call_id))
    sent = json.loads(translate_request(Call(body), dialect, "gemini", model=model, form=form, signer=signer).call.body)
    parts = [part for turn in sent.get("request", sent)["contents"] for part in turn["parts"]]
    return {part[kind].get("id", "") for part in parts for kind in ("functionCall", "functionResponse") if kind in part}


@pytest.mark.parametrize("form", ["", "code_assist"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_an_older_gemini_gets_back_the_ids_that_gemini_gave_and_no_others(dialect, form):
    for call_id in GIVEN:
        assert find_sent_ids(dialect, call_id, form=form) == {call_id}
    for call_id in FOREIGN:
        assert find_sent_ids(dialect, call_id, form=form) == {""}


def test_a_signed_call_has_an_id_of_its_vendor_unless_the_gateway_generated_it():
    for issuer, sent in (("google", "made-by-9"), ("openai", "")):
        assert find_sent_ids("chat", "made-by-9", signer=Signer(issuer)) == {sent}
    assert find_sent_ids("chat", "call_0123456789abcdef01234567", signer=Signer("google")) == {""}


def test_a_newer_gemini_gets_ids_of_any_origin():
    for call_id in GIVEN + FOREIGN:
        assert find_sent_ids("messages", call_id, model="gemini-3-flash") == {
            alias_id(call_id, Traits(dialect="gemini", id_max=64))
        }
