"""Ids and names that a target rejects get an alias, and the client sees its own."""

import json
import re

import pytest

from cases.documents import (
    HELLO,
    block,
    chat_call,
    chat_calls,
    chat_reply,
    chat_request,
    chat_result,
    chat_stream,
    chat_tool,
    gemini_chunk,
    gemini_reply,
    list_seen_blocks,
    list_seen_calls,
    messages_request,
    messages_stream,
    tool_result,
    tool_use,
)
from cases.through import answer, flow, translate_to

CLAUDE = "claude-opus-4-8"
EMPTY = {"type": "object", "properties": {}}


def _call(call_id):
    return chat_request(HELLO, chat_calls(chat_call(call_id, "Bash")), chat_result(call_id, "ok"))


def _ids_at_claude(call_id):
    messages = translate_to("chat", "messages", _call(call_id), model=CLAUDE).body["messages"]
    return messages[1]["content"][0]["id"], messages[2]["content"][0]["tool_use_id"]


@pytest.mark.parametrize("call_id", ["functions.Bash:0", "a/b", "ид"])
def test_t124_an_illegal_id_gets_one_stable_alias_on_call_and_result(call_id):
    call, result = _ids_at_claude(call_id)
    assert call == result
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call)
    assert _ids_at_claude(call_id) == (call, result)


def test_t124_illegal_ids_that_look_alike_stay_apart():
    aliases = {_ids_at_claude(call_id)[0] for call_id in ("functions.Bash:0", "functions_Bash_0", "functions:Bash.0")}
    assert len(aliases) == 3


def test_t124_the_client_keeps_its_own_id():
    calls = answer(
        "chat", "responses", chat_reply({"tool_calls": [chat_call("functions.Bash:0", "Bash")]}, "tool_calls")
    )
    assert [item["call_id"] for item in calls.body["output"]] == ["functions.Bash:0"]


@pytest.mark.parametrize(
    ("model", "sent"), [("gemini-3-flash", True), ("gemini-2.5-flash", False), ("gemini-2.0-flash", False)]
)
def test_t126_ids_are_sent_only_to_gemini_3_and_later(model, sent):
    contents = translate_to("chat", "gemini", _call("call_1"), model=model).body["contents"]
    call, result = contents[1]["parts"][0]["functionCall"], contents[2]["parts"][0]["functionResponse"]
    assert ("id" in call, "id" in result) == (sent, sent)
    assert (call["name"], result["name"]) == ("Bash", "Bash")


def test_t127_mistral_gets_ids_of_nine_letters_and_digits():
    history = messages_request(
        HELLO,
        {"role": "assistant", "content": [tool_use("call_abcdefghijklmnop", "f"), tool_use("abcdefgh9", "f")]},
        {"role": "user", "content": [tool_result("call_abcdefghijklmnop", "1"), tool_result("abcdefgh9", "2")]},
    )
    _, calls, first, second = translate_to("messages", "chat", history, model="mistral-large").body["messages"]
    ids = [call["id"] for call in calls["tool_calls"]]
    assert re.fullmatch(r"[A-Za-z0-9]{9}", ids[0])
    assert ids[1] == "abcdefgh9"
    assert [first["tool_call_id"], second["tool_call_id"]] == ids


def test_t129_a_legal_foreign_id_reaches_a_messages_client_and_comes_back_unchanged():
    reply = chat_reply({"tool_calls": [chat_call("chatcmpl-tool-1", "f")]}, "tool_calls")
    content = answer("chat", "messages", reply).body["content"]
    assert [one["id"] for one in content] == ["chatcmpl-tool-1"]
    history = messages_request(
        HELLO,
        {"role": "assistant", "content": content},
        {"role": "user", "content": [tool_result("chatcmpl-tool-1", "1")]},
    )
    _, assistant, result = translate_to("messages", "chat", history, model="local-model").body["messages"]
    assert (assistant["tool_calls"][0]["id"], result["tool_call_id"]) == ("chatcmpl-tool-1", "chatcmpl-tool-1")


