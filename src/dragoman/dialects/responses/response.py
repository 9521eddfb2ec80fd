"""Parses and builds whole (not streamed) replies.

Rules: Responses has no finish reason; it is derived from `status`, `incomplete_details` and the output. All members
that are not parsed here are extras, by pointer into the reply. A built reply has every member that OpenAI's type
requires, and echoes the client's request if there is one.
"""

from collections.abc import Iterable
from typing import Any, assert_never

from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Refusal, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.responses.errors import read_error, write_error
from dragoman.dialects.responses.output import read_known, read_output, write_output
from dragoman.dialects.responses.parts import build_extras
from dragoman.dialects.responses.renderer import find_leading_instructions, write_settings
from dragoman.dialects.responses.searches import TOOL_USAGE, read_count, write_count
from dragoman.dialects.responses.wire import (
    NAME,
    InputDetails,
    ResponsesOutputDetails,
    TokenCounts,
    WireItem,
    decode_known,
    take_optional,
)
from dragoman.wire import json, pointer
from dragoman.wire.shape import Shape, non_null_bytes
from dragoman.wire.splice import graft

_STRING: Decoder[str] = Decoder(str)
_NUMBER: Decoder[int | float] = Decoder(int | float)
_NULL = Raw(b"null")
_RAW_ITEMS: Decoder[list[Raw]] = Decoder(list[Raw])
_ITEMS: Decoder[list[WireItem]] = Decoder(list[WireItem])
_DETAILS: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_OBJECT: Decoder[dict[str, Any]] = Decoder(dict[str, Any])
_TOKENS: Shape[TokenCounts] = Shape(TokenCounts)

STREAM_FIELDS = "/stream/"
"""Pointer prefix of stream events that have no counterpart in a whole reply."""
_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "filtered"}
_INCOMPLETE_REASONS = frozenset({"max_output_tokens", "content_filter", "max_messages", "steered"})
_OTHER_STATUSES = frozenset({"cancelled", "in_progress", "queued"})
_ECHOED = frozenset(
    {
        "reasoning",
        "text",
        "store",
        "truncation",
        "service_tier",
        "prompt_cache_key",
        "background",
        "max_tool_calls",
        "top_logprobs",
        "prompt",
        "metadata",
        "user",
    }
)

STATUSES = _OTHER_STATUSES | {"completed", "incomplete"}
REPEATED = frozenset(
    f"/{name}"
    for name in _ECHOED - {"service_tier"}
    | {
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "max_output_tokens",
        "previous_response_id",
        "prompt_cache_retention",
        "prompt_cache_options",
        "safety_identifier",
        "input",
    }
)
"""Members of a reply that repeat the request; not `service_tier`, which is the tier that was used."""


class Outcome(Struct, frozen=True):
    """The status, incomplete reason and error that express a finish reason in Responses."""

    status: str
    incomplete: str | None = None
    problem: Problem | None = None


def parse_response(body: bytes) -> Response:
    """Parse a whole reply; raise `Problem` if it failed."""
    try:
        return _parse(json.decode_object(body))
    except json.Malformed as error:
        raise Problem("malformed_reply", error.message, where=error.where) from None


def _parse(members: dict[str, Raw]) -> Response:
    output = members.pop("output", _NULL)
    head = read_head(members)
    if non_null_bytes(output) is None:
        raise Problem("malformed_reply", "the reply has no output", where="/output")
    parts = _read_items(output)
    return Response(
        id=head.id,
        model=head.model,
        created=head.created,
        parts=tuple(parts),
        finish=find_finish(head, parts),
        usage=head.usage,
        extras=build_extras(head.fields),
    )


def _read_items(output: Raw) -> list[AnyPart]:
    """Parse all output items at once; parse them separately if that fails, or for an item that is kept as opaque."""
    items = decode_known(_ITEMS, output)
    raws = None if items else take_optional({"output": output}, "output", _RAW_ITEMS)
    parts: list[AnyPart] = []
    for index in range(len(items or raws or ())):
        found = _read_known(items[index], f"/output/{index}") if items else None
        if found is None:
            raws = raws or json.decode_array(output)
            found = read_output_at(raws[index], index)
        parts.extend(found)
    return parts


def _read_known(item: WireItem, where: str) -> list[AnyPart] | None:
    try:
        return read_known(item, where, None)
    except (json.Malformed, Problem):
        # Parsing the item separately raises the same error with its pointer.
        return None


