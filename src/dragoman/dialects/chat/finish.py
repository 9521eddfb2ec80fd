"""Why a reply ended and what it cost, in the vendor's words: of whole replies and of streams."""

from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.core.response import Finish, FinishReason, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.chat.fields import known_extras
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import Malformed, encode, graft, is_json, peek
from dragoman.wire.shape import carried

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
    # Words of compatible servers: Together, Mistral, several local ones.
    "eos": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "max_tokens": "length",
}
_WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "filtered": "content_filter",
    "refused": "content_filter",
    "paused": "stop",
    # The vendor has no word for "ended for a reason of its own"; "stop" would call the answer complete.
    "other": "content_filter",
}
_CUT = frozenset({"length", "filtered", "malformed_call"})
_MALFORMED_CALL = "the model made a malformed tool call"


def read_finish(word: str | None, *, called: bool, refused: bool, stopped_by: bytes | None = None) -> Finish:
    """Say why the model stopped: a call that was seen makes "stop" a "tool_calls".

    vLLM tells in `stopped_by` which stop sequence was hit; a number there is a token of the model's own.
    """
    raw = word or ""
    reason: FinishReason = _REASONS.get(raw, "other") if raw else "stop"
    if reason in _CUT:
        return Finish(reason, raw)
    if called:
        return Finish("tool_calls", raw)
    if reason == "tool_calls":
        reason = "stop"
    if reason != "stop" or refused:
        return Finish("refused" if reason == "stop" else reason, raw)
    sequence = peek(stopped_by) if stopped_by is not None else None
    return Finish(reason, raw, sequence if isinstance(sequence, str) and sequence else None)


def is_whole(form: str, arguments: str, finish: Finish, last: bool) -> bool:
    """Tell whether a call was not cut off; free text that a limit ends cannot be trusted to be whole."""
    if finish.reason != "length":
        return True
    return is_json(arguments) if form == "json" else not last


def read_usage(raw: bytes | None) -> Usage | None:
    """Read token counts."""
    if raw is None:
        return None
    try:
        usage, unread = wire_reply.USAGE.read(raw)
    except Malformed:
        # Odd counts must not spoil a good answer.
        return None
    extras = carried(usage) or {}
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    if prompt is not None:
        extras.update(carried(prompt, "/prompt_tokens_details") or {})
    if completion is not None:
        extras.update(carried(completion, "/completion_tokens_details") or {})
    if unread is not None:
        extras.update(unread.rest())
    given, output = usage.prompt_tokens or 0, usage.completion_tokens
    reasoning = None if completion is None else completion.reasoning_tokens
    if reasoning and (reasoning > (output or 0) or usage.total_tokens == given + (output or 0) + reasoning):
        # xAI and Vercel's gateway count reasoning beside the completion, not in it.
        extras["/completion_tokens"] = encode(output or 0)
        output = (output or 0) + reasoning
    if usage.total_tokens is not None and usage.total_tokens != given + (output or 0):
        extras["/total_tokens"] = encode(usage.total_tokens)
    return Usage(
        input=usage.prompt_tokens,
        output=output,
        cached=None if prompt is None else prompt.cached_tokens,
        cache_written=None if prompt is None else prompt.cache_write_tokens,
        reasoning=reasoning,
        extras=known_extras(extras),
    )


def write_usage(usage: Usage) -> dict[str, Any] | Raw:
    """Write token counts."""
    fields = (own_extras(usage, NAME) if usage.extras is not None else None) or {}
    given, output = usage.input or 0, usage.output or 0
    value: dict[str, Any] = {"prompt_tokens": given}
    if "/completion_tokens" not in fields:
        value["completion_tokens"] = output
    if "/total_tokens" not in fields:
        value["total_tokens"] = given + output
    if usage.cached is not None or usage.cache_written is not None:
        prompt = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written}
        value["prompt_tokens_details"] = {name: count for name, count in prompt.items() if count is not None}
    if usage.reasoning is not None:
        value["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return Raw(graft(encode(value), fields)) if fields else value


def finish_word(finish: Finish, *, refusal: bool, legacy: bool) -> str:
    """Choose the vendor's word for the finish; a malformed call has none and is an error."""
    if finish.reason == "malformed_call":
        raise Problem("malformed_reply", _MALFORMED_CALL, code="malformed_function_call")
    if finish.reason == "refused" and refusal:
        return "stop"
    if finish.reason == "tool_calls" and legacy:
        return "function_call"
    return _WORDS[finish.reason]
