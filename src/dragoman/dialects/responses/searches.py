"""Reads and writes web searches of Responses: the item `web_search_call` with the action `search`.

Its other actions open a page or look for a text in one. They stay opaque: no other dialect has them.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.parts import FoundPage, Search
from dragoman.core.value import Extras
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json
from dragoman.wire.lookup import find_leaves

ITEM_TYPE = b'"web_search_call"'
"""Bytes of every item that may be a search."""
_READ = ("/type", "/action/type", "/action/query", "/action/queries")
TOOL_USAGE = "/tool_usage"
_NO_IMAGES = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "total_tokens": 0,
}
"""OpenAI's type requires the counts of generated images next to the number of searches."""


def read_web_search(raw: bytes, where: str) -> Search | None:
    """Read an item that is a web search; None for any other item."""
    if ITEM_TYPE not in raw:
        return None
    match json.peek(raw):
        case {"type": "web_search_call", "action": {"type": "search", **action}, **item}:
            pass
        case _:
            return None
    query = json.get_text(action, "query")
    queries = [one for one in json.as_list(action.get("queries")) if isinstance(one, str) and one]
    if query and query not in queries:
        queries.insert(0, query)
    sources = enumerate(json.as_list(action.get("sources")))
    found = [(at, url) for at, one in sources if (url := json.get_text(json.as_object(one), "url"))]
    read = {f"/action/sources/{at}/{name}" for at, _ in found for name in ("type", "url")}
    fields = {
        pointer: json.encode(value)
        for pointer, value in find_leaves(raw, "").items()
        if value and pointer not in read and not pointer.startswith(_READ)
    }
    error = "unavailable" if item.get("status") == "failed" else ""
    if error:
        del fields["/status"]
    return Search(
        where=where,
        extras=Extras(NAME, fields) if fields else None,
        dialect=NAME,
        raw=raw,
        id=json.get_text(item, "id"),
        queries=tuple(queries),
        pages=tuple(FoundPage(url, where=f"{where}/action/sources/{at}") for at, url in found),
        error=error,
    )


def write_web_search(search: Search, item_id: str) -> dict[str, Any]:
    """Render a search of another dialect as an item; `item_id` is used if the search has no id."""
    action: dict[str, Any] = {"type": "search", "query": next(iter(search.queries), "")}
    if len(search.queries) > 1:
        action["queries"] = list(search.queries)
    if search.pages:
        action["sources"] = [{"type": "url", "url": page.url} for page in search.pages]
    return {
        "type": "web_search_call",
        "id": f"ws_{search.id.removeprefix('ws_')}" if search.id else item_id,
        "status": "failed" if search.error else "completed",
        "action": action,
    }


def render_progress(members: dict[str, Raw], location: bytes) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return the initial state of a search item, which has no query, and its progress events."""
    initial: dict[str, Any] = {"status": "in_progress"}
    if "action" in members:
        initial["action"] = {"type": json.as_object(json.peek(members["action"])).get("type", "search")}
    started = json.encode({**members, **{name: value for name, value in initial.items() if name in members}})
    steps = ("in_progress", "searching", "completed")
    return json.one_line(started), [(f"response.web_search_call.{step}", location) for step in steps]


def read_count(tool_usage: bytes) -> int | None:
    """Return the number of searches that `tool_usage` counts; None if it has no such count."""
    count = json.as_object(json.as_object(json.peek(tool_usage)).get("web_search")).get("num_requests")
    return count if type(count) is int else None


def write_count(count: int) -> dict[str, Any]:
    """Render `tool_usage` for a number of searches."""
    return {"image_gen": _NO_IMAGES, "web_search": {"num_requests": count}}
