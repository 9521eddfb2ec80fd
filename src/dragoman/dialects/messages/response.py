"""Parses and renders a whole Messages reply.

A reply that ended abnormally never gets the stop reason `end_turn`: an end that Messages cannot express raises a
`Problem`.
"""

from typing import Any

from msgspec import Raw, structs

from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.messages.errors import read_error_event
from dragoman.dialects.messages.parts import build_extras, is_whole_call, read_part, write_parts
from dragoman.dialects.messages.wire import (
    NAME,
    Block,
    OutputDetails,
    ReplyShape,
    UsageShape,
)
from dragoman.wire.json import Malformed, as_object, decode_object, encode, peek
from dragoman.wire.shape import Shape, get_raw_members
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unread

_REPLY: Shape[ReplyShape] = Shape(ReplyShape)

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "paused",
    "refusal": "refused",
    "compaction": "other",
}
_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "filtered": "refusal",
    "refused": "refusal",
    "paused": "pause_turn",
}
_OVERRIDDEN_BY_CALLS = ("stop", "paused", "other")
_NULL = b"null"
_SERVER_TOOLS = "/server_tool_use"


def parse_response(body: bytes) -> Response:
    """Parse a whole reply."""
    try:
        shape, unread = _REPLY.read(body)
        if shape.content is None:
            if shape.type == "error" or bytes(decode_object(body).get("error", _NULL)) != _NULL:
                raise read_error_event(body)
            raise Malformed("the reply has no content", "/content")  # noqa: TRY301
        return _read_reply(shape, shape.content, unread)
    except Malformed as error:
        raise Problem("malformed_reply", error.message, where=error.where) from None
    except UnicodeDecodeError:
        raise Problem("malformed_reply", "the reply is not valid UTF-8") from None


def _read_reply(shape: ReplyShape, content: list[Block], unread: Unread | None) -> Response:
    parts = tuple([complete_call(read_part(block, f"/content/{index}", unread)) for index, block in enumerate(content)])
    usage = None
    if shape.usage is not None:
        usage = read_usage(shape.usage, unread.take("/usage") if unread is not None else None)
    fields = get_raw_members(shape) or {}
    if unread is not None:
        fields.update(unread.rest())
    return Response(
        id=shape.id or "",
        model=shape.model or "",
        parts=parts,
        finish=read_finish(shape.stop_reason, shape.stop_sequence, has_call=ToolCall in map(type, parts)),
        usage=usage,
        extras=build_extras(drop_nulls(fields)),
    )


def drop_nulls(fields: dict[str, bytes]) -> dict[str, bytes]:
    """Remove nulls: in a reply null means absent, and streams and whole replies send different nulls."""
    return {pointer: raw for pointer, raw in fields.items() if raw != _NULL} if fields else fields


def complete_call(part: AnyPart) -> AnyPart:
    """Set the arguments of a call without input to the empty object, and require a name."""
    if type(part) is ToolCall and not require_name(part).arguments:
        return structs.replace(part, arguments="{}")
    return part


def require_name(call: ToolCall) -> ToolCall:
    """Return the call; raise `Malformed` if it names no tool."""
    if not call.name:
        raise Malformed("a tool call has no name", f"{call.where}/name")
    return call


def read_finish(stop_reason: str | None, sequence: str | None, *, has_call: bool) -> Finish:
    """Convert a stop reason to a finish. With a complete call, a normal or unknown end becomes "tool_calls"."""
    reason = FINISH_REASONS.get(stop_reason or "", "other")
    if has_call and reason in _OVERRIDDEN_BY_CALLS:
        reason = "tool_calls"
    return Finish(reason, stop_reason or "", sequence)


def write_finish(finish: Finish) -> str:
    """Return the stop reason for a finish; raise a `Problem` for one that Messages can only express as an error."""
    if FINISH_REASONS.get(finish.raw) == finish.reason:
        return finish.raw
    if finish.reason == "stop" and finish.sequence is not None:
        return "stop_sequence"
    stop_reason = _STOP_REASONS.get(finish.reason)
    if stop_reason is not None:
        return stop_reason
    if finish.reason == "malformed_call":
        raise Problem("malformed_reply", "the model made a malformed tool call", code="malformed_function_call")
    raise Problem("malformed_reply", f"the model stopped with finish reason {finish.raw!r}", code=finish.raw or None)


def read_usage(shape: UsageShape, unread: dict[str, bytes] | None) -> Usage:
    """Read usage. The core's input count is the whole prompt; Anthropic's `input_tokens` excludes cached tokens."""
    fields = {**(get_raw_members(shape) or {}), **(unread or {})}
    uncached, written, cached = shape.input_tokens, shape.cache_creation_input_tokens, shape.cache_read_input_tokens
    return Usage(
        input=None if uncached is None else uncached + (written or 0) + (cached or 0),
        output=shape.output_tokens,
        cached=cached,
        cache_written=written,
        reasoning=None if shape.output_tokens_details is None else shape.output_tokens_details.thinking_tokens,
        searches=_read_search_count(shape.server_tool_use) if shape.server_tool_use else None,
        extras=build_extras(drop_nulls(fields)),
    )


def _read_search_count(counts: Raw) -> int | None:
    count = as_object(peek(counts)).get("web_search_requests")
    return count if type(count) is int else None


def repeats_count(field: str, raw: bytes, usage: Usage) -> bool:
    """Return whether the counts of server tools have only the number of searches."""
    counts = {name: count for name, count in as_object(peek(raw)).items() if count}
    return field == _SERVER_TOOLS and counts == {"web_search_requests": usage.searches}


def write_usage(usage: Usage | None) -> Any:
    """Render usage. `input_tokens` and `output_tokens` are always present, because every client reads them."""
    if usage is None:
        return UsageShape(0, 0)
    uncached = (usage.input or 0) - (usage.cached or 0) - (usage.cache_written or 0)
    details = None if usage.reasoning is None else OutputDetails(usage.reasoning)
    shape = UsageShape(max(uncached, 0), usage.output or 0, usage.cache_written, usage.cached, details)
    fields = own_extras(usage, NAME)
    if usage.searches and _SERVER_TOOLS not in (fields or {}):
        shape.server_tool_use = Raw(encode({"web_search_requests": usage.searches, "web_fetch_requests": 0}))
    return Raw(graft(encode(shape), fields)) if fields else shape


def ensure_reply_id(upstream_id: str) -> str:
    """Return the upstream's reply id or a fallback: clients use it as a key, so it must not be empty."""
    return upstream_id or "msg_0"


def build_response(response: Response, request: Request | None) -> bytes:
    """Render a whole reply."""
    del request
    body = encode(
        {
            "id": ensure_reply_id(response.id),
            "type": "message",
            "role": "assistant",
            "model": response.model,
            "content": write_parts(filter(_is_writable, response.parts)),
            "stop_reason": write_finish(response.finish),
            "stop_sequence": response.finish.sequence,
            "usage": write_usage(response.usage),
        }
    )
    fields = own_extras(response, NAME)
    return graft(body, fields) if fields else body


def _is_writable(part: AnyPart) -> bool:
    """Return False for a call whose input is not valid JSON: it would make the whole reply invalid."""
    return type(part) is not ToolCall or is_whole_call(part)
