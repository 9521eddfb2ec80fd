"""The OpenAI Chat Completions dialect, as OpenAI and compatible servers implement it: its HTTP API and its record."""

import re
from typing import Any

from dragoman.dialects.api import Api, Endpoint, ServedPath
from dragoman.dialects.chat import compat
from dragoman.dialects.chat.decoder import ChatDecoder
from dragoman.dialects.chat.encoder import ChatEncoder
from dragoman.dialects.chat.errors import MAPPED_ERROR_TYPES, build_error, parse_error
from dragoman.dialects.chat.fields import POINTERS
from dragoman.dialects.chat.renderer import render_request, write_tools
from dragoman.dialects.chat.request import parse_request, read_tools
from dragoman.dialects.chat.response import build_response, parse_response, repeats_count
from dragoman.dialects.chat.servers import SERVERS, edit_messages
from dragoman.dialects.chat.traits import ROWS
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import CallPlace, ChoiceFormat, Dialect, ReplyCapabilities

_SIGNATURE_ERROR = re.compile(
    r"(?:Corrupted|Invalid) thought signature|Invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block"
    r"|[Ee]ncrypted content .*could not be verified|invalid_encrypted_content"
)
"""The errors of the vendors whose models are behind compatible servers."""
_OTHER_PATHS = (
    "assistants|audio|completions|containers|embeddings|evals|fine_tuning|images|moderations|realtime|rerank|threads"
    "|uploads|vector_stores|videos"
)


def _is_message(message: Any) -> bool:
    """Return whether a message has a role or member that only Chat has."""
    match message:
        case {"role": "tool" | "developer" | "function"} | {"tool_calls": _}:
            return True
        case _:
            return False


_GENERATE = Endpoint(operation="generate", convert=compat.nest_tools)
API = Api(
    paths=(ServedPath("/v1/chat/completions", _GENERATE),),
    other_paths=(rf"/v1/(?:{_OTHER_PATHS})(?:[/:].+)?",),
    forwarded_headers=frozenset({"openai-beta"}),
    account_headers=frozenset({"openai-organization", "openai-project"}),
    model_names=r"gpt-|o\d|chatgpt-|codex-",
    default_model="gpt-5.4-mini",
    request_fields=frozenset(
        {"max_completion_tokens", "response_format", "stream_options", "functions", "reasoning_effort", "n"}
    ),
    tool_fields=frozenset({"function"}),
    is_message=_is_message,
)

DIALECT = Dialect(
    name=NAME,
    issuer="openai",
    call_prefix="call_",
    reply_prefix="chatcmpl-",
    history="messages",
    nests_functions=True,
    turns=compat.TURNS,
    traits=ROWS,
    call_place=CallPlace(parts="tool_calls", name=("/function/name", "/custom/name")),
    result_place=CallPlace(member="role", values=frozenset({"tool"}), name=("/name",)),
    servers=SERVERS,
    edit_messages=edit_messages,
    api=API,
    capabilities=ReplyCapabilities(
        signatures=frozenset({"call", "reasoning"}),
        unsigned_reasoning=True,
        call_issuers=frozenset({"google"}),
        any_issuer=False,
        refusal=True,
        custom_calls=True,
        citations=True,
        citation_facts=frozenset({"span", "quote"}),
        order=False,
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
    mapped_finishes=frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"}),
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
    signed_member="/reasoning_details",
    signature_error=_SIGNATURE_ERROR,
    mapped_error_types=MAPPED_ERROR_TYPES,
    choices=ChoiceFormat(
        choices="choices", usage="usage", shared=frozenset({"id", "created"}), end_event=b"data: [DONE]"
    ),
    id_header="x-request-id",
    implied=compat.IMPLIED,
    implied_replies=compat.IMPLIED_REPLIES,
    informational=compat.INFORMATIONAL,
    repeats_count=repeats_count,
    informational_replies=compat.INFORMATIONAL_REPLIES,
    shared_fields=compat.SHARED_FIELDS,
    vendor_tools=compat.VENDOR_TOOLS,
    search_settings=compat.SEARCH_SETTINGS,
    image_detail="/image_url/detail",
)
