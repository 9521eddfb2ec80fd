"""How Toy's requests relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.dialects import reasons
from dragoman.dialects.record import ConversationFormat, Implied
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {"/loud": Implied((False,), reasons.NOTHING_EXTRA)}


def _render_user_item(text: bytes) -> bytes:
    return json.encode({"type": "say", "by": "human", "text": Raw(text)})


def _read_reply_items(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/lines")
    return [bytes(line) for line in json.decode_array(found[1])] if found is not None else []


TURNS = ConversationFormat(
    choice_member="pick",
    lasting_members=("tools", "pick"),
    render_user_item=_render_user_item,
    read_reply_items=_read_reply_items,
    end_pattern=re.compile(rb'"end"\s*:'),
)
