"""How Responses' requests and tools relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.core.request import ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    LOADED_AT_ONCE,
    NO_PADDING,
    NOT_STORED,
    NOTHING_EXTRA,
    SAYS_NOTHING,
    ConversationFormat,
    Implied,
    VendorTool,
)
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json
from dragoman.wire.lookup import lookup

_ITEM_IDS = r"(?:msg|fco?|ctco?|at)_[\w-]+"
"""Ids of OpenAI's items; an id of the caller's own has another form."""
IMPLIED = {
    "/include/#": Implied(("reasoning.encrypted_content",), "thoughts that the target seals come back in an envelope"),
    "/include": Implied(([],), SAYS_NOTHING),
    "/store": Implied((False,), NOT_STORED),
    "/background": Implied((False,), "the answer is waited for"),
    "/truncation": Implied(("disabled",), "no target shortens a prompt that is too long"),
    "/service_tier": Implied(("auto", "default"), DEFAULT_TIER),
    "/stream_options/include_obfuscation": Implied((False,), NO_PADDING),
    "/top_logprobs": Implied((0,), NOTHING_EXTRA),
    "/tools/#/defer_loading": Implied((False,), LOADED_AT_ONCE),
    "/input/#/id": Implied((), "an id that only OpenAI's store knows: the item itself is sent", _ITEM_IDS),
    "/input/#/status": Implied(("completed",), "an item that is sent is taken for whole"),
    "/input/#/content/#/logprobs": Implied(([],), SAYS_NOTHING),
    "/input/#/content/#/detail": Implied(("auto",), DEFAULT_DETAIL),
    "/input/#/output/#/detail": Implied(("auto",), DEFAULT_DETAIL),
}
"""A field that the caller asks for and will not get has no row, however usual it is: cache marks, keys, labels."""

VENDOR_TOOLS = {
    "search": VendorTool(
        ("web_search", "web_search_preview"),
        b'{"type":"web_search"}',
        ToolChoice(extras=Extras(NAME, {"": b'{"type":"web_search"}'})),
    ),
    "code": VendorTool(
        ("code_interpreter",),
        b'{"type":"code_interpreter","container":{"type":"auto"}}',
        ToolChoice(extras=Extras(NAME, {"": b'{"type":"code_interpreter"}'})),
    ),
}
"""Web search and the code interpreter."""


def _render_user_item(text: bytes) -> bytes:
    return json.encode({"type": "message", "role": "user", "content": Raw(text)})


def _read_reply_items(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/output")
    return [bytes(item) for item in json.decode_array(found[1])] if found is not None else []


TURNS = ConversationFormat(
    choice_member="tool_choice",
    lasting_members=("tools", "tool_choice"),
    render_user_item=_render_user_item,
    read_reply_items=_read_reply_items,
    end_pattern=re.compile(rb'"type"\s*:\s*"response\.(?:completed|incomplete)"'),
    has_store_member=True,
    reply_member="response",
)
