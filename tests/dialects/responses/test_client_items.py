"""Items of OpenAI's tools that the client runs, against the types of the official SDK."""

import json

import pytest
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseComputerToolCall,
    ResponseFunctionShellToolCall,
    ResponseToolSearchCall,
)
from openai.types.responses.response_input_item import LocalShellCall as LocalShellInput
from openai.types.responses.response_output_item import LocalShellCall

from dragoman.core.parts import Media, Opaque, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.client_items import fit_arguments, write_client_call
from dragoman.dialects.responses.client_tools import CLIENT_TOOLS, declare_client_tool
from dragoman.interpreter.adaptation import traits_for

SDK = {
    "shell": ResponseFunctionShellToolCall,
    "local_shell": LocalShellCall,
    "apply_patch": ResponseApplyPatchToolCall,
    "computer": ResponseComputerToolCall,
    "computer_use_preview": ResponseComputerToolCall,
    "tool_search": ResponseToolSearchCall,
}
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
TOOLS = [
    {"type": "function", "name": "find", "parameters": {}},
    {"type": "namespace", "name": "ns", "tools": [{"name": "f"}]},
]
EXITED = {"stdout": "a\n", "stderr": "b", "outcome": {"type": "exit", "exit_code": 3}}
LATE = {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}
CALLS = [
    {"type": "shell_call", "call_id": "c", "id": "sh_1", "status": "completed", "action": {"commands": ["ls"]}},
    {"type": "local_shell_call", "call_id": "c", "id": "l", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "local_shell_call", "id": "l", "call_id": None, "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
    {"type": "computer_call", "call_id": "c", "pending_safety_checks": [], "actions": [{"type": "wait"}]},
    {"type": "computer_call", "call_id": "c", "pending_safety_checks": [], "action": {"type": "wait"}},
    {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "q"}},
]
RESULTS = [
    ({"type": "shell_call_output", "call_id": "c", "output": [EXITED, LATE]}, "a\nb\n[exit code 3]\n[timed out]"),
    ({"type": "shell_call_output", "call_id": "c", "output": []}, "[]"),
    ({"type": "local_shell_call_output", "id": "c", "output": "x"}, "x"),
    ({"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "done"}, "done"),
    ({"type": "apply_patch_call_output", "call_id": "c", "status": "failed"}, None),
    ({"type": "computer_call_output", "call_id": "c", "output": SHOT}, None),
    ({"type": "computer_call_output", "call_id": "c", "output": {"type": "other"}}, '{"type":"other"}'),
    ({"type": "tool_search_output", "call_id": "c", "tools": TOOLS}, "Tools that you can call now: find, ns__f"),
    ({"type": "tool_search_output", "call_id": "c", "tools": []}, "No tool was found."),
]
KEPT = [
    {"type": "shell_call", "call_id": "c", "action": {"commands": []}, "environment": {"type": "container_reference"}},
    {"type": "tool_search_call", "call_id": None, "id": "t", "execution": "server", "arguments": {"paths": []}},
    {"type": "tool_search_call", "call_id": "c", "execution": "server", "arguments": {"paths": []}},
]
WRONG = [
    ({"type": "shell_call", "call_id": "c", "action": "ls"}, "action"),
    ({"type": "shell_call", "call_id": "c"}, "action"),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": "ls"}}, "action/commands"),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": ["a", 5]}}, "action/commands/1"),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": [], "timeout_ms": "1"}}, "action/timeout_ms"),
    ({"type": "local_shell_call", "call_id": None, "action": {"command": []}}, "call_id"),
    ({"type": "apply_patch_call", "call_id": 5, "operation": {}}, "call_id"),
    ({"type": "apply_patch_call", "call_id": "c", "operation": [1]}, "operation"),
    ({"type": "apply_patch_call", "call_id": "c", "operation": {"path": 5}}, "operation/path"),
    ({"type": "computer_call", "call_id": "c", "actions": "x"}, "actions"),
    ({"type": "computer_call", "call_id": "c", "actions": [5]}, "actions/0"),
    ({"type": "shell_call_output", "call_id": "c", "output": [5]}, "output/0"),
    ({"type": "shell_call_output", "output": []}, "call_id"),
    ({"type": "apply_patch_call_output", "call_id": "c", "output": 5}, "output"),
    ({"type": "local_shell_call_output", "id": "c", "output": {"a": 1}}, "output"),
    ({"type": "computer_call_output", "call_id": "c", "output": []}, "output"),
    ({"type": "tool_search_output", "call_id": "c", "tools": {}}, "tools"),
]


