"""Signatures reach only the vendor that issued them, on the part they sign."""

import json
import re

import pytest

from cases.documents import (
    HELLO,
    chat_call,
    chat_calls,
    chat_chunk,
    chat_reply,
    chat_request,
    chat_result,
    chat_stream,
    gemini_chunk,
    gemini_reply,
    list_seen_blocks,
    list_seen_calls,
    messages_reply,
    messages_request,
    of_type,
    responses_stream,
    tool_result,
    tool_use,
)
from cases.through import DONE, answer, flow, loss_pointers, translate_to
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request

GEMINI = "gemini-3-flash"
SKIP = "skip_thought_signature_validator"
SIGNED_CALL = {"functionCall": {"name": "news", "args": {"q": "x"}, "id": "f1"}, "thoughtSignature": "U0lH"}


def calls_of(body):
    return [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]


def test_t001_a_streamed_signature_reaches_a_chat_client_and_comes_back_on_the_call():
    result = flow("gemini", "chat", [gemini_chunk(SIGNED_CALL), gemini_chunk({"text": ""}, finish="STOP")])
    (call,) = list_seen_calls(result.body)
    assert call["extra_content"] == {"google": {"thought_signature": "U0lH"}}

    echoed = {**chat_call(call["id"], call["name"], call["arguments"]), "extra_content": call["extra_content"]}
    asked = translate_to(
        "chat", "gemini", chat_request(HELLO, chat_calls(echoed), chat_result("f1", "ok")), model=GEMINI
    )
    assert calls_of(asked.body) == [SIGNED_CALL]
    assert asked.losses == ()


def test_t001_a_client_that_echoes_only_the_id_does_not_fail_the_turn():
    bare = chat_calls(chat_call("f1", "news", '{"q":"x"}'))
    asked = translate_to("chat", "gemini", chat_request(HELLO, bare, chat_result("f1", "ok")), model=GEMINI)
    assert calls_of(asked.body) == [{**SIGNED_CALL, "thoughtSignature": SKIP}]


def test_t003_a_gemini_signature_is_never_in_the_id_a_messages_client_sees():
    result = flow("gemini", "messages", [gemini_chunk(SIGNED_CALL, finish="STOP")])
    thinking, call = list_seen_blocks(result.body)
    assert call["id"] == "f1"
    assert thinking["type"] == "thinking"

    history = [HELLO, {"role": "assistant", "content": [thinking, tool_use("f1", "news", {"q": "x"})]}]
    history.append({"role": "user", "content": [tool_result("f1", "ok")]})
    asked = translate_to("messages", "gemini", messages_request(*history), model=GEMINI)
    assert calls_of(asked.body) == [SIGNED_CALL]


@pytest.mark.parametrize("call_id", ["call_3e94__thought__CiIBDDnWx", "call_3e94__thought__" + "CiIB+/Wx==" * 30])
def test_t003_an_id_with_an_embedded_signature_is_clean_at_a_messages_client(call_id):
    piece = {"index": 0, "id": call_id, "function": {"name": "Read", "arguments": "{}"}}
    result = flow("chat", "messages", chat_stream({"tool_calls": [piece]}, finish_reason="tool_calls"))
    (call,) = list_seen_blocks(result.body)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["id"])


def test_t004_a_signature_is_sent_once_on_the_call_that_had_it():
    signed = {**chat_call("c1", "ls"), "extra_content": {"google": {"thought_signature": "S"}}}
    turn = {"role": "assistant", "content": "I will list files.", "tool_calls": [signed], "thought_signatures": ["S"]}
    asked = translate_to("chat", "gemini", chat_request(HELLO, turn, chat_result("c1", "a")), model=GEMINI)
    assert asked.body["contents"][1]["parts"] == [
        {"text": "I will list files."},
        {"functionCall": {"name": "ls", "args": {}, "id": "c1"}, "thoughtSignature": "S"},
    ]
    assert loss_pointers(asked) == {"/messages/1/thought_signatures"}