def read_output_at(raw: Raw | bytes, index: int) -> list[AnyPart]:
    """Parse the output item at `index`; raise `Malformed` with its pointer."""
    where = f"/output/{index}"
    try:
        return read_output(raw, where)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    except Problem as problem:
        # `read_output` reports an invalid request; in a reply it is the upstream's output that is malformed.
        raise json.Malformed(problem.message, problem.where) from None


class Head(Struct):
    """The members of a reply other than its output."""

    id: str
    model: str
    created: int | None
    status: str
    incomplete: str
    usage: Usage | None
    fields: dict[str, bytes]


def read_head(members: dict[str, Raw]) -> Head:
    """Parse all members other than the output; raise the error of a failed reply."""
    status = _take_text(members, "status")
    fields: dict[str, bytes] = {}
    error = members.pop("error", _NULL)
    if non_null_bytes(error) is not None:
        if status in ("", "failed"):
            raise _read_failure(error)
        fields["/error"] = bytes(error)
    elif status == "failed":
        raise Problem("internal", "the reply failed without an error message", code="server_error")
    created = take_optional(members, "created_at", _NUMBER)
    usage = members.pop("usage", _NULL)
    members.pop("object", None)
    head = Head(
        id=_take_text(members, "id"),
        model=_take_text(members, "model"),
        created=None if created is None else int(created),
        status=status,
        incomplete=_read_incomplete(members, fields) if status == "incomplete" else "",
        usage=None if non_null_bytes(usage) is None else read_usage(usage),
        fields=fields,
    )
    if status not in ("", "completed", "incomplete") and status not in _OTHER_STATUSES:
        fields["/status"] = json.encode(status)
    for name, raw in members.items():
        if raw != _NULL:
            # An identifier needs no escaping in a pointer.
            fields[f"/{name if name.isidentifier() else pointer.escape(name)}"] = bytes(raw)
    if head.usage is not None and TOOL_USAGE in fields:
        head.usage = structs.replace(head.usage, searches=read_count(fields[TOOL_USAGE]))
    return head


def _take_text(members: dict[str, Raw], name: str) -> str:
    return take_optional(members, name, _STRING) or ""


def _read_failure(raw: Raw) -> Problem:
    try:
        return read_error(json.decode_with(_OBJECT, raw), None)
    except json.Malformed:
        return read_error({"message": json.decode(raw)}, None)


def _read_incomplete(members: dict[str, Raw], fields: dict[str, bytes]) -> str:
    """Take the reason out of `incomplete_details`; its other members go to `fields`.

    This is only for incomplete replies: details of a complete reply have no meaning and stay in extras.
    """
    details = take_optional(members, "incomplete_details", _DETAILS) or {}
    reason = take_optional(details, "reason", _STRING) or ""
    fields.update({f"/incomplete_details/{pointer.escape(name)}": bytes(raw) for name, raw in details.items()})
    return reason


def find_finish(head: Head, parts: Iterable[AnyPart]) -> Finish:
    """Derive the finish reason from the status and the parts.

    A reply with an unknown status is taken as completed if it has output and no call in it was cut off.
    """
    received = list(parts)
    if head.status == "incomplete":
        return Finish(_INCOMPLETE.get(head.incomplete, "other"), head.incomplete or head.status)
    if head.status not in ("completed", ""):
        is_cut = any(isinstance(part, ToolCall) and not part.complete for part in received)
        if head.status in _OTHER_STATUSES or not received or is_cut:
            return Finish("other", head.status)
    reason: FinishReason = "stop"
    for part in received:
        if isinstance(part, ToolCall):
            return Finish("tool_calls", "completed")
        if isinstance(part, Refusal):
            reason = "refused"
    return Finish(reason, "completed")


def read_usage(raw: Raw | bytes) -> Usage:
    """Parse token counts; a total that is not the sum of input and output is kept in extras."""
    try:
        tokens, unread = _TOKENS.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, "/usage" + error.where) from None
    fields = unread.rest() if unread else {}
    if tokens.total_tokens is not None and tokens.total_tokens != (tokens.input_tokens or 0) + (
        tokens.output_tokens or 0
    ):
        fields["/total_tokens"] = json.encode(tokens.total_tokens)
    input_details = tokens.input_tokens_details or InputDetails()
    output_details = tokens.output_tokens_details or ResponsesOutputDetails()
    return Usage(
        input=tokens.input_tokens,
        output=tokens.output_tokens,
        cached=input_details.cached_tokens,
        cache_written=input_details.cache_write_tokens,
        reasoning=output_details.reasoning_tokens,
        extras=build_extras(fields),
    )


