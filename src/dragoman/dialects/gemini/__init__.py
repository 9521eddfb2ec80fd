"""The Gemini dialect: generateContent, with the variants of Vertex and Code Assist."""

import re

from dragoman.dialects.api import (
    READ_METHODS,
    Api,
    Endpoint,
    ModelEntry,
    ModelFormat,
    ModelRow,
    Operation,
    Query,
    ServedPath,
    find_row,
    read_page_size,
)
from dragoman.dialects.gemini import compat
from dragoman.dialects.gemini.code_assist import SPELLING, is_wrapped, unwrap_count, unwrap_request, wrap_count
from dragoman.dialects.gemini.decoder import GeminiDecoder
from dragoman.dialects.gemini.encoder import GeminiEncoder
from dragoman.dialects.gemini.errors import MAPPED_ERROR_TYPES, build_error, parse_error
from dragoman.dialects.gemini.fields import POINTERS
from dragoman.dialects.gemini.finish import repeats_count
from dragoman.dialects.gemini.renderer import render_request, write_tools
from dragoman.dialects.gemini.request import parse_request, read_tools
from dragoman.dialects.gemini.response import build_response, parse_response
from dragoman.dialects.gemini.traits import ROWS
from dragoman.dialects.gemini.wire import ISSUER, NAME
from dragoman.dialects.record import CallPlace, ChoiceFormat, Dialect, ReplyCapabilities, TokenCountFormat

_VERSION = r"/(?:v1|v1beta|v1beta1|v1alpha)"
_MODELS = rf"{_VERSION}(?:(?:/projects/[^/]+/locations/[^/]+)?/publishers/google)?/models"
_ANY_VERSION = rf"(?:/upload|/download)?{_VERSION}"
_OTHER_RESOURCES = (
    "batches|cachedContents|corpora|fileSearchStores|files|operations|tunedModels|models/[^:/]+/operations"
)


def _build_method_path(name: str, operation: Operation, *, stream: bool = False) -> ServedPath:
    """Return the path of a method of a model, such as `models/NAME:generateContent`."""
    convert = unwrap_count if operation == "count" else None
    endpoint = Endpoint(operation=operation, stream=stream, streams_array=True, in_url=True, convert=convert)
    return ServedPath(rf"{_MODELS}/(?P<model>.+):{name}", endpoint, is_pattern=True, ending=f":{name}")


def _build_code_assist_path(name: str, operation: Operation, *, stream: bool = False) -> ServedPath:
    """Return the path of a method of Code Assist, such as `/v1internal:generateContent`."""
    convert = wrap_count if operation == "count" else None
    endpoint = Endpoint(operation=operation, stream=stream, streams_array=True, wrapped=True, convert=convert)
    return ServedPath(rf"/v1internal:(?P<name>{name})", endpoint, is_pattern=True)


def _build_model_row(entry: ModelEntry) -> ModelRow:
    limits = {"inputTokenLimit": entry.listed.input_limit, "outputTokenLimit": entry.listed.output_limit}
    return {
        "name": f"models/{entry.name}",
        "baseModelId": entry.name,
        "version": "001",
        "displayName": entry.listed.display_name or entry.name,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        **{name: limit for name, limit in limits.items() if limit is not None},
    }


def _build_model_page(rows: list[ModelRow], query: Query) -> ModelRow:
    size = read_page_size(query, "pageSize", 50, 1000)
    start = find_row(rows, "name", query, "pageToken") if query.get("pageToken") else 0
    page: ModelRow = {"models": rows[start : start + size]}
    if start + size < len(rows):
        page["nextPageToken"] = rows[start + size]["name"]
    return page


API = Api(
    paths=(
        ServedPath("/v1/gemini", Endpoint(operation="generate", in_session=True)),
        _build_method_path("generateContent", "generate"),
        _build_method_path("streamGenerateContent", "generate", stream=True),
        _build_method_path("countTokens", "count"),
        _build_code_assist_path("generateContent", "generate"),
        _build_code_assist_path("streamGenerateContent", "generate", stream=True),
        _build_code_assist_path("countTokens", "count"),
        _build_code_assist_path(r"stream\w*", "assist", stream=True),
        _build_code_assist_path(r"\w+", "assist"),
        ServedPath(
            r"/v1internal/operations/[^/]+",
            Endpoint(operation="assist", name="operation"),
            READ_METHODS,
            is_pattern=True,
        ),
        ServedPath(_MODELS, Endpoint(operation="models"), READ_METHODS, is_pattern=True),
        ServedPath(
            rf"{_MODELS}/(?P<model>(?!.+/operations/).+)", Endpoint(operation="model"), READ_METHODS, is_pattern=True
        ),
    ),
    other_paths=(
        rf"{_ANY_VERSION}/models/(?P<model>[^:]+):[A-Za-z]+",
        rf"{_ANY_VERSION}/(?:{_OTHER_RESOURCES})(?:[/:].+)?",
    ),
    own_headers=frozenset({"x-goog-api-key", "x-goog-api-client"}),
    own_paths=r"/v1beta|v1internal",
    forwarded_headers=frozenset({"x-goog-request-params"}),
    account_headers=frozenset({"x-goog-user-project"}),
    model_names=r"(?:models/)?(?:gemini|gemma|learnlm)-",
    default_model="gemini-3-flash",
    models=ModelFormat(member="name", prefix="models/", build_row=_build_model_row, build_page=_build_model_page),
)

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="",
    reply_prefix="",
    history="contents",
    turns=compat.TURNS,
    traits=ROWS,
    call_place=CallPlace(parts="parts", member="functionCall", name=("/functionCall/name",)),
    result_place=CallPlace(parts="parts", member="functionResponse", name=("/functionResponse/name",)),
    api=API,
    capabilities=ReplyCapabilities(
        signatures=frozenset({"reasoning", "call", "text"}),
        partial_calls=False,
        media=True,
        citations=True,
        searches=True,
        search_titles=True,
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
    mapped_finishes=frozenset({"STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"}),
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
    ignores_comments=False,
    signature_error=re.compile(r"(?:Corrupted|Invalid) thought signature"),
    mapped_error_types=MAPPED_ERROR_TYPES,
    envelopes=frozenset({SPELLING}),
    is_wrapped=is_wrapped,
    unwrap=unwrap_request,
    choices=ChoiceFormat(
        choices="candidates", usage="usageMetadata", shared=frozenset({"responseId"}), envelope="response"
    ),
    count=TokenCountFormat("totalTokens"),
    implied=compat.IMPLIED,
    implied_replies=compat.IMPLIED_REPLIES,
    informational=compat.INFORMATIONAL,
    informational_replies=compat.INFORMATIONAL_REPLIES,
    repeats_count=repeats_count,
    vendor_tools=compat.VENDOR_TOOLS,
    search_settings={"blocked_domains": "/googleSearch/excludeDomains"},
    unsent_settings=frozenset({"blocked_domains"}),
    list_pages=compat.list_pages,
    is_hosted=compat.is_hosted,
)
