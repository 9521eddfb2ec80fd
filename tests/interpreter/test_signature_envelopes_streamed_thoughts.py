"""A thought that a client of Gemini keeps in the pieces it was streamed in comes back to its vendor as one."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Reasoning, Signature, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signature_envelopes import UNSIGNED, join_thoughts, remove_foreign_envelopes, seal_signature
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import adaptation_for, build_message, encode, loss_pointers

MODELS = {"messages": "claude-opus-5", "responses": "gpt-5.6"}
FOREIGN = "reasoning of another vendor's model cannot be replayed"


def render_event(kind, **body):
    return f"event: {kind}\ndata: ".encode() + encode({"type": kind, **body}) + b"\n\n"


def claude_thinks(*pieces, signature="EqQB"):
    """Claude's stream: a thought in pieces, then a call."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    deltas.append({"type": "signature_delta", "signature": signature})
    return b"".join(
        [
            render_event("message_start", message={**head, "stop_reason": None, "stop_sequence": None, "usage": usage}),
            render_event("content_block_start", index=0, content_block=thought),
            *(render_event("content_block_delta", index=0, delta=delta) for delta in deltas),
            render_event("content_block_stop", index=0),
            render_event("content_block_start", index=1, content_block=call),
            render_event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"a":1}'}),
            render_event("content_block_stop", index=1),
            render_event("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage=usage),
            render_event("message_stop"),
        ]
    )


def gpt_thinks(*summaries):
    """GPT's stream: a reasoning item of several summaries, then a call."""
    texts = [{"type": "summary_text", "text": text} for text in summaries]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": texts, "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "toolu_1", "name": "f", "arguments": '{"a":1}'},
    ]
    reply = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.6", "status": "completed"}
    done = [
        render_event("response.output_item.done", output_index=index, item=item, sequence_number=index + 1)
        for index, item in enumerate(items)
    ]
    end = {**reply, "output": items}
    return b"".join(
        [
            render_event(
                "response.created", response={**reply, "status": "in_progress", "output": []}, sequence_number=0
            ),
            *done,
            render_event("response.completed", response=end, sequence_number=9),
        ]
    )


def contents_of(source, stream):
    """What a client of Gemini that keeps every chunk as a content (google-genai) has of a stream."""
    translator = StreamTranslator(source, "gemini")
    actual = translator.feed(stream) + translator.close()
    chunks = [json.loads(line[6:]) for line in actual.splitlines() if line.startswith(b"data: ")]
    return [chunk["candidates"][0]["content"] for chunk in chunks]


def apart(contents):
    return contents


def gather(contents):
    return [{"role": "model", "parts": [part for content in contents for part in content["parts"]]}]


def join_texts(contents):
    """Adjacent texts of a kind put together, the signature with them."""
    parts = []
    for part in gather(contents)[0]["parts"]:
        before = parts[-1] if parts else {}
        open_text = "text" in part and "text" in before and "thoughtSignature" not in before
        if open_text and part.get("thought") == before.get("thought"):
            parts[-1] = {**before, **part, "text": before["text"] + part["text"]}
        else:
            parts.append(part)
    return [{"role": "model", "parts": parts}]


def history(contents):
    result = {"functionResponse": {"id": "toolu_1", "name": "f", "response": {"output": "r"}}}
    requested, answered = ({"role": "user", "parts": [part]} for part in ({"text": "go"}, result))
    return {"contents": [requested, *contents, answered]}


def get_returned(target, contents):
    actual = translate_request(Call(encode(history(contents))), "gemini", target, model=MODELS[target])
    return json.loads(actual.call.body), actual.losses


@pytest.mark.parametrize("keep", [apart, gather, join_texts])
def test_a_streamed_thought_of_claude_comes_back_unmodified(keep):
    body, losses = get_returned("messages", keep(contents_of("messages", claude_thinks("Thi", "nk"))))
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    thought = {"type": "thinking", "thinking": "Think", "signature": "EqQB"}
    assert body["messages"][1] == {"role": "assistant", "content": [thought, call]}
    assert losses == ()


