"""How Gemini's requests and tools relate to those of other dialects, and how its conversations are stored."""

import re

from msgspec import Raw

from dragoman.dialects.record import (
    DEFAULT_DETAIL,
    DEFAULT_TIER,
    NOT_STORED,
    SAYS_NOTHING,
    TEXT_ANYWAY,
    UNASKED,
    Implied,
    Turns,
    VendorTool,
)
from dragoman.wire import json
from dragoman.wire.lookup import lookup

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


def _plain(text: bytes) -> bytes:
    return json.encode({"role": "user", "parts": [{"text": Raw(text)}]})


def _said(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/candidates/0/content")
    return [found[1]] if found is not None and lookup(found[1], "/parts") is not None else []


TURNS = Turns(
    choice="toolConfig",
    settings=("tools", "toolConfig", "systemInstruction"),
    plain=_plain,
    said=_said,
    last=re.compile(rb'"finish_?[rR]eason"\s*:'),
)
