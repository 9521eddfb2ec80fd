"""The declared fields of a chat completion request (POST /v1/chat/completions), and the traits of its model.

Fields that are not documented but were recorded in requests that got an answer are tolerated:
`parsed_arguments` and `parsed` (clients/captures/sdk-openai), `index` of calls (opentelemetry-js-contrib-0007),
`annotations` (activeagent-0036), `name` of results (crewai-0002), anything in a function (openinference-0001), and in
text parts the fields named by the rule `chat.text-part-members`.
"""

from typing import Any

from dragoman.simulator.apis.declarations import MapOf, Number, Object, StringEnum, TaggedUnion
from dragoman.simulator.apis.openai.models import Family
from dragoman.simulator.apis.rule import VendorRequest

IGNORED_TEXT_MEMBERS = ("cache_control", "role", "refusal", "annotations", "audio", "tool_calls")
"""Anthropic's `cache_control`, and fields of a whole message that a client copied into its text part."""
_LEVEL = StringEnum("low", "medium", "high")
_BREAKPOINT = {"prompt_cache_breakpoint?": {"mode": StringEnum("explicit"), "ttl?": StringEnum("30m", "12h")}}
_TEXT = {"text": str, **_BREAKPOINT, **{f"{name}?": Any for name in IGNORED_TEXT_MEMBERS}}
_PART = TaggedUnion(
    "type",
    {
        "text": _TEXT,
        "image_url": {
            "image_url": {"url": str, "detail?": StringEnum("auto", "low", "high", "original")},
            **_BREAKPOINT,
        },
        "input_audio": {"input_audio": {"data": str, "format": StringEnum("wav", "mp3")}, **_BREAKPOINT},
        "refusal": {"refusal": str},
        "file": {"file": {"file_id?": str, "file_data?": str, "filename?": str}, **_BREAKPOINT},
    },
)
_CONTENT = (str, [_PART])
_CALLED_FUNCTION = {"name": str, "arguments": str, "parsed_arguments?": Any}
_CALL = TaggedUnion(
    "type",
    {
        "function": {"id": str, "function": _CALLED_FUNCTION, "index?": int},
        "custom": {"id": str, "custom": {"name": str, "input": str}, "index?": int},
    },
)
_BASE_MESSAGE = {"content?": _CONTENT, "name?": str}
MESSAGES: dict[str, dict[str, Any]] = {
    "system": _BASE_MESSAGE,
    "assistant": {
        **_BASE_MESSAGE,
        "refusal?": str,
        "audio?": {"id": str},
        "tool_calls?": [_CALL],
        "function_call?": _CALLED_FUNCTION,
        "annotations?": [Any],
        "parsed?": Any,
    },
    "user": _BASE_MESSAGE,
    "function": {"name": str, "content?": _CONTENT},
    "tool": {"tool_call_id": str, **_BASE_MESSAGE},
    "developer": {"content": _CONTENT, "name?": str},
}
"""The fields of a message by its role."""
_FUNCTION = Object({"name": str, "description?": str, "parameters?": MapOf(Any), "strict?": bool}, is_open=True)
_GRAMMAR = {"grammar": {"syntax": StringEnum("lark", "regex"), "definition": str}}
_CUSTOM = {"name": str, "description?": str, "format?": TaggedUnion("type", {"text": {}, "grammar": _GRAMMAR})}
_TOOL = TaggedUnion("type", {"function": {"function": _FUNCTION}, "custom": {"custom": _CUSTOM}})
_NAMED = {"name": str}
_NAMED_TOOL = TaggedUnion("type", {"function": {"function": _NAMED}, "custom": {"custom": _NAMED}})
_ALLOWED = {"allowed_tools": {"mode": StringEnum("auto", "required"), "tools": [_NAMED_TOOL]}}
_CHOICE = TaggedUnion(
    "type", {"function": {"function": _NAMED}, "allowed_tools": _ALLOWED, "custom": {"custom": _NAMED}}
)
_SCHEMA = {"json_schema": {"name": str, "description?": str, "schema?": MapOf(Any), "strict?": bool}}
_FORMAT = TaggedUnion("type", {"json_object": {}, "json_schema": _SCHEMA, "text": {}})
_MODERATION_MODE = {"mode": StringEnum("score", "block")}
_PLACE = {"city?": str, "country?": str, "region?": str, "timezone?": str}
MEMBERS: dict[str, Any] = {
    "model": str,
    "messages": [TaggedUnion("role", MESSAGES)],
    "audio?": {"format": StringEnum("wav", "aac", "mp3", "flac", "opus", "pcm16"), "voice": (str, {"id": str})},
    "frequency_penalty?": Number(float, -2, 2),
    "function_call?": (StringEnum("none", "auto"), _NAMED),
    "functions?": [_FUNCTION],
    "logit_bias?": MapOf(Number(float, -100, 100)),
    "logprobs?": bool,
    "max_completion_tokens?": Number(int, 1),
    "max_tokens?": Number(int, 1),
    "metadata?": MapOf(str),
    "modalities?": [StringEnum("text", "audio")],
    "moderation?": {"model": str, "policy?": {"input?": _MODERATION_MODE, "output?": _MODERATION_MODE}},
    "n?": Number(int, 1, 128),
    "parallel_tool_calls?": bool,
    "prediction?": {"type?": StringEnum("content"), "content": (str, [TaggedUnion("type", {"text": _TEXT})])},
    "presence_penalty?": Number(float, -2, 2),
    "prompt_cache_key?": str,
    "prompt_cache_options?": {"mode?": StringEnum("implicit", "explicit"), "ttl?": StringEnum("30m")},
    "prompt_cache_retention?": StringEnum("in_memory", "24h"),
    "reasoning_effort?": StringEnum("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "response_format?": _FORMAT,
    "safety_identifier?": str,
    "seed?": int,
    "service_tier?": StringEnum("auto", "default", "fast", "flex", "priority", unlisted=("scale",)),
    "stop?": (str, [str]),
    "store?": bool,
    "stream?": bool,
    "stream_options?": {"include_usage?": bool, "include_obfuscation?": bool},
    "temperature?": Number(float, 0, 2),
    "tool_choice?": (StringEnum("none", "auto", "required"), _CHOICE),
    "tools?": [_TOOL],
    "top_logprobs?": Number(int, 0, 20),
    "top_p?": Number(float, 0, 1),
    "user?": str,
    "verbosity?": _LEVEL,
    "web_search_options?": {
        "search_context_size?": _LEVEL,
        "user_location?": {"type": StringEnum("approximate"), "approximate": _PLACE},
    },
}
"""The fields of a request; those with `?` may be absent."""
BODY = Object(MEMBERS)


class ChatCompletionsRequest(VendorRequest, frozen=True, kw_only=True):
    """A request whose fields are valid."""

    family: Family

    @property
    def model(self) -> str:
        """The model of the request."""
        return self.document["model"]
