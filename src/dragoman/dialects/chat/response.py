"""Parses and builds a whole (not streamed) reply.

Rules: choice 0 is the reply; other choices are kept as raw JSON in extras. The order of parts is reasoning, text,
refusal, calls. The finish reason depends on the parts that were received, not only on `finish_reason`.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, structs

from dragoman.core.parts import AnyPart, Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.chat.encoder import write_finish, write_usage
from dragoman.dialects.chat.errors import read_error
from dragoman.dialects.chat.fields import (
    REASONING_MEMBERS,
    REASONING_SPELLINGS,
    Spelling,
    build_extras,
    is_legacy,
    restore_extras,
)
from dragoman.dialects.chat.parts import (
    read_call,
    read_citation,
    read_legacy_call,
    restore_call_fields,
    write_citation,
    write_part,
)
from dragoman.dialects.chat.reasoning_details import read_details, write_details
from dragoman.dialects.chat.request import read_content
from dragoman.dialects.chat.wire import NAME, ReplyCall
from dragoman.wire.json import Malformed, decode, decode_array, decode_object, encode, first_byte, is_json, peek
from dragoman.wire.shape import get_raw_members, non_null_bytes
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unread

_IN_CONTENT = frozenset({Spelling.THINKING, Spelling.PART})
"""Spellings of reasoning and refusals that are items of a content list."""
_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
    # Values of compatible servers: Together, Mistral, several local ones.
    "eos": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "max_tokens": "length",
}
_CACHED_COUNTS = ("/cached_tokens", "/num_cached_tokens")
"""The places in the usage where Together and Mistral count cached tokens."""
_CUT_OFF_REASONS = frozenset({"length", "filtered", "malformed_call"})


def parse_response(body: bytes) -> Response:
    """Parse a whole reply; raise `Problem` if it contains an error or no choices."""
    try:
        reply, unread = wire_reply.REPLY.read(body)
        error = non_null_bytes(reply.error)
        if error is not None and not reply.choices:
            raise read_error(error)
    except Malformed as problem:
        raise Problem("malformed_reply", problem.message, where=problem.where) from None
    if not reply.choices:
        raise Problem("malformed_reply", "the reply has no choices", where="/choices")
    position = _find_first_choice(reply.choices)
    choice, where = reply.choices[position], f"/choices/{position}"
    extras = {**(get_raw_members(reply) or {}), **(get_raw_members(choice, where) or {})}
    if error is not None:
        extras["/error"] = error
    if len(reply.choices) > 1:
        extras.update(_read_other_choices(body, position, unread))
    message = choice.message or wire_reply.ReplyMessage()
    parts = _read_message(message, f"{where}/message", unread, extras)
    if unread is not None:
        extras.update(unread.rest())
    finish = read_finish(
        choice.finish_reason,
        has_call=any(type(part) is ToolCall or part.spelling == Spelling.CALL for part in parts),
        has_refusal=Refusal in map(type, parts),
        stopped_by=non_null_bytes(choice.stop_reason),
    )
    return Response(
        id=reply.id or "",
        model=reply.model or "",
        parts=_finish_calls(parts, finish),
        finish=finish,
        usage=read_usage(non_null_bytes(reply.usage)),
        created=int(reply.created) if reply.created else None,
        extras=build_extras(extras),
    )


def _find_first_choice(choices: list[wire_reply.ReplyChoice]) -> int:
    """Return the position of choice 0: some servers send choices in any order."""
    if choices[0].index:
        return next((position for position, choice in enumerate(choices) if choice.index == 0), 0)
    return 0


def _read_other_choices(body: bytes, position: int, unread: Unread | None) -> dict[str, bytes]:
    """Return the other choices as raw JSON, by pointer."""
    others: dict[str, bytes] = {}
    for index, raw in enumerate(decode_array(decode_object(body)["choices"])):
        if index != position:
            others[f"/choices/{index}"] = bytes(raw)
            if unread is not None:
                unread.take(f"/choices/{index}")
    return others


def _read_message(
    message: wire_reply.ReplyMessage, where: str, unread: Unread | None, extras: dict[str, bytes]
) -> list[AnyPart]:
    parts: list[AnyPart] = []
    content = message.content
    texts: list[str] = []
    for member, text in list_reasoning(message):
        if text not in texts:
            texts.append(text)
            parts.append(Reasoning(texts=(text,), where=f"{where}/{member}", spelling=REASONING_SPELLINGS[member]))
    if type(content) is str and content:
        parts.append(Text(text=content, where=f"{where}/content"))
    elif content:
        parts.extend(_read_content(message, where, unread))
    if message.refusal:
        parts.append(Refusal(text=message.refusal, where=f"{where}/refusal"))
    for index, call in enumerate(message.tool_calls or ()):
        if not _is_blank(call):
            parts.append(_require_name(read_call(call, f"{where}/tool_calls/{index}", unread)))
    if message.function_call is not None and (message.function_call.name or message.function_call.arguments):
        parts.append(_require_name(read_legacy_call(message.function_call, f"{where}/function_call", unread)))
    if message.annotations:
        _attach_annotations(parts, message.annotations, where, extras)
    extras.update(get_raw_members(message, where) or {})
    if is_text(message.thinking):
        del extras[f"{where}/thinking"]
    if message.reasoning_details:
        _attach_details(parts, f"{where}/reasoning_details", extras)
    return parts


def list_reasoning(message: wire_reply.ReplyFields) -> list[tuple[str, str]]:
    """Return the members of a message or delta that have reasoning, and their texts; one that is empty is left out."""
    thinking = decode(message.thinking) if is_text(message.thinking) else ""
    given = (message.reasoning_content, message.reasoning, message.reasoning_text, thinking)
    return [(member, text) for member, text in zip(REASONING_SPELLINGS, given, strict=True) if text]


def is_text(raw: Raw) -> bool:
    """Return whether the raw JSON of a member is a string."""
    return first_byte(raw) == b'"' if raw else False


def _attach_details(parts: list[AnyPart], where: str, extras: dict[str, bytes]) -> None:
    """Attach `reasoning_details` to the reasoning before the content, or to a part of their own."""
    position = next((at for at in (1, 0) if at < len(parts) and parts[at].spelling in REASONING_MEMBERS), None)
    known = parts[position] if position is not None else None
    found = read_details(extras[where], where, known if isinstance(known, Reasoning) else None)
    if found is None:
        return
    del extras[where]
    if position is None:
        parts.insert(0, found)
    else:
        parts[position] = found


def _read_content(message: wire_reply.ReplyMessage, where: str, unread: Unread | None) -> Iterator[AnyPart]:
    """Parse content that is a list; skip empty texts without extras."""
    for part in read_content(message.content, where, unread):
        if not isinstance(part, Text):
            yield part
        elif part.text or part.extras:
            yield structs.replace(part, spelling=Spelling.PART)


def _is_blank(call: ReplyCall) -> bool:
    """Return whether an entry of the list has nothing in it: LM Studio sends such entries, and they are no calls."""
    function = call.function
    if call.id or call.type not in (None, "function") or call.custom is not None or call.extra_content is not None:
        return False
    return function is None or not (function.name or function.arguments)


def _require_name(call: ToolCall | Opaque) -> ToolCall | Opaque:
    if isinstance(call, ToolCall) and not call.name:
        raise Problem("malformed_reply", "a tool call has no name", where=call.where)
    return call


def _attach_annotations(parts: list[AnyPart], annotations: list[Raw], where: str, extras: dict[str, bytes]) -> None:
    """Attach annotations to the last text part; without a text they stay in extras."""
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, Text):
            pointers = (f"{where}/annotations/{number}" for number in range(len(annotations)))
            citations = tuple([read_citation(raw, pointer) for raw, pointer in zip(annotations, pointers, strict=True)])
            parts[index] = structs.replace(part, citations=citations)
            return
    extras[f"{where}/annotations"] = encode(annotations)


def _finish_calls(parts: list[AnyPart], finish: Finish) -> tuple[AnyPart, ...]:
    """Replace empty arguments by `{}`, and mark calls that the token limit cut off as incomplete."""
    is_cut_off = finish.reason == "length"
    last = next((part for part in reversed(parts) if type(part) is ToolCall), None) if is_cut_off else None
    for index, call in enumerate(parts):
        if type(call) is ToolCall and (is_cut_off or not call.arguments):
            complete = is_complete(call.form, call.arguments, finish, call is last)
            arguments = "{}" if complete and not call.arguments and call.form == "json" else call.arguments
            parts[index] = structs.replace(call, arguments=arguments, complete=complete)
    return tuple(parts)


def build_response(response: Response, _request: Request | None) -> bytes:
    """Render a whole reply."""
    fields = own_extras(response, NAME) if response.extras is not None else None
    message = _write_message(response.parts)
    finish = response.finish
    refusal = finish.reason == "refused" and Refusal in map(type, response.parts)
    finish_reason = write_finish(finish, has_refusal=refusal, is_legacy="function_call" in message)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason}
    if not fields or "/choices/0/logprobs" not in fields:
        choice["logprobs"] = None
    body: dict[str, Any] = {
        "id": response.id,
        "object": "chat.completion",
        "created": response.created or 0,
        "model": response.model,
        "choices": [choice],
    }
    if response.usage is not None:
        body["usage"] = write_usage(response.usage)
    return graft(encode(body), fields) if fields else encode(body)


def _write_message(parts: tuple[AnyPart, ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    content: list[AnyPart] = []
    calls: list[dict[str, Any] | Raw] = []
    reasoning: dict[str, list[str]] = {}
    signed: list[Reasoning] = []
    is_cited = False
    for part in parts:
        if isinstance(part, Text):
            content.append(part)
            if part.citations:
                is_cited = True
        elif isinstance(part, ToolCall):
            if part.spelling and is_legacy(part):
                message["function_call"] = restore_extras({"name": part.name, "arguments": part.arguments}, part)
            else:
                calls.append(_write_call(part))
        elif part.spelling in _IN_CONTENT:
            content.append(part)
        elif isinstance(part, Reasoning):
            if part.spelling != Spelling.DETAILS:
                reasoning.setdefault(REASONING_MEMBERS.get(part.spelling, "reasoning_content"), []).extend(part.texts)
            if part.signature is not None:
                signed.append(part)
        elif isinstance(part, Refusal):
            message["refusal"] = (message["refusal"] or "") + part.text
        elif isinstance(part, Opaque) and part.dialect == NAME:
            if part.spelling == Spelling.CALL:
                calls.append(Raw(part.raw))
            else:
                content.append(part)
    if len(content) == 1 and type(content[0]) is Text and content[0].spelling != Spelling.PART:
        message["content"] = content[0].text
    elif content:
        message["content"] = _write_content(content)
    for member, texts in reasoning.items():
        if texts:
            message[member] = "\n\n".join(texts)
    if signed:
        message["reasoning_details"] = write_details(signed)
    if calls:
        message["tool_calls"] = calls
    if is_cited and (annotations := _write_citations(parts)):
        message["annotations"] = annotations
    return message


def _write_call(call: ToolCall) -> dict[str, Any] | Raw:
    """Render one call; clients require an id, even an empty one, and the standard form."""
    if call.form == "json":
        function = {"name": call.name, "arguments": call.arguments}
        value: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    else:
        value = {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return value if call.signature is None and call.extras is None else restore_call_fields(value, call)


def _write_citations(parts: tuple[AnyPart, ...]) -> list[dict[str, Any] | Raw]:
    """Render the annotations of all texts; offsets count from the start of the joined text."""
    written: list[dict[str, Any] | Raw | None] = []
    size = 0
    for part in parts:
        if type(part) is Text:
            written += [write_citation(citation, size, len(part.text)) for citation in part.citations]
            size += len(part.text)
    return [value for value in written if value is not None]


def _write_content(parts: list[AnyPart]) -> str | list[Any]:
    """Render content as a string, unless it was a list or contains something other than text."""
    texts = [part.text for part in parts if type(part) is Text and part.spelling != Spelling.PART]
    if len(texts) == len(parts):
        return "".join(texts)
    return [value for value in map(write_part, parts) if value is not None]


def read_finish(
    finish_reason: str | None, *, has_call: bool, has_refusal: bool, stopped_by: bytes | None = None
) -> Finish:
    """Return why the model stopped; "stop" becomes "tool_calls" if the reply has a call.

    `stopped_by` is vLLM's `stop_reason`: the stop sequence that was hit. A number there is the id of an end token.
    """
    raw = finish_reason or ""
    reason: FinishReason = _REASONS.get(raw, "other") if raw else "stop"
    if reason in _CUT_OFF_REASONS:
        return Finish(reason, raw)
    if has_call:
        return Finish("tool_calls", raw)
    if reason == "tool_calls":
        reason = "stop"
    if reason != "stop" or has_refusal:
        return Finish("refused" if reason == "stop" else reason, raw)
    sequence = peek(stopped_by) if stopped_by is not None else None
    return Finish(reason, raw, sequence if isinstance(sequence, str) and sequence else None)


def is_complete(form: str, arguments: str, finish: Finish, last: bool) -> bool:
    """Return whether a call was not cut off by the token limit.

    The free text of the last call counts as cut off, because nothing marks its end.
    """
    if finish.reason != "length":
        return True
    return is_json(arguments) if form == "json" else not last


def read_usage(raw: bytes | None) -> Usage | None:
    """Parse token counts; None if they are absent or invalid."""
    if raw is None:
        return None
    try:
        usage, unread = wire_reply.USAGE.read(raw)
    except Malformed:
        # Invalid counts must not fail a valid reply.
        return None
    extras = get_raw_members(usage) or {}
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    if prompt is not None:
        extras.update(get_raw_members(prompt, "/prompt_tokens_details") or {})
    if completion is not None:
        extras.update(get_raw_members(completion, "/completion_tokens_details") or {})
    if unread is not None:
        extras.update(unread.rest())
    cached = None if prompt is None else prompt.cached_tokens
    if cached is None:
        counts = (peek(extras[field]) for field in _CACHED_COUNTS if field in extras)
        cached = next((count for count in counts if type(count) is int and count >= 0), None)
    prompt_tokens, output = usage.prompt_tokens or 0, usage.completion_tokens
    reasoning = None if completion is None else completion.reasoning_tokens
    if reasoning and (reasoning > (output or 0) or usage.total_tokens == prompt_tokens + (output or 0) + reasoning):
        # xAI and Vercel's gateway do not include reasoning tokens in the completion tokens.
        extras["/completion_tokens"] = encode(output or 0)
        output = (output or 0) + reasoning
    if usage.total_tokens is not None and usage.total_tokens != prompt_tokens + (output or 0):
        extras["/total_tokens"] = encode(usage.total_tokens)
    return Usage(
        input=usage.prompt_tokens,
        output=output,
        cached=cached,
        cache_written=None if prompt is None else prompt.cache_write_tokens,
        reasoning=reasoning,
        extras=build_extras(extras),
    )


def repeats_count(field: str, raw: bytes, usage: Usage) -> bool:
    """Return whether a count of cached tokens in another place is the one that is sent."""
    return field in _CACHED_COUNTS and usage.cached is not None and raw == encode(usage.cached)
