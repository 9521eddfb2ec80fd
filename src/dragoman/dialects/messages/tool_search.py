"""Reads and writes the blocks of tool searches: a search of Anthropic, its result, and a tool that the client found."""

import re
from typing import Any

from msgspec import Raw

from dragoman.core.parts import FoundTools, Opaque, Text, ToolReference, ToolSearch
from dragoman.core.value import Extras
from dragoman.dialects.messages.wire import NAME
from dragoman.wire import json
from dragoman.wire.pointer import escape

KINDS = frozenset({"server_tool_use", "tool_search_tool_result", "tool_reference"})
"""The types of blocks that may be about a tool search."""
_PREFIX = "tool_search_tool_"
_ID_PREFIX = "srvtoolu_"
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_]")
_REGEX, _BM25 = "tool_search_tool_regex", "tool_search_tool_bm25"
_ERROR = "tool_search_tool_result_error"


def read_search(block: Opaque) -> Opaque:
    """Return a block about a tool search with what it says; any other block, or a malformed one, unchanged."""
    members = json.as_object(json.peek(block.raw))
    kind, where = members.get("type"), block.where
    if kind == "server_tool_use" and json.get_text(members, "name").startswith(_PREFIX):
        given = json.as_object(members.get("input"))
        query = given.get("pattern", given.get("query"))
        others = {f"/input/{escape(name)}": json.encode(given[name]) for name in given.keys() - {"pattern", "query"}}
        return ToolSearch(
            where=where,
            dialect=NAME,
            raw=block.raw,
            id=json.get_text(members, "id").removeprefix(_ID_PREFIX),
            query=query if isinstance(query, str) else "",
            pattern=members["name"].startswith(_REGEX),
            extras=Extras(NAME, others) if others else None,
        )
    if kind == "tool_search_tool_result":
        content = json.as_object(members.get("content"))
        names = [
            json.get_text(json.as_object(one), "tool_name") for one in json.as_list(content.get("tool_references"))
        ]
        return FoundTools(
            where=where,
            dialect=NAME,
            raw=block.raw,
            id=json.get_text(members, "tool_use_id").removeprefix(_ID_PREFIX),
            names=tuple(filter(None, names)),
            error=json.get_text(content, "error_code"),
        )
    if kind == "tool_reference" and (name := json.get_text(members, "tool_name")):
        text = Text(text=f"The tool {name} can be called now.", where=where)
        return ToolReference(where=where, dialect=NAME, raw=block.raw, content=(text,), name=name)
    return block


def write_search(part: Opaque) -> Raw | None:
    """Render a search of another vendor or of the gateway, or its result; None for any other part."""
    match part:
        case ToolSearch():
            name, member = (_REGEX, "pattern") if part.pattern else (_BM25, "query")
            block = {"type": "server_tool_use", "id": _write_id(part.id), "name": name, "input": {member: part.query}}
        case FoundTools(error=error) if error:
            block = _write_result(part.id, {"type": _ERROR, "error_code": error})
        case FoundTools():
            references = [{"type": "tool_reference", "tool_name": name} for name in part.names]
            block = _write_result(part.id, {"type": "tool_search_tool_search_result", "tool_references": references})
        case ToolReference():
            block = {"type": "tool_reference", "tool_name": part.name}
        case _:
            return None
    return Raw(json.encode(block))


def _write_result(search_id: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_search_tool_result", "tool_use_id": _write_id(search_id), "content": content}


def _write_id(search_id: str) -> str:
    return _ID_PREFIX + _NOT_IN_IDS.sub("_", search_id)
