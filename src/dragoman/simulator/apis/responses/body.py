"""The declared fields of a request (POST /v1/responses), and the data that all rules use.

Null means absent: clients send nulls, and the vendor accepts them. Of tools and items that the simulator never runs,
only the top-level fields are checked; below those any object is accepted.
"""

from typing import Any, cast

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.declarations import Kind, MapOf, Number, Object, String, StringEnum, TaggedUnion
from dragoman.simulator.apis.openai.models import Family
from dragoman.simulator.apis.responses.ids import decode_item_id, decode_response_id, is_issued_conversation
from dragoman.simulator.apis.rule import Json, VendorRequest

_TEXT = String(most=10_485_760)
_CALL_ID = String(1, 64)
_ID = String(most=64)
_NAME = String(most=128)
_LEVEL = StringEnum("high", "low", "medium")
_STATUS = StringEnum("completed", "in_progress", "incomplete")
_SEARCH_STATUS = StringEnum("completed", "failed", "in_progress", "incomplete", "searching")
_EXECUTION = StringEnum("client", "server")
_TTL = StringEnum("12h", "30m")
_EFFORT = StringEnum("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARY = StringEnum("concise", "detailed", "auto")
_PENALTY = Number(float, -2, 2)

_CALLERS = {"allowed_callers?": [StringEnum("direct", "programmatic")]}
_GRAMMAR = TaggedUnion("type", {"text": {}, "grammar": {"syntax": StringEnum("lark", "regex"), "definition": str}})
_OWN = {"name": str, "description?": str, "defer_loading?": bool, **_CALLERS, "async?": bool}
_FUNCTION = {**_OWN, "parameters?": dict, "strict?": bool, "output_schema?": dict}
_CUSTOM = {**_OWN, "format?": _GRAMMAR}
_SEARCH = {
    "search_context_size?": _LEVEL,
    "search_content_types?": [StringEnum("image", "text")],
    "user_location?": dict,
}
_WEB_SEARCH = {**_SEARCH, "external_web_access?": bool, "filters?": dict, "return_token_budget?": str}
_MCP = {
    "server_label": str,
    "server_url?": str,
    "connector_id?": str,
    "tunnel_id?": str,
    "server_description?": str,
    "headers?": MapOf(str),
    "authorization?": str,
    "allowed_tools?": ([str], dict),
    "require_approval?": (StringEnum("always", "never"), dict),
    "defer_loading?": bool,
    **_CALLERS,
}
_IMAGE_GENERATION = {
    "action?": StringEnum("auto", "edit", "generate"),
    "background?": StringEnum("auto", "opaque", "transparent"),
    "complexity?": _LEVEL,
    "frame_count?": int,
    "frame_duration_ms?": int,
    "input_fidelity?": StringEnum("high", "low"),
    "input_image_mask?": dict,
    "model?": str,
    "moderation?": StringEnum("auto", "low"),
    "n?": int,
    "output_compression?": int,
    "output_format?": StringEnum("gif", "jpeg", "png", "svg", "webp"),
    "partial_images?": int,
    "quality?": StringEnum("auto", "high", "low", "max", "medium", "xhigh"),
    "size?": str,
    "svg?": dict,
}
_TOOLS = [
    TaggedUnion(
        "type",
        {
            "function": _FUNCTION,
            "custom": _CUSTOM,
            "namespace": {
                "name": str,
                "description": str,
                "tools": [TaggedUnion("type", {"function": _FUNCTION, "custom": _CUSTOM})],
            },
            "tool_search": {"execution?": _EXECUTION, "description?": str, "parameters?": dict},
            "mcp": _MCP,
            "web_search": _WEB_SEARCH,
            "web_search_2025_08_26": _WEB_SEARCH,
            "web_search_preview": _SEARCH,
            "web_search_preview_2025_03_11": _SEARCH,
            "file_search": {
                "vector_store_ids": [str],
                "filters?": dict,
                "max_num_results?": int,
                "ranking_options?": dict,
            },
            "code_interpreter": {"container": (str, dict), **_CALLERS},
            "image_generation": _IMAGE_GENERATION,
            "computer": {},
            "computer_use_preview": {
                "display_width": int,
                "display_height": int,
                "environment": StringEnum("browser", "linux", "mac", "ubuntu", "windows"),
            },
            "local_shell": {},
            "shell": {"environment?": dict, **_CALLERS},
            "apply_patch": _CALLERS,
            "programmatic_tool_calling": {},
        },
    )
]
_HOSTED_CHOICES = (
    "file_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer",
    "computer_use",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "apply_patch",
    "shell",
    "programmatic_tool_calling",
)
_CHOICE = TaggedUnion(
    "type",
    {
        "function": {"name": str},
        "custom": {"name": str},
        "mcp": {"server_label": str, "name?": str},
        "allowed_tools": {"mode": StringEnum("auto", "required"), "tools": [dict]},
        **{name: {} for name in _HOSTED_CHOICES},
    },
)

_BREAKPOINT = {"prompt_cache_breakpoint?": {"mode": StringEnum("explicit"), "ttl?": _TTL}}
_INPUTS = {
    "input_text": {"text": _TEXT, **_BREAKPOINT},
    "input_image": {
        "image_url?": str,
        "file_id?": str,
        "detail?": StringEnum("auto", "high", "low", "original"),
        **_BREAKPOINT,
    },
    "input_file": {
        "file_data?": str,
        "file_id?": str,
        "file_url?": str,
        "filename?": str,
        "detail?": StringEnum("auto", "high", "low"),
        **_BREAKPOINT,
    },
}
_AUDIO = {"input_audio": {"input_audio": {"data": str, "format": StringEnum("mp3", "wav")}}}
_REPLY = {"output_text": {"text": str, "annotations?": [dict], "logprobs?": [dict]}, "refusal": {"refusal": str}}
_KEPT = {"id?": _ID, "status?": _STATUS}
_MESSAGE = {"type?": str, **_KEPT, "phase?": StringEnum("commentary", "final_answer")}
_INPUT_MESSAGE = {"content": (_TEXT, [TaggedUnion("type", {**_INPUTS, **_AUDIO})]), **_MESSAGE}
_OUTPUT_MESSAGE = {"content": (_TEXT, [TaggedUnion("type", _REPLY)]), **_MESSAGE}
_CALLER = {"caller?": TaggedUnion("type", {"direct": {}, "program": {"caller_id": str}})}
_CALL = {"call_id": _CALL_ID, "name": _NAME, **_KEPT, "namespace?": str, **_CALLER, "async?": bool}
_OUTPUT = {"call_id": _CALL_ID, "output": (_TEXT, [TaggedUnion("type", _INPUTS)]), **_KEPT, "name?": _NAME, **_CALLER}
_OUTCOME = TaggedUnion("type", {"exit": {"exit_code": int}, "timeout": {}})
_SHELL_OUTPUT = [{"stdout": str, "stderr": str, "outcome": _OUTCOME}]
_SHELL_ACTION = {"commands": [str], "timeout_ms?": int, "max_output_length?": int}
_PATCH = {"call_id": _CALL_ID, "id?": _ID, **_CALLER}
_TOOL_SEARCH = {"call_id?": _CALL_ID, "execution?": _EXECUTION, **_KEPT}
_SEARCH_SOURCES = [TaggedUnion("type", {"url": {"url": str}, "api": {"name": str}}, default="url")]
_SEARCH_QUERY = {"query?": str, "queries?": [str], "sources?": _SEARCH_SOURCES}
_SEARCH_ACTIONS = {"search": _SEARCH_QUERY, "open_page": {"url?": str}, "find_in_page": {"url": str, "pattern": str}}
ITEMS = TaggedUnion(
    "type",
    {
        "message": TaggedUnion(
            "role",
            {
                "assistant": _OUTPUT_MESSAGE,
                "system": _INPUT_MESSAGE,
                "developer": _INPUT_MESSAGE,
                "user": _INPUT_MESSAGE,
            },
        ),
        "function_call": {**_CALL, "arguments": str},
        "function_call_output": {**_OUTPUT, "namespace?": String(most=64)},
        "custom_tool_call": {**_CALL, "input": str},
        "custom_tool_call_output": _OUTPUT,
        "tool_search_call": {"arguments": Any, **_TOOL_SEARCH},
        "tool_search_output": {"tools": _TOOLS, **_TOOL_SEARCH},
        "additional_tools": {"role": StringEnum("developer"), "tools": _TOOLS, "id?": _ID},
        "reasoning": {
            "summary": [TaggedUnion("type", {"summary_text": {"text": str}}, default="summary_text")],
            "content?": [TaggedUnion("type", {"reasoning_text": {"text": str}}, default="reasoning_text")],
            "encrypted_content?": str,
            **_KEPT,
        },
        "web_search_call": {"id": _ID, "action?": TaggedUnion("type", _SEARCH_ACTIONS), "status?": _SEARCH_STATUS},
        "file_search_call": {"id": _ID, "queries": [str], "status?": _SEARCH_STATUS, "results?": [dict]},
        "code_interpreter_call": {
            "id": _ID,
            "code": Kind("str", "null"),
            "container_id": str,
            "outputs?": [dict],
            "status?": StringEnum("completed", "failed", "in_progress", "incomplete", "interpreting"),
        },
        "image_generation_call": {
            "id": _ID,
            "result?": str,
            "status?": StringEnum("completed", "failed", "generating", "in_progress"),
            "error?": dict,
            "svg_usage?": dict,
            **dict.fromkeys(
                ("action?", "background?", "output_format?", "quality?", "revised_prompt?", "size?"),
                str,
            ),
        },
        "computer_call": {
            "id": _ID,
            "call_id": _CALL_ID,
            "pending_safety_checks": [dict],
            "status": _STATUS,
            "action?": dict,
            "actions?": [dict],
        },
        "computer_call_output": {"call_id": _CALL_ID, "output": dict, "acknowledged_safety_checks?": [dict], **_KEPT},
        "local_shell_call": {"id": _ID, "call_id": _CALL_ID, "action": dict, "status": _STATUS},
        "local_shell_call_output": {"id?": _ID, "call_id?": _CALL_ID, "output": str, "status?": _STATUS},
        "shell_call": {"call_id": _CALL_ID, "action": _SHELL_ACTION, **_CALLER, "environment?": dict, **_KEPT},
        "shell_call_output": {
            "call_id": _CALL_ID,
            "output": _SHELL_OUTPUT,
            "max_output_length?": int,
            **_CALLER,
            **_KEPT,
        },
        "apply_patch_call": {"operation": dict, "status": StringEnum("completed", "in_progress"), **_PATCH},
        "apply_patch_call_output": {"status": StringEnum("completed", "failed"), "output?": str, **_PATCH},
        "mcp_list_tools": {"id": _ID, "server_label": str, "tools": [dict], "error?": Any},
        "mcp_approval_request": {"id": _ID, "arguments": str, "name": str, "server_label": str},
        "mcp_approval_response": {"approval_request_id": str, "approve": bool, "id?": _ID, "reason?": str},
        "mcp_call": {
            "id": _ID,
            "arguments": str,
            "name": str,
            "server_label": str,
            "approval_request_id?": str,
            "error?": Any,
            "output?": str,
            "status?": StringEnum("calling", "completed", "failed", "in_progress", "incomplete"),
        },
        "program": {"id": _ID, "call_id": _CALL_ID, "code": str, "fingerprint": str},
        "program_output": {
            "id": _ID,
            "call_id": _CALL_ID,
            "result": str,
            "status": StringEnum("completed", "incomplete"),
        },
        "compaction": {"encrypted_content": str, "id?": _ID},
        "compaction_trigger": {"id?": _ID},
        "item_reference": {"id": _ID},
        "configuration_update": {"id?": _ID, "reasoning?": {"effort?": _EFFORT}, "text?": {"format": dict}},
    },
)
_FORMAT = {"name": str, "schema": dict, "description?": str, "strict?": bool}
BODY = Object(
    {
        "model?": str,
        "input?": (_TEXT, [ITEMS]),
        "instructions?": str,
        "previous_response_id?": str,
        "conversation?": (str, {"id": str}),
        "tools?": _TOOLS,
        "tool_choice?": (StringEnum("none", "auto", "required"), _CHOICE),
        "parallel_tool_calls?": bool,
        "max_tool_calls?": Number(int, 1),
        "reasoning?": {
            "effort?": _EFFORT,
            "summary?": _SUMMARY,
            "context?": StringEnum("all_turns", "auto", "current_turn"),
            "mode?": StringEnum("pro", "standard"),
            "generate_summary?": _SUMMARY,
        },
        "text?": {
            "format?": TaggedUnion("type", {"text": {}, "json_object": {}, "json_schema": _FORMAT}),
            "verbosity?": _LEVEL,
        },
        "include?": [
            StringEnum(
                "file_search_call.results",
                "web_search_call.results",
                "web_search_call.action.sources",
                "message.input_image.image_url",
                "computer_call_output.output.image_url",
                "code_interpreter_call.outputs",
                "reasoning.encrypted_content",
                "message.output_text.logprobs",
            )
        ],
        "store?": bool,
        "stream?": bool,
        "stream_options?": {"include_obfuscation?": bool},
        "background?": bool,
        "context_management?": [{"type": str, "compact_threshold?": int}],
        "max_output_tokens?": Number(int, 16),
        "temperature?": Number(float, 0, 2),
        "top_p?": Number(float, 0, 1),
        "top_logprobs?": Number(int, 0, 20),
        "presence_penalty?": _PENALTY,
        "frequency_penalty?": _PENALTY,
        "truncation?": StringEnum("auto", "disabled"),
        "metadata?": MapOf(String(most=512), names=String(most=64), most=16),
        "prompt?": {"id": str, "version?": str, "variables?": MapOf((str, TaggedUnion("type", _INPUTS)))},
        "prompt_cache_key?": String(most=64),
        "prompt_cache_options?": {
            "mode?": StringEnum("explicit", "implicit"),
            "ttl?": _TTL,
            "prewarm?": bool,
            "comparison_response_id?": str,
        },
        "prompt_cache_retention?": StringEnum("in_memory", "24h"),
        "safety_identifier?": String(most=128),
        "service_tier?": StringEnum("auto", "default", "fast", "flex", "priority", "scale", "ultrafast"),
        "moderation?": {"model": str, "policy?": dict},
        "access_programs?": {"cyber": StringEnum("daybreak_blue", "daybreak_red", "standard")},
        "image?": {"context_compression?": StringEnum("auto", "disabled", "enabled")},
        "user?": str,
        "client_metadata?": dict,  # sent by the vendor's own coding agent
    }
)
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"
"""A field that the vendor's own coding agent adds to every item."""


class ResponsesRequest(VendorRequest, frozen=True, kw_only=True):
    """A request whose fields are valid; every item has its `type`."""

    model: str
    family: Family
    signer: TokenSigner
    items: list[Json]
    """The input items; empty if the input is a text."""

    @property
    def is_stored(self) -> bool:
        """Whether the reply is stored."""
        return self.document.get("store") is not False

    @property
    def prewarms(self) -> bool:
        """Whether the request only fills the prompt cache and generates nothing."""
        return bool(self.object("prompt_cache_options").get("prewarm"))

    @property
    def conversation(self) -> str:
        """The id of the conversation that the request is part of, or ""."""
        given = self.document.get("conversation") or ""
        return given if isinstance(given, str) else given["id"]

    @property
    def continues(self) -> bool:
        """Whether the vendor holds a part of the conversation that is not in the request."""
        # The items of a conversation in the simulator were added to the input; those of others are unknown.
        if self.document.get("prompt") or (self.conversation and not is_issued_conversation(self.conversation)):
            return True
        previous = self.document.get("previous_response_id")
        return bool(previous) and not self._contains_reply(decode_response_id(previous))

    def _contains_reply(self, reply: str) -> bool:
        """Return whether the input has items of a reply, by their ids."""
        issued = (decode_item_id(item.get("id") or "") for item in self.items)
        return bool(reply) and any(one is not None and one.reply == reply for one in issued)


def normalise(document: Json) -> Json:
    """Return a body whose items all have a type, without fields that the vendor ignores."""
    changed: Json = {}
    if isinstance(given := document.get("input"), list):
        changed["input"] = [_normalise_item(item) for item in cast("list[Any]", given)]
    if isinstance(tools := document.get("tools"), list):
        changed["tools"] = [_drop_nested_function(tool) for tool in cast("list[Any]", tools)]
    if isinstance(choice := document.get("tool_choice"), dict):
        changed["tool_choice"] = _drop_nested_function(cast("Json", choice))
    return {**document, **changed} if changed else document


def _normalise_item(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    known = {name: value for name, value in cast("Json", item).items() if name != _PASSTHROUGH}
    if known.get("type") is None and ("role" in known or "id" in known):
        known["type"] = "message" if "role" in known else "item_reference"
    return known


def _drop_nested_function(tool: Any) -> Any:
    """Drop `function` of a Chat-style tool: the vendor reports the missing `name`, not that `function` is unknown."""
    if not isinstance(tool, dict):
        return tool
    known = cast("Json", tool)
    if known.get("type") == "function" and "function" in known and "name" not in known:
        return {name: value for name, value in known.items() if name != "function"}
    return known
