"""Chat request fields that other dialects share or do not need, and the format of stored Chat conversations."""

import re

from msgspec import Raw

from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    NO_PADDING,
    NOT_STORED,
    NOTHING_EXTRA,
    SAYS_NOTHING,
    TEXT_ANYWAY,
    ConversationFormat,
    Implied,
)
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {
    "/stream_options/include_usage": Implied((True, False), "the client gets the usage chunk that it asks for"),
    "/stream_options/include_obfuscation": Implied((False,), NO_PADDING),
    "/store": Implied((False,), NOT_STORED),
    "/service_tier": Implied(("auto", "default"), DEFAULT_TIER),
    "/modalities/#": Implied(("text",), TEXT_ANYWAY),
    "/logprobs": Implied((False,), NOTHING_EXTRA),
    "/top_logprobs": Implied((0,), NOTHING_EXTRA),
    "/logit_bias": Implied(({},), SAYS_NOTHING),
    "/messages/#/annotations": Implied(([],), SAYS_NOTHING),
    "/messages/#/tool_calls/#/index": Implied(tuple(range(128)), "calls keep the order of the list"),
    "/messages/#/prefix": Implied((False,), "false is the default: the model writes its reply from the start"),
    "/messages/#/content/#/image_url/detail": Implied(("auto",), DEFAULT_DETAIL),
}
"""Field values that need no counterpart at the target, so leaving them out is not a loss.

A field that changes the result and is not sent has no row, however common it is: cache marks, cache keys, metadata.
"""

SHARED_FIELDS = frozenset(
    {
        "/service_tier",
        "/store",
        "/prompt_cache_key",
        "/prompt_cache_options",
        "/prompt_cache_retention",
        "/moderation",
        "/user",
        "/safety_identifier",
    }
)
"""Fields that have the same meaning in Chat and Responses."""


def _render_user_item(text: bytes) -> bytes:
    return json.encode({"role": "user", "content": Raw(text)})


def _read_reply_items(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/choices/0/message")
    return [found[1]] if found is not None else []


TURNS = ConversationFormat(
    choice_member="tool_choice",
    lasting_members=("tools", "tool_choice"),
    render_user_item=_render_user_item,
    read_reply_items=_read_reply_items,
    end_pattern=re.compile(rb'"finish_reason"\s*:\s*"[^"]|^data:\s*\[DONE\]', re.MULTILINE),
)
