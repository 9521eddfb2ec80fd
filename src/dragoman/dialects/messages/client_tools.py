"""Anthropic's own tools that the client runs, declared as ordinary functions for the models of other vendors.

Anthropic's models know the parameters of these tools, so a declaration has none; they are documented in the vendor's
SDK types and guides. A version without a row here has no documented parameters.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool
from dragoman.dialects.messages.browser_toolset import BROWSER_TOOLS
from dragoman.dialects.messages.parts import build_extras, read_cache_mark
from dragoman.dialects.messages.wire import ToolShape
from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.shape import Shape, get_raw_members

_TOOL: Shape[ToolShape] = Shape(ToolShape)
_Properties = Mapping[str, Mapping[str, Any]]


class _ClientTool(Struct, frozen=True):
    """One version of a tool, or one action of a toolset."""

    name: str
    description: str
    properties: _Properties
    required: tuple[str, ...] = ()
    namespace: str = ""
    """The name of the toolset."""
    describe: Callable[[Mapping[str, Any]], str] | None = None
    """Returns what the settings of a declaration add to the description."""
    settings: frozenset[str] = frozenset()
    """The settings that `describe` reads."""
    is_enabled: bool = True
    """A tool of a toolset that is offered to the model if `configs` says nothing about it."""


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description}


def _integers(count: int, description: str) -> Mapping[str, Any]:
    return {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": count,
        "maxItems": count,
        "description": description,
    }


def _choice(*values: str) -> Mapping[str, Any]:
    return {"type": "string", "enum": list(values)}


_BASH = _ClientTool(
    "bash",
    "Run a command in one persistent bash session: its directory, variables and processes stay from call to call. "
    "Give either `command`, or `restart` to start a new session.",
    {
        "command": _text("The command line to run. Required unless the session is restarted."),
        "restart": {"type": "boolean", "description": "True starts a new session instead of running a command."},
    },
)

_EDIT_COMMANDS = ("view", "create", "str_replace", "insert")
_EDITS: _Properties = {
    "path": _text("The path of the file or directory."),
    "view_range": _integers(
        2, "`view`: the first and the last line to show, counted from 1. -1 as the last line means the end of the file."
    ),
    "file_text": _text("`create`: the whole content of the new file."),
    "old_str": _text("`str_replace`: the text to replace. It must occur exactly once in the file."),
    "new_str": _text("`str_replace`: the new text."),
    "insert_line": {
        "type": "integer",
        "description": "`insert`: the line after which the text is inserted, 0 for the start of the file.",
    },
    "insert_text": _text("`insert`: the text to insert."),
}
_EDITOR = "View, create and edit text files. `command` says what to do; it decides which of the other parameters apply."


def _describe_editor(settings: Mapping[str, Any]) -> str:
    limit = settings.get("max_characters")
    return "" if limit is None else f" `view` shows at most {limit} characters of a file."


def _build_editor(name: str, *more_commands: str) -> _ClientTool:
    return _ClientTool(
        name,
        _EDITOR,
        {"command": _choice(*_EDIT_COMMANDS, *more_commands), **_EDITS},
        ("command", "path"),
        describe=_describe_editor,
        settings=frozenset({"max_characters"}),
    )


_MEMORY = _ClientTool(
    "memory",
    "Keep notes for later conversations as files under the directory /memories. View the directory before you start a "
    "task, and record progress and what you learn. `command` decides which of the other parameters apply.",
    {
        "command": _choice(*_EDIT_COMMANDS, "delete", "rename"),
        **_EDITS,
        "old_path": _text("`rename`: the present path."),
        "new_path": _text("`rename`: the new path."),
    },
    ("command",),
)

_POINT = "x and y in pixels, from the left and the top edge."
_COORDINATE = _integers(2, f"Where to act: {_POINT} Without it, clicks and scrolling act at the cursor.")
_MODIFIERS = _text("Keys to hold meanwhile, such as `shift` or `ctrl+shift`.")
_KEYS = _text("The key or keys, such as `Return` or `ctrl+s`.")
_DURATION: Mapping[str, Any] = {"type": "number", "description": "How long, in seconds."}
_SCROLL: _Properties = {
    "scroll_direction": _choice("up", "down", "left", "right"),
    "scroll_amount": {"type": "integer", "description": "The number of clicks of the wheel."},
}
_CLICK: _Properties = {"coordinate": _COORDINATE, "text": _MODIFIERS}
_REGION = _integers(4, "The region to show: x and y of its top left corner, x and y of its bottom right corner.")
_SCREEN = ("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click")
_ACTIONS_2024 = (*_SCREEN, "screenshot", "cursor_position")
_ACTIONS_2025 = (
    *_ACTIONS_2024,
    *("left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click"),
)


def _describe_screen(settings: Mapping[str, Any]) -> str:
    size = f"{settings.get('display_width_px')} x {settings.get('display_height_px')}"
    number = settings.get("display_number")
    display = "" if number is None else f" It is display {number}."
    return f" The screen has {size} pixels; coordinates are pixels of it.{display}"


def _build_computer(actions: tuple[str, ...]) -> _ClientTool:
    properties: dict[str, Mapping[str, Any]] = {
        "action": _choice(*actions),
        "coordinate": _COORDINATE,
        "start_coordinate": _integers(2, f"`left_click_drag`: where to start. {_POINT}"),
        "text": _text("`type`: the text. `key`, `hold_key`: the keys, such as `ctrl+s`. Clicks: keys to hold."),
    }
    if "scroll" in actions:
        properties |= {**_SCROLL, "duration": _DURATION}
    if "zoom" in actions:
        properties["region"] = _REGION
    return _ClientTool(
        "computer",
        "Use a computer's screen, mouse and keyboard. `action` decides which of the other parameters apply. "
        "Take a screenshot first, and after actions whose effect you must see.",
        properties,
        ("action",),
        describe=_describe_screen,
        settings=frozenset({"display_width_px", "display_height_px", "display_number", "enable_zoom"}),
    )


_ZOOMABLE = _build_computer((*_ACTIONS_2025, "zoom"))
_UNZOOMABLE = _build_computer(_ACTIONS_2025)


def _build_member(name: str, description: str, properties: _Properties, *required: str) -> _ClientTool:
    return _ClientTool(name, description, properties, required, "computer")


_TOOLSETS = {
    "computer": "Use a computer's screen, mouse and keyboard.",
    "browser": "Use a web browser: its tabs, the elements of a page, mouse and keyboard.",
}
_COMPUTER_TOOLSET = (
    _build_member(
        "key",
        "Press a key or a combination of keys.",
        {"text": _KEYS, "repeat": {"type": "integer", "description": "How often, 1 by default."}},
        "text",
    ),
    _build_member("hold_key", "Hold down keys for a time.", {"text": _KEYS, "duration": _DURATION}, "text", "duration"),
    _build_member("type", "Type text on the keyboard.", {"text": _text("The text.")}, "text"),
    _build_member("cursor_position", "Return where the cursor is.", {}),
    _build_member("mouse_move", "Move the cursor without a click.", {"coordinate": _COORDINATE}, "coordinate"),
    _build_member("left_mouse_down", "Press the left mouse button and hold it.", {}),
    _build_member("left_mouse_up", "Release the left mouse button.", {}),
    _build_member("left_click", "Click the left mouse button.", _CLICK),
    _build_member(
        "left_click_drag",
        "Drag from one point to another with the left mouse button.",
        {"start_coordinate": _integers(2, f"Where to start. {_POINT}"), **_CLICK},
        "start_coordinate",
        "coordinate",
    ),
    _build_member("right_click", "Click the right mouse button.", _CLICK),
    _build_member("middle_click", "Click the middle mouse button.", _CLICK),
    _build_member("double_click", "Click the left mouse button twice.", _CLICK),
    _build_member("triple_click", "Click the left mouse button three times.", _CLICK),
    _build_member("scroll", "Turn the mouse wheel.", {**_SCROLL, **_CLICK}, "scroll_direction", "scroll_amount"),
    _build_member("wait", "Wait for a time.", {"duration": _DURATION}, "duration"),
    _build_member("screenshot", "Take a screenshot of the screen.", {}),
    _build_member("zoom", "Take an enlarged screenshot of a region of the screen.", {"region": _REGION}, "region"),
)
_BROWSER_TOOLSET = tuple(
    _ClientTool(tool.name, tool.description, tool.properties, tool.required, "browser", is_enabled=tool.is_enabled)
    for tool in BROWSER_TOOLS
)

_VERSIONS: Mapping[str, tuple[_ClientTool, ...]] = {
    "bash_20241022": (_BASH,),
    "bash_20250124": (_BASH,),
    "text_editor_20241022": (_build_editor("str_replace_editor", "undo_edit"),),
    "text_editor_20250124": (_build_editor("str_replace_editor", "undo_edit"),),
    "text_editor_20250429": (_build_editor("str_replace_based_edit_tool"),),
    "text_editor_20250728": (_build_editor("str_replace_based_edit_tool"),),
    "memory_20250818": (_MEMORY,),
    "computer_20241022": (_build_computer(_ACTIONS_2024),),
    "computer_20250124": (_UNZOOMABLE,),
    "computer_20251124": (_ZOOMABLE,),
    "computer_toolset_20260801": _COMPUTER_TOOLSET,
    "browser_toolset_20260801": _BROWSER_TOOLSET,
}
"""The tools of a declaration by its type."""


def is_client_tool(kind: str | None) -> bool:
    """Return whether the type of a declaration has a row."""
    return kind in _VERSIONS


def list_calls(tool: NativeTool) -> tuple[str, ...]:
    """Return the names in the calls of a tool, for `NativeTool.calls`."""
    try:
        functions = declare_client_tool(tool)
    except Problem:
        return ()  # its own vendor judges it, and a translation for another reports what is wrong
    return tuple(f"{one.namespace}__{one.name}" if one.namespace else one.name for one in functions)


def declare_client_tool(tool: NativeTool) -> tuple[Tool, ...]:
    """Return a tool that the client runs as functions with their documented parameters; none if it has no row."""
    members = json.as_object(json.peek(tool.raw))
    rows = _VERSIONS.get(str(members.get("type")), ())
    if rows == (_ZOOMABLE,) and not members.get("enable_zoom"):
        rows = (_UNZOOMABLE,)
    _require_types(rows, members, tool.where)
    configs = json.as_object(members.get("configs"))
    shown = [row for row in rows if _is_shown(row, json.as_object(configs.get(row.name)).get("enabled"))]
    return tuple(_declare(row, tool, members, is_first=row is shown[0]) for row in shown)


def _require_types(rows: tuple[_ClientTool, ...], members: Mapping[str, Any], where: str) -> None:
    """Raise `Problem` for a setting of a wrong type; null is no value."""
    configs: Any = members.get("configs") if rows and rows[0].namespace else None
    checked: list[tuple[str, Any, type]] = [("configs", configs, dict)]
    checked += [(f"configs/{escape(name)}", one, dict) for name, one in json.as_object(configs).items()]
    for name in sorted(rows[0].settings) if rows else ():
        checked.append((name, members.get(name), bool if name == "enable_zoom" else int))
    for name, value, kind in checked:
        if value is not None and type(value) is not kind:
            expected = {dict: "an object", bool: "true or false", int: "an integer"}[kind]
            raise Problem("invalid_request", f"{name} must be {expected}", where=f"{where}/{name}", code="invalid_tool")


def _is_shown(row: _ClientTool, enabled: Any) -> bool:
    return row.is_enabled if enabled is None else enabled is True


def _declare(row: _ClientTool, tool: NativeTool, members: Mapping[str, Any], *, is_first: bool) -> Tool:
    """Return a row as a function; the first one of a declaration has the other members of the declaration."""
    shape, fields = _TOOL.read_at(tool.raw, tool.where)
    fields = {**fields, **(get_raw_members(shape) or {})}
    kept = {pointer: raw for pointer, raw in fields.items() if pointer[1:] not in row.settings} if is_first else {}
    if row.namespace and kept.pop("/configs", None) is not None:
        kept |= {
            f"/configs/{escape(name)}/{escape(member)}": json.encode(value)
            for name, config in json.as_object(members.get("configs")).items()
            for member, value in json.as_object(config).items()
            if member != "enabled"
        }
    schema: dict[str, Any] = {"type": "object", "properties": row.properties}
    if row.required:
        schema["required"] = row.required
    return Tool(
        where=tool.where,
        extras=build_extras(kept),
        name=shape.name or row.name,
        namespace=row.namespace,
        namespace_description=_TOOLSETS[row.namespace] if row.namespace and is_first else "",
        description=row.description + (row.describe(members) if row.describe is not None else ""),
        parameters=json.encode(schema),
        strict=shape.strict,
        cache=read_cache_mark(shape.cache_control) if is_first else None,
    )