@pytest.mark.parametrize("keep", [apart, gather, join_texts])
def test_streamed_reasoning_of_gpt_is_restored_with_its_text(keep):
    body, losses = get_returned("responses", keep(contents_of("responses", gpt_thinks("A", "B"))))
    summary = [{"type": "summary_text", "text": "A\n\nB"}]
    assert body["input"][1] == {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"}
    assert losses == ()


def test_the_pieces_of_a_thought_the_target_cannot_take_are_reported_each_at_its_place():
    contents = gather(contents_of("messages", claude_thinks("Thi", "nk")))
    body, losses = get_returned("responses", contents)
    assert all(item["type"] != "reasoning" for item in body["input"])
    lost = [(loss.where, loss.grade, loss.leaves) for loss in losses if loss.kind == "dropped"]
    assert lost == [(f"/contents/1/parts/{index}", "material", leaves) for index, leaves in enumerate((2, 2, 3))]


SEAL = seal_signature(Signature("anthropic", "s"), "self", "google")
CALL = ToolCall(id="c", name="f", arguments="{}")


def piece(text, signature=None, **more):
    return Reasoning(texts=(text,), signature=signature, **more)


def test_a_thought_whose_envelope_is_on_its_only_piece_stays_as_it_is():
    messages = (build_message("assistant", piece("a", SEAL), CALL),)
    assert join_thoughts(messages, adaptation_for("messages", "claude-opus-5")) is messages


@pytest.mark.parametrize(
    "between",
    [Text(text="x"), piece("b", Signature("google", "own")), Reasoning(redacted=True), CALL],
)
def test_parts_between_two_reasoning_parts_keep_them_separate(between):
    messages = (build_message("assistant", piece("a"), between, piece("", SEAL)),)
    assert join_thoughts(messages, adaptation_for("messages", "claude-opus-5")) is messages


def test_a_turn_of_the_user_keeps_thoughts_apart():
    messages = (
        build_message("assistant", piece("a")),
        build_message("user", "hi"),
        build_message("assistant", piece("", SEAL)),
    )
    assert join_thoughts(messages, adaptation_for("messages", "claude-opus-5")) is messages


def test_two_thoughts_in_a_row_stay_two():
    messages = (build_message("assistant", piece("a"), piece("b", SEAL), piece("c"), piece("d", SEAL)),)
    joined = join_thoughts(messages, adaptation_for("messages", "claude-opus-5"))
    assert joined == (build_message("assistant", piece("ab", SEAL), piece("cd", SEAL)),)


def test_unsigned_reasoning_is_joined_where_any_reasoning_is_accepted():
    sealed = seal_signature(Signature("openai", UNSIGNED), "self", "google")
    messages = (build_message("assistant", piece("a"), piece("b"), piece("", sealed)),)
    assert join_thoughts(messages, adaptation_for("chat", "deepseek-v4")) == (
        build_message("assistant", piece("ab", sealed)),
    )
    assert join_thoughts(messages, adaptation_for("messages", "claude-opus-5")) is messages


def test_what_only_gemini_understands_of_the_pieces_and_their_messages_is_reported():
    extras = Extras("gemini", {"/x": b"1"})
    first = Message(role="assistant", parts=(piece("a", extras=extras, where="/0/p"),), extras=extras, where="/0")
    adaptation = adaptation_for("messages", "claude-opus-5", source="gemini")
    last = build_message("assistant", piece("b", SEAL), CALL)
    assert join_thoughts((first, last), adaptation) == (build_message("assistant", piece("ab", SEAL), CALL),)
    assert loss_pointers(adaptation) == [("dropped", "/0/p/x"), ("dropped", "/0/x")]


def test_in_the_same_dialect_all_pieces_of_foreign_reasoning_are_removed():
    extras = Extras("gemini", {"/x": b"1"})
    first = Message(role="assistant", parts=(piece("a", where="/0/p"),), extras=extras, where="/0")
    messages = (build_message("user", "hi"), first, build_message("assistant", piece("b", SEAL, where="/1/p"), CALL))
    ledger = Ledger({})
    assert remove_foreign_envelopes(messages, "google", ledger) == (
        build_message("user", "hi"),
        build_message("assistant", CALL),
    )
    assert ledger.losses() == (
        Loss("/0/p", FOREIGN, "dropped"),
        Loss("/0/x", "its message is dropped: nothing else in it can be sent", "dropped"),
        Loss("/1/p", FOREIGN, "dropped"),
    )


def test_in_the_same_dialect_the_vendors_own_reasoning_stays():
    sealed = seal_signature(Signature("google", "s"), "self", "google")
    messages = (build_message("assistant", piece("a"), piece("b", sealed)),)
    kept = (build_message("assistant", piece("a"), piece("b", Signature("google", "s"))),)
    assert remove_foreign_envelopes(messages, "google", Ledger({})) == kept
