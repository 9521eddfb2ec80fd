"""OpenAI's tools that the client runs, at other vendors: calls come back as the vendor's items, whole and streamed."""

import json

import pytest

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.tool_kinds import DECLARED
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import NEWEST, encode
from oracles.clients import openai_client
from shelf import ROOT, needs_shelf

OTHERS = ["chat", "messages", "gemini"]
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
TOOLS = [{"type": "shell"}, {"type": "local_shell"}, {"type": "apply_patch"}, {"type": "computer"}, SEARCH]
NAMES = ["shell", "local_shell", "apply_patch", "computer", "tool_search"]
SHOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PATCH = {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"}
MEMBER = {
    "type": "function",
    "name": "spawn",
    "parameters": {"type": "object", "properties": {}},
    "defer_loading": True,
}
HISTORY = [
    {"role": "user", "content": "Go."},
    {"type": "shell_call", "id": "sh_1", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "call_id": "c1",
        "output": [{"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 3}}],
    },
    {"type": "apply_patch_call", "id": "apc_1", "call_id": "c2", "status": "completed", "operation": PATCH},
    {"type": "apply_patch_call_output", "call_id": "c2", "status": "failed", "output": "no such line"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c3",
        "status": "completed",
        "pending_safety_checks": [],
        "actions": [{"type": "click", "x": 1919, "y": 1079, "button": "left"}],
    },
    {
        "type": "computer_call_output",
        "call_id": "c3",
        "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{SHOT}"},
    },
    {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "c4",
        "execution": "client",
        "arguments": {"query": "agents"},
    },
    {
        "type": "tool_search_output",
        "call_id": "c4",
        "execution": "client",
        "tools": [{"type": "namespace", "name": "team", "description": "Agents.", "tools": [MEMBER]}],
    },
]


def translate(target, *items, tools=TOOLS, **more):
    options = {name: more.pop(name) for name in ("strict", "text_calls") if name in more}
    body = {"model": "m", "input": list(items) or "Go.", "tools": tools, **more}
    return translate_request(Call(encode(body)), "responses", target, model=NEWEST[target], **options)


def parse_sent(translation, target):
    return dialect_named(target).parse_request(translation.call)


def parts_of(request, kind):
    return [part for message in request.messages for part in message.parts if isinstance(part, kind)]


@pytest.mark.parametrize("target", OTHERS)
def test_tools_that_the_client_runs_are_functions_elsewhere(target):
    translation = translate(target, strict=True)
    assert [tool.name for tool in parse_sent(translation, target).tools] == NAMES
    assert {loss.what for loss in translation.losses} == {DECLARED}


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "shell"}, ("shell",)),
        ({"type": "apply_patch"}, ("apply_patch",)),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "shell"}, {"type": "function", "name": "f"}]},
            (),
        ),
    ],
)
def test_a_choice_of_a_vendors_tool_is_a_choice_of_its_function(target, choice, names):
    function = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    translation = translate(target, tools=[*TOOLS, function], tool_choice=choice)
    request = parse_sent(translation, target)
    if names and target == "messages":
        # This model cannot be forced to call a tool.
        assert f"Call the tool {names[0]}." in translation.call.body.decode()
        return
    if names:
        assert request.tool_choice.names == names
        return
    allowed = request.tool_choice.names if request.tool_choice is not None else ()
    assert sorted(allowed or [tool.name for tool in request.tools]) == ["f", "shell"]


@pytest.mark.parametrize("target", OTHERS)
def test_calls_and_results_are_in_the_history(target):
    translation = translate(target, *HISTORY)
    request = parse_sent(translation, target)
    assert [(call.name, json.loads(call.arguments)) for call in parts_of(request, ToolCall)] == [
        ("shell", {"commands": ["ls"]}),
        ("apply_patch", PATCH),
        ("computer", {"actions": [{"type": "click", "x": 1919, "y": 1079, "button": "left"}]}),
        ("tool_search", {"query": "agents"}),
    ]
    results = parts_of(request, ToolResult)
    assert len(results) == 4
    assert [result.failed for result in results] == [False, target != "chat", False, False]
    written = translation.call.body.decode()
    assert "a.txt\\n[exit code 3]" in written
    assert "no such line" in written
    assert SHOT in written
    assert "Tools that you can call now: team__spawn" in written
    assert "(empty)" not in written
    assert [tool.name for tool in request.tools] == [*NAMES, "team__spawn"]
    material = {loss.what for loss in translation.losses if loss.grade == "material"}
    assert material <= {"moved out of the tool result, to a part after it", 'sent as text: "Error: …"'}


@needs_shelf
@pytest.mark.parametrize("target", OTHERS)
def test_codexs_own_search_for_tools_is_translated(target):
    capture = json.loads((ROOT / "clients/captures/codex-toolsearch/03-POST-v1-responses.json").read_text())
    body = capture["body"] if "body" in capture else capture["request"]["body"]
    body = json.loads(body) if isinstance(body, str) else body
    translation = translate_request(Call(encode(body)), "responses", target, model=NEWEST[target])
    request = parse_sent(translation, target)
    names = [tool.name for tool in request.tools if hasattr(tool, "name")]
    assert {"tool_search", "multi_agent_v1__spawn_agent"} <= set(names)
    assert "tool_search" in {call.name for call in parts_of(request, ToolCall)}
    lost = {loss.where for loss in translation.losses if loss.kind == "dropped" and loss.grade == "material"}
    assert not [where for where in lost if where.startswith("/input")]