def test_t004_distinct_signatures_of_text_and_call_are_each_sent_once_and_in_place():
    text = {"text": "I will list files.", "thoughtSignature": "T"}
    call = {"functionCall": {"name": "ls", "args": {}, "id": "c1"}, "thoughtSignature": "S"}
    result = flow("gemini", "gemini", [gemini_chunk(text, call, finish="STOP")])
    parts = [part for frame in result.body for part in frame["candidates"][0]["content"]["parts"]]
    signed = [
        ("call" if "functionCall" in part else "text", part["thoughtSignature"])
        for part in parts
        if "thoughtSignature" in part
    ]
    assert signed == [("text", "T"), ("call", "S")]
    assert "".join(part.get("text", "") for part in parts) == "I will list files."


def test_t004_a_text_signature_that_a_client_cannot_hold_is_reported():
    reply = gemini_reply({"text": "I will list files.", "thoughtSignature": "T"}, SIGNED_CALL)
    result = answer("gemini", "chat", reply)
    assert loss_pointers(result, "dropped") == {"/candidates/0/content/parts/0/thoughtSignature"}


def test_t006_a_history_without_signatures_gets_the_documented_skip_value_once_a_turn():
    asked = translate_to(
        "chat",
        "gemini",
        chat_request(
            HELLO,
            chat_calls(chat_call("c1", "bash"), chat_call("c2", "bash")),
            chat_result("c1", "ok"),
            chat_result("c2", "ok"),
            chat_calls(chat_call("c3", "bash")),
            chat_result("c3", "ok"),
        ),
        model="gemini-3-flash",
    )
    assert [part.get("thoughtSignature") for part in calls_of(asked.body)] == [SKIP, None, SKIP]
    assert [(loss.where, loss.kind) for loss in asked.losses] == [("/messages/1/tool_calls/0", "approximated")]


def test_t006_gemini_2_5_gets_no_skip_value():
    history = chat_request(HELLO, chat_calls(chat_call("c1", "bash")), chat_result("c1", "ok"))
    asked = translate_to("chat", "gemini", history, model="gemini-2.5-flash")
    assert [part.get("thoughtSignature") for part in calls_of(asked.body)] == [None]


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
def test_t007_a_signature_from_vertex_goes_back_to_ai_studio_and_code_assist(client):
    vertex = gemini_reply(
        {"functionCall": {"name": "news", "args": {"q": "x"}}, "thoughtSignature": "Uw=="},
        usageMetadata={"promptTokenCount": 1, "trafficType": "ON_DEMAND"},
    )
    output = answer("gemini", client, vertex).body
    if client == "chat":
        message = output["choices"][0]["message"]
        history = chat_request(HELLO, message, chat_result(message["tool_calls"][0]["id"], "ok"))
    elif client == "messages":
        result = tool_result(output["content"][-1]["id"], "ok")
        turns = [{"role": "assistant", "content": output["content"]}, {"role": "user", "content": [result]}]
        history = messages_request(HELLO, *turns)
    else:
        result = {"type": "function_call_output", "call_id": output["output"][-1]["call_id"], "output": "ok"}
        history = {"model": "m", "input": [HELLO, *output["output"], result]}
    studio = translate_to(client, "gemini", history, model=GEMINI).body
    assist = translate_to(client, "gemini", history, model=GEMINI, form="code_assist").body
    assert [part["thoughtSignature"] for part in calls_of(studio)] == ["Uw=="]
    assert [part["thoughtSignature"] for part in calls_of(assist["request"])] == ["Uw=="]


def test_t009_extra_content_of_a_call_passes_both_ways_and_in_deltas():
    signed = {**chat_call("c1", "weather"), "extra_content": {"google": {"thought_signature": "S"}}}
    body = json.dumps(chat_request(HELLO, chat_calls(signed), chat_result("c1", "ok"))).encode()
    assert translate_request(Call(body, "m"), "chat", "chat").call.body == body

    reply = chat_reply({"tool_calls": [signed]}, "tool_calls")
    assert answer("chat", "chat", reply).body == reply

    frames = [chat_chunk({"tool_calls": [{"index": 0, **signed}]}), chat_chunk({}, "tool_calls"), DONE]
    (call,) = list_seen_calls(flow("chat", "chat", frames).body)
    assert call["extra_content"] == signed["extra_content"]


