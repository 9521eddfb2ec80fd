"""Why a reply ended and what it cost, in the vendor's words: of whole replies and of streams."""

from typing import Any

from dragoman.core.problems import Problem
from dragoman.core.response import Finish, FinishReason, Usage
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.chat.parts import known_extras
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import Malformed, encode, graft, is_json, peek

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
_NO_PROMPT_DETAILS = wire_reply.PromptDetails()
_NO_COMPLETION_DETAILS = wire_reply.CompletionDetails()


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
    return usage_of(usage, unread.rest() if unread is not None else {})


def usage_of(usage: wire_reply.Usage, extras: dict[str, bytes]) -> Usage:
    """Return what was used; `extras` are the members that nobody knows."""
    prompt = usage.prompt_tokens_details or _NO_PROMPT_DETAILS
    completion = usage.completion_tokens_details or _NO_COMPLETION_DETAILS
    if prompt.audio_tokens:
        extras["/prompt_tokens_details/audio_tokens"] = bytes(prompt.audio_tokens)
    if completion.audio_tokens:
        extras["/completion_tokens_details/audio_tokens"] = bytes(completion.audio_tokens)
    if completion.accepted_prediction_tokens:
        extras["/completion_tokens_details/accepted_prediction_tokens"] = bytes(completion.accepted_prediction_tokens)
    if completion.rejected_prediction_tokens:
        extras["/completion_tokens_details/rejected_prediction_tokens"] = bytes(completion.rejected_prediction_tokens)
    given, output, thought = usage.prompt_tokens or 0, usage.completion_tokens, completion.reasoning_tokens or 0
    if thought and (thought > (output or 0) or usage.total_tokens == given + (output or 0) + thought):
        # xAI and Vercel's gateway count reasoning beside the completion, not in it.
        extras["/completion_tokens"] = encode(output or 0)
        output = (output or 0) + thought
    if usage.total_tokens is not None and usage.total_tokens != given + (output or 0):
        extras["/total_tokens"] = encode(usage.total_tokens)
    return Usage(
        input=usage.prompt_tokens,
        output=output,
        cached=prompt.cached_tokens,
        cache_written=prompt.cache_write_tokens,
        reasoning=completion.reasoning_tokens,
        extras=known_extras(extras),
    )


def write_usage(usage: Usage) -> bytes:
    """Write token counts."""
    fields = own_extras(usage, NAME) or {}
    value = write_counts(usage, fields)
    return graft(encode(value), fields) if fields else encode(value)


def write_counts(usage: Usage, fields: dict[str, bytes]) -> dict[str, Any]:
    """Write token counts as a value, without the `fields` of the vendor's own."""
    value: dict[str, Any] = {"prompt_tokens": usage.input or 0}
    if "/completion_tokens" not in fields:
        value["completion_tokens"] = usage.output or 0
    if "/total_tokens" not in fields:
        value["total_tokens"] = (usage.input or 0) + (usage.output or 0)
    if usage.cached is not None or usage.cache_written is not None:
        prompt = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written}
        value["prompt_tokens_details"] = {name: count for name, count in prompt.items() if count is not None}
    if usage.reasoning is not None:
        value["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return value


def finish_word(finish: Finish, *, refusal: bool, legacy: bool) -> str:
    """Choose the vendor's word for the finish; a malformed call has none and is an error."""
    if finish.reason == "malformed_call":
        raise Problem("malformed_reply", _MALFORMED_CALL, code="malformed_function_call")
    if finish.reason == "refused" and refusal:
        return "stop"
    if finish.reason == "tool_calls" and legacy:
        return "function_call"
    return _WORDS[finish.reason]
