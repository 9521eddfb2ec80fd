"""Lists of kept items, told page by page as OpenAI does."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.core.problems import Problem
from dragoman.sessions.values import Item
from dragoman.wire import json

_MOST = 100
_USUAL = "20"
_STATED = frozenset({"message", "function_call", "function_call_output", "custom_tool_call_output"})
"""Items whose status is told also where the client did not tell it."""


def told(item: Item) -> dict[str, Any]:
    """Return an item as it is listed: under its id, its content in parts."""
    body: dict[str, Any] = json.decode(item.body)
    kind = body.get("type") or "message"
    stated = {"status": "completed"} if kind in _STATED else {}
    shown = {**stated, **body, "id": item.id, "type": kind}
    if isinstance(shown.get("content"), str) and kind == "message":
        is_said = shown.get("role") == "assistant"
        part: dict[str, Any] = {"type": "output_text", "annotations": []} if is_said else {"type": "input_text"}
        shown["content"] = [{**part, "text": shown["content"]}]
    return shown


def page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of items, the newest first unless `order` says otherwise."""
    order, limit, after = query.get("order", "desc"), query.get("limit", _USUAL), query.get("after", "")
    if order not in {"asc", "desc"}:
        raise Problem("invalid_request", f"order must be asc or desc, not {order!r}", where="/order")
    if not limit.isdecimal() or len(limit) > len(str(_MOST)) or not 1 <= int(limit) <= _MOST:
        raise Problem("invalid_request", f"limit must be from 1 to {_MOST}, not {limit!r}", where="/limit")
    ordered = items if order == "asc" else items[::-1]
    begins = 0
    if after:
        begins = next((at for at, item in enumerate(ordered, 1) if item.id == after), 0)
        if not begins:
            raise Problem("invalid_request", f"Item with id '{after}' not found.", where="/after")
    shown = ordered[begins : begins + int(limit)]
    return listed(shown, more=begins + len(shown) < len(ordered))


def listed(items: Sequence[Item], *, more: bool = False) -> dict[str, Any]:
    """Return items as a list."""
    ids = [item.id for item in items] or [None]
    data = [told(item) for item in items]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": more}
