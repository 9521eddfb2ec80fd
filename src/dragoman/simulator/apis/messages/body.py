"""The declared fields of a request in its four forms: generate or count tokens, directly or on Vertex.

Fields are those of the vendor's typed parameters, and a few that only recordings show (`abort_reason`).
"""

from typing import Any

from dragoman.simulator.apis.declarations import Kind, MapOf, Number, Object, StringEnum, TaggedUnion


def _tag_by_type(forms: dict[str, dict[str, Any]], default: str = "") -> TaggedUnion:
    """Return a declaration of objects discriminated by their `type`."""
    return TaggedUnion("type", forms, default)


_NULLABLE = Kind("str", "null")
"""A required field that may be null."""
_COUNT = Number(int, 0)
_POSITIVE = Number(int, 1)
_SHARE = Number(float, 0, 1)
_EFFORT = StringEnum("low", "medium", "high", "xhigh", "max")
_CACHE_CONTROL = _tag_by_type(
    {"ephemeral": {"ttl?": StringEnum("5m", "1h"), "scope?": StringEnum("global")}}, default="ephemeral"
)
_CACHED = {"cache_control?": _CACHE_CONTROL}


_CITED = {"cited_text": str, "document_index": _COUNT, "document_title": _NULLABLE}
_CITATION = _tag_by_type(
    {
        "char_location": {**_CITED, "end_char_index": int, "start_char_index": _COUNT, "file_id?": str},
        "page_location": {**_CITED, "end_page_number": int, "start_page_number": int, "file_id?": str},
        "content_block_location": {**_CITED, "end_block_index": int, "start_block_index": _COUNT, "file_id?": str},
        "web_search_result_location": {"cited_text": str, "encrypted_index": str, "title": _NULLABLE, "url": str},
        "search_result_location": {
            "cited_text": str,
            "end_block_index": int,
            "search_result_index": _COUNT,
            "source": str,
            "start_block_index": _COUNT,
            "title": _NULLABLE,
        },
    },
)
_TEXT = {"text": {"text": str, **_CACHED, "citations?": [_CITATION]}}
_TEXTS = [_tag_by_type(_TEXT, default="text")]
_LINKED = {"url": {"url": str}, "file": {"file_id": str}}
_IMAGE_TYPE = StringEnum("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE = {
    "image": {
        "source": _tag_by_type({"base64": {"media_type": _IMAGE_TYPE, "data": str}, **_LINKED}),
        **_CACHED,
        "transformations?": dict,
    }
}
_DOCUMENT_SOURCES = {
    "base64": {"media_type": StringEnum("application/pdf"), "data": str},
    "content": {"content": (str, [_tag_by_type({**_TEXT, **_IMAGE})])},
    "file": {"file_id": str},
    "text": {"media_type": StringEnum("text/plain"), "data": str},
    "url": {"url": str},
}
_CITABLE = {**_CACHED, "citations?": {"enabled?": bool}}
_DOCUMENT = {
    "document": {"source": _tag_by_type(_DOCUMENT_SOURCES), **_CITABLE, "context?": str, "title?": str},
}
_SEARCH_RESULT = {"search_result": {"content": _TEXTS, "source": str, "title": str, **_CITABLE}}
_CALLER = _tag_by_type(
    {"direct": {}, "code_execution_20250825": {"tool_id": str}, "code_execution_20260120": {"tool_id": str}}
)
_CALL = {**_CACHED, "caller?": _CALLER}
_RESULT = {"tool_use_id": str, **_CACHED}
_REFERENCE = {"tool_reference": {"tool_name": str, **_CACHED}}
_RESULT_CONTENT = _tag_by_type(
    {
        **_TEXT,
        **_IMAGE,
        **_SEARCH_RESULT,
        **_DOCUMENT,
        **_REFERENCE,
        "browser_state": {"tabs": [dict], **_CACHED, "state_changes?": [dict]},
    },
)
_SERVER_TOOL = StringEnum(
    "advisor",
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
)
_CLIENT_BLOCKS = {
    **_TEXT,
    **_IMAGE,
    **_DOCUMENT,
    **_SEARCH_RESULT,
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict, **_CALL, "toolset_name?": str},
    "tool_result": {**_RESULT, "content?": (str, [_RESULT_CONTENT]), "is_error?": bool, "toolset_name?": str},
    "server_tool_use": {"id": str, "input": dict, "name": _SERVER_TOOL, **_CALL},
}
_FOUND_PAGE = {"encrypted_content": str, "title": str, "url": str, "page_age?": str}
_FETCHED_PAGE = {"content": _tag_by_type(_DOCUMENT, default="document"), "url": str, "retrieved_at?": str}
_CODE_RESULT = {"content": [dict], "return_code": int, "stderr": str, "abort_reason?": str}


