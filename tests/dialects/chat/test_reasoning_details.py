"""Reasoning in OpenRouter's list `reasoning_details`; the lists have the form of recorded replies."""

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from dialects.chat.chunks import DONE, STOP, calls, chunk, read
from dragoman.core.parts import Reasoning
from dragoman.core.problems import Problem
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request

CLAUDE = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
SUMMARY = {"type": "reasoning.summary", "summary": "Hm.", "format": "openai-responses-v1", "index": 0}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "gAAA", "format": "openai-responses-v1", "id": "rs_1", "index": 1}
LISTS = [[CLAUDE], [SUMMARY, ENCRYPTED], [ENCRYPTED]]
WEATHER = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOLS: dict[str, Any] = {
    "messages": {"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
    "responses": {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]},
    "gemini": {"tools": [{"functionDeclarations": [{"name": "f"}]}]},
}


def reply(details: Any, **members: Any) -> bytes:
    message = {"role": "assistant", "content": "a", "tool_calls": [WEATHER], "reasoning_details": details, **members}
    return json.dumps({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()


def answer(client: str, body: bytes) -> dict[str, Any]:
    """The next request of a client that sends a reply back, with the results of its calls."""
    value = json.loads(body)
    match client:
        case "messages":
            result = {"type": "tool_result", "tool_use_id": "call_1", "content": "1"}
            turns = [{"role": "assistant", "content": value["content"]}, {"role": "user", "content": [result]}]
            return {"model": "m", "max_tokens": 9, "messages": turns, **TOOLS[client]}
        case "responses":
            result = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
            return {"model": "m", "input": [*value["output"], result], **TOOLS[client]}
        case _:
            result = {"functionResponse": {"id": "call_1", "name": "f", "response": {"output": "1"}}}
            turns = [value["candidates"][0]["content"], {"role": "user", "parts": [result]}]
            return {"contents": [{"role": "user", "parts": [{"text": "q"}]}, *turns], **TOOLS[client]}


@pytest.mark.parametrize("client", TOOLS)
@pytest.mark.parametrize("details", LISTS)
@pytest.mark.parametrize("members", [{}, {"reasoning": "Hm."}], ids=["alone", "beside its text"])
def test_the_list_comes_back_unchanged_from_clients_of_other_dialects(client, details, members):
    translated = translate_response(reply(details, **members), "chat", client)
    assert translated.losses == ()
    call = Call(json.dumps(answer(client, translated.body)).encode(), "m")
    sent = translate_request(call, client, "chat", model="anthropic/claude-sonnet-5")
    (message,) = [one for one in json.loads(sent.call.body)["messages"] if one["role"] == "assistant"]
    assert message["reasoning_details"] == details
    assert [loss for loss in sent.losses if loss.grade == "material"] == []


@pytest.mark.parametrize("details", LISTS)
def test_openai_itself_never_gets_the_list(details):
    translated = translate_response(reply(details), "chat", "messages")
    call = Call(json.dumps(answer("messages", translated.body)).encode(), "m")
    sent = translate_request(call, "messages", "chat", model="gpt-5.1")
    assert b"reasoning_details" not in sent.call.body
    assert [loss.what for loss in sent.losses if loss.where == "/messages/0/content/0"] == [
        "the target takes no reasoning in the history"
    ]


def test_the_text_of_the_list_is_the_reasoning_if_it_is_nowhere_else():
    parsed = DIALECT.parse_response(reply([SUMMARY, ENCRYPTED]))
    assert isinstance(parsed.parts[0], Reasoning)
    assert parsed.parts[0].texts == ("Hm.",)
    assert json.loads(DIALECT.build_response(parsed, None))["choices"][0]["message"] == {
        **json.loads(reply([SUMMARY, ENCRYPTED]))["choices"][0]["message"],
        "refusal": None,
    }


@pytest.mark.parametrize("other", ["x", [1], [{"type": "reasoning.text"}, "x"], {"type": "reasoning.text"}])
def test_any_other_value_is_a_loss(other):
    translated = translate_response(reply(other), "chat", "messages")
    assert [loss.where for loss in translated.losses] == ["/choices/0/message/reasoning_details"]


def test_the_pieces_of_a_stream_are_one_list_before_the_next_part():
    pieces = [{**CLAUDE, "text": "H", "signature": None}, {**CLAUDE, "text": "m.", "signature": None}]
    last = {name: value for name, value in CLAUDE.items() if name != "text"}
    parsed = read(
        *(chunk({"content": "", "reasoning": piece["text"], "reasoning_details": [piece]}) for piece in pieces),
        chunk({"content": "", "reasoning": None, "reasoning_details": [last]}),
        chunk({"content": "a"}),
        STOP,
        DONE,
    )
    assert isinstance(parsed.parts[0], Reasoning)
    assert parsed.parts[0].texts == ("Hm.",)
    assert parsed.parts[0].signature is not None
    assert json.loads(parsed.parts[0].signature.value) == [CLAUDE]


def test_encrypted_reasoning_in_a_stream_comes_before_its_call():
    parsed = read(
        chunk({"content": "", "reasoning_details": [ENCRYPTED]}),
        calls({"index": 0, **WEATHER}),
        chunk(finish="tool_calls"),
        DONE,
    )
    reasoning, _ = parsed.parts
    assert isinstance(reasoning, Reasoning)
    assert reasoning.redacted
    assert reasoning.signature is not None
    assert json.loads(reasoning.signature.value) == [ENCRYPTED]


def test_a_list_after_the_answer_is_a_loss():
    translator = StreamTranslator("chat", "messages")
    body = chunk({"content": "a"}) + chunk({"reasoning_details": [ENCRYPTED]}) + STOP + DONE
    assert b"redacted_thinking" not in translator.feed(body) + translator.close()
    assert [(loss.where, loss.leaves) for loss in translator.losses] == [("/choices/0/message/reasoning_details", 5)]


THOUGHTS: dict[str, Any] = {
    "messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "cmVk"},
            {"type": "thinking", "thinking": "", "signature": "bm90ZXh0"},
            {"type": "tool_use", "id": "call_1", "name": "f", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "responses": {
        "id": "r",
        "status": "completed",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}, {"type": "summary_text", "text": "Ah."}],
                "encrypted_content": "gAAA",
            },
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB"},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        ],
    },
}
NEXT = [{"role": "tool", "tool_call_id": "call_1", "content": "1"}]
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
MODELS = {"messages": "claude-opus-4-8", "responses": "gpt-5.5"}


