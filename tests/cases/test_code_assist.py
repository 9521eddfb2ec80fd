"""Code Assist is Gemini one level deeper."""

import pytest

from cases.documents import chat_request, gemini_chunk, gemini_reply, messages_request
from cases.through import answer, flow, translate_to

COUNTS = {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}


def _wrap(body):
    return {"response": body, "traceId": "t"}


def _count(client, body):
    match client:
        case "chat":
            usage = body["usage"]
            return usage["prompt_tokens"], usage["completion_tokens"]
        case "gemini":
            usage = body["usageMetadata"]
            return usage["promptTokenCount"], usage["candidatesTokenCount"]
        case _:
            usage = body["usage"]
            return usage["input_tokens"], usage["output_tokens"]


@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
def test_t157_a_wrapped_reply_is_unwrapped_and_its_usage_counted(client):
    result = answer("gemini", client, _wrap(gemini_reply({"text": "hello"}, usageMetadata=COUNTS))).body
    assert "response" not in result
    assert "hello" in str(result)
    assert _count(client, result) == (11, 5)


@pytest.mark.parametrize("client", ["chat", "messages", "responses", "gemini"])
def test_t157_a_wrapped_stream_is_unwrapped_and_its_usage_counted(client):
    asked = None
    if client == "chat":
        body = chat_request(stream=True, stream_options={"include_usage": True})
        asked = translate_to("chat", "gemini", body, model="gemini-3-flash", form="code_assist")
    chunks = [gemini_chunk({"text": "hel"}), gemini_chunk({"text": "lo"}, finish="STOP", usageMetadata=COUNTS)]
    result = flow("gemini", client, map(_wrap, chunks), asked).body
    match client:
        case "chat":
            counted = [frame for frame in result if isinstance(frame, dict) and frame.get("usage")]
        case "messages":
            counted = [frame for frame in result if frame["type"] == "message_delta"]
        case "responses":
            counted = [frame["response"] for frame in result if frame["type"] == "response.completed"]
        case _:
            counted = [frame for frame in result if "usageMetadata" in frame]
            assert all("response" not in frame for frame in result)
    assert _count(client, counted[-1]) == (11, 5)


def test_t159_a_request_is_in_the_envelope_with_the_bare_model():
    asked = translate_to("messages", "gemini", messages_request(system="s"), model="gemini-3-flash", form="code_assist")
    assert asked.body["model"] == "gemini-3-flash"
    assert asked.body["request"]["contents"] == [{"role": "user", "parts": [{"text": "q"}]}]
    assert asked.body["request"]["systemInstruction"] == {"role": "user", "parts": [{"text": "s"}]}
    assert "model" not in asked.body["request"]


def test_t159_fields_next_to_the_contents_stay_inside_the_envelope():
    tools = [{"type": "web_search_20250305", "name": "web_search"}, {"name": "f", "input_schema": {"type": "object"}}]
    asked = translate_to(
        "messages", "gemini", messages_request(tools=tools), model="gemini-3-flash", form="code_assist"
    )
    assert asked.body.keys() == {"model", "request"}
    assert asked.body["request"]["toolConfig"] == {"includeServerSideToolInvocations": True}


@pytest.mark.parametrize("role", [{}, {"role": "user"}, {"role": "system"}])
def test_a_system_instruction_has_the_role_that_clients_of_code_assist_send(role):
    body = {"systemInstruction": {**role, "parts": [{"text": "s"}]}, "contents": [{"parts": [{"text": "q"}]}]}
    asked = translate_to("gemini", "gemini", body, model="gemini-3-flash", form="code_assist")
    assert asked.body["request"]["systemInstruction"] == {"role": "user", **role, "parts": [{"text": "s"}]}
    assert asked.losses == ()
