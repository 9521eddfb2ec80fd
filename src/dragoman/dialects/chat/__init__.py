"""OpenAI Chat Completions, as OpenAI and the many compatible servers speak it."""

from dragoman.dialects.chat.errors import build_error, parse_error
from dragoman.dialects.chat.request import parse_request, render_request
from dragoman.dialects.chat.response import build_response, parse_response
from dragoman.dialects.chat.stream_decode import ChatDecoder
from dragoman.dialects.chat.stream_encode import ChatEncoder
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Dialect, Holds

DIALECT = Dialect(
    name=NAME,
    issuer="openai",
    call_prefix="call_",
    holds=Holds(
        reasoning=True,
        signatures=frozenset({"call"}),
        call_issuers=frozenset({"google"}),
        any_issuer=False,
        refusal=True,
        custom_calls=True,
        partial_calls=True,
        media=False,
        citations=True,
        order=False,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused"}),
    ),
    pointers={
        "model": ("/model",),
        "sampling.temperature": ("/temperature",),
        "sampling.top_p": ("/top_p",),
        "sampling.top_k": ("/top_k",),
        "sampling.max_tokens": ("/max_completion_tokens", "/max_tokens"),
        "sampling.stop": ("/stop",),
        "sampling.seed": ("/seed",),
        "sampling.presence_penalty": ("/presence_penalty",),
        "sampling.frequency_penalty": ("/frequency_penalty",),
        "thinking.effort": ("/reasoning_effort",),
        "output": ("/response_format",),
        "output.name": ("/response_format/json_schema/name",),
        "output.description": ("/response_format/json_schema/description",),
        "output.strict": ("/response_format/json_schema/strict",),
        "output.schema": ("/response_format/json_schema/schema",),
        "verbosity": ("/verbosity",),
        "messages": ("/messages",),
        "tools": ("/tools", "/functions"),
        "tool_choice": ("/tool_choice", "/function_call"),
        "tool_choice.parallel": ("/parallel_tool_calls",),
        "candidates": ("/n",),
        "user": ("/safety_identifier", "/user"),
        "metadata": ("/metadata",),
        "stream": ("/stream",),
        "tool.strict": ("/function/strict",),
        "tool.parameters": ("/function/parameters", "/parameters"),
        "part.cache": ("/prompt_cache_breakpoint",),
        "part.signature": ("/extra_content/google/thought_signature",),
        "part.citations": ("/annotations",),
        "message.name": ("/name",),
        "tool_choice.names": ("/tool_choice/allowed_tools/tools",),
        "call.id": ("/id",),
        "call.arguments": ("/function/arguments", "/arguments"),
        "result.call_id": ("/tool_call_id",),
        "result.name": ("/name",),
        "media.name": ("/file/filename",),
    },
    parse_request=parse_request,
    render_request=render_request,
    parse_response=parse_response,
    build_response=build_response,
    decoder=ChatDecoder,
    encoder=ChatEncoder,
    parse_error=parse_error,
    build_error=build_error,
)
