"""Translate how often a reply may search the web: a setting of the search, or of the request for all tools together.

OpenAI limits the calls of all tools that it runs (`max_tool_calls`), Anthropic the uses of one tool (`max_uses`). The
two mean the same if the search is the only tool that the vendor runs.
"""

from collections.abc import Sequence

from msgspec import structs

from dragoman.core.request import AnyTool, NativeTool, Request
from dragoman.core.value import Extras
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.tool_kinds import find_purpose, is_hosted
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import graft

MAX_USES = "max_uses"
_POINTER = "/max_uses"


def find_only_search(tools: Sequence[AnyTool]) -> NativeTool | None:
    """Return the web search among the tools if it is the only one that the vendor runs."""
    hosted = [tool for tool in tools if isinstance(tool, NativeTool) and is_hosted(tool)]
    return hosted[0] if len(hosted) == 1 and find_purpose(hosted[0].raw) == "search" else None


def find_max_uses(tools: Sequence[AnyTool]) -> bytes | None:
    """Return how often the web search among the tools may be used, for a target that limits all its tools together."""
    search = find_only_search(tools)
    pointer = DIALECTS[search.dialect].search_settings.get(MAX_USES) if search is not None else None
    found = lookup(search.raw, pointer) if search is not None and pointer else None
    return found[1] if found is not None and _is_count(found[1]) else None


def take_call_limit(request: Request) -> Request:
    """Return a request whose limit of all tool calls is a setting of its web search, if it has no other such tool."""
    extras = request.extras
    pointer = DIALECTS[extras.dialect].call_limit if extras is not None and extras.dialect in DIALECTS else ""
    if extras is None or not pointer or not _is_count(extras.fields.get(pointer, b"null")):
        return request
    search = find_only_search(request.tools)
    if search is None:
        return request
    limited = structs.replace(search, raw=graft(search.raw, {_POINTER: extras.fields[pointer]}))
    fields = {name: raw for name, raw in extras.fields.items() if name != pointer}
    tools = tuple(limited if tool is search else tool for tool in request.tools)
    return structs.replace(request, tools=tools, extras=Extras(extras.dialect, fields) if fields else None)


def _is_count(raw: bytes) -> bool:
    value = json.peek(raw)
    return type(value) is int and value > 0
