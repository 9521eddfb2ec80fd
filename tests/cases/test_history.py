"""A history is rendered in the target's turns: every call is followed by its result, in order."""

import json

import pytest

from cases.documents import (
    HELLO,
    block,
    chat_call,
    chat_calls,
    chat_request,
    chat_result,
    function_call,
    function_output,
    gemini_request,
    list_seen_calls,
    messages_request,
    messages_stream,
    responses_request,
    tool_result,
    tool_use,
)
from cases.through import flow, loss_pointers, translate_to
from dragoman.core.problems import Problem
from dragoman.interpreter.pairing import MISSING_RESULT
from dragoman.interpreter.turns import CONTINUE

CLAUDE = "claude-opus-4-8"
GEMINI = "gemini-3-flash"
USER = {"role": "user", "parts": [{"text": "q"}]}


def test_t042_parallel_results_are_one_user_message_and_keep_their_cache_mark():
    history = chat_request(
        HELLO,
        chat_calls(chat_call("c1", "a"), chat_call("c2", "b")),
        chat_result("c1", [{"type": "text", "text": "one", "prompt_cache_breakpoint": {"mode": "explicit"}}]),
        chat_result("c2", "two"),
    )
    asked = translate_to("chat", "messages", history, model=CLAUDE)
    assert [message["role"] for message in asked.body["messages"]] == ["user", "assistant", "user"]
    first, second = asked.body["messages"][2]["content"]
    assert (first["tool_use_id"], second["tool_use_id"]) == ("c1", "c2")
    assert '"cache_control": {"type": "ephemeral"}' in json.dumps(first)
    assert second == tool_result("c2", "two")


def test_t042_anthropics_own_cache_mark_on_a_chat_tool_message_stays_on_its_result():
    history = chat_request(
        HELLO,
        chat_calls(chat_call("c1", "a"), chat_call("c2", "b")),
        chat_result("c1", "one", cache_control={"type": "ephemeral"}),
        chat_result("c2", "two"),
    )
    asked = translate_to("chat", "messages", history, model=CLAUDE)
    assert asked.body["messages"][2]["content"] == [
        {**tool_result("c1", "one"), "cache_control": {"type": "ephemeral"}},
        tool_result("c2", "two"),
    ]
    assert asked.losses == ()


def test_t043_neighbouring_function_calls_are_one_assistant_message():
    history = responses_request(
        HELLO, function_call("a", "w"), function_call("b", "w"), function_output("a", "1"), function_output("b", "2")
    )
    asked = translate_to("responses", "messages", history, model=CLAUDE)
    assert asked.body["messages"][1:] == [
        {"role": "assistant", "content": [tool_use("a", "w"), tool_use("b", "w")]},
        {"role": "user", "content": [tool_result("a", "1"), tool_result("b", "2")]},
    ]


@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI), ("responses", "gpt-5.6")])
def test_t045_results_are_in_the_order_of_their_calls(target, model):
    history = chat_request(
        HELLO,
        chat_calls(*(chat_call(name, name) for name in "abc")),
        *(chat_result(name, f"result {name}") for name in "cab"),
    )
    text = json.dumps(translate_to("chat", target, history, model=model).body)
    assert sorted("abc", key=lambda name: text.index(f"result {name}")) == ["a", "b", "c"]
    assert text == json.dumps(translate_to("chat", target, history, model=model).body)


INTERRUPTED = chat_request(
    HELLO,
    chat_calls(chat_call("a", "f"), chat_call("b", "g")),
    chat_result("a", "1"),
    {"role": "user", "content": "go on"},
)


def test_t046_a_call_without_a_result_gets_an_error_result_for_claude():
    asked = translate_to("chat", "messages", INTERRUPTED, model=CLAUDE)
    assert asked.body["messages"][2]["content"] == [
        tool_result("a", "1"),
        tool_result("b", MISSING_RESULT, is_error=True),
        {"type": "text", "text": "go on"},
    ]
    assert "interrupted" in MISSING_RESULT
    assert loss_pointers(asked) == {"/messages/1/tool_calls/1"}


def test_t046_a_call_without_a_result_gets_an_error_result_for_gemini():
    asked = translate_to("chat", "gemini", INTERRUPTED, model=GEMINI)
    turn = asked.body["contents"][2]
    assert turn["parts"][1]["functionResponse"] == {"id": "b", "name": "g", "response": {"error": MISSING_RESULT}}
    assert "/messages/1/tool_calls/1" in loss_pointers(asked)


