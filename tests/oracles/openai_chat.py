"""Read Chat Completions replies with the openai package: its clients, its stream class, its delta accumulator."""

import json
from typing import Any

import httpx2
import openai
from openai._streaming import Stream
from openai.lib.streaming._deltas import accumulate_delta
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from oracles.clients import openai_client, silent
from oracles.reading import Call, Reading, Usage, describe_error, finish_after

_POST = httpx2.Request("POST", "http://oracle/v1/chat/completions")
_FINISHES = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
    "eos": "stop",  # Together's own word
}
_ACCUMULATED = ("refusal", "tool_calls", "function_call", "reasoning_content", "reasoning")


def read_whole(body: bytes, *, strict: bool) -> Reading:
    """Read a whole reply; strict validates every field against the SDK's types."""
    if not strict and not (valid := read_whole(body, strict=True)).problem:
        return valid  # to validate is many times faster than to construct leniently
    response = httpx2.Response(200, content=body, request=_POST)
    with silent():
        try:
            completion = openai_client(strict=strict)._process_response_data(
                data=json.loads(body), cast_to=ChatCompletion, response=response
            )
            choice = next(choice for choice in completion.choices if (choice.index or 0) == 0)
            message = choice.message.to_dict() if choice.message else {}
            return _read(message, choice.finish_reason, completion.usage)
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            return Reading(problem=describe_error(error))


def read_stream(sse: bytes, *, strict: bool) -> Reading:
    """Read a stream with the SDK's stream class; the choice grows by the SDK's own rule for deltas.

    Its rule refuses the lists that compatible hosts send as content or as details, so those are left to `_content`.
    """
    if not strict and not (valid := read_stream(sse, strict=True)).problem:
        return valid
    response = httpx2.Response(200, content=sse, request=_POST)
    message: dict[Any, Any] = {}
    finish: str | None = None
    usage = None
    problem = ""
    with silent():
        try:
            for chunk in Stream(cast_to=ChatCompletionChunk, response=response, client=openai_client(strict=strict)):
                usage = chunk.usage or usage
                for choice in chunk.choices or ():
                    if choice.index:
                        continue
                    finish = choice.finish_reason or finish
                    delta = choice.delta.to_dict() if choice.delta else {}
                    known = {name: delta[name] for name in _ACCUMULATED if delta.get(name)}
                    text, thinking = _content(delta.get("content"))
                    details = _details(delta.get("reasoning_details"))
                    more = {"content": text, "thinking": thinking, "details": details}
                    message = accumulate_delta(message, {**known, **more})
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            problem = describe_error(error)
        return _read(message, finish, usage, problem)


def read_helper(client: openai.OpenAI) -> Reading:
    """Read what `client` receives with `chat.completions.stream`, or its accumulator where calls are free-form."""
    state = ChatCompletionStreamState()
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    completion = state.get_final_completion()
    choice = completion.choices[0]
    return _read(choice.message.to_dict(), choice.finish_reason, completion.usage)


def _read(message: dict[Any, Any], word: str | None, usage: Any, problem: str = "") -> Reading:
    calls = tuple(map(_call, message.get("tool_calls") or ()))
    legacy = message.get("function_call") or {}
    if legacy.get("name"):
        calls = (*calls, Call(legacy["name"], legacy.get("arguments") or "", ""))
    text, thinking = _content(message.get("content"))
    refusal = message.get("refusal") or ""
    return Reading(
        text=text,
        calls=calls,
        finish=finish_after(_FINISHES.get(word, "other") if word else "", calls=bool(calls), refusal=bool(refusal)),
        usage=_usage(usage),
        refusal=refusal,
        reasoning=(
            message.get("reasoning_content")
            or message.get("reasoning")
            or message.get("thinking")
            or thinking
            or message.get("details")
            or _details(message.get("reasoning_details"))
        ),
        problem=problem,
    )


def _details(items: Any) -> str:
    """Return the text in OpenRouter's list, which some of its models send without another member for it."""
    return "".join(item.get("text") or item.get("summary") or "" for item in items or ())


def _content(content: Any) -> tuple[str, str]:
    """Return text and thinking: Mistral sends a list of parts where it thinks."""
    if not isinstance(content, list):
        return content or "", ""
    thinking = [piece for part in content if part.get("type") == "thinking" for piece in part["thinking"]]
    return "".join(part["text"] for part in content if part.get("type") == "text"), "".join(
        piece["text"] for piece in thinking
    )


def _call(call: dict[str, Any]) -> Call:
    custom = call.get("custom") or {}
    if custom and call.get("type") != "function":
        return Call(custom.get("name") or "", custom.get("input") or "", call.get("id") or "", "text")
    function = call.get("function") or {}
    arguments = function.get("arguments")
    text = json.dumps(arguments) if isinstance(arguments, dict) else arguments or ""
    return Call(function.get("name") or "", text, call.get("id") or "")


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    output, reasoning = usage.completion_tokens, completion.reasoning_tokens if completion else None
    if reasoning and (reasoning > output or usage.total_tokens == usage.prompt_tokens + output + reasoning):
        output += reasoning  # xAI and Vercel's gateway count reasoning beside the completion, not in it
    cached = prompt.cached_tokens if prompt else None
    if cached is None:
        # Together and Mistral count them next to the others; the SDK keeps members it does not know.
        extras = usage.model_extra or {}
        cached = extras.get("cached_tokens", extras.get("num_cached_tokens"))
    return Usage(usage.prompt_tokens, output, cached, reasoning)
