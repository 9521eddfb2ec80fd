import functools
import json

import pytest

from dragoman.core.parts import (
    Inline,
    Link,
    Opaque,
    Reasoning,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, OutputFormat, Thinking, Tool
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.request import parse_request
from shelf import ROOT, exchanges, needs_shelf, samples

TRAITS = Traits(dialect="responses")


def parse(body):
    return parse_request(Call(json.dumps(body).encode()))


def render(request):
    return json.loads(DIALECT.render_request(request, TRAITS).body)


def without_nulls(value):
    """Null is absent."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@functools.cache
def load_recordings():
    bodies = {
        row["id"]: row["request"] for row in exchanges("responses") if row["request"] and row["op"] != "count_tokens"
    }
    bodies |= {path.name: json.loads(path.read_text()) for path in samples("responses", ".request.json")}
    for path in sorted((ROOT / "clients" / "captures").glob("*/*responses*.json")):
        body = json.loads(path.read_text()).get("body")
        if isinstance(body, dict):
            bodies[f"{path.parent.name}/{path.name}"] = body
    return bodies


@needs_shelf
def test_every_recorded_request_survives_a_round_trip():
    assert len(load_recordings()) > 690
    assert any(name.startswith("codex") for name in load_recordings())
    changed = {
        name: body
        for name, body in load_recordings().items()
        if without_nulls(render(parse(body))) != without_nulls(body)
    }
    assert changed == {}


@needs_shelf
def test_every_value_is_at_its_pointer():
    from dragoman.wire.lookup import lookup

    for body in load_recordings().values():
        raw = json.dumps(body).encode()
        request = parse_request(Call(raw))
        places = [tool.where for tool in request.tools]
        for message in request.messages:
            places += [message.where, *(part.where for part in message.parts)]
        assert all(lookup(raw, place) for place in places)


def test_a_string_input_is_one_user_message():
    request = parse({"model": "m", "input": "hi", "instructions": "be kind"})
    assert [(message.role, message.where) for message in request.messages] == [
        ("system", "/instructions"),
        ("user", "/input"),
    ]
    assert request.messages[1].parts == (Text(text="hi"),)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "system", "content": "hi"},
        {"type": "message", "role": "user", "content": []},
        {"role": "user", "content": "hi", "name": "bob", "novelty": {"a": [1, 2.50]}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no", "why": 1}], "phase": "commentary"},
        {
            "role": "user",
            "content": [{"type": "hologram", "rays": 7}, {"type": "input_text", "text": "x", "tone": "dry"}],
        },
        {"role": "tool", "content": "a role nobody knows"},
        {"id": "msg_1"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "caller": {"type": "direct"}},
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x", "id": "ctc_1", "async": True},
        {"type": "function_call_output", "call_id": "c", "output": "", "name": "f", "namespace": "n"},
        {"type": "function_call_output", "call_id": "c", "output": []},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "summary": [], "content": [], "encrypted_content": "e"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "id": "rs", "status": "completed"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "r"}],
        },
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}},
        {"type": "a_thing_of_next_year", "payload": [1, {"b": None}]},
    ],
)
def test_an_item_survives_a_round_trip(item):
    body = {"model": "m", "input": [item, {"role": "user", "content": "next"}]}
    request = parse(body)
    assert len(request.messages) == 2
    assert without_nulls(render(request)) == without_nulls(body)


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}, Inline("AAAA")),
        ({"type": "input_image", "image_url": "https://x/y.png"}, Link("https://x/y.png")),
        ({"type": "input_image", "file_id": "file-1", "detail": "auto"}, Stored("openai", "file-1")),
        ({"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}, Inline("AAAA")),
        ({"type": "input_file", "file_data": "AAAA", "filename": "a.pdf"}, Inline("AAAA")),
        ({"type": "input_file", "file_url": "https://x/y.pdf"}, Link("https://x/y.pdf")),
        ({"type": "input_file", "file_id": "file-1"}, Stored("openai", "file-1")),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, Inline("AAAA")),
        (
            {"type": "input_image", "image_url": "x:y", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
            Link("x:y"),
        ),
    ],
)
def test_media_are_read_and_written_back(part, media):
    body = {"model": "m", "input": [{"role": "user", "content": [part]}]}
    request = parse(body)
    assert request.messages[0].parts[0].source == media
    assert render(request) == body


def test_a_cache_mark_keeps_its_lifetime():
    part = {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}
    request = parse({"model": "m", "input": [{"role": "user", "content": [part]}]})
    assert request.messages[0].parts[0].cache == ""


def test_calls_results_and_reasoning_are_parsed():
    request = parse(
        {
            "model": "m",
            "input": [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": t} for t in "ab"],
                    "encrypted_content": "blob",
                },
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "c1",
                    "name": "f",
                    "arguments": '{"a": 1}',
                    "namespace": "n",
                },
                {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "free text"},
                {"type": "function_call_output", "call_id": "c1", "output": "done"},
                {
                    "type": "custom_tool_call_output",
                    "call_id": "c2",
                    "output": [{"type": "input_text", "text": "done"}],
                },
                {"type": "novel_call", "id": "x", "call_id": "c3", "action": {}},
            ],
        }
    )
    reasoning, call, custom, result, custom_result, opaque = (message.parts[0] for message in request.messages)
    signature = Signature("openai", "blob", "rs_1")
    assert reasoning == Reasoning(texts=("a", "b"), signature=signature, extras=reasoning.extras)
    assert (call.id, call.name, call.arguments, call.namespace) == ("c1", "f", '{"a": 1}', "n")
    assert custom == ToolCall(id="c2", name="g", arguments="free text", form="text")
    assert result == ToolResult(call_id="c1", content=(Text(text="done"),))
    assert (custom_result.form, custom_result.content) == ("text", (Text(text="done"),))
    assert isinstance(opaque, Opaque)
    assert [message.role for message in request.messages] == ["assistant"] * 3 + ["user"] * 2 + ["assistant"]


def test_a_namespace_is_flattened_and_restored():
    inner = [
        {"type": "function", "name": "a", "parameters": {"type": "object"}, "strict": False, "defer_loading": True},
        {"type": "mcp", "server_label": "s"},
        {"type": "custom", "name": "b", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    ]
    tools = [
        {"type": "function", "name": "f", "parameters": {}, "strict": True},
        {"type": "namespace", "name": "n", "description": "group", "tools": inner, "icon": "star"},
        {"type": "namespace", "name": "n", "description": "again", "tools": inner[:1]},
        {"type": "namespace", "name": "empty", "description": "", "tools": []},
        {"type": "web_search", "search_context_size": "low"},
    ]
    request = parse({"model": "m", "input": "x", "tools": tools})
    assert [(tool.name, tool.namespace) for tool in request.tools if isinstance(tool, Tool)] == [
        ("f", ""),
        ("a", "n"),
        ("b", "n"),
        ("a", "n"),
    ]
    assert [type(tool) for tool in request.tools[-2:]] == [NativeTool, NativeTool]
    assert render(request)["tools"] == tools


@pytest.mark.parametrize(
    ("choice", "meaning"),
    [
        ("auto", ("auto", ())),
        ("none", ("none", ())),
        ("required", ("required", ())),
        ({"type": "function", "name": "f"}, ("required", ("f",))),
        ({"type": "custom", "name": "g"}, ("required", ("g",))),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
            ("required", ("f",)),
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "mcp", "server_label": "s"}, {"type": "custom", "name": "g"}],
            },
            ("auto", ("g",)),
        ),
        ({"type": "mcp", "server_label": "s", "name": "x"}, (None, ())),
        ({"type": "file_search"}, (None, ())),
        ("a_new_word", (None, ())),
    ],
)
def test_every_tool_choice_is_read_and_written_back(choice, meaning):
    tools = [{"type": "function", "name": "f", "parameters": {}, "strict": False}, {"type": "custom", "name": "g"}]
    body = {"model": "m", "input": "x", "tools": tools, "tool_choice": choice, "parallel_tool_calls": False}
    request = parse(body)
    assert (request.tool_choice.mode, request.tool_choice.names) == meaning
    assert request.tool_choice.parallel is False
    assert render(request) == body


@pytest.mark.parametrize(
    "settings",
    [
        {"reasoning": {"effort": "high", "summary": "detailed", "context": "all_turns"}},
        {"reasoning": {"effort": "galactic"}},
        {"reasoning": {"effort": "low", "summary": "musical"}},
        {"reasoning": {}},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {
            "text": {
                "format": {"type": "json_schema", "name": "n", "schema": {"a": 1.0}, "strict": True, "description": "d"}
            }
        },
        {"text": {"format": {"type": "grammar"}, "verbosity": "low", "tone": 1}},
        {"text": {"format": {"type": "json_object", "also": 2}}},
        {"text": {}},
        {"metadata": {"a": "b"}, "user": "u"},
        {"metadata": {"a": 1}, "safety_identifier": "s", "user": "u"},
        {"stream": False, "store": False, "include": ["reasoning.encrypted_content"], "a/b~c": {"x": []}},
        {"tools": [], "temperature": 1, "top_p": 0.5, "max_output_tokens": 16, "previous_response_id": "resp_1"},
        {"conversation": {"id": "conv_1"}, "instructions": [{"role": "user", "content": "x"}]},
        {
            "tools": [
                {"type": "function", "name": "f"},
                {"type": "function", "name": "g", "description": "", "parameters": {}},
            ]
        },
        {"tools": [{"type": "custom", "name": "g", "format": {"type": "text"}}]},
    ],
)
def test_settings_survive_a_round_trip(settings):
    body = {"model": "m", "input": [], **settings}
    assert render(parse(body)) == body


def test_settings_reach_the_core():
    request = parse(
        {
            "model": "m",
            "input": "x",
            "reasoning": {"effort": "high", "summary": "auto"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"a": 1}}, "verbosity": "low"},
            "max_output_tokens": 99,
            "user": "u",
            "previous_response_id": "resp_1",
            "stream": True,
        }
    )
    assert request.thinking == Thinking(effort="high", visible=True)
    assert request.output == OutputFormat(kind="json_schema", name="n", schema=b'{"a": 1}')
    assert (request.verbosity, request.sampling.max_tokens, request.user) == ("low", 99, "u")
    assert (request.continues, request.stream, request.extras) == ("resp_1", True, None)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"not json", ""),
        (b"[]", ""),
        (b'{"input": 5}', "/input"),
        (b'{"input": [{"content": "x"}]}', "/input/0/type"),
        (b'{"input": [{"role": "user", "content": 5}]}', "/input/0/content"),
        (b'{"input": [{"role": "user", "content": [{"type": "input_text"}]}]}', "/input/0/content/0"),
        (b'{"input": [{"role": "user", "content": [{"type": "input_image"}]}]}', "/input/0/content/0"),
        (b'{"input": [{"type": "function_call", "name": "f"}]}', "/input/0/call_id"),
        (b'{"input": [{"type": "function_call", "call_id": "f"}]}', "/input/0/name"),
        (b'{"input": [{"type": "function_call_output"}]}', "/input/0/call_id"),
        (b'{"input": "x", "temperature": "hot"}', "/temperature"),
        (b'{"input": "x", "tools": [{"type": "web_search"}, {"type": "function"}]}', "/tools/1"),
        (b'{"input": "x", "tool_choice": {"type": "function"}}', "/tool_choice"),
        (b'{"input": "x", "text": 1}', "/text"),
        (b'{"input": "\xff"}', ""),
        (b'{"input": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
    ],
)
def test_a_broken_request_names_the_place(body, where):
    with pytest.raises(Problem) as caught:
        parse_request(Call(body))
    assert caught.value.kind == "invalid_request"
    assert caught.value.status == 400
    assert caught.value.where.startswith(where)
