"""A tool loop whose schema was changed to fit: the model finds its own calls as it wrote them, on every turn."""

import json
from typing import Any

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter import translate
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, translate_request
from dragoman.interpreter.translation import Translation

ARRAY = {"type": "array", "items": {"type": "integer"}}
ODD_NAMES = {"type": "object", "properties": {"$top": {"type": "integer"}}}
UNTYPED = {
    "type": "object",
    "properties": {"e": {"enum": [1, 2]}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}},
}
LOOSE = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]}
ASKED = {"role": "user", "content": "go"}


def tool(schema: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def build_turns(arguments: str, name: str = "f", call_id: str = "c1") -> list[dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]


def send(messages: list[dict[str, Any]], tools: list[dict[str, Any]], target: str, model: str) -> Translation:
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    return translate_request(Call(body), "chat", target, model=model)


def reply(text: Any, target: str) -> bytes:
    """The model calls `f`."""
    match target:
        case "gemini":
            call = {"functionCall": {"id": "c1", "name": "f", "args": text}, "thoughtSignature": "c2ln"}
            body = {"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}], "responseId": "r"}
        case "messages":
            content = [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": text}]
            usage = {"input_tokens": 1, "output_tokens": 1}
            body = {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "c",
                "content": content,
                "stop_reason": "tool_use",
                "usage": usage,
            }
        case _:
            call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": json.dumps(text)}
            body = {"id": "r", "status": "completed", "model": "m", "output": [call]}
    return json.dumps(body).encode()


def calls_in(translation: Translation, target: str) -> list[Any]:
    """Return the arguments of all calls in the translated request."""
    body = json.loads(translation.call.body)
    match target:
        case "gemini":
            parts = [part for turn in body["contents"] for part in turn["parts"]]
            return [part["functionCall"]["args"] for part in parts if "functionCall" in part]
        case "messages":
            blocks = [
                block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]
            ]
            return [block["input"] for block in blocks if block["type"] == "tool_use"]
        case _:
            return [json.loads(item["arguments"]) for item in body["input"] if item.get("type") == "function_call"]


@pytest.mark.parametrize(
    ("target", "model", "declared", "text", "meant"),
    [
        ("messages", "claude-opus-5", tool(ARRAY), {"value": [1, 2]}, [1, 2]),
        ("gemini", "gemini-3-flash", tool(ARRAY), {"value": [1, 2]}, [1, 2]),
        ("responses", "gpt-5.2", tool(ARRAY), {"value": [1, 2]}, [1, 2]),
        ("messages", "claude-opus-5", tool({"type": "string"}), {"value": "hi"}, "hi"),
        ("messages", "claude-opus-5", tool(ODD_NAMES), {"_top": 5}, {"$top": 5}),
        ("gemini", "gemini-1.5-pro", tool(UNTYPED), {"e": "2", "m": '{"x": 1}'}, {"e": 2, "m": {"x": 1}}),
        ("responses", "gpt-5.2", tool(LOOSE, strict=True), {"a": None, "b": 1}, {"b": 1}),
    ],
)
def test_a_model_finds_its_call_as_it_wrote_it(target, model, declared, text, meant):
    tools = [declared]
    first = send([ASKED], tools, target, model)
    answer = translate_response(reply(text, target), target, "chat", Context(first.request, first.undo))
    message = json.loads(answer.body)["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == meant
    result = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
    second = send([ASKED, message, result], tools, target, model)
    assert calls_in(second, target) == [text]
    assert [loss for loss in second.losses if loss.where.endswith("/arguments")] == []


def test_arguments_that_match_no_schema_are_sent_unchanged():
    for arguments, actual in (("[1, 2", {"INVALID_JSON": "[1, 2"}), ('{"x":1}', {"x": 1}), ("", {}), ("null", {})):
        history = [ASKED, *build_turns(arguments)]
        assert calls_in(send(history, [tool(ARRAY)], "messages", "claude-opus-5"), "messages") == [actual]


def test_calls_of_tools_that_were_not_changed_keep_their_bytes():
    arguments = '{ "value" : [1,2] }'
    history = [ASKED, *build_turns(arguments, "g")]
    actual = send(
        history, [tool(ARRAY), tool({"type": "object", "properties": {"value": ARRAY}}, "g")], "responses", "gpt-5.2"
    )
    items = json.loads(actual.call.body)["input"]
    assert [item["arguments"] for item in items if item.get("type") == "function_call"] == [arguments]


LONG = [{"role": "user", "content": "x" * 64}]
TURNS = [message for number in range(4) for message in build_turns(f"[{number}]", call_id=f"c{number}")]


@pytest.fixture
def prefixes(monkeypatch: pytest.MonkeyPatch) -> PrefixCache:
    kept = PrefixCache(min_bytes=64)
    monkeypatch.setattr(translate, "CACHES", Caches(ToolsCache(), kept))
    return kept


@pytest.mark.parametrize(("target", "model"), [("messages", "claude-opus-5"), ("gemini", "gemini-3-flash")])
def test_calls_in_a_cached_prefix_are_sent_as_the_model_wrote_them(prefixes, target, model):
    for length in (2, 2, 4, 6, 8):
        actual = send([*LONG, *TURNS[:length]], [tool(ARRAY)], target, model)
        assert calls_in(actual, target) == [{"value": [number]} for number in range(length // 2)]
    known = [prefix for alike in prefixes._prefixes.values() for prefix in alike]
    assert [len(prefix.messages) for prefix in known] == [7]


def test_a_cached_prefix_is_not_used_when_its_tools_are_others(prefixes):
    for _ in range(3):
        assert calls_in(send([*LONG, *TURNS], [tool(ARRAY)], "responses", "gpt-5.2"), "responses")[0] == {"value": [0]}
    plain = tool({"type": "object", "properties": {}})
    assert calls_in(send([*LONG, *TURNS], [plain], "responses", "gpt-5.2"), "responses") == [[n] for n in range(4)]
    assert calls_in(send([*LONG, *TURNS], [], "responses", "gpt-5.2"), "responses") == [[n] for n in range(4)]


def test_a_cached_prefix_serves_though_a_tool_has_integers(prefixes):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    turns = [message for number in range(4) for message in build_turns(f'{{"n":{number}}}', call_id=f"c{number}")]
    for length in (2, 2, 4, 6):
        send([*LONG, *turns[:length]], [tool(schema)], "gemini", "gemini-3-flash")
    send([*LONG, *turns], [tool(schema), tool(schema, "g")], "gemini", "gemini-3-flash")
    known = [prefix for alike in prefixes._prefixes.values() for prefix in alike]
    assert [(len(prefix.messages), prefix.history_changes) for prefix in known] == [(7, {})]