REPLIES = {
    "chat": lambda name, arguments: {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": name, "arguments": json.dumps(arguments)},
                        }
                    ],
                },
            }
        ],
    },
    "messages": lambda name, arguments: {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "call_1", "name": name, "input": arguments}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": lambda name, arguments: {
        "responseId": "r",
        "modelVersion": "m",
        "candidates": [
            {
                "index": 0,
                "finishReason": "STOP",
                "content": {
                    "role": "model",
                    "parts": [{"functionCall": {"id": "call_1", "name": name, "args": arguments}}],
                },
            }
        ],
    },
}


def read_reply(translation, target, name, arguments, *, streamed):
    """The call item as OpenAI's SDK has it, the names of the events, and the losses."""
    import httpx2
    from openai._streaming import Stream
    from openai.types.responses import Response, ResponseStreamEvent

    reply = encode(REPLIES[target](name, arguments))
    context = Context(undo=translation.undo, request=translation.request)
    client = openai_client(strict=True)
    post = httpx2.Request("POST", "http://oracle/v1/responses")
    if not streamed:
        translated = translate_response(reply, target, "responses", context)
        answer = httpx2.Response(200, content=translated.body, request=post)
        found = client._process_response_data(data=json.loads(translated.body), cast_to=Response, response=answer)
        (item,) = found.output
        return item, [], translated.losses
    stream = StreamTranslator(target, "responses", context)
    frames = stream.feed(reply) + stream.close()
    # The SDK's union has no type for the deltas of a patch.
    known = b"\n\n".join(frame for frame in frames.split(b"\n\n") if b"apply_patch_call_operation" not in frame)
    answer = httpx2.Response(200, content=known, request=post)
    events = list(Stream(cast_to=ResponseStreamEvent, response=answer, client=client))
    (item,) = events[-1].response.output
    assert [event.item for event in events if event.type == "response.output_item.done"] == [item]
    (added,) = [event.item for event in events if event.type == "response.output_item.added"]
    assert (added.id, added.type, added.status) == (item.id, item.type, "in_progress")
    names = [line.removeprefix("event: ") for line in frames.decode().splitlines() if line.startswith("event: ")]
    return item, names, stream.losses


CALLS = [
    ("shell", {"commands": ["ls", "pwd"], "timeout_ms": 9}, ("shell_call", "action")),
    ("local_shell", {"type": "exec", "command": ["ls"], "env": {"A": "1"}}, ("local_shell_call", "action")),
    ("apply_patch", PATCH, ("apply_patch_call", "operation")),
    ("apply_patch", {"type": "delete_file", "path": "a"}, ("apply_patch_call", "operation")),
    ("tool_search", {"query": "weather", "limit": 8}, ("tool_search_call", "arguments")),
    ("computer", {"actions": [{"type": "move", "x": 1919, "y": 0}]}, ("computer_call", "")),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(("name", "arguments", "form"), CALLS)
def test_a_call_is_the_vendors_own_item(target, streamed, name, arguments, form):
    item, names, losses = read_reply(translate(target), target, name, arguments, streamed=streamed)
    kind, member = form
    found = json.loads(item.model_dump_json(exclude_unset=True, warnings=False))
    assert (item.type, item.call_id, item.status) == (kind, "call_1", "completed")
    assert (found[member] if member else {"actions": found["actions"]}) == arguments
    assert not [loss for loss in losses if loss.grade == "material"]
    assert not [name for name in names if "function_call" in name]
    deltas = [name for name in names if name.endswith(".delta")]
    expected = {"shell": ["response.shell_call_command.delta"] * 2}
    if "diff" in arguments:
        expected["apply_patch"] = ["response.apply_patch_call_operation_diff.delta"]
    assert deltas == (expected.get(name, []) if streamed else [])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("shell", {"command": "ls"}, {"commands": ["ls"]}),
        ("shell", {}, {"commands": []}),
        ("local_shell", {"command": "ls -l"}, {"type": "exec", "command": ["sh", "-c", "ls -l"], "env": {}}),
        ("apply_patch", {"patch": "@@"}, {"type": "update_file", "path": "", "diff": "@@"}),
    ],
)
def test_arguments_of_another_form_reach_the_client_as_the_sdks_type_and_are_reported(
    target, streamed, name, arguments, found
):
    item, _, losses = read_reply(translate(target), target, name, arguments, streamed=streamed)
    dumped = json.loads(item.model_dump_json(exclude_unset=True))
    assert (dumped.get("action") or dumped.get("operation")) == found
    assert f"the arguments did not fit the tool {name!r}: adapted" in {loss.what for loss in losses}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OTHERS)
def test_a_function_of_the_same_name_and_the_vendors_tool_stay_apart(target, streamed):
    function = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}}
    called = {"type": "function_call", "call_id": "c9", "name": "shell", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c9", "output": "x"}
    translation = translate(target, *HISTORY[:3], called, output, tools=[{"type": "shell"}, function])
    request = parse_sent(translation, target)
    alias = request.tools[0].name
    assert [tool.name for tool in request.tools] == [alias, "shell"]
    assert [call.name for call in parts_of(request, ToolCall)] == [alias, "shell"]
    item, _, _ = read_reply(translation, target, alias, {"commands": ["ls"]}, streamed=streamed)
    assert item.type == "shell_call"
    item, _, _ = read_reply(translation, target, "shell", {}, streamed=streamed)
    assert (item.type, item.name) == ("function_call", "shell")


@pytest.mark.parametrize("target", OTHERS)
def test_vendors_tools_are_described_to_a_model_without_tools(target):
    translation = translate(target, *HISTORY, text_calls="json")
    request = parse_sent(translation, target)
    assert request.tools == ()
    written = translation.call.body.decode()
    for name in NAMES:
        assert f'\\"name\\":\\"{name}\\"' in written
    assert "[exit code 3]" in written
    assert translation.undo.natives["shell"] == "shell"