def _declare_server_result(tool: str, forms: dict[str, dict[str, Any]], **members: Any) -> dict[str, dict[str, Any]]:
    """Return the declaration of the result of a server tool, which may be an error."""
    failed = {f"{tool}_tool_result_error": {"error_code": str, **members.pop("failed", {})}}
    return {f"{tool}_tool_result": {"content": _tag_by_type({**forms, **failed}), **_RESULT, **members}}


SERVER_RESULTS: dict[str, dict[str, Any]] = {
    "web_search_tool_result": {
        "content": (
            [_tag_by_type({"web_search_result": _FOUND_PAGE}, default="web_search_result")],
            _tag_by_type({"web_search_tool_result_error": {"error_code": str}}, default="web_search_tool_result_error"),
        ),
        **_RESULT,
        "caller?": _CALLER,
    },
    **_declare_server_result("web_fetch", {"web_fetch_result": _FETCHED_PAGE}, **{"caller?": _CALLER}),
    **_declare_server_result(
        "advisor",
        {
            "advisor_result": {"text": str, "stop_reason?": str},
            "advisor_redacted_result": {"encrypted_content": str, "stop_reason?": str},
        },
    ),
    **_declare_server_result(
        "code_execution",
        {
            "code_execution_result": {**_CODE_RESULT, "stdout": str},
            "encrypted_code_execution_result": {**_CODE_RESULT, "encrypted_stdout": str},
        },
    ),
    **_declare_server_result("bash_code_execution", {"bash_code_execution_result": {**_CODE_RESULT, "stdout": str}}),
    "text_editor_code_execution_tool_result": {"content": dict, **_RESULT},
    **_declare_server_result(
        "tool_search",
        {"tool_search_tool_search_result": {"tool_references": [_tag_by_type(_REFERENCE, default="tool_reference")]}},
        failed={"error_message?": str},
    ),
}
"""Results of server tools."""
_REFERENCES = {
    "tool_reference": {"name": str},
    "mcp_tool_reference": {"name": str, "server_name": str},
    "mcp_toolset_reference": {"server_name": str},
}
_TOOL_CHANGES = {
    "tool_addition": {"tool": _tag_by_type({**_REFERENCES, "tool_definition": {"definition": dict}}), **_CACHED},
    "tool_removal": {"tool": _tag_by_type(_REFERENCES), **_CACHED},
}
_BLOCKS = [
    _tag_by_type(
        {
            **_CLIENT_BLOCKS,
            **SERVER_RESULTS,
            "container_upload": {"file_id": str, **_CACHED},
            "mcp_tool_use": {"id": str, "input": dict, "name": str, "server_name": str, **_CACHED},
            "mcp_tool_result": {**_RESULT, "content?": (str, _TEXTS), "is_error?": bool},
            "mcp_tool_listing": {"mcp_server_name": str, "tools": [dict]},
            "compaction": {
                "content?": str,
                "encrypted_content?": str,
                "signature?": str,
                "tool_changes?": [_tag_by_type(_TOOL_CHANGES)],
                **_CACHED,
            },
            "fallback": {"from": dict, "to": dict, "trigger?": Any},
        },
    )
]
_MESSAGE = TaggedUnion(
    "role",
    {
        "user": {"content": (str, _BLOCKS)},
        "assistant": {"content": (str, _BLOCKS)},
        "system": {
            "content?": (str, [_tag_by_type({**_TEXT, **_TOOL_CHANGES})]),
            "clear_at?": StringEnum("next_user_message", "never"),
            "output_config?": {"effort?": _EFFORT},
        },
    },
)
_ANY_TOOL = {
    **_CACHED,
    "allowed_callers?": [
        StringEnum("direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521")
    ],
    "defer_loading?": bool,
    "strict?": bool,
}


