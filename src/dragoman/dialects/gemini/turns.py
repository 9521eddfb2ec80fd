"""How Gemini writes what a conversation is made of."""

import re

from msgspec import Raw

from dragoman.dialects.record import Turns
from dragoman.wire import json
from dragoman.wire.lookup import lookup


def _plain(text: bytes) -> bytes:
    return json.encode({"role": "user", "parts": [{"text": Raw(text)}]})


def _said(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/candidates/0/content")
    return [found[1]] if found is not None and lookup(found[1], "/parts") is not None else []


TURNS = Turns(
    choice="toolConfig",
    settings=("tools", "toolConfig", "systemInstruction"),
    plain=_plain,
    said=_said,
    last=re.compile(rb'"finish_?[rR]eason"\s*:'),
)
