"""Converts finish reasons and token usage.

Rules: an unknown finish reason is "other", never "stop"; STOP with a complete call is "tool_calls". Google counts
thoughts separately from candidates, and the prompts of its own tools separately from the prompt; the core includes
them. A total that is not the sum of the others is kept as an extra field.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.response import Finish, FinishReason, Usage
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.gemini.wire import NAME, PROMPT_FEEDBACK, USAGE, UsageMetadata
from dragoman.wire import json
from dragoman.wire.shape import get_raw_members
from dragoman.wire.splice import graft

FINISH_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
    "MALFORMED_RESPONSE": "malformed_call",
    "MISSING_THOUGHT_SIGNATURE": "malformed_call",
    "CONTINUATION": "paused",
}
"""Names that start with IMAGE_ are "filtered" too; all others are "other"."""
_NUMBERS = {0: "FINISH_REASON_UNSPECIFIED", 1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
"""Some clients record enums by number. Above 5, AI Studio and Vertex use different numbers."""
REASON_NAMES: dict[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "SAFETY",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
    "paused": "OTHER",
    "other": "OTHER",
}
_FINAL = frozenset({"stop", "other"})
TOTAL = "/totalTokenCount"
TOOL_USE = "/toolUsePromptTokenCount"
_WHITE_SPACE = b" \t\r\n"
_TEXT_COUNTS = {"/promptTokensDetails": "input", "/candidatesTokensDetails": "output"}


def read_finish(finish_reason: str | int | None, *, has_call: bool) -> Finish:
    """Return the finish of a reply; `has_call` is whether it has a complete call."""
    raw = (
        finish_reason
        if isinstance(finish_reason, str)
        else _NUMBERS.get(finish_reason, str(finish_reason))
        if finish_reason is not None
        else ""
    )
    reason = FINISH_REASONS.get(raw) or _find_reason(raw)
    return Finish("tool_calls" if has_call and reason in _FINAL else reason, raw)


def _find_reason(raw: str) -> FinishReason:
    return "filtered" if raw.startswith("IMAGE_") else FINISH_REASONS.get(raw, "other")


def read_block_reason(prompt_feedback: bytes) -> str:
    """Return the reason why the prompt was blocked, "" if it was not."""
    feedback, _ = PROMPT_FEEDBACK.read(prompt_feedback)
    if feedback.block_reason is not None:
        return str(feedback.block_reason)
    return "BLOCK_REASON_UNSPECIFIED" if feedback.block_reason_message else ""


def write_finish(finish: Finish) -> str:
    """Return the finish reason to send: the original one if the reply is from Google, else the nearest."""
    raw = finish.raw
    # Only Google's finish reasons are upper case, so a new one of Google's is also sent unchanged.
    is_google = raw.isupper() and (
        _find_reason(raw) == finish.reason or (finish.reason == "tool_calls" and _find_reason(raw) in _FINAL)
    )
    return raw if is_google else REASON_NAMES[finish.reason]


def read_usage(raw: bytes) -> Usage:
    """Parse usageMetadata; raise `Malformed` if it is invalid."""
    usage, unread = USAGE.read(raw)
    fields = get_raw_members(usage) or {}
    return build_usage(usage, {**unread.rest(), **fields} if unread else fields)


def build_usage(wire: UsageMetadata, fields: dict[str, bytes]) -> Usage:
    """Convert usageMetadata to the core's usage; `fields` are the members that the core has no field for."""
    prompt, tool_use = wire.prompt_token_count, wire.tool_use_prompt_token_count
    output, thoughts = wire.candidates_token_count, wire.thoughts_token_count
    if tool_use is not None:
        fields[TOOL_USE] = b"%d" % tool_use
        prompt = (prompt or 0) + tool_use
    if thoughts is not None:
        output = (output or 0) + thoughts
    total = wire.total_token_count
    if total is not None and total != (prompt or 0) + (output or 0):
        fields[TOTAL] = b"%d" % total
    return Usage(
        input=prompt,
        output=output,
        cached=wire.cached_content_token_count,
        reasoning=thoughts,
        extras=Extras(NAME, fields) if fields else None,
    )


def write_usage(usage: Usage) -> Any:
    """Render usageMetadata."""
    fields = (own_extras(usage, NAME) if usage.extras is not None else None) or {}
    prompt, output = usage.input, usage.output
    written: dict[str, int] = {}
    if prompt is not None:
        written["promptTokenCount"] = prompt - int(fields.get(TOOL_USE, b"0")) if fields else prompt
    if output is not None:
        written["candidatesTokenCount"] = max(output - (usage.reasoning or 0), 0)
    if TOTAL not in fields and (prompt is not None or output is not None):
        written["totalTokenCount"] = (prompt or 0) + (output or 0)
    if usage.cached is not None:
        written["cachedContentTokenCount"] = usage.cached
    if usage.reasoning is not None:
        written["thoughtsTokenCount"] = usage.reasoning
    return Raw(graft(json.encode(written), fields)) if fields else written


def repeats_count(field: str, raw: bytes, usage: Usage) -> bool:
    """Return whether a list of counts by modality has only text, and its count is one that is sent."""
    name = _TEXT_COUNTS.get(field)
    if name is None or (count := getattr(usage, name)) is None:
        return False
    # Google counts candidates without the reasoning, which the core's output includes.
    sent = count - (usage.reasoning or 0) if name == "output" else count
    return raw.translate(None, _WHITE_SPACE) == b'[{"modality":"TEXT","tokenCount":%d}]' % sent