def test_t129_an_id_made_for_a_messages_client_begins_as_anthropics_do():
    (call,) = list_seen_blocks(
        flow("gemini", "messages", [gemini_chunk({"functionCall": {"name": "f"}}, finish="STOP")]).body
    )
    assert re.fullmatch(r"toolu_[a-zA-Z0-9]+", call["id"])


LONG = "mcp__plugin_chrome-devtools-mcp_chrome-devtools__get_console_message"


def _with_long_name(choice=None):
    extra = {} if choice is None else {"tool_choice": choice}
    return messages_request(
        HELLO,
        {"role": "assistant", "content": [tool_use("c", LONG)]},
        {"role": "user", "content": [tool_result("c", "ok")]},
        tools=[{"name": LONG, "input_schema": EMPTY}, {"name": LONG + "s", "input_schema": EMPTY}],
        **extra,
    )


@pytest.mark.parametrize(("target", "model"), [("chat", "gpt-4.1"), ("gemini", "gemini-2.5-flash")])
def test_t130_a_long_name_has_one_short_alias_in_tools_choice_and_history(target, model):
    asked = translate_to("messages", target, _with_long_name({"type": "tool", "name": LONG}), model=model)
    if target == "chat":
        names = [tool["function"]["name"] for tool in asked.body["tools"]]
        chosen = asked.body["tool_choice"]["function"]["name"]
        used = asked.body["messages"][1]["tool_calls"][0]["function"]["name"]
    else:
        names = [tool["name"] for tool in asked.body["tools"][0]["functionDeclarations"]]
        chosen = asked.body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"][0]
        used = asked.body["contents"][1]["parts"][0]["functionCall"]["name"]
        assert asked.body["contents"][2]["parts"][0]["functionResponse"]["name"] == used
    assert len(set(names)) == 2
    assert all(len(name) <= 64 and name.startswith("mcp__plugin_chrome-devtools") for name in names)
    assert names[0] == chosen == used
    assert LONG not in json.dumps(asked.body)
    assert translate_to("messages", target, _with_long_name(), model=model).body["tools"] == asked.body["tools"]


def test_t130_the_clients_name_comes_back_in_whole_replies_and_streams():
    asked = translate_to("messages", "chat", _with_long_name(), model="gpt-4.1")
    sent = asked.body["tools"][0]["function"]["name"]
    reply = chat_reply({"tool_calls": [chat_call("c", sent)]}, "tool_calls")
    assert [one["name"] for one in answer("chat", "messages", reply, asked).body["content"]] == [LONG]
    piece = {"index": 0, "id": "c", "function": {"name": sent, "arguments": "{}"}}
    result = flow("chat", "messages", chat_stream({"tool_calls": [piece]}, finish_reason="tool_calls"), asked)
    assert [one["name"] for one in list_seen_blocks(result.body)] == [LONG]


def test_t130_the_clients_name_comes_back_from_claude_and_gemini():
    body = chat_request(tools=[chat_tool(LONG, EMPTY)])
    claude = translate_to("chat", "messages", body, model=CLAUDE)
    sent = claude.body["tools"][0]["name"]
    assert len(sent) <= 64
    frames = messages_stream(block(0, tool_use("t", sent)), stop_reason="tool_use")
    assert [call["name"] for call in list_seen_calls(flow("messages", "chat", frames, claude).body)] == [LONG]

    gemini = translate_to("chat", "gemini", body, model="gemini-2.5-flash")
    sent = gemini.body["tools"][0]["functionDeclarations"][0]["name"]
    result = answer("gemini", "chat", gemini_reply({"functionCall": {"name": sent, "args": {}}}), gemini)
    assert [call["function"]["name"] for call in result.body["choices"][0]["message"]["tool_calls"]] == [LONG]
