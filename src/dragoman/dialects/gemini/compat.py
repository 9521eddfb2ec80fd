"""How requests and tools of Gemini relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    NOT_STORED,
    NOTHING_EXTRA,
    SAYS_NOTHING,
    TEXT_ANYWAY,
    ConversationFormat,
    Implied,
    VendorTool,
)
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {
    "/generationConfig/responseModalities/#": Implied(("TEXT",), TEXT_ANYWAY),
    "/generationConfig/responseLogprobs": Implied((False,), NOTHING_EXTRA),
    "/generationConfig/logprobs": Implied((0,), NOTHING_EXTRA),
    "/generationConfig/audioTimestamp": Implied((False,), NOTHING_EXTRA),
    "/generationConfig/mediaResolution": Implied(("MEDIA_RESOLUTION_UNSPECIFIED",), DEFAULT_DETAIL),
    "/safetySettings": Implied(([],), SAYS_NOTHING),
    "/store": Implied((False,), NOT_STORED),
    "/serviceTier": Implied(("standard",), DEFAULT_TIER),
}
"""No row for a field whose effect the caller loses, however common it is: cache breakpoints, keys, labels."""

VENDOR_TOOLS = {
    "search": VendorTool(("googleSearch", "google_search", "googleSearchRetrieval"), b'{"googleSearch":{}}'),
    "code": VendorTool(("codeExecution", "code_execution"), b'{"codeExecution":{}}'),
    "fetch": VendorTool(("urlContext", "url_context"), b'{"urlContext":{}}'),
}
"""Google's web search, code execution and URL context."""


def _render_user_item(text: bytes) -> bytes:
    return json.encode({"role": "user", "parts": [{"text": Raw(text)}]})


def _read_reply_items(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/candidates/0/content")
    return [found[1]] if found is not None and lookup(found[1], "/parts") is not None else []


TURNS = ConversationFormat(
    choice_member="toolConfig",
    lasting_members=("tools", "toolConfig", "systemInstruction"),
    render_user_item=_render_user_item,
    read_reply_items=_read_reply_items,
    end_pattern=re.compile(rb'"finish_?[rR]eason"\s*:'),
)
