"""Vendors' tools that the client runs, at other vendors: declarations, calls and results, whole and streamed."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.tool_kinds import DECLARED
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import NEWEST, encode, loss_pointers

OTHERS = ["chat", "responses", "gemini"]
EDITOR = "str_replace_based_edit_tool"
TOOLS = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": EDITOR},
    {"type": "memory_20250818", "name": "memory"},
    {"type": "computer_20250124", "name": "computer", "display_width_px": 1280, "display_height_px": 800},
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def body_of(*messages, tools=TOOLS, **more):
    first = {"role": "user", "content": "Go."}
    return encode({"model": "m", "max_tokens": 99, "messages": [first, *messages], "tools": tools, **more})


def translate(body, target, **options):
    return translate_request(Call(body), "messages", target, model=NEWEST[target], **options)


def parse_sent(translation, target):
    return dialect_named(target).parse_request(translation.call)


@pytest.mark.parametrize("target", OTHERS)
def test_tools_that_the_client_runs_are_functions_elsewhere(target):
    translation = translate(body_of(), target, strict=True)
    assert [tool.name for tool in parse_sent(translation, target).tools] == ["bash", EDITOR, "memory", "computer"]
    assert {(loss.where, loss.what, loss.grade) for loss in translation.losses} == {
        (f"/tools/{index}", DECLARED, "informational") for index in range(4)
    }


@pytest.mark.parametrize("target", OTHERS)
def test_a_forced_vendors_tool_is_forced_elsewhere(target):
    translation = translate(body_of(tool_choice={"type": "tool", "name": "bash"}), target)
    assert parse_sent(translation, target).tool_choice.names == ("bash",)


@pytest.mark.parametrize("target", OTHERS)
def test_calls_and_results_of_vendors_tools_are_in_the_history(target):
    calls = [
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}},
        {
            "type": "tool_use",
            "id": "toolu_2",
            "name": "computer",
            "input": {"action": "mouse_move", "coordinate": [9, 7]},
        },
    ]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": [image]},
    ]
    body = body_of({"role": "assistant", "content": calls}, {"role": "user", "content": results})
    translation = translate(body, target)
    assert {loss.what for loss in translation.losses if loss.grade == "material"} <= {
        "moved out of the tool result, to a part after it"
    }
    written = translation.call.body.decode()
    assert PIXEL in written
    assert "a.txt" in written
    calls = [
        part
        for message in parse_sent(translation, target).messages
        for part in message.parts
        if hasattr(part, "arguments")
    ]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("bash", {"command": "ls"}),
        ("computer", {"action": "mouse_move", "coordinate": [9, 7]}),
    ]


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
    "responses": lambda name, arguments: {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": name.rpartition(".")[2],
                "arguments": json.dumps(arguments),
                "status": "completed",
                **({"namespace": name.partition(".")[0]} if "." in name else {}),
            }
        ],
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


def reply_of(translation, target, name, arguments, *, streamed):
    """The message that Anthropic's SDK makes of the translated reply."""
    import anthropic

    reply = encode(REPLIES[target](name, arguments))
    if not streamed:
        translated = translate_response(
            reply, target, "messages", Context(undo=translation.undo, request=translation.request)
        )
        assert {loss.grade for loss in translated.losses} <= {"informational"}
        return anthropic.types.beta.BetaMessage.model_validate_json(translated.body)
    from anthropic.lib.streaming._beta_messages import accumulate_event
    from anthropic.types.beta import BetaRawMessageStreamEvent
    from pydantic import TypeAdapter

    stream = StreamTranslator(target, "messages", Context(undo=translation.undo, request=translation.request))
    text = (stream.feed(reply) + stream.close()).decode()
    message, buffers = None, {}
    for line in text.splitlines():
        if line.startswith("data: ") and '"ping"' not in line:
            event = TypeAdapter(BetaRawMessageStreamEvent).validate_json(line.removeprefix("data: "))
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers, request_headers={})
    return message


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", {"command": "ls -l"}),
        ("bash", {"restart": True}),
        ("bash", {"cmd": ["ls"], "timeout": "soon"}),
        (EDITOR, {"command": "view", "path": "/a", "view_range": [1, -1]}),
        ("computer", {"action": "left_click", "coordinate": [1279, 799]}),
    ],
)
def test_a_call_of_a_vendors_tool_is_a_tool_use_with_the_models_input(target, streamed, name, arguments):
    message = reply_of(translate(body_of(), target), target, name, arguments, streamed=streamed)
    (block,) = message.content
    assert (block.type, block.name, block.input) == ("tool_use", name, arguments)
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize(
    ("toolset", "arguments"),
    [
        ("computer", {"coordinate": [3, 4]}),
        ("browser", {"target": {"type": "coordinate", "x": 3, "y": 4}}),
        ("browser", {"target": {"type": "ref", "ref": "ref_7"}, "tab_id": "1"}),
    ],
)
def test_a_call_of_a_toolsets_member_names_the_toolset(toolset, arguments, target, streamed):
    """The SDK parses it into the member's own type."""
    member = {"name": "left_click", "toolset_name": toolset}
    call = {"type": "tool_use", "id": "toolu_1", **member, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "toolset_name": toolset, "content": "ok"}
    tools = [{"type": f"{toolset}_toolset_20260801"}]
    body = body_of({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}, tools=tools)
    translation = translate(body, target, strict=True)
    calls = [
        part
        for message in parse_sent(translation, target).messages
        for part in message.parts
        if hasattr(part, "arguments")
    ]
    # Responses has namespaces of its own.
    name = "left_click" if target == "responses" else f"{toolset}__left_click"
    assert [(one.name, json.loads(one.arguments)) for one in calls] == [(name, arguments)]
    assert calls[0].namespace == (toolset if target == "responses" else "")
    message = reply_of(
        translation, target, f"{toolset}.{name}" if target == "responses" else name, arguments, streamed=streamed
    )
    (block,) = message.content
    assert (block.type, block.name, block.toolset_name) == ("tool_use", "left_click", toolset)
    given = json.loads(block.model_dump_json(exclude_none=True))["input"]
    assert given == arguments


@pytest.mark.parametrize("target", OTHERS)
def test_a_vendors_tool_with_the_name_of_a_function_gets_an_alias(target):
    function = {"name": "bash", "input_schema": {"type": "object", "properties": {"script": {"type": "string"}}}}
    translation = translate(body_of(tools=[function, TOOLS[0]]), target)
    alias = parse_sent(translation, target).tools[1].name
    assert [tool.name for tool in parse_sent(translation, target).tools] == ["bash", alias]
    assert f"another tool is named 'bash': sent as '{alias}'" in translation.losses[-1].what
    message = reply_of(translation, target, alias, {"command": "ls"}, streamed=False)
    assert [(block.name, block.input) for block in message.content] == [("bash", {"command": "ls"})]


@pytest.mark.parametrize("target", OTHERS)
def test_a_vendors_tool_without_documented_parameters_is_a_material_loss(target):
    translation = translate(body_of(tools=[TOOLS[0], {"type": "bash_20990101", "name": "bash"}]), target)
    assert loss_pointers(translation.losses) == [("approximated", "/tools/0"), ("dropped", "/tools/1")]
    assert [loss.grade for loss in translation.losses] == ["informational", "material"]


@pytest.mark.parametrize("target", [*OTHERS, "messages"])
def test_vendors_tools_are_described_to_a_model_without_tools(target):
    translation = translate(body_of(tools=TOOLS[:1]), target, text_calls="json")
    assert parse_sent(translation, target).tools == ()
    assert '\\"name\\":\\"bash\\"' in translation.call.body.decode()
