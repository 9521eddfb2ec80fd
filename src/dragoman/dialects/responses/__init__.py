"""The OpenAI Responses dialect."""

from dragoman.dialects.record import Dialect, ReplyCapabilities, TokenCountFormat
from dragoman.dialects.responses.api import API
from dragoman.dialects.responses.compat import (
    IMPLIED,
    IMPLIED_REPLIES,
    INFORMATIONAL,
    INFORMATIONAL_REPLIES,
    TURNS,
    VENDOR_TOOLS,
    is_hosted,
)
from dragoman.dialects.responses.decoder import ResponsesDecoder
from dragoman.dialects.responses.encoder import ResponsesEncoder
from dragoman.dialects.responses.errors import ERROR_WORDS, build_error, parse_error
from dragoman.dialects.responses.fields import POINTERS
from dragoman.dialects.responses.parts import find_field_pointer
from dragoman.dialects.responses.remote import REMOTE
from dragoman.dialects.responses.renderer import render_request, write_tools
from dragoman.dialects.responses.request import parse_request, read_declared_tools, read_tools
from dragoman.dialects.responses.response import REPEATED, STATUSES, build_response, parse_response
from dragoman.dialects.responses.traits import ROWS
from dragoman.dialects.responses.wire import ISSUER, NAME

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="call_",
    reply_prefix="resp_",
    history="input",
    turns=TURNS,
    traits=ROWS,
    api=API,
    remote=REMOTE,
    holds=ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"reasoning"}),
        refusal=True,
        custom_calls=True,
        partial_calls=True,
        media=False,
        citations=True,
        namespaces=True,
        order=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused"}),
    ),
    pointers=POINTERS,
    reply_pointers={
        "part.signature": ("/encrypted_content",),
        "part.citations": ("/annotations",),
        "call.id": ("/call_id",),
        "call.namespace": ("/namespace",),
        "finish.reason": ("/incomplete_details/reason",),
        "usage": ("/usage",),
        "usage.cache_written": ("/usage/input_tokens_details/cache_write_tokens",),
    },
    repeated=REPEATED,
    finish_words=STATUSES | {"max_output_tokens", "content_filter"},
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=ResponsesDecoder,
    encoder=ResponsesEncoder,
    read_declared_tools=read_declared_tools,
    field_place=find_field_pointer,
    parse_error=parse_error,
    build_error=build_error,
    error_words=ERROR_WORDS,
    count=TokenCountFormat("input_tokens", {"object": "response.input_tokens"}),
    id_header="x-request-id",
    implied=IMPLIED,
    implied_replies=IMPLIED_REPLIES,
    informational=INFORMATIONAL,
    informational_replies=INFORMATIONAL_REPLIES,
    vendor_tools=VENDOR_TOOLS,
    is_hosted=is_hosted,
    image_detail="/detail",
)
