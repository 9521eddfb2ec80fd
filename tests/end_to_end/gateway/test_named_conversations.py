"""Conversations named by a header, in the dialects that have none of their own; and `/v1/gemini`."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import anthropic
import httpx2
import openai
import pytest

from oracles.clients import genai

MODELS = ("gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "What is the weather in Tokyo?"
RESULT = '{"temp":72,"unit":"F"}'
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Get it", "parameters": SCHEMA}}
MESSAGES_TOOL = {"name": "get_weather", "description": "Get it", "input_schema": SCHEMA}
GEMINI_TOOL = {
    "functionDeclarations": [
        {
            "name": "get_weather",
            "description": "Get weather",
            "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]},
        }
    ]
}


@pytest.fixture
def name():
    return f"c-{uuid4().hex}"


@pytest.fixture
def chat(gateway):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))


@pytest.fixture
def claude(gateway):
    return gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0))


@pytest.fixture
def google(gateway):
    return gateway.open(genai.Client(api_key="k", http_options={"base_url": gateway.base_url}))


def in_chat(chat, name, stream, **body):
    asked = {**body, "extra_headers": {"x-dragoman-conversation": name}}
    if not stream:
        return chat.chat.completions.create(**asked).choices[0].message
    with chat.chat.completions.stream(**asked) as events:
        return events.get_final_completion().choices[0].message


def in_messages(claude, name, stream, **body):
    asked = {"max_tokens": 1000, **body, "extra_headers": {"x-dragoman-conversation": name}}
    if not stream:
        return claude.messages.create(**asked)
    with claude.messages.stream(**asked) as events:
        return events.get_final_message()


def post(gateway, path, body, **headers):
    request = Request(f"{gateway.base_url}{path}", json.dumps(body).encode(), headers)  # noqa: S310  loopback
    with urlopen(request) as answer:  # noqa: S310
        return answer.read()


def send(gateway):
    return json.loads(gateway.simulator.requests[-1].body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_chat_continues_with_only_the_result(chat, name, model, stream):
    first = in_chat(
        chat, name, stream, model=model, messages=[{"role": "user", "content": QUESTION}], tools=[CHAT_TOOL]
    )
    (call,) = first.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Tokyo"}
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    second = in_chat(chat, name, stream, model=model, messages=[result])
    assert "72" in second.content


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_messages_continues_with_only_the_result(gateway, claude, name, model, stream):
    first = in_messages(
        claude,
        name,
        stream,
        model=model,
        system="Be brief.",
        messages=[{"role": "user", "content": QUESTION}],
        tools=[MESSAGES_TOOL],
    )
    (call,) = [block for block in first.content if block.type == "tool_use"]
    assert call.input == {"city": "Tokyo"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
    second = in_messages(claude, name, stream, model=model, messages=[{"role": "user", "content": [result]}])
    assert "72" in second.content[-1].text
    assert "Be brief." in json.dumps(send(gateway))


@pytest.mark.parametrize("model", MODELS)
def test_gemini_continues_with_only_the_result(google, name, model):
    http = {"headers": {"x-dragoman-conversation": name}}
    first = google.models.generate_content(
        model=model,
        contents=QUESTION,
        config={"tools": [GEMINI_TOOL], "http_options": http, "automatic_function_calling": {"disable": True}},
    )
    (call,) = first.function_calls
    assert call.args == {"city": "Tokyo"}
    part = {"function_response": {"id": call.id, "name": call.name, "response": json.loads(RESULT)}}
    pieces = google.models.generate_content_stream(
        model=model, contents=[{"role": "user", "parts": [part]}], config={"http_options": http}
    )
    assert "72" in "".join(piece.text or "" for piece in pieces)


def test_a_client_that_sends_the_whole_history_again_is_understood(gateway, chat, name):
    history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    first = in_chat(chat, name, stream=False, model="gem", messages=history, tools=[CHAT_TOOL])
    (call,) = first.tool_calls
    # Written by hand, as many clients do: without what they do not know.
    history += [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{ "city":"Tokyo" }'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": RESULT},
    ]
    second = in_chat(chat, name, stream=False, model="gem", messages=history)
    assert "72" in second.content
    assert len(send(gateway)["contents"]) == 3
    assert "thoughtSignature" in json.dumps(send(gateway))
    history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Thank you."}]
    in_chat(chat, name, stream=False, model="gem", messages=history)
    assert len(send(gateway)["contents"]) == 5


def test_a_client_that_sends_from_the_last_answer_on_is_understood(gateway, chat, name):
    asked = [{"role": "user", "content": QUESTION}]
    first = in_chat(chat, name, stream=False, model="gem", messages=asked, tools=[CHAT_TOOL])
    call = first.tool_calls[0]
    tail = [first.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    in_chat(chat, name, stream=False, model="gem", messages=tail)
    assert len(send(gateway)["contents"]) == 3


def test_a_system_message_that_comes_with_every_turn_is_kept_once(gateway, chat, name):
    system = {"role": "system", "content": "Be brief."}
    in_chat(chat, name, stream=False, model="gpt", messages=[system, {"role": "user", "content": "Hello"}])
    in_chat(chat, name, stream=False, model="gpt", messages=[system, {"role": "user", "content": "Hello again"}])
    assert [message["role"] for message in send(gateway)["messages"]] == ["system", "user", "assistant", "user"]


def test_a_history_that_differs_from_the_stored_one_is_a_conflict(chat, name):
    asked = [{"role": "user", "content": "Hello"}]
    in_chat(chat, name, stream=False, model="gem", messages=asked)
    asked += [{"role": "assistant", "content": "Something nobody said."}, {"role": "user", "content": "Go on."}]
    with pytest.raises(openai.ConflictError) as caught:
        in_chat(chat, name, stream=False, model="gem", messages=asked)
    assert caught.value.response.headers["x-should-retry"] == "false"


def test_a_retry_of_the_last_prompt_with_its_history_gets_the_same_answer(chat, name):
    asked = [{"role": "user", "content": "Hello"}]
    first = in_chat(chat, name, stream=False, model="gem", messages=asked)
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "And now?"}]
    second, again = (in_chat(chat, name, stream, model="gem", messages=asked) for stream in (False, True))
    assert second.content == again.content


def test_a_result_for_a_call_that_was_never_made_is_refused_by_its_id(claude, name):
    in_messages(claude, name, stream=False, model="gem", messages=[{"role": "user", "content": "Hello"}])
    result = {"type": "tool_result", "tool_use_id": "toolu_nowhere", "content": "1"}
    with pytest.raises(anthropic.BadRequestError, match="toolu_nowhere"):
        in_messages(claude, name, stream=False, model="gem", messages=[{"role": "user", "content": [result]}])


def test_a_conversation_continues_in_the_dialect_it_started_in(chat, claude, name):
    in_chat(chat, name, stream=False, model="gem", messages=[{"role": "user", "content": "Hello"}])
    with pytest.raises(anthropic.ConflictError, match="chat"):
        in_messages(claude, name, stream=False, model="gem", messages=[{"role": "user", "content": "Hello"}])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_native_endpoint_has_gemini_tools_and_a_conversation(gateway, name, model, stream):
    def turn(**body):
        result = post(gateway, "/v1/gemini", {"model": model, "conversation": name, "stream": stream, **body})
        events = [result] if not stream else [line[6:] for line in result.splitlines() if line.startswith(b"data: ")]
        pieces = [json.loads(event) for event in events]
        assert {piece["conversation"] for piece in pieces} == {name}
        return [part for piece in pieces for part in piece["candidates"][0]["content"]["parts"]]

    parts = turn(input=QUESTION, tools=[GEMINI_TOOL], systemInstruction={"parts": [{"text": "Be brief."}]})
    (call,) = [part["functionCall"] for part in parts if "functionCall" in part]
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Tokyo"})
    named = {"id": call["id"]} if "id" in call else {}
    parts = turn(input=[{"functionResponse": {**named, "name": "get_weather", "response": {"temp": 72}}}])
    assert "72" in "".join(part.get("text", "") for part in parts)
    assert "Be brief." in json.dumps(send(gateway))
    parts = turn(input=[{"role": "user", "parts": [{"text": "Thank you."}]}], tools=[])
    assert parts


def test_the_native_endpoint_names_a_conversation_that_has_no_name(gateway):
    first = json.loads(post(gateway, "/v1/gemini", {"model": "gem", "input": "Hello"}))
    second = {"model": "gem", "input": "Hello again", "conversation": first["conversation"]}
    post(gateway, "/v1/gemini", second)
    assert len(send(gateway)["contents"]) == 3


@pytest.mark.parametrize("output", [None, 7, [], [{"text": "a"}, {"role": "user", "parts": [{"text": "b"}]}], [7]])
def test_an_input_that_is_none_is_refused_as_gemini_refuses(gateway, output):
    with pytest.raises(HTTPError) as caught:
        post(gateway, "/v1/gemini", {"model": "gem", "input": output})
    with caught.value as answer:
        assert answer.status == 400
        assert json.loads(answer.read())["error"]["status"] == "INVALID_ARGUMENT"


def test_a_request_in_an_envelope_cannot_be_part_of_a_conversation(gateway, name):
    wrapped = {"model": "gem", "request": {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}}
    with pytest.raises(HTTPError) as caught:
        post(gateway, "/v1internal:generateContent", wrapped, **{"x-dragoman-conversation": name})
    with caught.value as answer:
        assert answer.status == 400


def test_a_count_is_of_the_whole_conversation(chat, name):
    words = {"model": "gem", "conversation": name}
    before = chat.responses.input_tokens.count(**words, input="Hello").input_tokens
    chat.responses.create(**words, input="A rather long sentence that takes more than a few tokens to say.")
    assert chat.responses.input_tokens.count(**words, input="Hello").input_tokens > before + 10
    assert len(list(chat.conversations.items.list(name))) == 2


def test_an_unknown_field_of_conversations_is_rejected_and_missing_metadata_is_not_cleared(gateway):
    base = f"{gateway.base_url}/v1/conversations"
    made = httpx2.post(base, json={"metadata": {"a": "1"}}).json()
    item = {"type": "message", "role": "user", "content": "hi"}
    for path, body, where in (
        ("", {"metadta": {}}, "metadta"),
        (f"/{made['id']}", {"metadata": {}, "items": []}, "items"),
        (f"/{made['id']}/items", {"items": [item], "metadata": {}}, "metadata"),
    ):
        reply = httpx2.post(base + path, json=body)
        assert reply.status_code == 400
        assert (reply.json()["error"]["param"], reply.json()["error"]["code"]) == (where, "unknown_parameter")
    assert httpx2.post(f"{base}/{made['id']}", json={}).status_code == 400
    assert httpx2.get(f"{base}/{made['id']}").json()["metadata"] == {"a": "1"}


def test_a_streamed_chat_of_google_genai_continues(google, name):
    http = {"headers": {"x-dragoman-conversation": name}}
    talk = google.chats.create(model="gem", config={"http_options": http})
    assert "".join(piece.text or "" for piece in talk.send_message_stream("Hello"))
    assert talk.send_message("And now?").text
    assert talk.send_message("And then?").text


def test_the_same_history_with_other_options_is_not_a_retry(chat, name):
    asked = [{"role": "user", "content": "Hello"}]
    first = in_chat(chat, name, stream=False, model="gem", messages=asked)
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": QUESTION}]
    in_chat(chat, name, stream=False, model="gem", messages=asked)
    with pytest.raises(openai.ConflictError):
        in_chat(chat, name, stream=False, model="gpt", messages=asked, tools=[CHAT_TOOL])


def test_a_system_message_that_changes_with_every_turn_is_used(gateway, chat, name):
    for day in ("Monday", "Tuesday"):
        messages = [{"role": "system", "content": f"It is {day}."}, {"role": "user", "content": f"Hello {day}"}]
        in_chat(chat, name, stream=False, model="gpt", messages=messages)
    result = send(gateway)["messages"]
    assert [message["role"] for message in result] == ["system", "user", "assistant", "user"]
    assert result[0]["content"] == "It is Tuesday."
