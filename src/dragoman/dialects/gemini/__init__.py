"""The Gemini dialect: generateContent, with the variants of Vertex and Code Assist."""

from dragoman.dialects.gemini.api import API
from dragoman.dialects.gemini.code_assist import is_wrapped, unwrap_request
from dragoman.dialects.gemini.compat import (
    IMPLIED,
    IMPLIED_REPLIES,
    INFORMATIONAL,
    INFORMATIONAL_REPLIES,
    TURNS,
    VENDOR_TOOLS,
    is_hosted,
    repeats_count,
)
from dragoman.dialects.gemini.decoder import GeminiDecoder
from dragoman.dialects.gemini.encoder import GeminiEncoder
from dragoman.dialects.gemini.errors import ERROR_WORDS, build_error, parse_error
from dragoman.dialects.gemini.fields import POINTERS
from dragoman.dialects.gemini.renderer import render_request, write_tools
from dragoman.dialects.gemini.request import parse_request, read_tools
from dragoman.dialects.gemini.response import build_response, parse_response
from dragoman.dialects.gemini.traits import ROWS
from dragoman.dialects.gemini.wire import ISSUER, NAME
from dragoman.dialects.record import Dialect, ReplyCapabilities, TokenCountFormat

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="",
    reply_prefix="",
    history="contents",
    turns=TURNS,
    traits=ROWS,
    api=API,
    holds=ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"reasoning", "call", "text"}),
        partial_calls=False,
        media=True,
        citations=True,
        counts=frozenset({"cached", "reasoning"}),
        object_arguments=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused", "malformed_call", "other"}),
    ),
    pointers=POINTERS,
    reply_pointers={
        "part.signature": ("/thoughtSignature",),
        "call.id": ("/functionCall/id",),
        "finish.reason": ("/candidates/0/finishReason",),
        "finish.blocked": ("/promptFeedback",),
        "finish.message": ("/candidates/0/finishMessage",),
        "usage": ("/usageMetadata",),
        "usage.counted": ("/usageMetadata/toolUsePromptTokenCount",),
    },
    finish_words=frozenset({"STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"}),
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=GeminiDecoder,
    encoder=GeminiEncoder,
    parse_error=parse_error,
    build_error=build_error,
    error_words=ERROR_WORDS,
    is_wrapped=is_wrapped,
    unwrap=unwrap_request,
    count=TokenCountFormat("totalTokens"),
    implied=IMPLIED,
    implied_replies=IMPLIED_REPLIES,
    informational=INFORMATIONAL,
    informational_replies=INFORMATIONAL_REPLIES,
    repeats_count=repeats_count,
    vendor_tools=VENDOR_TOOLS,
    is_hosted=is_hosted,
)