def parse(*items, **more):
    return DIALECT.parse_request(Call(json.dumps({"model": "m", "input": items, **more}).encode()))


def render(request):
    return json.loads(DIALECT.render_request(request, traits_for("responses", "gpt-5.6")).body)


def build_call(native, arguments):
    return ToolCall(id="call_1", name=native, arguments=arguments, native=native)


@pytest.mark.parametrize("item", CALLS)
def test_a_call_is_parsed_and_rendered_as_it_was(item):
    request = parse(item)
    ((call,),) = (message.parts for message in request.messages)
    assert request.messages[0].role == "assistant"
    assert isinstance(call, ToolCall)
    assert call.id == (item["call_id"] or item["id"])
    assert render(request)["input"] == [item]


@pytest.mark.parametrize(("item", "text"), RESULTS)
def test_a_result_is_parsed_and_rendered_as_it_was(item, text):
    request = parse(item)
    ((result,),) = (message.parts for message in request.messages)
    assert request.messages[0].role == "user"
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.failed) == ("c", item.get("status") == "failed")
    contents = [one for part in result.content for one in (part.content if isinstance(part, Opaque) else (part,))]
    assert [one.text for one in contents if isinstance(one, Text)] == ([text] if text is not None else [])
    assert any(isinstance(one, Media) for one in contents) == (item.get("output") == SHOT)
    assert render(request)["input"] == [item]


@pytest.mark.parametrize("item", KEPT)
def test_an_item_of_a_tool_that_openai_ran_is_kept_whole(item):
    request = parse(item)
    assert isinstance(request.messages[0].parts[0], Opaque)
    assert render(request)["input"] == [item]


@pytest.mark.parametrize(("item", "place"), WRONG)
def test_an_item_of_a_wrong_form_is_an_error_that_names_the_member(item, place):
    with pytest.raises(Problem) as caught:
        parse(item)
    assert (caught.value.kind, caught.value.where) == ("invalid_request", f"/input/0/{place}")


@pytest.mark.parametrize("kind", ["shell", "apply_patch"])
def test_a_choice_of_a_tool_names_its_function(kind):
    request = parse(tools=[{"type": kind}], tool_choice={"type": kind})
    assert (request.tool_choice.mode, request.tool_choice.names) == ("required", (kind,))
    assert render(request)["tool_choice"] == {"type": kind}


FIT = [
    ("shell", '{"commands":["ls"],"timeout_ms":5}', None),
    ("shell", '{"command":"ls"}', {"commands": ["ls"]}),
    ("shell", '{"cmd":["ls","-l"],"timeout_ms":"soon"}', {"commands": ["ls", "-l"]}),
    ("shell", '{"commands":[1,{"a":2}],"timeout_ms":5.0,"more":1}', {"commands": ["1", '{"a":2}'], "timeout_ms": 5}),
    ("shell", '"ls"', {"commands": ["ls"]}),
    ("shell", "ls -l", {"commands": ["ls -l"]}),
    ("shell", "", {"commands": []}),
    ("shell", "[", {"commands": ["["]}),
    ("shell", "null", {"commands": ["null"]}),
    ("local_shell", '{"type":"exec","command":["ls"],"env":{"A":"1"}}', None),
    (
        "local_shell",
        '{"command":"ls -l","env":{"A":1}}',
        {"type": "exec", "command": ["sh", "-c", "ls -l"], "env": {"A": "1"}},
    ),
    ("local_shell", '{"type":"run","command":["ls"],"env":"A=1"}', {"type": "exec", "command": ["ls"], "env": {}}),
    ("apply_patch", '{"type":"create_file","path":"a","diff":"+b"}', None),
    ("apply_patch", '{"type":"delete_file","path":"a","diff":""}', {"type": "delete_file", "path": "a"}),
    ("apply_patch", '{"path":"a","patch":"@@"}', {"type": "update_file", "path": "a", "diff": "@@"}),
    ("apply_patch", "*** Begin Patch", {"type": "update_file", "path": "", "diff": "*** Begin Patch"}),
    ("computer", '{"actions":[{"type":"click","x":1919,"y":1079,"button":"left"}]}', None),
    ("computer", '{"action":{"type":"wait"}}', {"actions": [{"type": "wait"}]}),
    ("computer", '{"type":"wait"}', {"actions": [{"type": "wait"}]}),
    ("computer", '{"actions":["click"]}', {"actions": []}),
    ("computer_use_preview", '{"action":{"type":"move","x":1,"y":2}}', None),
    ("computer_use_preview", '{"type":"move","x":1,"y":2}', {"action": {"type": "move", "x": 1, "y": 2}}),
    ("computer_use_preview", "{}", {"action": {"type": "screenshot"}}),
    ("tool_search", '{"query":"q","limit":8}', None),
    ("tool_search", "weather", {"query": "weather"}),
]