def test_t009_extra_content_of_geminis_chat_endpoint_survives_a_messages_client():
    signed = {**chat_call("c1", "weather"), "extra_content": {"google": {"thought_signature": "S"}}}
    content = answer("chat", "messages", chat_reply({"tool_calls": [signed]}, "tool_calls")).body["content"]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": [tool_result("c1", "ok")]}]
    asked = translate_to("messages", "chat", messages_request(HELLO, *turns), model="gemini-3-flash")
    assert asked.body["messages"][1]["tool_calls"] == [signed]


LONG = "d556q31u_ts_" + "AY89a18eH3Fuco" * 17


@pytest.mark.parametrize(
    ("target", "model", "longest"), [("messages", "claude-opus-4-8", 64), ("responses", "gpt-5.6", 64)]
)
def test_t010_a_long_id_gets_one_alias_on_call_and_result(target, model, longest):
    def ids(call_id):
        history = chat_request(HELLO, chat_calls(chat_call(call_id, "f")), chat_result(call_id, "ok"))
        text = json.dumps(translate_to("chat", target, history, model=model).body)
        call, result = re.findall(r'"(?:id|call_id|tool_use_id)": "([^"]+)"', text)
        assert call == result
        return call

    alias = ids(LONG)
    assert alias.startswith("d556q31u_ts_")
    assert len(alias) <= longest
    assert ids(LONG) == alias
    assert ids(LONG + "x") != alias
    assert ids("toolu_01Legal-id_9") == "toolu_01Legal-id_9"


EMPTY_SIGNED = {"type": "thinking", "thinking": "", "signature": "SIG"}
REDACTED = {"type": "redacted_thinking", "data": "DATA"}


@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
@pytest.mark.parametrize("thought", [EMPTY_SIGNED, REDACTED])
def test_t012_an_empty_signed_thought_survives_the_round_trip_and_stays_first(client, thought):
    output = answer("messages", client, messages_reply(thought, tool_use("toolu_1", "x"), stop_reason="tool_use")).body
    if client == "chat":
        message, result = output["choices"][0]["message"], {"role": "tool", "tool_call_id": "toolu_1", "content": "ok"}
        history = {"model": "m", "messages": [HELLO, message, result]}
    elif client == "responses":
        result = {"type": "function_call_output", "call_id": "toolu_1", "output": "ok"}
        history = {"model": "m", "input": [HELLO, *output["output"], result]}
    else:
        content = output["candidates"][0]["content"]
        call = next(part["functionCall"] for part in content["parts"] if "functionCall" in part)
        result = {"functionResponse": {"id": call.get("id"), "name": "x", "response": {"output": "ok"}}}
        user = {"role": "user", "parts": [{"text": "q"}]}
        history = {"contents": [user, content, {"role": "user", "parts": [result]}]}
    asked = translate_to(client, "messages", history, model="claude-opus-4-8")
    assert asked.body["messages"][1]["content"] == [thought, tool_use("toolu_1", "x")]


def summary_events(index, *texts):
    for number, text in enumerate(texts):
        place = {"output_index": index, "item_id": "rs_1", "summary_index": number}
        part = {"type": "summary_text", "text": text}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": text}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": text}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def test_t013_several_summaries_of_one_reasoning_item_are_one_thinking_block_with_the_final_signature():
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    whole = {
        **item,
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        "encrypted_content": "FINAL",
    }
    frames = responses_stream(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "encrypted_content": "placeholder"},
        },
        *summary_events(0, "one", "two"),
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        output=[whole],
    )
    result = flow("responses", "messages", frames)
    (thinking,) = list_seen_blocks(result.body)
    signatures = [frame for frame in of_type(result.body, "content_block_delta") if "signature" in frame["delta"]]
    assert len(signatures) == 1
    assert thinking["thinking"].replace("\n", "") == "onetwo"

    turns = [{"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, HELLO]
    asked = translate_to("messages", "responses", messages_request(HELLO, *turns), model="gpt-5.6")
    replayed = [item for item in asked.body["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in replayed] == ["FINAL"]
