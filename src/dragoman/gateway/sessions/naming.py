"""Ids for what has none: items that clients give, answers that other vendors made."""

from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from dragoman.wire import json

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
}


class _Named(Struct):
    id: Any = None
    type: Any = "message"


_NAMED = msgspec.json.Decoder(_Named)


def item_id(body: bytes) -> str:
    """Return the id an item has, or one for it."""
    named = _named(body)
    if isinstance(named.id, str) and named.id:
        return named.id
    prefix = _PREFIXES.get(named.type, "item") if isinstance(named.type, str) else "item"
    return f"{prefix}_{uuid4().hex}"


def response_name(reply: bytes) -> str:
    """Return the id of an answer."""
    name = _named(reply).id
    return name if isinstance(name, str) else ""


def fresh_response() -> str:
    """Return an id for an answer that the gateway keeps."""
    return f"resp_{uuid4().hex}"


def fresh_conversation() -> str:
    """Return an id for a conversation that its client did not name."""
    return f"conv_{uuid4().hex}"


def _named(body: bytes) -> _Named:
    try:
        return json.decode_with(_NAMED, body)
    except json.Malformed:
        return _Named()
