"""Reads and writes web searches of Messages: the block `server_tool_use`, and the block with its results.

Only Anthropic can make `encrypted_content`. For a page that another search found it is base64 of "dragoman1" and the
page's excerpt, so that the search is recognised when the client sends it back.
"""

import binascii
from base64 import b64decode, b64encode
from typing import Any, cast

from msgspec import Raw

from dragoman.core.parts import FoundPage, Search
from dragoman.core.searches import GENERATED_MARK
from dragoman.core.value import Extras
from dragoman.dialects.messages.wire import NAME
from dragoman.wire import json
from dragoman.wire.lookup import find_leaves
from dragoman.wire.pointer import escape

_OPENED = frozenset({"type", "name", "input", "content"})
_RESULT = "web_search_tool_result"
_ERRORS = frozenset(
    {
        "invalid_tool_input",
        "unavailable",
        "max_uses_exceeded",
        "too_many_requests",
        "query_too_long",
        "request_too_large",
    }
)
_MAGIC = b64decode(GENERATED_MARK)


def read_web_search(raw: bytes, where: str) -> Search | None:
    """Read a block of a web search; None for any other block."""
    match json.peek(raw):
        case {"type": "server_tool_use", "name": "web_search", "id": str(search_id), **rest}:
            query = json.get_text(json.as_object(rest.get("input")), "query")
            step, queries, pages, error = "call", (query,) if query else (), (), ""
            read = {"/input/query"} if query else set[str]()
        case {"type": "web_search_tool_result", "tool_use_id": str(search_id), "content": [*content]}:
            items: list[Any] = content
            found = [(item, f"/content/{at}") for at, item in enumerate(items) if _is_page(item)]
            step, queries, error = "results", (), ""
            pages = tuple(_read_page(item, where + inner) for item, inner in found)
            read = {inner + name for _, inner in found for name in ("/type", "/url", "/title")}
        case {"type": "web_search_tool_result", "tool_use_id": str(search_id), "content": {"error_code": str(error)}}:
            step, queries, pages, read = "results", (), (), {"/content/type", "/content/error_code"}
        case _:
            return None
    fields = _find_other_fields(raw, read)
    return Search(
        where=where,
        extras=Extras(NAME, fields) if fields else None,
        dialect=NAME,
        raw=raw,
        id=search_id,
        step=step,
        queries=queries,
        pages=pages,
        error=error,
    )


def _find_other_fields(raw: bytes, read: set[str]) -> dict[str, bytes]:
    """Return the fields of a block that were not read, by pointer."""
    members = json.decode_object(raw)
    fields = {f"/{escape(name)}": bytes(value) for name, value in members.items() if name not in _OPENED}
    inner = {name: value for name, value in members.items() if name in ("input", "content")}
    leaves = find_leaves(json.encode(inner), "")
    return fields | {
        pointer: json.encode(value) for pointer, value in leaves.items() if pointer not in read and value != {}
    }


def _is_page(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("url"), str)


def _read_page(value: Any, where: str) -> FoundPage:
    return FoundPage(
        where=where,
        url=value["url"],
        title=json.get_text(value, "title"),
        age=json.get_text(value, "page_age"),
        excerpt=_read_excerpt(json.get_text(value, "encrypted_content")),
    )


def _read_excerpt(encrypted: str) -> str:
    """Return the excerpt in the data that `write_web_search` makes; "" for Anthropic's own data."""
    if not encrypted.startswith(GENERATED_MARK):
        return ""
    try:
        return b64decode(encrypted, validate=True)[len(_MAGIC) :].decode()
    except (binascii.Error, ValueError):
        return ""


def write_web_search(search: Search) -> list[Raw]:
    """Render a search of another dialect as two blocks; one that has no results yet as one."""
    search_id = f"srvtoolu_{search.id.removeprefix('srvtoolu_')}"
    blocks: list[dict[str, Any]] = []
    if search.step != "results":
        arguments = {"query": "; ".join(search.queries)}
        blocks.append({"type": "server_tool_use", "id": search_id, "name": "web_search", "input": arguments})
    if search.step != "call":
        content: Any = [_write_page(page) for page in search.pages]
        if search.error:
            error = search.error if search.error in _ERRORS else "unavailable"
            content = {"type": "web_search_tool_result_error", "error_code": error}
        blocks.append({"type": _RESULT, "tool_use_id": search_id, "content": content})
    return [Raw(json.encode(block)) for block in blocks]


def _write_page(page: FoundPage) -> dict[str, Any]:
    return {
        "type": "web_search_result",
        "url": page.url,
        "title": page.title or page.url,
        "encrypted_content": b64encode(_MAGIC + page.excerpt.encode()).decode(),
        "page_age": page.age or None,
    }