def _declare_tool(name: str, **members: Any) -> dict[str, Any]:
    """Return the declaration of a server tool: the vendor defines it by its type and runs it."""
    return {"name": StringEnum(name), **members, **_ANY_TOOL}


def _declare_client_tool(name: str, **members: Any) -> dict[str, Any]:
    """Return the declaration of a tool that the vendor defines by its type and the client runs."""
    return _declare_tool(name, **members, **{"input_examples?": [dict]})


_SCREEN = _declare_client_tool(
    "computer", display_height_px=_POSITIVE, display_width_px=_POSITIVE, **{"display_number?": int}
)
_TOOLSET = {**_CACHED, "configs?": MapOf(Kind("object", "null"))}
_WEB = {"allowed_domains?": [str], "blocked_domains?": [str], "max_uses?": _POSITIVE}
_PLACE = {"city?": str, "country?": str, "region?": str, "timezone?": str}
_SEARCH = _declare_tool(
    "web_search", **_WEB, **{"user_location?": _tag_by_type({"approximate": _PLACE}, default="approximate")}
)
_FETCH = _declare_tool(
    "web_fetch",
    **_WEB,
    **{"citations?": {"enabled?": bool}, "max_content_tokens?": _POSITIVE, "url_sources?": dict},
)
_INCLUSION = {"response_inclusion?": StringEnum("full", "excluded")}
_TOOL = TaggedUnion(
    "type",
    {
        "custom": {
            "name": str,
            "input_schema": dict,
            "description?": str,
            "eager_input_streaming?": bool,
            "input_examples?": [dict],
            **_ANY_TOOL,
        },
        "bash_20241022": _declare_client_tool("bash"),
        "bash_20250124": _declare_client_tool("bash"),
        "text_editor_20241022": _declare_client_tool("str_replace_editor"),
        "text_editor_20250124": _declare_client_tool("str_replace_editor"),
        "text_editor_20250429": _declare_client_tool("str_replace_based_edit_tool"),
        "text_editor_20250728": _declare_client_tool("str_replace_based_edit_tool", **{"max_characters?": _POSITIVE}),
        "memory_20250818": _declare_client_tool("memory"),
        "computer_20241022": _SCREEN,
        "computer_20250124": _SCREEN,
        "computer_20251124": {**_SCREEN, "enable_zoom?": bool},
        "computer_toolset_20260801": _TOOLSET,
        "browser_toolset_20260801": _TOOLSET,
        "code_execution_20250522": _declare_tool("code_execution"),
        "code_execution_20250825": _declare_tool("code_execution"),
        "code_execution_20260120": _declare_tool("code_execution"),
        "code_execution_20260521": _declare_tool("code_execution"),
        "web_search_20250305": _SEARCH,
        "web_search_20260209": _SEARCH,
        "web_search_20260318": {**_SEARCH, **_INCLUSION},
        "web_fetch_20250910": _FETCH,
        "web_fetch_20260209": _FETCH,
        "web_fetch_20260309": {**_FETCH, "use_cache?": bool},
        "web_fetch_20260318": {**_FETCH, "use_cache?": bool, **_INCLUSION},
        "advisor_20260301": _declare_tool(
            "advisor", model=str, **{"caching?": _CACHE_CONTROL, "max_tokens?": int, "max_uses?": _POSITIVE}
        ),
        "tool_search_tool_regex_20251119": _declare_tool("tool_search_tool_regex"),
        "tool_search_tool_regex": _declare_tool("tool_search_tool_regex"),
        "tool_search_tool_bm25_20251119": _declare_tool("tool_search_tool_bm25"),
        "tool_search_tool_bm25": _declare_tool("tool_search_tool_bm25"),
        "mcp_toolset": {
            "mcp_server_name": str,
            **_CACHED,
            "configs?": MapOf(dict),
            "default_config?": dict,
            "tools?": [dict],
        },
    },
    default="custom",
    nullable=True,
)
_PARALLEL = {"disable_parallel_tool_use?": bool}
_DISPLAY = {
    "display?": StringEnum("summarized", "omitted", "updates"),
    "block_binding?": {"prefix_mismatch_behavior?": StringEnum("error", "drop_block")},
}
_FORMAT = {"type": StringEnum("json_schema"), "schema": dict}
_INPUT_TOKENS = {"input_tokens": {"value": _COUNT}}
_TOOL_USES = {"tool_uses": {"value": _COUNT}}
_TOKENS = _tag_by_type(_INPUT_TOKENS, default="input_tokens")
_EDIT = _tag_by_type(
    {
        "clear_tool_uses_20250919": {
            "clear_at_least?": _TOKENS,
            "clear_tool_inputs?": (bool, [str]),
            "exclude_tools?": [str],
            "keep?": _tag_by_type(_TOOL_USES, default="tool_uses"),
            "trigger?": _tag_by_type({**_INPUT_TOKENS, **_TOOL_USES}),
        },
        "clear_thinking_20251015": {"keep?": (StringEnum("all"), dict)},
        "compact_20260112": {"instructions?": str, "pause_after_compaction?": bool, "trigger?": _TOKENS},
    },
)
_MCP_SERVER = {
    "type": StringEnum("url"),
    "url": str,
    "name": str,
    "authorization_token?": str,
    "tool_configuration?": dict,
}
_COMMON = {
    "messages": [_MESSAGE],
    "system?": (str, _TEXTS),
    "tools?": [_TOOL],
    "tool_choice?": _tag_by_type({"auto": _PARALLEL, "any": _PARALLEL, "tool": {"name": str, **_PARALLEL}, "none": {}}),
    "thinking?": _tag_by_type(
        {
            "enabled": {"budget_tokens": Number(int, 1024), **_DISPLAY},
            "adaptive": _DISPLAY,
            "disabled": {},
            "between_tools": {},
        },
    ),
    "output_config?": {
        "effort?": _EFFORT,
        "format?": _FORMAT,
        "task_budget?": {"type": StringEnum("tokens"), "total": int, "remaining?": int},
    },
    "output_format?": _FORMAT,
    "cache_control?": _CACHE_CONTROL,
    "context_management?": {"edits?": [_EDIT]},
    "mcp_servers?": [_MCP_SERVER],
    "speed?": StringEnum("standard", "fast"),
}
_GENERATE = {
    **_COMMON,
    "max_tokens": _COUNT,
    "stop_sequences?": [str],
    "stream?": bool,
    "metadata?": {"user_id?": str},
    "temperature?": _SHARE,
    "top_p?": _SHARE,
    "top_k?": _COUNT,
    "service_tier?": StringEnum("auto", "standard_only"),
    "container?": (
        str,
        {"id?": str, "skills?": [{"skill_id": str, "type": StringEnum("anthropic", "custom"), "version?": str}]},
    ),
    "inference_geo?": str,
    "diagnostics?": dict,
    "compaction?": {"type": StringEnum("summarize"), "instructions?": str},
    "thread?": _tag_by_type({"create": {}, "continue": {"previous_message_id": str}}),
    "fallbacks?": ([dict], StringEnum("default")),
    "fallback_credit_token?": (str, dict),
}
_ON_VERTEX = {"anthropic_version": StringEnum("vertex-2023-10-16", "2026-10-21"), "anthropic_beta?": [str]}
REQUEST = Object({**_GENERATE, "model": str})
"""`POST /v1/messages`."""
VERTEX_REQUEST = Object({**_GENERATE, **_ON_VERTEX})
"""`:rawPredict` and `:streamRawPredict`: the model is in the path, the version in the body."""
COUNT = Object({**_COMMON, "model": str})
"""`POST /v1/messages/count_tokens`."""
VERTEX_COUNT = Object({**_COMMON, "model": str, **_ON_VERTEX})
"""`models/count-tokens:rawPredict`: here the model is in the body."""
