"""Reads and writes the items of a tool search that OpenAI runs; `client_items` has those of a search by the client."""

from typing import Any

from msgspec import Raw

from dragoman.core.parts import FoundTools, Opaque, ToolSearch
from dragoman.core.value import Extras
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json

_CALL, _OUTPUT = SEARCH_KINDS = ("tool_search_call", "tool_search_output")

CALL_PREFIX, OUTPUT_PREFIX = "tsc_", "tso_"
"""The prefixes of the ids of these items."""


def read_search(item: Opaque) -> Opaque:
    """Return an item of a tool search with what it says; any other item unchanged."""
    members = json.as_object(json.peek(item.raw))
    if members.get("execution", "server") != "server":
        return item
    if members.get("type") == _CALL:
        search_id = json.get_text(members, "id").removeprefix(CALL_PREFIX)
        query = _read_query(json.as_object(members.get("arguments")))
        return ToolSearch(where=item.where, dialect=NAME, raw=item.raw, id=search_id, query=query)
    if members.get("type") == _OUTPUT:
        names = [name for tool in json.as_list(members.get("tools")) for name in list_names(json.as_object(tool))]
        extras = Extras(NAME, {"/id": json.encode(members["id"])}) if members.get("id") else None
        return FoundTools(
            where=item.where, dialect=NAME, raw=item.raw, names=tuple(names), extras=extras, repeated="/tools"
        )
    return item


def _read_query(arguments: dict[str, Any]) -> str:
    """Return the query of a search: the model gives queries, or paths of tools, as `namespace.tool` or `tool`."""
    listed = (*json.as_list(arguments.get("paths")), *json.as_list(arguments.get("queries")))
    return (
        " ".join(one for one in listed if isinstance(one, str))
        or json.get_text(arguments, "query")
        or json.get_text(arguments, "pattern")
    )


def list_names(tool: dict[str, Any]) -> list[str]:
    """Return the name of a declared tool, or of each tool of a namespace after the namespace and `__`."""
    name, members = json.get_text(tool, "name"), tool.get("tools")
    if not isinstance(members, list):
        return [name or json.get_text(tool, "type")]
    return [f"{name}__{json.get_text(json.as_object(one), 'name')}" for one in json.as_list(members)]


def write_search(part: Opaque, item_id: str = "") -> dict[str, Any] | None:
    """Render a search of another vendor or of the gateway, or its result; None for any other part."""
    fields: dict[str, Any] = {"id": item_id} if item_id else {}
    fields |= {"call_id": None, "execution": "server"}
    match part:
        case ToolSearch():
            arguments = {"pattern" if part.pattern else "query": part.query}
            return {"type": _CALL, **fields, "status": "completed", "arguments": arguments}
        case FoundTools():
            status = "incomplete" if part.error else "completed"
            return {"type": _OUTPUT, **fields, "status": status, "tools": Raw(part.tools or b"[]")}
        case _:
            return None
