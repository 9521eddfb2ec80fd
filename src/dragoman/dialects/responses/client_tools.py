"""OpenAI's own tools that the client runs, declared as ordinary functions for the models of other vendors.

OpenAI's models know the parameters of these tools, so a declaration has none; they are documented in the types of the
vendor's SDK. `client_items` has their calls and results.
"""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool
from dragoman.core.value import Extras
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json
from dragoman.wire.pointer import escape

_Schema = Mapping[str, Any]


class ClientTool(Struct, frozen=True):
    """One tool."""

    call: str
    """The type of the item of a call."""
    result: str
    """The type of the item of a result."""
    prefix: str
    """The prefix of the ids of its calls' items."""
    member: str
    """The member of a call's item with the arguments."""
    is_object: bool = True
    """That member is the object of the arguments; otherwise it is the only member of this object."""
    output: str = "output"
    """The member of a result's item with the content."""
    output_type: str = "string"
    """The JSON type of that content, which may also be a text."""
    fixed: tuple[tuple[str, Any], ...] = ()
    """Other members of a call's item."""
    unfinished: str = "incomplete"
    """The status of a call that was cut off."""
    name: str = ""
    """The name of the function, if it is not the type of the tool."""
    description: str = ""
    properties: _Schema = {}
    defaults: _Schema = {}
    """The required parameters, and the value of one that the model leaves out."""
    unused: tuple[str, str] = ("", "")
    """A value of `type`, and the parameter that a call of that type does not have."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Names that models use for a parameter."""
    text: str = ""
    """The parameter for arguments that are not an object."""
    runner: tuple[str, ...] = ()
    """The program and options that run a command for which the model gave one string instead of a list."""


def _text(description: str) -> _Schema:
    return {"type": "string", "description": description}


def _texts(description: str) -> _Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _integer(description: str) -> _Schema:
    return {"type": "integer", "description": description}


_X_Y: _Schema = {"x": {"type": "integer"}, "y": {"type": "integer"}}
_KINDS = ("click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait")
_ACTION: _Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [*_KINDS]},
        "x": _integer("Where to act, in pixels from the left edge."),
        "y": _integer("Where to act, in pixels from the top edge."),
        "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"], "description": "`click`."},
        "keys": _texts("`keypress`: the keys to press together. Other actions: keys to hold meanwhile."),
        "path": {
            "type": "array",
            "items": {"type": "object", "properties": _X_Y, "required": ["x", "y"]},
            "description": "`drag`: the points of the way.",
        },
        "scroll_x": _integer("`scroll`: how far to the right, in pixels."),
        "scroll_y": _integer("`scroll`: how far down, in pixels."),
        "text": _text("`type`: the text."),
    },
    "required": ["type"],
}
_COMPUTER = (
    "Use a computer's screen, mouse and keyboard. The result is a screenshot. The `type` of an action decides which of "
    "its other parameters apply."
)
_PREVIEW = ClientTool(
    call="computer_call",
    result="computer_call_output",
    prefix="cu_",
    member="action",
    is_object=False,
    output_type="object",
    fixed=(("pending_safety_checks", []),),
    name="computer",
    description=_COMPUTER,
    properties={"action": _ACTION},
    defaults={"action": {"type": "screenshot"}},
)
CLIENT_TOOLS: Mapping[str, ClientTool] = {
    "shell": ClientTool(
        call="shell_call",
        result="shell_call_output",
        prefix="sh_",
        member="action",
        output_type="array",
        description="Run shell commands. The result has the output and the exit code of each command.",
        properties={
            "commands": _texts("The command lines, which are run in this order."),
            "timeout_ms": _integer("The time limit in milliseconds."),
            "max_output_length": _integer("How many characters of each command's output to return at most."),
        },
        defaults={"commands": []},
        aliases=(("command", "commands"), ("cmd", "commands")),
        text="commands",
    ),
    "local_shell": ClientTool(
        call="local_shell_call",
        result="local_shell_call_output",
        prefix="lsh_",
        member="action",
        description="Run a program on the user's computer.",
        properties={
            "type": {"type": "string", "enum": ["exec"]},
            "command": _texts("The program and its arguments."),
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables to set.",
            },
            "timeout_ms": _integer("The time limit in milliseconds."),
            "user": _text("The user to run it as."),
            "working_directory": _text("The directory to run it in."),
        },
        defaults={"type": "exec", "command": [], "env": {}},
        aliases=(("commands", "command"), ("cmd", "command")),
        text="command",
        runner=("sh", "-c"),
    ),
    "apply_patch": ClientTool(
        call="apply_patch_call",
        result="apply_patch_call_output",
        prefix="apc_",
        member="operation",
        unfinished="in_progress",
        description="Create, change or delete one file.",
        properties={
            "type": {"type": "string", "enum": ["update_file", "create_file", "delete_file"]},
            "path": _text("The path of the file."),
            "diff": _text(
                "`create_file`: the lines of the file, each after `+`. `update_file`: for each place, a line `@@` that "
                "may name a line above it (such as a function's first line), then lines that start with a space if "
                "they stay, `-` if they are removed or `+` if they are added. `delete_file`: empty."
            ),
        },
        defaults={"type": "update_file", "path": "", "diff": ""},
        unused=("delete_file", "diff"),
        aliases=(("patch", "diff"), ("input", "diff")),
        text="diff",
    ),
    "tool_search": ClientTool(
        call="tool_search_call",
        result="tool_search_output",
        prefix="tsc_",
        member="arguments",
        output="tools",
        output_type="array",
        fixed=(("execution", "client"),),
        text="query",
    ),
    "computer_use_preview": _PREVIEW,
    "computer": structs.replace(
        _PREVIEW,
        member="actions",
        properties={"actions": {"type": "array", "items": _ACTION, "description": "The actions, in this order."}},
        defaults={"actions": []},
        aliases=(("action", "actions"),),
    ),
}
"""The tools by their type."""


