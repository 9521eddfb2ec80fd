"""The OpenAI Responses dialect: its HTTP API and its record."""

import re

from dragoman.dialects.api import Api, Endpoint, ServedPath
from dragoman.dialects.record import CallPlace, Dialect, ReplyCapabilities, TokenCountFormat
from dragoman.dialects.responses import compat
from dragoman.dialects.responses.client_items import fit_arguments
from dragoman.dialects.responses.client_tools import declare_client_tool
from dragoman.dialects.responses.decoder import ResponsesDecoder
from dragoman.dialects.responses.encoder import ResponsesEncoder
from dragoman.dialects.responses.errors import MAPPED_ERROR_TYPES, build_error, parse_error
from dragoman.dialects.responses.fields import POINTERS
from dragoman.dialects.responses.parts import find_field_pointer
from dragoman.dialects.responses.remote import REMOTE
from dragoman.dialects.responses.renderer import render_request, write_tools
from dragoman.dialects.responses.request import parse_request, read_declared_tools, read_tools
from dragoman.dialects.responses.response import REPEATED, STATUSES, build_response, parse_response
from dragoman.dialects.responses.traits import ROWS
from dragoman.dialects.responses.wire import ISSUER, NAME

_RESPONSE = r"/v1/responses/(?P<name>[^/]+)"
_CONVERSATION = r"/v1/conversations/(?P<name>[^/]+)"


def _build_stored_path(method: str, path: str, action: str) -> ServedPath:
    """Return the route for an action on a stored object whose id is in the path."""
    return ServedPath(path, Endpoint(operation="kept", action=action), (method,), is_pattern=True, escaped=True)


API = Api(
    paths=(
        ServedPath("/v1/responses", Endpoint(operation="generate", convert=compat.flatten_tools)),
        ServedPath("/v1/responses/input_tokens", Endpoint(operation="count", convert=compat.flatten_tools)),
        ServedPath("/v1/conversations", Endpoint(operation="kept", action="conversations.create")),
        _build_stored_path("GET", _RESPONSE, "responses.retrieve"),
        _build_stored_path("DELETE", _RESPONSE, "responses.delete"),
        _build_stored_path("POST", rf"{_RESPONSE}/cancel", "responses.cancel"),
        _build_stored_path("GET", rf"{_RESPONSE}/input_items", "responses.input_items"),
        _build_stored_path("GET", _CONVERSATION, "conversations.retrieve"),
        _build_stored_path("POST", _CONVERSATION, "conversations.update"),
        _build_stored_path("DELETE", _CONVERSATION, "conversations.delete"),
        _build_stored_path("GET", rf"{_CONVERSATION}/items", "conversations.items"),
        _build_stored_path("POST", rf"{_CONVERSATION}/items", "conversations.add"),
        _build_stored_path("GET", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", "conversations.item"),
        _build_stored_path("DELETE", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", "conversations.remove"),
    ),
    own_paths=r"^/v1/responses",
    forwarded_headers=frozenset({"openai-beta"}),
    account_headers=frozenset({"openai-organization", "openai-project"}),
    model_names=r"gpt-|o\d|chatgpt-|codex-",
    default_model="gpt-5.4-mini",
)

DIALECT = Dialect(
    name=NAME,
    issuer=ISSUER,
    call_prefix="call_",
    reply_prefix="resp_",
    history="input",
    turns=compat.TURNS,
    traits=ROWS,
    call_place=CallPlace(member="type", values=frozenset({"function_call", "custom_tool_call"}), name=("/name",)),
    result_place=CallPlace(
        member="type", values=frozenset({"function_call_output", "custom_tool_call_output"}), name=("/name",)
    ),
    api=API,
    remote=REMOTE,
    capabilities=ReplyCapabilities(
        signatures=frozenset({"reasoning"}),
        refusal=True,
        custom_calls=True,
        citations=True,
        searches=True,
        counts=frozenset({"cached", "cache_written", "reasoning", "searches"}),
        namespaces=True,
        tool_search=True,
    ),
    pointers=POINTERS,
    reply_pointers={
        "part.signature": ("/encrypted_content",),
        "part.citations": ("/annotations",),
        "call.id": ("/call_id",),
        "call.namespace": ("/namespace",),
        "finish.reason": ("/incomplete_details/reason",),
        "usage": ("/usage",),
        "usage.searches": ("/tool_usage/web_search/num_requests",),
        "usage.cache_written": ("/usage/input_tokens_details/cache_write_tokens",),
    },
    repeated=REPEATED,
    mapped_finishes=STATUSES | {"max_output_tokens", "content_filter"},
    parse_request=parse_request,
    render_request=render_request,
    read_tools=read_tools,
    write_tools=write_tools,
    parse_response=parse_response,
    build_response=build_response,
    decoder=ResponsesDecoder,
    encoder=ResponsesEncoder,
    read_declared_tools=read_declared_tools,
    find_extra_pointer=find_field_pointer,
    parse_error=parse_error,
    build_error=build_error,
    item_id="/id",
    signature_error=re.compile(r"[Ee]ncrypted content .*could not be verified|invalid_encrypted_content"),
    mapped_error_types=MAPPED_ERROR_TYPES,
    count=TokenCountFormat("input_tokens", {"object": "response.input_tokens"}),
    id_header="x-request-id",
    implied=compat.IMPLIED,
    implied_replies=compat.IMPLIED_REPLIES,
    informational=compat.INFORMATIONAL,
    informational_replies=compat.INFORMATIONAL_REPLIES,
    vendor_tools=compat.VENDOR_TOOLS,
    search_settings=compat.SEARCH_SETTINGS,
    call_limit="/max_tool_calls",
    is_hosted=compat.is_hosted,
    declare_client_tool=declare_client_tool,
    fit_arguments=fit_arguments,
    image_detail="/detail",
)
