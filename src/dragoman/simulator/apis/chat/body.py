"""The members of a request for a chat completion (POST /v1/chat/completions), and what its model is known for.

Members that are no part of the documented request, but were recorded in requests that got an answer, are tolerated:
`parsed_arguments` and `parsed` (clients/captures/sdk-openai), `index` of calls (opentelemetry-js-contrib-0007),
`annotations` (activeagent-0036), `name` of results (crewai-0002), anything in a function (openinference-0001), and in
text parts what the rule `chat.text-part-members` names.
"""

from typing import Any

from dragoman.simulator.apis.chat.models import Family
from dragoman.simulator.members import Map, Number, Object, Tagged, Words
from dragoman.simulator.rule import Request

TOLERATED = ("cache_control", "role", "refusal", "annotations", "audio", "tool_calls")
"""Anthropic's mark, and members of a whole message that a client took into its text."""
_LEVEL = Words("low", "medium", "high")
_BREAKPOINT = {"prompt_cache_breakpoint?": {"mode": Words("explicit"), "ttl?": Words("30m", "12h")}}
_TEXT = {"text": str, **_BREAKPOINT, **{f"{name}?": Any for name in TOLERATED}}
_PART = Tagged(
    "type",
    {
        "text": _TEXT,
        "image_url": {"image_url": {"url": str, "detail?": Words("auto", "low", "high", "original")}, **_BREAKPOINT},
        "input_audio": {"input_audio": {"data": str, "format": Words("wav", "mp3")}, **_BREAKPOINT},
        "refusal": {"refusal": str},
        "file": {"file": {"file_id?": str, "file_data?": str, "filename?": str}, **_BREAKPOINT},
    },
)
_CONTENT = (str, [_PART])
_CALLED_FUNCTION = {"name": str, "arguments": str, "parsed_arguments?": Any}
_CALL = Tagged(
    "type",
    {
        "function": {"id": str, "function": _CALLED_FUNCTION, "index?": int},
        "custom": {"id": str, "custom": {"name": str, "input": str}, "index?": int},
    },
)
_SAID = {"content?": _CONTENT, "name?": str}
_MESSAGE = Tagged(
    "role",
    {
        "system": _SAID,
        "assistant": {
            **_SAID,
            "refusal?": str,
            "audio?": {"id": str},
            "tool_calls?": [_CALL],
            "function_call?": _CALLED_FUNCTION,
            "annotations?": [Any],
            "parsed?": Any,
        },
        "user": _SAID,
        "function": {"name": str, "content?": _CONTENT},
        "tool": {"tool_call_id": str, **_SAID},
        "developer": {"content": _CONTENT, "name?": str},
    },
)
_FUNCTION = Object({"name": str, "description?": str, "parameters?": Map(Any), "strict?": bool}, is_open=True)
_GRAMMAR = {"grammar": {"syntax": Words("lark", "regex"), "definition": str}}
_CUSTOM = {"name": str, "description?": str, "format?": Tagged("type", {"text": {}, "grammar": _GRAMMAR})}
_TOOL = Tagged("type", {"function": {"function": _FUNCTION}, "custom": {"custom": _CUSTOM}})
_NAMED = {"name": str}
_NAMED_TOOL = Tagged("type", {"function": {"function": _NAMED}, "custom": {"custom": _NAMED}})
_ALLOWED = {"allowed_tools": {"mode": Words("auto", "required"), "tools": [_NAMED_TOOL]}}
_CHOICE = Tagged("type", {"function": {"function": _NAMED}, "allowed_tools": _ALLOWED, "custom": {"custom": _NAMED}})
_SCHEMA = {"json_schema": {"name": str, "description?": str, "schema?": Map(Any), "strict?": bool}}
_FORMAT = Tagged("type", {"json_object": {}, "json_schema": _SCHEMA, "text": {}})
_MODERATION_MODE = {"mode": Words("score", "block")}
_PLACE = {"city?": str, "country?": str, "region?": str, "timezone?": str}
BODY = Object(
    {
        "model": str,
        "messages": [_MESSAGE],
        "audio?": {"format": Words("wav", "aac", "mp3", "flac", "opus", "pcm16"), "voice": (str, {"id": str})},
        "frequency_penalty?": Number(float, -2, 2),
        "function_call?": (Words("none", "auto"), _NAMED),
        "functions?": [_FUNCTION],
        "logit_bias?": Map(Number(float, -100, 100)),
        "logprobs?": bool,
        "max_completion_tokens?": Number(int, 1),
        "max_tokens?": Number(int, 1),
        "metadata?": Map(str),
        "modalities?": [Words("text", "audio")],
        "moderation?": {"model": str, "policy?": {"input?": _MODERATION_MODE, "output?": _MODERATION_MODE}},
        "n?": Number(int, 1, 128),
        "parallel_tool_calls?": bool,
        "prediction?": {"type?": Words("content"), "content": (str, [Tagged("type", {"text": _TEXT})])},
        "presence_penalty?": Number(float, -2, 2),
        "prompt_cache_key?": str,
        "prompt_cache_options?": {"mode?": Words("implicit", "explicit"), "ttl?": Words("30m")},
        "prompt_cache_retention?": Words("in_memory", "24h"),
        "reasoning_effort?": Words("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        "response_format?": _FORMAT,
        "safety_identifier?": str,
        "seed?": int,
        "service_tier?": Words("auto", "default", "fast", "flex", "priority", unlisted=("scale",)),
        "stop?": (str, [str]),
        "store?": bool,
        "stream?": bool,
        "stream_options?": {"include_usage?": bool, "include_obfuscation?": bool},
        "temperature?": Number(float, 0, 2),
        "tool_choice?": (Words("none", "auto", "required"), _CHOICE),
        "tools?": [_TOOL],
        "top_logprobs?": Number(int, 0, 20),
        "top_p?": Number(float, 0, 1),
        "user?": str,
        "verbosity?": _LEVEL,
        "web_search_options?": {
            "search_context_size?": _LEVEL,
            "user_location?": {"type": Words("approximate"), "approximate": _PLACE},
        },
    }
)


class ChatRequest(Request, frozen=True, kw_only=True):
    """A request of the right shape."""

    family: Family

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.document["model"]