_SETTINGS: Mapping[str, tuple[tuple[str, type, str], ...]] = {
    "shell": (("environment", dict, "an object"),),
    "computer_use_preview": (
        ("display_width", int, "an integer"),
        ("display_height", int, "an integer"),
        ("environment", str, "a string"),
    ),
}
"""The types of settings that a declaration has, and their names for an error."""


def declare_client_tool(tool: NativeTool) -> tuple[Tool, ...]:
    """Return a tool that the client runs as a function with its documented parameters; nothing for any other tool."""
    members = json.as_object(json.peek(tool.raw))
    kind = str(members.get("type"))
    row = CLIENT_TOOLS.get(kind)
    for name, expected, words in _SETTINGS.get(kind, ()):
        if members.get(name) is not None and type(members[name]) is not expected:
            message = f"{name} must be {words}"
            raise Problem("invalid_request", message, where=f"{tool.where}/{name}", code="invalid_tool")
    environment = json.as_object(members.get("environment")) if kind == "shell" else {}
    if row is None or environment.get("type", "local") != "local":
        return ()
    if kind == "tool_search" and members.get("execution") != "client":
        return ()
    raws = json.decode_object(tool.raw)
    parameters = json.encode({"type": "object", "properties": row.properties, "required": [*row.defaults]})
    if kind == "tool_search":
        parameters = bytes(raws["parameters"]) if members.get("parameters") else None
    used = {"type", "description", "parameters", "execution", "environment", "display_width", "display_height"}
    fields = {f"/{escape(name)}": bytes(raw) for name, raw in raws.items() if name not in used}
    return (
        Tool(
            where=tool.where,
            extras=Extras(NAME, fields) if fields else None,
            name=row.name or kind,
            description=json.get_text(members, "description") or row.description + _describe(members, environment),
            parameters=parameters,
            native=kind,
        ),
    )


def _describe(members: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """Return what the settings of a declaration add to the description."""
    words = ""
    if "display_width" in members:
        size = f"{members['display_width']} x {members.get('display_height')}"
        words = f" The screen ({members.get('environment')}) has {size} pixels; coordinates are pixels of it."
    skills = environment.get("skills")
    for skill in cast("list[Any]", skills) if isinstance(skills, list) else []:
        about = json.as_object(skill)
        words += f"\nThe folder {about.get('path')} has a skill, {about.get('name')}: {about.get('description')}"
    return words


def list_calls(tool: NativeTool) -> tuple[str, ...]:
    """Return the names in the calls of a tool, for `NativeTool.calls`."""
    try:
        return tuple(function.name for function in declare_client_tool(tool))
    except Problem:
        return ()  # its own vendor judges it, and a translation for another reports what is wrong


def is_client_tool(kind: str) -> bool:
    """Return whether the client may run a tool of this type."""
    return kind in CLIENT_TOOLS