def show_whole(upstream: str) -> dict[str, Any]:
    """The message that a Chat client gets."""
    translated = translate_response(json.dumps(THOUGHTS[upstream]).encode(), upstream, "chat")
    assert translated.losses == ()
    return json.loads(translated.body)["choices"][0]["message"]


def show_streamed(upstream: str) -> dict[str, Any]:
    """The message that the official SDK collects from a stream."""
    translator = StreamTranslator(upstream, "chat")
    body = translator.feed(json.dumps(THOUGHTS[upstream]).encode()) + translator.close()
    assert translator.losses == ()
    state = ChatCompletionStreamState()
    for line in body.decode().splitlines():
        if line.startswith("data: {"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(line.removeprefix("data: ")))
    message = state.get_final_completion().choices[0].message.model_dump(exclude_none=True, exclude={"parsed"})
    for call in message["tool_calls"]:
        call["function"].pop("parsed_arguments", None)
    return message


def send_back(message: dict[str, Any], target: str) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}, message, *NEXT], "tools": [FUNCTION]}
    return translate_request(Call(json.dumps(body).encode()), "chat", target, model=MODELS[target])


@pytest.mark.parametrize("show", [show_whole, show_streamed])
@pytest.mark.parametrize("keeps_text", [True, False], ids=["all", "only the list"])
def test_thinking_of_claude_comes_back_from_a_chat_client(show, keeps_text):
    message = show("messages")
    assert message["reasoning_content"] == "Hm."
    sent = send_back(message if keeps_text else {**message, "reasoning_content": None}, "messages")
    assert json.loads(sent.call.body)["messages"][1]["content"] == THOUGHTS["messages"]["content"]
    assert [loss for loss in sent.losses if loss.grade == "material"] == []


@pytest.mark.parametrize("show", [show_whole, show_streamed])
def test_encrypted_reasoning_comes_back_from_a_chat_client(show):
    sent = send_back(show("responses"), "responses")
    items = [item for item in json.loads(sent.call.body)["input"] if item.get("type") == "reasoning"]
    assert [(item["id"], item["encrypted_content"]) for item in items] == [("rs_1", "gAAA"), ("rs_2", "gBBB")]
    assert [text["text"] for text in items[0]["summary"]] == ["Hm.\n\nAh."]
    assert [loss for loss in sent.losses if loss.grade == "material"] == []


def test_reasoning_of_another_vendor_is_dropped_and_reported():
    sent = send_back(show_whole("messages"), "responses")
    assert b"c2ln" not in sent.call.body
    lost = [loss.where for loss in sent.losses if loss.what.startswith("reasoning of another vendor's model")]
    assert lost == ["/messages/1/reasoning_details"]


def test_changed_text_beside_the_list_is_kept_apart():
    message = {**show_whole("messages"), "reasoning_content": "Other."}
    sent = send_back(message, "messages")
    assert json.loads(sent.call.body)["messages"][1]["content"] == THOUGHTS["messages"]["content"]
    assert [loss.where for loss in sent.losses] == ["/messages/1/reasoning_content"]


def test_a_request_with_the_gateways_own_list_is_rendered_as_it_came():
    message = {**show_whole("messages"), "refusal": None}
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}, message]}
    request = DIALECT.parse_request(Call(json.dumps(body).encode()))
    rendered = DIALECT.render_request(request, traits_for("chat", "m")).body
    expected = {name: value for name, value in message.items() if value is not None or name == "content"}
    assert json.loads(rendered)["messages"][1] == expected


def test_unsigned_reasoning_needs_no_list():
    body = {
        "candidates": [
            {"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "a"}]}, "finishReason": "STOP"}
        ]
    }
    translated = translate_response(json.dumps(body).encode(), "gemini", "chat")
    message = json.loads(translated.body)["choices"][0]["message"]
    assert message["reasoning_content"] == "Hm."
    assert "reasoning_details" not in message


@pytest.mark.parametrize("other", ["x", 5, [1], [{"type": "reasoning.text"}, "x"], {"type": "reasoning.text"}])
def test_a_message_with_another_value_is_an_error_that_names_the_member(other):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_details": other}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    with pytest.raises(Problem) as caught:
        translate_request(Call(body), "chat", "messages", model="claude-opus-5")
    assert caught.value.where == "/messages/1/reasoning_details"
    assert caught.value.message == "reasoning_details must be a list of objects"
    assert translate_request(Call(body), "chat", "chat").call.body == body