def test_t046_strict_mode_refuses_a_missing_result_and_names_the_id():
    with pytest.raises(Problem, match="'b'") as raised:
        translate_to("chat", "messages", INTERRUPTED, model=CLAUDE, strict=True)
    assert raised.value.status == 400
    assert raised.value.where == "/messages/1/tool_calls/1"


def test_t048_of_two_results_for_one_id_the_last_payload_is_at_the_first_position():
    history = chat_request(
        HELLO,
        chat_calls(chat_call("d", "lookup")),
        chat_result("d", "first"),
        chat_calls(chat_call("o", "search")),
        chat_result("d", "final"),
        chat_result("o", "s"),
    )
    asked = translate_to("chat", "messages", history, model=CLAUDE)
    assert asked.body["messages"][1:] == [
        {"role": "assistant", "content": [tool_use("d", "lookup")]},
        {"role": "user", "content": [tool_result("d", "final")]},
        {"role": "assistant", "content": [tool_use("o", "search")]},
        {"role": "user", "content": [tool_result("o", "s")]},
    ]
    assert any(where.startswith("/messages/2") for where in loss_pointers(asked, "dropped"))


def test_t049_function_responses_have_the_role_user():
    history = chat_request(HELLO, chat_calls(chat_call("c", "w")), chat_result("c", "ok"))
    asked = translate_to("chat", "gemini", history, model=GEMINI)
    assert [content["role"] for content in asked.body["contents"]] == ["user", "model", "user"]


def test_t049_a_gemini_history_without_roles_on_responses_is_read_as_the_users():
    model = {"role": "model", "parts": [{"functionCall": {"name": "w", "args": {}}}]}
    result = {"parts": [{"functionResponse": {"name": "w", "response": {}}}]}
    asked = translate_to("gemini", "messages", gemini_request(USER, model, result), model=CLAUDE)
    assert asked.body["messages"][2]["role"] == "user"
    assert asked.body["messages"][2]["content"][0]["type"] == "tool_result"


@pytest.mark.parametrize("form", ["", "code_assist"])
def test_t051_a_request_with_only_system_text_still_has_a_user_turn(form):
    asked = translate_to(
        "responses", "gemini", responses_request({"role": "system", "content": "s"}), model=GEMINI, form=form
    )
    body = asked.body["request"] if form else asked.body
    assert body["systemInstruction"]["parts"] == [{"text": "s"}]
    (content,) = body["contents"]
    assert content["role"] == "user"
    assert content["parts"][0]["text"]
    assert asked.losses


def test_t052_text_between_a_call_and_its_output_is_moved_before_the_call():
    history = responses_request(
        HELLO,
        function_call("c", "js"),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I'll check"}]},
        function_output("c", "ok"),
    )
    asked = translate_to("responses", "messages", history, model=CLAUDE)
    assert asked.body["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "text", "text": "I'll check"}, tool_use("c", "js")]},
        {"role": "user", "content": [tool_result("c", "ok")]},
    ]


def test_t054_content_is_null_only_with_calls():
    history = messages_request(
        HELLO,
        {"role": "assistant", "content": [{"type": "text", "text": ""}, tool_use("a", "f")]},
        {"role": "user", "content": [tool_result("a", "1")]},
        {"role": "assistant", "content": [{"type": "text", "text": ""}]},
        {"role": "user", "content": "go on"},
    )
    messages = translate_to("messages", "chat", history, model="gpt-4.1").body["messages"]
    output = [message for message in messages if message["role"] == "assistant"]
    assert [("tool_calls" in message, message["content"]) for message in output] == [(True, None), (False, "")]


@pytest.mark.parametrize(("target", "model"), [("gemini", "gemini-3.7-pro"), ("messages", CLAUDE)])
def test_t055_a_trailing_assistant_turn_is_kept_and_followed_by_a_user_turn(target, model):
    body = chat_request(HELLO, {"role": "assistant", "content": "Sure, "})
    asked = translate_to("chat", target, body, model=model)
    *_, before, last = asked.body["contents" if target == "gemini" else "messages"]
    assert before["role"] in {"model", "assistant"}
    assert "Sure, " in json.dumps(before)
    assert last["role"] == "user"
    assert CONTINUE in json.dumps(last)
    assert loss_pointers(asked) == {"/messages/1"}