def write_usage(usage: Usage) -> Any:
    """Render token counts; OpenAI's type requires all of these numbers."""
    wire: dict[str, Any] = {
        "input_tokens": usage.input or 0,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_written or 0},
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": (usage.input or 0) + (usage.output or 0),
    }
    fields = own_extras(usage, NAME)
    return Raw(graft(json.encode(wire), fields)) if fields else wire


def find_outcome(finish: Finish, parts: Iterable[AnyPart]) -> Outcome:
    """Return the outcome that expresses a finish reason in Responses."""
    received = list(parts)
    match finish.reason:
        case "length" | "paused":
            return Outcome("incomplete", "max_output_tokens")
        case "malformed_call":
            problem = Problem("malformed_reply", "the model made a malformed tool call", code="malformed_function_call")
            return Outcome("failed", problem=problem)
        case "filtered":
            return _find_filter_outcome(received)
        case "refused" if not any(isinstance(part, Refusal) for part in received):
            return _find_filter_outcome(received)
        case "other":
            return _find_other_outcome(finish)
        case "stop" | "tool_calls" | "refused":
            return Outcome("completed")
        case _:
            assert_never(finish.reason)


def _find_filter_outcome(parts: list[AnyPart]) -> Outcome:
    """Return the outcome of a filtered reply: incomplete if it has parts, else failed.

    Codex retries an incomplete reply, so a prompt that is always blocked must fail.
    """
    if parts:
        return Outcome("incomplete", "content_filter")
    return Outcome("failed", problem=Problem("policy", "the prompt was blocked", code="invalid_prompt"))


def _find_other_outcome(finish: Finish) -> Outcome:
    if finish.raw in _INCOMPLETE_REASONS:
        return Outcome("incomplete", finish.raw)
    if finish.raw in _OTHER_STATUSES or finish.raw == "incomplete":
        return Outcome(finish.raw)
    suffix = f" ({finish.raw})" if finish.raw else ""
    return Outcome("failed", problem=Problem("internal", f"the model stopped for an unknown reason{suffix}"))


def build_response(response: Response, request: Request | None) -> bytes:
    """Render a whole reply."""
    own = own_extras(response, NAME) or {}
    outcome = Outcome("completed") if "/status" in own else find_outcome(response.finish, response.parts)
    members = render_envelope(response.id, response.model, response.created, request)
    write_end(members, outcome, write_output(response.parts, response.id), response.usage)
    return encode_with_fields(members, own)


def render_envelope(response_id: str, model: str, created: int | None, request: Request | None) -> dict[str, Any]:
    """Return the members that a reply has from its start; in a stream the output is still empty."""
    members: dict[str, Any] = {
        "id": response_id,
        "object": "response",
        "created_at": created or 0,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
        "metadata": None,
        "usage": None,
    }
    if request is not None:
        members.update(_echo_request(request))
    return members


def _echo_request(request: Request) -> dict[str, Any]:
    settings = write_settings(request, explicit=True)
    instructions = find_leading_instructions(request.messages)
    if instructions is not None:
        settings["instructions"] = instructions
    fields = own_extras(request, NAME) or {}
    echoed = {name: raw for name, raw in fields.items() if pointer.split(name)[0] in _ECHOED}
    if not echoed:
        return settings
    return dict(json.decode_object(graft(json.encode(settings), echoed)))


def write_end(members: dict[str, Any], outcome: Outcome, output: list[Any], usage: Usage | None) -> None:
    """Set the members that are known at the end of a reply."""
    members["status"] = outcome.status
    members["output"] = output
    if outcome.incomplete is not None:
        members["incomplete_details"] = {"reason": outcome.incomplete}
    if outcome.problem is not None:
        _, error = write_error(outcome.problem)
        members["error"] = {"code": error["code"] or "server_error", "message": error["message"]}
    if usage is not None:
        members["usage"] = write_usage(usage)
        if usage.searches:
            members["tool_usage"] = write_count(usage.searches)


def encode_with_fields(members: dict[str, Any], own: dict[str, bytes]) -> bytes:
    """Encode a reply with its extras added back; stream events among them are left out."""
    if not own:
        return json.encode(members)
    fields = {name: raw for name, raw in own.items() if not name.startswith(STREAM_FIELDS)}
    for name in fields:
        tokens = pointer.split(name)
        if len(tokens) == 1 or members.get(tokens[0]) is None:
            members.pop(tokens[0], None)
    return graft(json.encode(members), fields)
