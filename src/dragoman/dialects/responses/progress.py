"""The events between the beginning and the end of an item that comes whole: those of calls that the vendor runs."""

from collections.abc import Mapping

from msgspec import Raw

from dragoman.wire import json

_MARK = b'"mcp_'


def progress(raw: bytes, index: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return an item as it begins, and the events until it ends: their names, and what they say."""
    members = json.decode_object(raw) if _MARK in raw else {}
    kind = json.decode(members["type"]) if "type" in members else ""
    place = b',"item_id":%b,"output_index":%d' % (bytes(members.get("id", b'""')), index)
    match kind:
        case "mcp_call":
            arguments = bytes(members.get("arguments", b'""'))
            begun = {**members, "status": Raw(b'"in_progress"'), "output": Raw(b"null"), "error": Raw(b"null")}
            return json.one_line(json.encode(begun)), [
                ("response.mcp_call.in_progress", place),
                ("response.mcp_call_arguments.delta", place + b',"delta":' + arguments),
                ("response.mcp_call_arguments.done", place + b',"arguments":' + arguments),
                (f"response.mcp_call.{_end(members)}", place),
            ]
        case "mcp_list_tools":
            begun = {**members, "tools": Raw(b"[]"), "error": Raw(b"null")}
            return json.one_line(json.encode(begun)), [
                ("response.mcp_list_tools.in_progress", place),
                (f"response.mcp_list_tools.{_end(members)}", place),
            ]
        case _:
            return raw, []


def _end(members: Mapping[str, Raw]) -> str:
    return "completed" if bytes(members.get("error", b"null")) == b"null" else "failed"
