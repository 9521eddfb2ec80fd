"""Responses fields and tools that have counterparts elsewhere or need none, and the format of its conversations."""

import re
from typing import Any, cast

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.core.request import ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects import reasons
from dragoman.dialects.record import ConversationFormat, Implied, VendorTool
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import set_member

_ITEM_IDS = r"(?:msg|ws|fco?|ctco?|at|l?sho?|apco?|tsc|tso|cuo?)_[\w-]+"
"""Ids that OpenAI generates for items; ids that a client generates have another form."""
IMPLIED = {
    "/include/#": Implied(
        ("reasoning.encrypted_content", "web_search_call.action.sources"),
        "encrypted reasoning and the pages of searches are returned anyway",
    ),
    "/include": Implied(([],), reasons.SAYS_NOTHING),
    "/store": Implied((False,), reasons.NOT_STORED),
    "/background": Implied((False,), "the client waits for the reply anyway"),
    "/truncation": Implied(("disabled",), "no target truncates a prompt that is too long"),
    "/service_tier": Implied(("auto", "default"), reasons.DEFAULT_TIER),
    "/stream_options/include_obfuscation": Implied((False,), reasons.NO_PADDING),
    "/top_logprobs": Implied((0,), reasons.NOTHING_EXTRA),
    "/tools/#/defer_loading": Implied((True, False), reasons.LOADED_LATER),
    "/tools/#/tools/#/defer_loading": Implied((True, False), reasons.LOADED_LATER),
    "/tools/#/allowed_callers": Implied((["direct"],), reasons.CALLED_BY_MODEL),
    "/input/#/id": Implied((), "the id is only used in OpenAI's store; the item itself is sent", _ITEM_IDS),
    "/input/#/status": Implied(("completed", "failed"), "items in a request are treated as complete"),
    "/input/#/execution": Implied(("client",), "the client runs the search"),
    "/input/#/environment": Implied(({"type": "local"},), "the client runs the commands"),
    "/input/#/caller": Implied(({"type": "direct"},), reasons.CALLED_BY_MODEL),
    "/input/#/pending_safety_checks": Implied(([],), reasons.SAYS_NOTHING),
    "/input/#/acknowledged_safety_checks": Implied(([],), reasons.SAYS_NOTHING),
    "/input/#/tools/#/defer_loading": Implied((True, False), "the client has loaded the tool"),
    "/input/#/tools/#/tools/#/defer_loading": Implied((True, False), "the client has loaded the tool"),
    "/input/#/content/#/logprobs": Implied(([],), reasons.SAYS_NOTHING),
    "/input/#/content/#/detail": Implied(("auto",), reasons.DEFAULT_DETAIL),
    "/input/#/output/#/detail": Implied(("auto",), reasons.DEFAULT_DETAIL),
}
"""Field values that need no counterpart at the target, so leaving them out is not a loss.

A field that changes the result and is not sent has no row, however common it is: cache marks, cache keys, metadata.
"""

IMPLIED_REPLIES = {
    "/service_tier": Implied(("default", "auto"), reasons.DEFAULT_TIER),
    "/billing": Implied(({"payer": "developer"},), reasons.DEVELOPER_PAYS),
    "/output/#/status": Implied(("completed",), reasons.COMPLETE),
    "/output/#/phase": Implied(("final_answer",), "a message is the answer"),
    "/output/#/content/#/logprobs": Implied(([],), reasons.SAYS_NOTHING),
}
"""Values of a reply that are no loss for a client of another dialect."""

INFORMATIONAL = {
    "/user": reasons.CALLER_ID,
    "/safety_identifier": reasons.CALLER_ID,
    "/service_tier": reasons.VENDOR_TIER,
    "/metadata": reasons.VENDOR_LABELS,
    "/client_metadata": reasons.VENDOR_LABELS,
    "/prompt_cache_key": reasons.CACHE_ONLY,
    "/prompt_cache_retention": reasons.CACHE_ONLY,
    "/prompt_cache_options": reasons.CACHE_ONLY,
    "/input/#/content/#/prompt_cache_breakpoint": reasons.CACHE_ONLY,
    "/input/#/id": reasons.VENDOR_STORE,
    "/input/#/status": "the state of an item in the vendor's own store",
    "/input/#/max_output_length": "a limit of a command's output, which the client has applied",
    "/input/#/phase": "the vendor's own label of a message, which is sent",
    "/stream_options": "how chunks are framed",
    "/input/#/caller": reasons.CALLER,
}
"""Request fields whose loss is informational."""

INFORMATIONAL_REPLIES = {
    "/service_tier": reasons.VENDOR_TIER,
    "/billing": reasons.VENDOR_COST,
    "/completed_at": reasons.VENDOR_TIMES,
    "/system_fingerprint": reasons.VENDOR_VERSION,
    "/tool_usage": reasons.VENDOR_COST,
    "/conversation": reasons.VENDOR_STORE,
    "/output_text": "the text of the output once more",
    "/output/#/id": reasons.VENDOR_STORE,
    "/output/#/status": "the state of an item in the vendor's own store",
    "/output/#/phase": "the vendor's own label of a message, which is sent",
    "/content_filters": reasons.VENDOR_RATINGS,
    "/usage": reasons.DETAILED_COUNT,
}
"""Reply fields whose loss is informational."""

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
    "tool_search": VendorTool(("tool_search",), b'{"type":"tool_search"}'),
    "programs": VendorTool(("programmatic_tool_calling",), b'{"type":"programmatic_tool_calling"}'),
}
"""Hosted tools that other vendors have too, and programs that call tools."""

SEARCH_SETTINGS = {
    "allowed_domains": "/filters/allowed_domains",
    "place": "/user_location/type",
    "city": "/user_location/city",
    "region": "/user_location/region",
    "country": "/user_location/country",
    "timezone": "/user_location/timezone",
    "context_size": "/search_context_size",
}
"""The settings of its web search."""


_HOSTED = frozenset(
    {"web_search", "web_search_preview", "file_search", "image_generation", "code_interpreter", "mcp", "tool_search"}
)


def is_hosted(raw: bytes) -> bool:
    """Return whether OpenAI runs a tool of its own; clients run `apply_patch`, local shells and `computer`."""
    match json.peek(raw):
        case {"type": "tool_search", "execution": "client"}:
            return False
        case {"type": "shell", "environment": {"type": str(place)}}:
            return place.startswith("container")
        case {"type": str(kind)}:
            return kind in _HOSTED or re.sub(r"_\d{4}_\d\d_\d\d$", "", kind) in _HOSTED
        case _:
            return False


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


_NESTED_FUNCTION = re.compile(rb'"function"\s*:\s*\{')
"""Matches tools in the Chat format."""
_TOOL_MEMBERS = ("tools", "tool_choice")


def flatten_tools(body: bytes) -> bytes:
    """Convert the tools and the tool choice of a request to this API's format, if they are in the Chat format."""
    if _NESTED_FUNCTION.search(body) is None:
        return body
    try:
        members = json.decode_object(body)
        for name in _TOOL_MEMBERS:
            raw = members.get(name)
            value = json.decode(raw) if raw is not None and _NESTED_FUNCTION.search(bytes(raw)) is not None else None
            flat = _flatten(value)
            if flat != value:
                body = set_member(body, name, json.encode(flat))
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    return body


def _flatten(value: Any) -> Any:
    match value:
        case list():
            return [_flatten(item) for item in cast("list[Any]", value)]
        case {"type": "function", "function": {**function}, **rest}:
            return {"type": "function", **rest, **function}
        case _:
            return value
