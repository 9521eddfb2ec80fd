"""Histories and requests in Gemini's own words."""

import json

import pytest

from cases.documents import HELLO, chat_request, gemini_request
from cases.through import encode, loss_pointers, translate_to
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request

CLAUDE = "claude-opus-4-8"
GEMINI = "gemini-3-flash"
USER = {"role": "user", "parts": [{"text": "q"}]}


def test_t063_cached_content_and_what_lives_in_the_cache_are_never_sent_together():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    body = chat_request(
        {"role": "system", "content": "s"}, HELLO, tools=[tool], cachedContent="projects/p/cachedContents/1"
    )
    asked = translate_to("chat", "gemini", body, model=GEMINI)
    assert asked.body.keys() == {"contents", "systemInstruction", "tools"}
    assert loss_pointers(asked) == {"/cachedContent"}


def test_t063_a_gemini_clients_cached_content_is_passed_on_as_it_is():
    body = encode(gemini_request(USER, cachedContent="projects/p/cachedContents/1"))
    assert translate_request(Call(body, "m"), "gemini", "gemini").call.body == body
    wrapped = translate_to("gemini", "gemini", json.loads(body), model=GEMINI, form="code_assist").body
    assert wrapped["request"] == json.loads(body)


NAMELESS = [
    {"functionCall": {"name": "read", "args": {"p": "a"}}},
    {"functionCall": {"name": "grep", "args": {"p": "b"}}},
    {"functionCall": {"name": "read", "args": {"p": "c"}}},
]
ANSWERS = [("grep", 2), ("read", 1), ("read", 3)]


def _without_ids(*answers):
    results = [{"functionResponse": {"name": name, "response": {"r": number}}} for name, number in answers]
    return gemini_request(USER, {"role": "model", "parts": NAMELESS}, {"role": "user", "parts": results})


def test_t064_calls_and_results_without_ids_pair_by_name_in_order_with_stable_ids():
    asked = translate_to("gemini", "chat", _without_ids(*ANSWERS), model="gpt-4.1")
    _, assistant, *results = asked.body["messages"]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert len(set(ids)) == 3
    assert [(result["tool_call_id"], json.loads(result["content"])) for result in results] == [
        (ids[0], {"r": 1}),
        (ids[1], {"r": 2}),
        (ids[2], {"r": 3}),
    ]
    assert translate_to("gemini", "chat", _without_ids(*ANSWERS), model="gpt-4.1").body == asked.body


def test_t064_pairing_without_ids_holds_for_claude_too():
    asked = translate_to("gemini", "messages", _without_ids(*ANSWERS), model=CLAUDE)
    calls, results = asked.body["messages"][1]["content"], asked.body["messages"][2]["content"]
    assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]
    assert ["1" in str(results[0]), "2" in str(results[1]), "3" in str(results[2])] == [True] * 3


def test_t064_an_explicit_id_wins_over_order():
    calls = [{"functionCall": {"id": name, "name": "read", "args": {}}} for name in "ab"]
    results = [{"functionResponse": {"id": name, "name": "read", "response": {"r": name}}} for name in "ba"]
    body = gemini_request(USER, {"role": "model", "parts": calls}, {"role": "user", "parts": results})
    messages = translate_to("gemini", "chat", body, model="gpt-4.1").body["messages"]
    assert [(result["tool_call_id"], json.loads(result["content"])) for result in messages[2:]] == [
        ("a", {"r": "a"}),
        ("b", {"r": "b"}),
    ]


def test_t064_a_result_without_its_call_becomes_user_text():
    orphan = {"role": "user", "parts": [{"functionResponse": {"name": "ghost", "response": {"r": 9}}}]}
    asked = translate_to("gemini", "chat", gemini_request(USER, orphan), model="gpt-4.1")
    assert {message["role"] for message in asked.body["messages"]} == {"user"}
    assert '{"r": 9}' in json.dumps(asked.body["messages"]).replace('\\"', '"')
    assert loss_pointers(asked, "approximated") == {"/contents/1/parts/0"}


RED = {"name": "red", "parametersJsonSchema": {"type": "object", "properties": {"p": {"type": "string"}}}}


@pytest.mark.parametrize(("target", "model"), [("chat", "gpt-4.1"), ("messages", CLAUDE), ("responses", "gpt-5.6")])
def test_t066_any_key_of_a_function_response_and_both_spellings_of_a_schema_are_read(target, model):
    body = gemini_request(
        USER,
        {"role": "model", "parts": [{"functionCall": {"name": "red", "args": {"p": "x"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "red", "response": {"result": "r1"}}}]},
        tools=[
            {
                "functionDeclarations": [
                    RED,
                    {"name": "blue", "parameters": {"type": "OBJECT", "properties": {"p": {"type": "STRING"}}}},
                ]
            }
        ],
    )
    asked = translate_to("gemini", target, body, model=model)
    results = json.dumps(asked.body).replace('\\"', '"').replace('": "', '":"')
    assert '{"result":"r1"}' in results
    first, second = asked.body["tools"]
    for tool in (first.get("function", first), second.get("function", second)):
        schema = tool.get("parameters") or tool["input_schema"]
        assert schema == RED["parametersJsonSchema"]


def test_t066_gemini_to_gemini_is_the_same_bytes():
    body = encode(
        gemini_request(
            USER,
            {"role": "model", "parts": [{"functionCall": {"name": "red", "args": {"p": "x"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "red", "response": {"result": "r1"}}}]},
            tools=[{"functionDeclarations": [RED]}],
        )
    )
    translation = translate_request(Call(body, "m"), "gemini", "gemini")
    assert translation.call.body == body
    assert translation.losses == ()


NATIVE = gemini_request(
    USER,
    systemInstruction={"parts": [{"text": "s"}]},
    tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}],
    toolConfig={"functionCallingConfig": {"mode": "ANY"}},
    generationConfig={"maxOutputTokens": 77, "temperature": 0.5, "stopSequences": ["END"]},
)


def test_t067_a_gemini_request_reaches_claude_whole():
    body = translate_to("gemini", "messages", NATIVE, model="claude-sonnet-4-5").body
    assert body["system"] == "s"
    assert [tool["name"] for tool in body["tools"]] == ["f"]
    assert body["tool_choice"] == {"type": "any"}
    assert (body["max_tokens"], body["temperature"], body["stop_sequences"]) == (77, 0.5, ["END"])


def test_t067_a_gemini_request_reaches_chat_whole():
    body = translate_to("gemini", "chat", NATIVE, model="gpt-4.1").body
    assert body["messages"][0] == {"role": "system", "content": "s"}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f"]
    assert body["tool_choice"] == "required"
    assert (body["max_completion_tokens"], body["temperature"]) == (77, 0.5)
    assert body["stop"] == ["END"]
