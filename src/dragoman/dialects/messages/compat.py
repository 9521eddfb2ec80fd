"""What other dialects can make of a request of this one: fields that need no counterpart, and the vendor's tools."""

from dragoman.core.request import ToolChoice
from dragoman.dialects.record import DEFAULT_TIER, LOADED_AT_ONCE, SAYS_NOTHING, UNASKED, Implied, VendorTool

IMPLIED = {
    "/service_tier": Implied(("auto",), DEFAULT_TIER),
    "/mcp_servers": Implied(([],), SAYS_NOTHING),
    "/context_management/edits": Implied(([],), SAYS_NOTHING),
    "/context_management/edits/#": Implied(
        ({"type": "clear_thinking_20251015", "keep": "all"},), "nothing is cleared at any target"
    ),
    "/tools/#/defer_loading": Implied((False,), LOADED_AT_ONCE),
    "/tools/#/eager_input_streaming": Implied((False,), "arguments are told as they come", streamed=(True,)),
    "/tools/#/allowed_callers": Implied((["direct"],), "only the model itself calls a tool"),
    "/tools/#/input_examples": Implied(([],), SAYS_NOTHING),
    "/messages/#/content/#/caller": Implied(({"type": "direct"},), "only the model itself calls a tool"),
    "/messages/#/content/#/citations": Implied(({"enabled": False},), UNASKED),
}
"""A field that the caller asks for and will not get has no row, however usual it is: cache marks, keys, labels."""

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
}
"""Web search, web fetch and code execution."""
