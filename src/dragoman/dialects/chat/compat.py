"""Chat request fields that other dialects share or do not need, and the format of stored Chat conversations."""

import re
from typing import Any, cast

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects import reasons
from dragoman.dialects.record import ConversationFormat, Implied, SharedField, VendorTool
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import set_member

IMPLIED = {
    "/stream_options/include_usage": Implied((True, False), "the client gets the usage chunk that it asks for"),
    "/stream_options/include_obfuscation": Implied((False,), reasons.NO_PADDING),
    "/store": Implied((False,), reasons.NOT_STORED),
    "/service_tier": Implied(("auto", "default"), reasons.DEFAULT_TIER),
    "/modalities/#": Implied(("text",), reasons.TEXT_ANYWAY),
    "/logprobs": Implied((False,), reasons.NOTHING_EXTRA),
    "/top_logprobs": Implied((0,), reasons.NOTHING_EXTRA),
    "/logit_bias": Implied(({},), reasons.SAYS_NOTHING),
    "/messages/#/annotations": Implied(([],), reasons.SAYS_NOTHING),
    "/messages/#/tool_calls/#/index": Implied(tuple(range(128)), "calls keep the order of the list"),
    "/messages/#/prefix": Implied((False,), "false is the default: the model writes its reply from the start"),
    "/messages/#/content/#/image_url/detail": Implied(("auto",), reasons.DEFAULT_DETAIL),
}
"""Field values that need no counterpart at the target, so leaving them out is not a loss.

A field that changes the result and is not sent has no row, however common it is: cache marks, cache keys, metadata.
"""

IMPLIED_REPLIES = {
    "/service_tier": Implied(("default", "auto", "on_demand"), reasons.DEFAULT_TIER),
    "/usage/service_tier": Implied(("standard", "default"), reasons.DEFAULT_TIER),
    "/choices/#/message/annotations": Implied(([],), reasons.SAYS_NOTHING),
    "/choices/#/content_filter_results": Implied(({},), reasons.SAYS_NOTHING),
}
"""Values of a reply that are no loss for a client of another dialect."""

INFORMATIONAL = {
    "/user": reasons.CALLER_ID,
    "/safety_identifier": reasons.CALLER_ID,
    "/service_tier": reasons.VENDOR_TIER,
    "/metadata": reasons.VENDOR_LABELS,
    "/prompt_cache_key": reasons.CACHE_ONLY,
    "/prompt_cache_retention": reasons.CACHE_ONLY,
    "/prompt_cache_options": reasons.CACHE_ONLY,
    "/cache_control": reasons.CACHE_ONLY,
    "/messages/#/annotations": "the pages that an earlier answer cites: the answer is sent",
    "/messages/#/cache_control": reasons.CACHE_ONLY,
    "/messages/#/content/#/cache_control": reasons.CACHE_ONLY,
    "/messages/#/content/#/prompt_cache_breakpoint": reasons.CACHE_ONLY,
    "/messages/#/tool_calls/#/cache_control": reasons.CACHE_ONLY,
    "/tools/#/cache_control": reasons.CACHE_ONLY,
    "/tools/#/function/cache_control": reasons.CACHE_ONLY,
    "/usage": "OpenRouter's switch for the cost in the usage of a reply",
    "/provider": "OpenRouter's choice of a provider",
    "/stream_options": "how chunks are framed",
}
"""Request fields whose loss is informational."""

