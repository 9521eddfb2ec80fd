"""OpenAI's web search: a member of the request here, and a tool in the core and in every other dialect."""

from collections.abc import Iterable
from typing import Any

from dragoman.core.request import AnyTool, NativeTool
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import decode_object, encode

_SEARCH_MEMBER = "web_search_options"
SEARCH_POINTER = f"/{_SEARCH_MEMBER}"
_SEARCH_START = b'{"type":"web_search_options"'


def read_search(extras: dict[str, bytes]) -> NativeTool | None:
    """Take `web_search_options` out of the extras, as a tool that OpenAI runs; None if they have no such object."""
    raw = extras.get(SEARCH_POINTER, b"")
    members = decode_object(raw) if raw.startswith(b"{") else {}
    if not raw.startswith(b"{") or "type" in members:
        return None
    del extras[SEARCH_POINTER]
    return NativeTool(dialect=NAME, raw=encode({"type": _SEARCH_MEMBER, **members}), where=SEARCH_POINTER)


def write_search(tools: Iterable[AnyTool], body: dict[str, Any]) -> None:
    """Add `web_search_options` to a request whose tools include OpenAI's web search."""
    for tool in tools:
        if isinstance(tool, NativeTool) and is_search(tool):
            members = decode_object(tool.raw)
            body[_SEARCH_MEMBER] = {name: raw for name, raw in members.items() if name != "type"}


def is_search(tool: NativeTool) -> bool:
    """Return whether a tool is the web search, which is a member of the request."""
    return tool.dialect == NAME and tool.raw.startswith(_SEARCH_START)
