"""What is made of tools is kept by their bytes, for each row of traits, and nothing of one request passes to another."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, translate_request

PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]


@pytest.fixture
def cache(monkeypatch):
    kept = ToolsCache()
    monkeypatch.setattr(translate, "CACHES", Caches(kept, PrefixCache()))
    return kept


def user_message(text):
    return [{"role": "user", "content": text}]


def call_messages(name, arguments="{}"):
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        *user_message("hi"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
    ]


def body(messages, **rest):
    return json.dumps({"model": "m", "messages": messages, **rest}).encode()


def translate_chat(document, target="gemini", model="gemini-2.5-flash", **wishes):
    return translate_request(Call(document), "chat", target, model=model, **wishes)


def contents(translation):
    return json.loads(translation.call.body)["contents"]


def adapt_in(cache, tools=TOOLS):
    found = cache.find(dialect_named("chat"), json.dumps(tools).encode(), "/tools")
    return [one.traits for one in found.adapted] if found is not None else None


def test_tools_are_adapted_once_for_each_row_of_traits(cache):
    for text in ("one", "two"):
        for model in ("gemini-2.5-flash", "gemini-3-flash"):
            assert contents(translate_chat(body(user_message(text), tools=TOOLS), model=model))[0]["parts"] == [
                {"text": text}
            ]
        translate_chat(body(user_message(text), tools=TOOLS), "messages", "claude-sonnet-4-5")
    assert len(adapt_in(cache)) == 3


def test_tools_are_read_once_and_written_as_they_were_before(cache):
    first, second = (translate_chat(body(user_message(text), tools=TOOLS)) for text in "ab")
    assert first.request.tools is second.request.tools
    assert json.loads(first.call.body)["tools"] == json.loads(second.call.body)["tools"]


def test_names_that_one_history_calls_are_not_undone_for_another(cache):
    odd = translate_chat(body(call_messages("what is this?"), tools=TOOLS)).undo.names
    assert list(odd.values()) == [("", "what is this?")]
    assert translate_chat(body(user_message("a"), tools=TOOLS)).undo.names == {}
    assert adapt_in(cache)


def test_arguments_of_calls_follow_the_schemas_of_cached_tools(cache):
    parameters = {"type": "object", "properties": {"a b": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    translate_chat(body(user_message("a"), tools=tools), "messages", "claude-sonnet-4-5")
    call = translate_chat(body(call_messages("f", '{"a b":"x"}'), tools=tools), "messages", "claude-sonnet-4-5")
    assert json.loads(call.call.body)["messages"][1]["content"][0]["input"] == {"a_b": "x"}
    assert adapt_in(cache, tools)


def test_instructions_added_as_text_are_sent_every_time_with_cached_tools(cache):
    translate_chat(body(user_message("a"), tools=TOOLS))
    now = translate_chat(body(user_message("b"), tools=TOOLS, parallel_tool_calls=False))
    assert json.loads(now.call.body)["systemInstruction"]["parts"] == [{"text": "Call at most one tool at a time."}]
    assert now.undo.single_call
    assert not translate_chat(body(user_message("c"), tools=TOOLS)).undo.single_call


STRICT = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}, {**TOOLS[0], "x": 1}]


def test_losses_of_known_tools_are_reported_every_time_and_refused_in_strict_mode(cache):
    losses = [translate_chat(body(user_message(text), tools=STRICT)).losses for text in "ab"]
    assert losses[0] == losses[1] != ()
    with pytest.raises(Problem, match="strict mode"):
        translate_chat(body(user_message("a"), tools=STRICT), strict=True)


def test_a_choice_among_known_tools_is_applied_to_each_request(cache):
    tools = [*TOOLS, {"type": "function", "function": {"name": "other", "parameters": PARAMETERS}}]
    chosen = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "other"}}]},
    }
    translate_chat(body(user_message("a"), tools=tools), "messages", "claude-sonnet-4-5")
    only = translate_chat(body(user_message("a"), tools=tools, tool_choice=chosen), "messages", "claude-sonnet-4-5")
    assert [tool["name"] for tool in json.loads(only.call.body)["tools"]] == ["other"]
    every = translate_chat(body(user_message("a"), tools=tools), "messages", "claude-sonnet-4-5")
    assert [tool["name"] for tool in json.loads(every.call.body)["tools"]] == ["weather", "other"]


def test_tools_that_cannot_be_read_are_refused_every_time(cache):
    wrong = [{"type": "function", "function": {"name": 5}}]
    for _ in range(2):
        with pytest.raises(Problem) as caught:
            translate_chat(body(user_message("a"), tools=wrong))
        assert caught.value.where == "/tools/0/function/name"
    assert adapt_in(cache, wrong) is None


def test_what_was_not_used_for_longest_is_evicted_first():
    cache = ToolsCache(max_bytes=60_000)
    chat = dialect_named("chat")
    raws = [json.dumps([{"type": "function", "function": {"name": f"f{number}"}}]).encode() for number in range(20)]
    for raw in raws:
        cache.read(chat, raws[0], "/tools")
        cache.read(chat, raw, "/tools")
    kept = [raw for raw in raws if cache.find(chat, raw, "/tools") is not None]
    assert raws[0] in kept
    assert raws[-1] in kept
    assert 1 < len(kept) < 20


def test_an_array_that_would_take_most_of_the_room_is_read_but_not_kept():
    cache = ToolsCache(max_bytes=10_000)
    raw = json.dumps(TOOLS * 5).encode()
    assert len(cache.read(dialect_named("chat"), raw, "/tools").tools) == 5
    assert cache.find(dialect_named("chat"), raw, "/tools") is None


def test_what_is_made_of_one_array_for_ever_new_rows_is_bounded(cache):
    document = body(user_message("a"), tools=TOOLS)
    for model in ("gemini-2.5-flash", "gemini-3-flash", "gemini-3.8-pro", "gemini-2.0-flash", "gemma-3"):
        translate_chat(document, model=model)
    for model in ("gpt-4.1", "gpt-5.6", "o3", "mistral-large", "deepseek-chat", "grok-4", "llama-3"):
        translate_chat(document, "responses", model=model)
        translate_chat(document, "messages", "claude-sonnet-4-5")
    assert 0 < len(adapt_in(cache)) <= 8
