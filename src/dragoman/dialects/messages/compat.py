"""How requests and tools of Messages relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.core.request import ToolChoice
from dragoman.dialects import reasons
from dragoman.dialects.record import ConversationFormat, Implied, VendorTool
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {
    "/service_tier": Implied(("auto",), reasons.DEFAULT_TIER),
    "/mcp_servers": Implied(([],), reasons.SAYS_NOTHING),
    "/context_management/edits": Implied(([],), reasons.SAYS_NOTHING),
    "/context_management/edits/#": Implied(
        ({"type": "clear_thinking_20251015", "keep": "all"},), "no target removes thinking from the history"
    ),
    "/tools/#/defer_loading": Implied((True, False), reasons.LOADED_LATER),
    "/tools/#/eager_input_streaming": Implied((False,), "arguments are sent as they arrive", streaming_values=(True,)),
    "/tools/#/allowed_callers": Implied((["direct"],), reasons.CALLED_BY_MODEL),
    "/tools/#/input_examples": Implied(([],), reasons.SAYS_NOTHING),
    "/messages/#/content/#/caller": Implied(({"type": "direct"},), reasons.CALLED_BY_MODEL),
    "/messages/#/content/#/citations": Implied(({"enabled": False},), reasons.NOTHING_EXTRA),
    "/messages/#/content/#/toolset_name": Implied(("computer", "browser"), "the call names it"),
}
"""No row for a field whose effect the caller loses, however common it is: cache breakpoints, keys, labels."""

IMPLIED_REPLIES = {
    "/usage/service_tier": Implied(("standard",), reasons.DEFAULT_TIER),
    "/usage/inference_geo": Implied(("not_available", "global"), "no region was asked for"),
    "/content/#/caller": Implied(({"type": "direct"},), reasons.CALLED_BY_MODEL),
    "/context_management/applied_edits": Implied(([],), reasons.SAYS_NOTHING),
}
"""Values of a reply that are no loss for a client of another dialect."""

INFORMATIONAL = {
    "/anthropic_version": reasons.ENVELOPE_FIELD,
    "/metadata": reasons.CALLER_ID,
    "/service_tier": reasons.VENDOR_TIER,
    "/cache_control": reasons.CACHE_ONLY,
    "/system/#/cache_control": reasons.CACHE_ONLY,
    "/messages/#/content/#/cache_control": reasons.CACHE_ONLY,
    "/messages/#/content/#/content/#/cache_control": reasons.CACHE_ONLY,
    "/tools/#/cache_control": reasons.CACHE_ONLY,
    "/messages/#/content/#/caller": reasons.CALLER,
    "/tools/#/eager_input_streaming": "in which pieces the vendor streams arguments",
}
"""Request fields whose loss is informational."""

INFORMATIONAL_REPLIES = {
    "/usage": reasons.DETAILED_COUNT,
    "/container": reasons.VENDOR_STORE,
    "/content/#/content/#/encrypted_content": reasons.VENDOR_ENCRYPTED,
    "/content/#/citations/#/encrypted_index": reasons.VENDOR_ENCRYPTED,
    "/context_management": "an account of what the vendor removed from its own prompt",
}
"""Reply fields whose loss is informational."""

VENDOR_TOOLS = {
    "search": VendorTool(
        ("web_search",),
        b'{"type":"web_search_20250305","name":"web_search"}',
        ToolChoice(mode="required", names=("web_search",)),
    ),
    "code": VendorTool(
        ("code_execution",),
        b'{"type":"code_execution_20250825","name":"code_execution"}',
        ToolChoice(mode="required", names=("code_execution",)),
    ),
    "fetch": VendorTool(
        ("web_fetch",),
        b'{"type":"web_fetch_20250910","name":"web_fetch"}',
        ToolChoice(mode="required", names=("web_fetch",)),
    ),
    "tool_search": VendorTool(
        ("tool_search_tool_bm25", "tool_search_tool_regex"),
        b'{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}',
    ),
}
"""Anthropic's web search, web fetch, code execution and tool search."""

SEARCH_SETTINGS = {
    "allowed_domains": "/allowed_domains",
    "blocked_domains": "/blocked_domains",
    "place": "/user_location/type",
    "city": "/user_location/city",
    "region": "/user_location/region",
    "country": "/user_location/country",
    "timezone": "/user_location/timezone",
    "max_uses": "/max_uses",
}
"""The settings of its web search."""


_HOSTED = frozenset(
    {
        "web_search",
        "web_fetch",
        "code_execution",
        "tool_search_tool_bm25",
        "tool_search_tool_regex",
        "mcp_toolset",
        "advisor",
    }
)


def is_hosted(raw: bytes) -> bool:
    """Return whether Anthropic runs a tool of its own; clients run `bash`, editors, `memory` and `computer`."""
    found = lookup(raw, "/type")
    kind = json.peek(found[1]) if found is not None else None
    return isinstance(kind, str) and not _HOSTED.isdisjoint({kind, kind.rpartition("_")[0]})


def _render_user_item(text: bytes) -> bytes:
    return json.encode({"role": "user", "content": Raw(text)})


def _read_reply_items(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/content")
    # A history must not contain an empty turn.
    if found is None or not json.decode_array(found[1]):
        return []
    return [json.encode({"role": "assistant", "content": Raw(found[1])})]


TURNS = ConversationFormat(
    choice_member="tool_choice",
    lasting_members=("tools", "tool_choice", "system"),
    render_user_item=_render_user_item,
    read_reply_items=_read_reply_items,
    end_pattern=re.compile(rb'"type"\s*:\s*"message_(?:delta|stop)"'),
)
