"""What other dialects can make of a request of this one: fields that need no counterpart, and the vendor's tools."""

from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    NOT_STORED,
    SAYS_NOTHING,
    TEXT_ANYWAY,
    UNASKED,
    Implied,
    VendorTool,
)

IMPLIED = {
    "/generationConfig/responseModalities/#": Implied(("TEXT",), TEXT_ANYWAY),
    "/generationConfig/responseLogprobs": Implied((False,), UNASKED),
    "/generationConfig/logprobs": Implied((0,), UNASKED),
    "/generationConfig/audioTimestamp": Implied((False,), UNASKED),
    "/generationConfig/mediaResolution": Implied(("MEDIA_RESOLUTION_UNSPECIFIED",), DEFAULT_DETAIL),
    "/safetySettings": Implied(([],), SAYS_NOTHING),
    "/store": Implied((False,), NOT_STORED),
    "/serviceTier": Implied(("standard",), DEFAULT_TIER),
}
"""A field that the caller asks for and will not get has no row, however usual it is: cache marks, keys, labels."""

VENDOR_TOOLS = {
    "search": VendorTool(("googleSearch", "google_search", "googleSearchRetrieval"), b'{"googleSearch":{}}'),
    "code": VendorTool(("codeExecution", "code_execution"), b'{"codeExecution":{}}'),
    "fetch": VendorTool(("urlContext", "url_context"), b'{"urlContext":{}}'),
}
"""Google Search, code execution and URL context."""
