"""The tools of Anthropic's browser toolset, which the client runs, with the parameters of the vendor's SDK types."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_Schema = Mapping[str, Any]


class BrowserTool(Struct, frozen=True):
    """One tool of the toolset."""

    name: str
    description: str
    properties: Mapping[str, _Schema] = {}
    required: tuple[str, ...] = ()
    is_enabled: bool = True
    """The vendor offers it to the model unless `configs` disables it; otherwise only if `configs` enables it."""


def _text(description: str) -> _Schema:
    return {"type": "string", "description": description}


def _integer(description: str) -> _Schema:
    return {"type": "integer", "description": description}


def _texts(description: str) -> _Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _seconds(description: str) -> _Schema:
    return {"type": "number", "description": f"{description} At most 30 seconds."}


_TAB: Mapping[str, _Schema] = {"tab_id": _text("The tab to use; the active one without it.")}
_NAMED_TAB: Mapping[str, _Schema] = {"tab_id": _text("The tab.")}
_POINT: _Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["coordinate"]},
        "x": _integer("Pixels from the left edge of the viewport."),
        "y": _integer("Pixels from the top edge of the viewport."),
    },
    "required": ["type", "x", "y"],
}
_ELEMENT: _Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["ref"]},
        "ref": _text("The reference of an element, such as `ref_7`, from `read_page` or `find` in the same tab."),
    },
    "required": ["type", "ref"],
}
_PLACE: Mapping[str, _Schema] = {"target": {"anyOf": [_POINT, _ELEMENT], "description": "A point or an element."}}
_CLICK: Mapping[str, _Schema] = {
    **_PLACE,
    "modifiers": _text("Keys to hold meanwhile, such as `shift` or `ctrl+shift`."),
    **_TAB,
}
_AT_POINT: Mapping[str, _Schema] = {"target": _POINT, **_TAB}
_TARGET = ("target",)

BROWSER_TOOLS = (
    BrowserTool(
        "navigate",
        "Open a URL, or move in the history of the tab.",
        {"url": _text("The URL, or `back`, `forward` or `reload`."), **_TAB},
        ("url",),
    ),
    BrowserTool("list_tabs", "List the open tabs with their ids, titles and URLs."),
    BrowserTool("new_tab", "Open an empty tab and return its id."),
    BrowserTool("switch_tab", "Make a tab the active one.", _NAMED_TAB, ("tab_id",)),
    BrowserTool("close_tab", "Close a tab.", _NAMED_TAB, ("tab_id",)),
    BrowserTool(
        "read_page",
        "Return the accessibility tree of the page, with references to its elements.",
        {
            "depth": _integer("How deep to read the tree, 15 by default."),
            "filter": {
                "type": "string",
                "enum": ["all", "interactive"],
                "description": "`all` adds elements outside the viewport; `interactive` leaves out all that is not.",
            },
            "ref": _text("The element whose part of the tree to read; the whole page without it."),
            **_TAB,
        },
    ),
    BrowserTool("get_page_text", "Return the visible text of the page.", _TAB),
    BrowserTool("read_console", "Return what the console printed since it was read last.", _TAB, is_enabled=False),
    BrowserTool("read_network", "Return the network requests since they were read last.", _TAB, is_enabled=False),
    BrowserTool(
        "find",
        "Find elements by a description in words, and return references to them.",
        {"query": _text("What to look for, such as `search bar`."), **_TAB},
        ("query",),
    ),
    BrowserTool(
        "form_input",
        "Set the value of a form element: true or false for a checkbox, an option for a selection.",
        {
            "target": _ELEMENT,
            "value": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]},
            **_TAB,
        },
        ("target", "value"),
    ),
    BrowserTool(
        "file_upload",
        "Set the files of a file input. Give `paths`, `document_ids` or both.",
        {
            "target": _ELEMENT,
            "document_ids": _texts("The ids of files that were prepared for upload."),
            "paths": _texts("Paths on the computer that runs the browser."),
            **_TAB,
        },
        _TARGET,
        is_enabled=False,
    ),
    BrowserTool("scroll_to", "Scroll until an element is visible.", {"target": _ELEMENT, **_TAB}, _TARGET),
    BrowserTool("screenshot", "Take a screenshot of the viewport.", _TAB),
    BrowserTool(
        "zoom",
        "Take an enlarged screenshot of a part of the viewport.",
        {
            "region": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 4,
                "maxItems": 4,
                "description": "x and y of the top left corner, x and y of the bottom right corner, in pixels.",
            },
            **_TAB,
        },
        ("region",),
    ),
    BrowserTool("left_click", "Click the left mouse button.", _CLICK, _TARGET),
    BrowserTool("right_click", "Click the right mouse button.", _CLICK, _TARGET),
    BrowserTool("middle_click", "Click the middle mouse button.", _CLICK, _TARGET),
    BrowserTool("double_click", "Click the left mouse button twice.", _CLICK, _TARGET),
    BrowserTool("triple_click", "Click the left mouse button three times.", _CLICK, _TARGET),
    BrowserTool("hover", "Move the cursor over a point or an element.", {**_PLACE, **_TAB}, _TARGET),
    BrowserTool(
        "left_click_drag",
        "Drag from one point to another with the left mouse button.",
        {"from": _POINT, **_AT_POINT},
        ("from", "target"),
    ),
    BrowserTool("left_mouse_down", "Press the left mouse button at a point and hold it.", _AT_POINT, _TARGET),
    BrowserTool("left_mouse_up", "Release the left mouse button at a point.", _AT_POINT, _TARGET),
    BrowserTool("mouse_move", "Move the cursor to a point.", _AT_POINT, _TARGET),
    BrowserTool(
        "scroll",
        "Turn the mouse wheel at a point.",
        {
            "scroll_direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
            "scroll_amount": _integer("The number of clicks of the wheel, 1 to 10, 3 by default."),
            **_AT_POINT,
        },
        ("scroll_direction", "target"),
    ),
    BrowserTool("type", "Type text where the focus is.", {"text": _text("The text."), **_TAB}, ("text",)),
    BrowserTool(
        "key",
        "Press a key, a combination such as `ctrl+a`, or several one after another, separated by spaces.",
        {"text": _text("The keys."), "repeat": _integer("How often, 1 by default."), **_TAB},
        ("text",),
    ),
    BrowserTool(
        "hold_key",
        "Hold down a key or a combination for a time.",
        {"text": _text("The keys."), "duration": _seconds("How long."), **_TAB},
        ("text", "duration"),
    ),
    BrowserTool("wait", "Wait for a time.", {"duration": _seconds("How long."), **_TAB}, ("duration",)),
    BrowserTool(
        "javascript_exec",
        "Run JavaScript in the page and return the value of the last expression, which has no `return`.",
        {"text": _text("The code."), **_TAB},
        ("text",),
        is_enabled=False,
    ),
)
