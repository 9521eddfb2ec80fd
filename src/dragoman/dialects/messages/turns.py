"""How Messages writes what a conversation is made of."""

import re

from msgspec import Raw

from dragoman.dialects.record import Turns
from dragoman.wire import json
from dragoman.wire.lookup import lookup


def _plain(text: bytes) -> bytes:
    return json.encode({"role": "user", "content": Raw(text)})


def _said(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/content")
    # A turn in which nothing was said cannot stand in a history.
    if found is None or not json.decode_array(found[1]):
        return []
    return [json.encode({"role": "assistant", "content": Raw(found[1])})]


TURNS = Turns(
    choice="tool_choice",
    settings=("tools", "tool_choice", "system"),
    plain=_plain,
    said=_said,
    last=re.compile(rb'"type"\s*:\s*"message_(?:delta|stop)"'),
)