CUT = '{"p":"tr'


@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI)])
def test_t057_malformed_arguments_in_history_are_kept_as_raw_text_in_an_object(target, model):
    history = chat_request(HELLO, chat_calls(chat_call("x", "blue", CUT)), chat_result("x", "bad"))
    asked = translate_to("chat", target, history, model=model)
    if target == "messages":
        call, result = asked.body["messages"][1]["content"][0], asked.body["messages"][2]["content"][0]
        assert (call["id"], result["tool_use_id"]) == ("x", "x")
        sent = call["input"]
    else:
        sent = asked.body["contents"][1]["parts"][0]["functionCall"]["args"]
        assert asked.body["contents"][2]["parts"][0]["functionResponse"]["id"] == "x"
    assert list(sent.values()) == [CUT]
    assert "/messages/1/tool_calls/0/function/arguments" in loss_pointers(asked, "approximated")


def test_t057_malformed_arguments_stay_verbatim_in_a_text_dialect():
    history = chat_request(HELLO, chat_calls(chat_call("x", "blue", CUT)), chat_result("x", "bad"))
    asked = translate_to("chat", "responses", history, model="gpt-5.6")
    assert [item["arguments"] for item in asked.body["input"] if item.get("type") == "function_call"] == [CUT]


@pytest.mark.parametrize("pieces", [[], [""], ["", "{}"]])
def test_t058_a_streamed_call_without_arguments_is_an_empty_object_at_a_chat_client(pieces):
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    frames = messages_stream(block(0, tool_use("t", "noargs"), *deltas), stop_reason="tool_use")
    (call,) = list_seen_calls(flow("messages", "chat", frames).body)
    assert call == {"index": 0, "id": "t", "name": "noargs", "arguments": "{}"}


@pytest.mark.parametrize("arguments", ["", None])
@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI), ("responses", "gpt-5.6")])
def test_t058_empty_or_missing_arguments_in_history_are_an_empty_object(target, model, arguments):
    call = chat_call("t", "noargs")
    if arguments is None:
        del call["function"]["arguments"]
    else:
        call["function"]["arguments"] = arguments
    asked = translate_to("chat", target, chat_request(HELLO, chat_calls(call), chat_result("t", "ok")), model=model)
    match target:
        case "messages":
            assert asked.body["messages"][1]["content"][0]["input"] == {}
        case "gemini":
            assert asked.body["contents"][1]["parts"][0]["functionCall"].get("args", {}) == {}
        case _:
            assert asked.body["input"][1]["arguments"] == "{}"


def test_t060_calls_in_history_without_tools_get_stubs_in_stable_order():
    history = chat_request(
        HELLO,
        chat_calls(chat_call("a", "zebra"), chat_call("b", "ant")),
        chat_result("a", "1"),
        chat_result("b", "2"),
        chat_calls(chat_call("c", "zebra")),
        chat_result("c", "3"),
    )
    asked = translate_to("chat", "messages", history, model=CLAUDE)
    assert asked.body["tools"] == [
        {"name": name, "input_schema": {"type": "object", "properties": {}}} for name in ("zebra", "ant")
    ]
    assert asked.body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI), ("responses", "gpt-5.6")])
def test_t061_without_tools_there_is_no_choice_and_no_parallel_flag_from_chat(target, model):
    body = chat_request(tools=[], tool_choice="auto", parallel_tool_calls=True)
    asked = translate_to("chat", target, body, model=model)
    assert not asked.body.keys() & {"tools", "tool_choice", "parallel_tool_calls", "toolConfig"}
    assert loss_pointers(asked) == set()
    forced = translate_to("chat", target, {**body, "tool_choice": "required"}, model=model)
    assert loss_pointers(forced) == {"/tool_choice"}


@pytest.mark.parametrize(("target", "model"), [("chat", "gpt-4.1"), ("responses", "gpt-5.6"), ("gemini", GEMINI)])
def test_t061_without_tools_there_is_no_choice_from_messages_even_when_filtering_emptied_the_list(target, model):
    for tools in ([], [{"type": "advisor_20260301", "name": "advisor"}]):
        body = messages_request(tools=tools, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
        asked = translate_to("messages", target, body, model=model)
        assert not asked.body.keys() & {"tools", "tool_choice", "parallel_tool_calls", "toolConfig"}
