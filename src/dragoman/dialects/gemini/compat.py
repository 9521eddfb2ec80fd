"""How requests and tools of Gemini relate to those of other dialects, and how its conversations are stored."""

import re
from collections.abc import Mapping

from msgspec import Raw

from dragoman.dialects import reasons
from dragoman.dialects.gemini.grounding import GROUNDING_FIELD, find_page
from dragoman.dialects.gemini.wire import GROUNDING
from dragoman.dialects.record import ConversationFormat, Implied, VendorTool
from dragoman.wire import json
from dragoman.wire.lookup import lookup

IMPLIED = {
    "/generationConfig/responseModalities/#": Implied(("TEXT",), reasons.TEXT_ANYWAY),
    "/generationConfig/responseLogprobs": Implied((False,), reasons.NOTHING_EXTRA),
    "/generationConfig/logprobs": Implied((0,), reasons.NOTHING_EXTRA),
    "/generationConfig/audioTimestamp": Implied((False,), reasons.NOTHING_EXTRA),
    "/generationConfig/mediaResolution": Implied(("MEDIA_RESOLUTION_UNSPECIFIED",), reasons.DEFAULT_DETAIL),
    "/safetySettings": Implied(([],), reasons.SAYS_NOTHING),
    "/store": Implied((False,), reasons.NOT_STORED),
    "/serviceTier": Implied(("standard",), reasons.DEFAULT_TIER),
}
"""No row for a field whose effect the caller loses, however common it is: cache breakpoints, keys, labels."""

IMPLIED_REPLIES = {
    "/usageMetadata/serviceTier": Implied(("standard",), reasons.DEFAULT_TIER),
    "/usageMetadata/trafficType": Implied(("ON_DEMAND",), reasons.DEFAULT_TIER),
    "/candidates/#/finishMessage": Implied(("Model generated function call(s).",), "the finish reason is sent"),
}
"""Values of a reply that are no loss for a client of another dialect."""

INFORMATIONAL = {
    "/labels": reasons.VENDOR_LABELS,
    "/serviceTier": reasons.VENDOR_TIER,
    "/model": "the model is named in the path",
    "/project": reasons.ENVELOPE_FIELD,
    "/user_prompt_id": reasons.ENVELOPE_FIELD,
    "/session_id": reasons.ENVELOPE_FIELD,
}
"""Request fields whose loss is informational."""

INFORMATIONAL_REPLIES = {
    "/usageMetadata": reasons.DETAILED_COUNT,
    "/candidates/#/avgLogprobs": "an average that no client of another dialect has a field for",
    "/candidates/#/finishMessage": "a description of the finish reason, which is sent",
    "/candidates/#/safetyRatings": reasons.VENDOR_RATINGS,
    "/createTime": reasons.VENDOR_TIMES,
    "/turnToken": reasons.VENDOR_STORE,
    "/traceId": reasons.VENDOR_STORE,
}
"""Reply fields whose loss is informational."""


def normalise(name: str) -> str:
    """Return a member name in one form for camelCase and snake_case."""
    return name.replace("_", "").lower()


VENDOR_TOOLS = {
    "search": VendorTool(("googleSearch", "google_search", "googleSearchRetrieval"), b'{"googleSearch":{}}'),
    "code": VendorTool(("codeExecution", "code_execution"), b'{"codeExecution":{}}'),
    "fetch": VendorTool(("urlContext", "url_context"), b'{"urlContext":{}}'),
}
"""Google's web search, code execution and URL context."""


_HOSTED = frozenset(
    normalise(name)
    for name in (
        *(
            "googleSearch",
            "googleSearchRetrieval",
            "googleMaps",
            "enterpriseWebSearch",
            "parallelAiSearch",
            "exaAiSearch",
        ),
        *("codeExecution", "urlContext", "fileSearch", "retrieval", "mcpServers"),
    )
)


def is_hosted(raw: bytes) -> bool:
    """Return whether Google runs a tool of its own; clients run `computerUse`."""
    return json.is_object(raw) and not _HOSTED.isdisjoint(map(normalise, json.decode_object(raw)))


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


def list_pages(fields: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Return the URL and title of each page that a search found: short answers have pages and no cited segments."""
    try:
        metadata, _ = GROUNDING.read(fields.get(GROUNDING_FIELD, b"{}"))
    except json.Malformed:
        return []
    found = (find_page(chunk) for chunk in metadata.grounding_chunks or ())
    return [(page[1].uri or "", page[1].title or "") for page in found if page is not None]
