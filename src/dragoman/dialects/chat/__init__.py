"""The OpenAI Chat Completions dialect, as OpenAI and compatible servers implement it."""

from dragoman.dialects.chat.api import API
from dragoman.dialects.chat.compat import (
    IMPLIED,
    IMPLIED_REPLIES,
    INFORMATIONAL,
    INFORMATIONAL_REPLIES,
    SHARED_FIELDS,
    TURNS,
)
from dragoman.dialects.chat.decoder import ChatDecoder
from dragoman.dialects.chat.encoder import ChatEncoder
from dragoman.dialects.chat.errors import ERROR_WORDS, build_error, parse_error
from dragoman.dialects.chat.fields import POINTERS
from dragoman.dialects.chat.renderer import render_request, write_tools
from dragoman.dialects.chat.request import parse_request, read_tools
from dragoman.dialects.chat.response import build_response, parse_response
from dragoman.dialects.chat.traits import ROWS
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Dialect, ReplyCapabilities

DIALECT = Dialect(
    name=NAME,
    issuer="openai",
    call_prefix="call_",
    reply_prefix="chatcmpl-",
    history="messages",
    turns=TURNS,
    traits=ROWS,
    api=API,
    holds=ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"call", "reasoning"}),
        unsigned_reasoning=True,
        call_issuers=frozenset({"google"}),
        any_issuer=False,
        refusal=True,
        custom_calls=True,
        partial_calls=True,
        media=False,
        citations=True,
        citation_facts=frozenset({"span", "quote"}),
        order=False,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused"}),
    ),
    pointers=POINTERS,
    reply_pointers={
        "part.signature": ("/extra_content/google/thought_signature",),
        "call.id": ("/id",),
        "finish.reason": ("/choices/0/finish_reason",),
        "usage": ("/usage",),
        "usage.counted": ("/usage/completion_tokens",),
        "usage.cache_written": ("/usage/prompt_tokens_details/cache_write_tokens",),
        "finish.sequence": ("/choices/0/stop_reason",),
    },
    finish_words=frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"}),
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=ChatDecoder,
    encoder=ChatEncoder,
    parse_error=parse_error,
    build_error=build_error,
    error_words=ERROR_WORDS,
    id_header="x-request-id",
    implied=IMPLIED,
    implied_replies=IMPLIED_REPLIES,
    informational=INFORMATIONAL,
    informational_replies=INFORMATIONAL_REPLIES,
    shared_fields=SHARED_FIELDS,
    image_detail="/image_url/detail",
)
