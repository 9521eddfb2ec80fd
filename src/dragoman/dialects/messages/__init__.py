"""The Anthropic Messages dialect."""

import re
from typing import Any

from dragoman.dialects.api import (
    READ_METHODS,
    Api,
    Endpoint,
    ModelEntry,
    ModelFormat,
    ModelRow,
    Query,
    ServedPath,
    find_row,
    read_page_size,
)
from dragoman.dialects.messages import compat
from dragoman.dialects.messages.client_tools import declare_client_tool
from dragoman.dialects.messages.decoder import MessagesDecoder
from dragoman.dialects.messages.encoder import MessagesEncoder
from dragoman.dialects.messages.errors import MAPPED_ERROR_TYPES, build_error, parse_error
from dragoman.dialects.messages.fields import POINTERS
from dragoman.dialects.messages.remote import REMOTE
from dragoman.dialects.messages.renderer import render_request, write_tools
from dragoman.dialects.messages.request import parse_request, read_tools
from dragoman.dialects.messages.response import build_response, parse_response, repeats_count
from dragoman.dialects.messages.traits import ROWS, respell_model
from dragoman.dialects.messages.wire import ISSUER, NAME
from dragoman.dialects.record import CallPlace, Dialect, ReplyCapabilities, TokenCountFormat

_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}


def _is_message(message: Any) -> bool:
    match message:
        case {"content": [{"type": str(kind)}, *_]}:
            return kind in _BLOCKS
        case _:
            return False


def _build_model_row(entry: ModelEntry) -> ModelRow:
    return {
        "type": "model",
        "id": entry.name,
        "display_name": entry.listed.display_name or entry.name,
        "created_at": "2026-01-01T00:00:00Z",  # required; the true date is not known
        "max_input_tokens": entry.listed.input_limit,
        "max_tokens": entry.listed.output_limit,
    }


def _build_model_page(rows: list[ModelRow], query: Query) -> ModelRow:
    limit = read_page_size(query, "limit", 20, 1000)
    if "before_id" in query:
        end = find_row(rows, "id", query, "before_id")
        start = max(0, end - limit)
        more = start > 0
    else:
        start = find_row(rows, "id", query, "after_id") + 1 if "after_id" in query else 0
        end = start + limit
        more = end < len(rows)
    shown = rows[start:end]
    edges = [row["id"] for row in shown] or [None]
    return {"data": shown, "has_more": more, "first_id": edges[0], "last_id": edges[-1]}


API = Api(
    paths=(
        ServedPath("/v1/messages", Endpoint(operation="generate", queried=True)),
        ServedPath("/v1/messages/count_tokens", Endpoint(operation="count")),
        # Claude Code requests this path to check that the server is reachable.
        ServedPath("/api/hello", Endpoint(operation="health"), READ_METHODS),
    ),
    other_paths=(r"/v1/(?:messages/batches|complete|skills)(?:[/:].+)?",),
    own_headers=frozenset({"anthropic-version"}),
    own_paths=r"^/v1/messages",
    forwarded_headers=frozenset({"anthropic-version", "anthropic-beta"}),
    model_names=r"claude",
    default_model="claude-haiku-4-5",
    models=ModelFormat(build_row=_build_model_row, build_page=_build_model_page),
    request_fields=frozenset(
        {"system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking", "output_config"}
    ),
    tool_fields=frozenset({"input_schema"}),
    is_message=_is_message,
)

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="toolu_",
    reply_prefix="msg_",
    history="messages",
    turns=compat.TURNS,
    traits=ROWS,
    call_place=CallPlace(parts="content", member="type", values=frozenset({"tool_use"}), name=("/name",)),
    result_place=CallPlace(parts="content", member="type", values=frozenset({"tool_result"})),
    results_first=True,
    respell_model=respell_model,
    api=API,
    remote=REMOTE,
    capabilities=ReplyCapabilities(
        signatures=frozenset({"reasoning"}),
        object_arguments=True,
        plain_ids=True,
        citations=True,
        citation_facts=frozenset({"quote"}),
        stop_sequence=True,
        searches=True,
        search_titles=True,
        block_citations=True,
        counts=frozenset({"cached", "cache_written", "reasoning", "searches"}),
        namespaces=True,
        tool_search=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused", "paused"}),
    ),
    pointers=POINTERS,
    reply_pointers={
        "part.signature": ("/signature",),
        "part.redacted": ("/data",),
        "part.citations": ("/citations",),
        "call.id": ("/id",),
        "finish.reason": ("/stop_reason",),
        "usage": ("/usage",),
        "usage.cache_written": ("/usage/cache_creation_input_tokens",),
        "usage.searches": ("/usage/server_tool_use/web_search_requests",),
        "finish.sequence": ("/stop_sequence",),
    },
    mapped_finishes=frozenset({"end_turn", "stop_sequence", "max_tokens", "tool_use", "refusal", "pause_turn"}),
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=MessagesDecoder,
    encoder=MessagesEncoder,
    parse_error=parse_error,
    build_error=build_error,
    signature_error=re.compile(r"Invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block"),
    mapped_error_types=MAPPED_ERROR_TYPES,
    count=TokenCountFormat("input_tokens"),
    id_header="request-id",
    id_member="request_id",
    implied=compat.IMPLIED,
    implied_replies=compat.IMPLIED_REPLIES,
    informational=compat.INFORMATIONAL,
    informational_replies=compat.INFORMATIONAL_REPLIES,
    repeats_count=repeats_count,
    vendor_tools=compat.VENDOR_TOOLS,
    search_settings=compat.SEARCH_SETTINGS,
    is_hosted=compat.is_hosted,
    declare_client_tool=declare_client_tool,
)
