"""How Responses writes what a conversation is made of."""

import re

from msgspec import Raw

from dragoman.dialects.record import Turns
from dragoman.wire import json
from dragoman.wire.lookup import lookup


def _plain(text: bytes) -> bytes:
    return json.encode({"type": "message", "role": "user", "content": Raw(text)})


def _said(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/output")
    return [bytes(item) for item in json.decode_array(found[1])] if found is not None else []


TURNS = Turns(
    choice="tool_choice",
    settings=("tools", "tool_choice"),
    plain=_plain,
    said=_said,
    last=re.compile(rb'"type"\s*:\s*"response\.(?:completed|incomplete)"'),
    keeps=True,
    below="response",
)