INFORMATIONAL_REPLIES = {
    "/system_fingerprint": reasons.VENDOR_VERSION,
    "/service_tier": reasons.VENDOR_TIER,
    "/usage/service_tier": reasons.VENDOR_TIER,
    "/provider": reasons.VENDOR_VERSION,
    "/choices/#/native_finish_reason": "another word for the finish reason, which is sent",
    "/choices/#/content_filter_results": reasons.VENDOR_RATINGS,
    "/choices/#/content_filter_result": reasons.VENDOR_RATINGS,
    "/prompt_filter_results": reasons.VENDOR_RATINGS,
    "/choices/#/message/provider_metadata": reasons.VENDOR_VERSION,
    "/usage": reasons.DETAILED_COUNT,
    "/metadata": reasons.VENDOR_LABELS,
    "/cost": reasons.VENDOR_COST,
    "/copilot_usage": reasons.VENDOR_COST,
    "/timings": reasons.VENDOR_TIMES,
    "/time_info": reasons.VENDOR_TIMES,
    "/latency_checkpoint": reasons.VENDOR_TIMES,
    "/p": reasons.VENDOR_PADDING,
    "/choices/#/message/padding": reasons.VENDOR_PADDING,
    "/choices/#/message/content/#/closed": "the state of the reasoning, which is sent",
    "/choices/#/message/channel": "the vendor's own label of the text, which is sent",
    "/x_groq": reasons.VENDOR_STORE,
    "/generationId": reasons.VENDOR_STORE,
    "/request_id": reasons.VENDOR_STORE,
    "/prompt": "the prompt once more, as Together sends it",
    "/choices/#/seed": reasons.VENDOR_VERSION,
    "/venice_parameters": reasons.VENDOR_VERSION,
}
"""Reply fields whose loss is informational."""

SHARED_FIELDS: dict[str, SharedField] = {
    "/service_tier": "tier",
    "/store": "store",
    "/prompt_cache_key": "as_is",
    "/prompt_cache_options": "cache_options",
    "/prompt_cache_retention": "as_is",
    "/moderation": "as_is",
    "/user": "as_is",
    "/safety_identifier": "as_is",
}
"""Fields that have the same meaning in Chat and Responses."""


VENDOR_TOOLS = {"search": VendorTool(("web_search_options",), b'{"type":"web_search_options"}')}
"""OpenAI's web search, which is a member of the request; see `searches`."""
SEARCH_SETTINGS = {
    "place": "/user_location/type",
    "city": "/user_location/approximate/city",
    "region": "/user_location/approximate/region",
    "country": "/user_location/approximate/country",
    "timezone": "/user_location/approximate/timezone",
    "context_size": "/search_context_size",
}
"""The settings of its web search."""


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


_FLAT_TOOLS = re.compile(
    rb'"tools"\s*:\s*\[\s*\{\s*"(?:(?:name|description|parameters|strict)"'
    rb'|type"\s*:\s*"(?:function|custom)"\s*,\s*"(?!function"|custom"))'
)
"""Matches tools in the format of Responses, by the first one."""


def nest_tools(body: bytes) -> bytes:
    """Convert the tools and the tool choice of a request to this API's format, if they are in the Responses format."""
    if _FLAT_TOOLS.search(body) is None:
        return body
    try:
        members = json.decode_object(body)
        for name in ("tools", "tool_choice"):
            value = json.decode(members[name]) if name in members else None
            nested = _nest(value)
            if nested != value:
                body = set_member(body, name, json.encode(nested))
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    return body


_FLAT_MEMBERS = ("name", "description", "parameters", "strict", "format")


def _nest(value: Any) -> Any:
    match value:
        case list():
            return [_nest(item) for item in cast("list[Any]", value)]
        case {"type": ("function" | "custom") as kind, "name": str(), **rest} if kind not in rest:
            flat = cast("dict[str, Any]", value)
            inner = {name: _nest_grammar(flat[name]) for name in _FLAT_MEMBERS if name in flat}
            return {**{name: one for name, one in flat.items() if name not in inner}, kind: inner}
        case {"type": "allowed_tools", "mode": mode, "tools": tools, **rest}:
            return {"type": "allowed_tools", **rest, "allowed_tools": {"mode": mode, "tools": _nest(tools)}}
        case _:
            return value


def _nest_grammar(value: Any) -> Any:
    match value:
        case {"type": "grammar", "syntax": syntax, "definition": definition}:
            return {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
        case _:
            return value