@pytest.mark.parametrize(("native", "arguments", "expected"), FIT)
def test_arguments_are_made_to_fit_the_sdks_types(native, arguments, expected):
    call = build_call(native, arguments)
    found = fit_arguments(call)
    assert found == arguments if expected is None else json.loads(found) == expected
    item = json.loads(
        json.dumps(write_client_call(call, "completed", "x_1"), default=lambda raw: json.loads(bytes(raw)))
    )
    parsed = SDK[native].model_validate(item)
    assert parsed.call_id == "call_1"
    assert parsed.status == "completed"


def test_every_item_of_a_call_that_was_cut_off_has_a_status_of_the_sdk():
    for native, typed in SDK.items():
        item = write_client_call(build_call(native, '{"comma'), "incomplete", "x_1")
        typed.model_validate(json.loads(json.dumps(item, default=lambda raw: json.loads(bytes(raw)))))


def test_the_parameters_of_the_functions_are_those_of_the_sdk():
    def fields(typed):
        return set(typed.model_fields)

    declared = {kind: set(tool.properties) for kind, tool in CLIENT_TOOLS.items()}
    assert declared["shell"] == fields(ResponseFunctionShellToolCall.model_fields["action"].annotation)
    assert declared["local_shell"] == fields(LocalShellCall.model_fields["action"].annotation)
    assert declared["local_shell"] == fields(LocalShellInput.model_fields["action"].annotation)
    import openai.types.responses.response_apply_patch_tool_call as patch

    assert declared["apply_patch"] == fields(patch.OperationUpdateFile)
    import openai.types.responses.response_computer_tool_call as computer

    actions = [
        one for name, one in vars(computer).items() if name.startswith("Action") and hasattr(one, "model_fields")
    ]
    action = CLIENT_TOOLS["computer"].properties["actions"]["items"]["properties"]
    known = {name for one in actions if "type" in one.model_fields for name in one.model_fields}
    assert set(action) == known


@pytest.mark.parametrize(
    "declaration",
    [
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "tool_search"},
        {"type": "tool_search", "execution": "server"},
        {"type": "web_search"},
        {"type": "novel"},
    ],
)
def test_a_tool_that_openai_runs_is_no_function(declaration):
    assert declare_client_tool(NativeTool(dialect="responses", raw=json.dumps(declaration).encode())) == ()


def test_settings_are_in_the_description():
    skill = {"name": "pdf", "path": "/skills/pdf", "description": "Read PDF files."}
    shell = {"type": "shell", "environment": {"type": "local", "skills": [skill]}}
    (tool,) = declare_client_tool(NativeTool(dialect="responses", raw=json.dumps(shell).encode()))
    assert "/skills/pdf has a skill, pdf: Read PDF files." in tool.description
    preview = {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "mac"}
    (tool,) = declare_client_tool(NativeTool(dialect="responses", raw=json.dumps(preview).encode()))
    assert "800 x 600" in tool.description
