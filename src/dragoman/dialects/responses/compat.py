"""What other dialects can make of a request of this one: fields that need no counterpart, and the vendor's tools."""

from dragoman.core.request import ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    LOADED_AT_ONCE,
    NO_PADDING,
    NOT_STORED,
    SAYS_NOTHING,
    UNASKED,
    Implied,
    VendorTool,
)
from dragoman.dialects.responses.wire import NAME

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
    "/top_logprobs": Implied((0,), UNASKED),
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
"""Fields that OpenAI's dialects have with one meaning."""
