"""How Toy's requests relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.dialects.record import UNASKED, Implied, Turns
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {"/loud": Implied((False,), UNASKED)}


def _plain(text: bytes) -> bytes:
    return json.encode({"type": "say", "by": "human", "text": Raw(text)})


def _said(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/lines")
    return [bytes(line) for line in json.decode_array(found[1])] if found is not None else []


TURNS = Turns(choice="pick", settings=("tools", "pick"), plain=_plain, said=_said, last=re.compile(rb'"end"\s*:'))
