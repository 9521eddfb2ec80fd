"""Servers of the vendors of models: DeepSeek, Kimi, GLM and Qwen, and the rules that only one of them has.

A server is stricter here than it may be: what its documentation lists as refused or ignored is rejected, unless a
recording shows that it was accepted.
"""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.conversation import Call
from dragoman.simulator.apis.declarations import Number, StringEnum
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation
from dragoman.simulator.apis.servers.server import (
    QUIRKS,
    REFUSED,
    CallPlace,
    Server,
    ServerRequest,
    build_openai_error,
    find_calling_turns,
    hash_call,
)

_THINKING = {"type": StringEnum("enabled", "disabled")}


def _is_on(request: ServerRequest) -> bool:
    return request.at("/thinking/type") != "disabled"


def _reject_forced_choice(message: str, when: Callable[[ServerRequest], bool]) -> PathCheck:
    return PathCheck("/tool_choice", message, lambda choice: choice not in ("auto", "none"), when)


def _reject_developer(describe: Callable[[str], str]) -> PathCheck:
    """Reject the role `developer`, with the server's error text for the index of the message."""
    return PathCheck(
        "/messages/*/role", lambda where, _: describe(where.split("/")[2]), lambda role: role == "developer"
    )


def _reject_schema(message: str) -> PathCheck:
    return PathCheck("/response_format/type", message, lambda kind: kind == "json_schema")


# DeepSeek


def _is_deepseek_thinking(request: ServerRequest) -> bool:
    """Return whether it thinks; `deepseek-chat` is the older name of a model that does not."""
    return request.at("/thinking/type") == "enabled" or (_is_on(request) and request.model != "deepseek-chat")


_ROLES = "unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`"
_BROKEN = "Failed to deserialize the JSON body into the target type: "


def _check_deepseek_parts(request: ServerRequest, _: CheckContext) -> Iterator[Violation]:
    for where, kind in request.find("/messages/*/content/*/type"):
        if kind != "text":
            yield Violation(
                f"{_BROKEN}messages[{where.split('/')[2]}]: unknown variant `{kind}`, expected `text`", where
            )


def _check_deepseek_reasoning(request: ServerRequest, _: CheckContext) -> Iterator[Violation]:
    if _is_deepseek_thinking(request):
        for at, message in find_calling_turns(request):
            if message.get("reasoning_content") is None:
                text = "The `reasoning_content` in the thinking mode must be passed back to the API."
                yield Violation(text, f"/messages/{at}")


_DEEPSEEK = Server(
    name="deepseek",
    members={"thinking?": _THINKING, "reasoning_effort?": StringEnum("low", "medium", "high", "xhigh", "max")},
    thinks=_is_deepseek_thinking,
    build_error=build_openai_error,
    build_call_id=lambda call, place: f"call_{place.position:02}_{hash_call(call, place)[:24]}",
    usage_members=lambda prompt, cached: {
        "prompt_cache_hit_tokens": cached,
        "prompt_cache_miss_tokens": prompt - cached,
    },
    rules=(
        Rule(
            "deepseek.role",
            "Roles are system, user, assistant and tool; not developer.",
            "reported in public issues (earendil-works/pi#1048)",
            _reject_developer(lambda at: f"{_BROKEN}messages[{at}].role: {_ROLES}"),
        ),
        Rule("deepseek.part", "Messages have text only.", "recorded: openai_chat/rig-0062", _check_deepseek_parts),
        Rule(
            "deepseek.tool-choice",
            "While it thinks, which is the default, no tool can be forced.",
            "recorded: openai_chat/rig-0058, rig-0059",
            _reject_forced_choice("Thinking mode does not support this tool_choice", _is_deepseek_thinking),
        ),
        Rule(
            "deepseek.reasoning",
            "While it thinks, each assistant message with calls has its `reasoning_content`, which may be empty.",
            f"{QUIRKS}; reported in public issues (opencode#24083, earendil-works/pi#3636)",
            _check_deepseek_reasoning,
        ),
        Rule(
            "deepseek.response-format",
            "A response format is text or json_object.",
            REFUSED,
            _reject_schema("This response_format type is unavailable now"),
        ),
    ),
)

# Kimi


def _is_k3(request: ServerRequest) -> bool:
    return fnmatchcase(request.model, "kimi-k3*")


def _check_kimi_reasoning(request: ServerRequest, _: CheckContext) -> Iterator[Violation]:
    if not (_is_k3(request) or _is_on(request)):
        return
    turns = list(find_calling_turns(request))
    if _is_k3(request):
        turns = [(at, one) for at, one in enumerate(request.list("messages")) if one["role"] == "assistant"]
    for at, message in turns:
        if message.get("reasoning_content") is None:
            text = f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
            yield Violation(text, f"/messages/{at}")


def _build_kimi_error(rejection: ApiRejection, message: str) -> Json:
    return {**build_openai_error(rejection, message), "param": "", "code": None}


_KIMI = Server(
    name="kimi",
    members={
        "thinking?": {**_THINKING, "keep?": StringEnum("all")},
        "reasoning_effort?": StringEnum("low", "medium", "high", "max"),
    },
    thinks=lambda request: _is_k3(request) or _is_on(request),
    build_error=_build_kimi_error,
    build_call_id=lambda call, place: f"functions.{call.name}:{place.earlier + place.position}",
    rules=(
        Rule(
            "kimi.role",
            "There is no role developer.",
            "reported in public issues (openclaw/openclaw#8579, earendil-works/pi#8109)",
            _reject_developer(lambda _: "role 'developer' is not allowed"),
        ),
        Rule(
            "kimi.reasoning",
            "While it thinks, each assistant message with calls has its `reasoning_content`; K3 needs it in all.",
            f"{QUIRKS}; reported in public issues (kimi-cli#1616, new-api#3121)",
            _check_kimi_reasoning,
        ),
        Rule(
            "kimi.tool-choice",
            "No tool can be forced.",
            REFUSED,
            _reject_forced_choice("tool_choice is not supported with this model", lambda _: True),
        ),
        Rule(
            "kimi.parameter",
            "There is no `seed` and no `top_k`; K3 has no `thinking`, and the models before it have no effort.",
            f"{QUIRKS}; {REFUSED}",
            PathCheck("/seed", "seed is not supported"),
            PathCheck("/top_k", "top_k is not supported"),
            PathCheck("/thinking", "thinking is not supported with this model", when=_is_k3),
            PathCheck(
                "/reasoning_effort",
                "reasoning_effort is not supported with this model",
                when=lambda request: not _is_k3(request),
            ),
        ),
        Rule(
            "kimi.response-format",
            "A response format is text or json_object.",
            REFUSED,
            _reject_schema("response_format json_schema is not supported"),
        ),
    ),
)

# GLM


def _is_newer_glm(request: ServerRequest) -> bool:
    return fnmatchcase(request.model, "glm-5.[3-9]*")


def _build_glm_id(call: Call, place: CallPlace) -> str:
    digits = hash_call(call, place)
    return f"call_{digits[:24]}" if place.streamed else f"call_-{int(digits[:15], 16)}"


_GLM = Server(
    name="glm",
    members={
        "thinking?": {**_THINKING, "clear_thinking?": bool},
        "reasoning_effort?": StringEnum("low", "medium", "high", "max"),
        "tool_stream?": bool,
    },
    thinks=_is_on,
    build_error=lambda rejection, message: {"code": "1210" if rejection.status < 500 else "500", "message": message},
    build_call_id=_build_glm_id,
    streams_whole_calls=True,
    repeats_role=True,
    rules=(
        Rule(
            "glm.role",
            "There is no role developer.",
            "reported in public issues (openclaw/openclaw#21911); error text: no source",
            _reject_developer(lambda _: "Incorrect role information"),
        ),
        Rule(
            "glm.parameter",
            "There are no penalties, no `max_completion_tokens`, no `parallel_tool_calls` and no `strict: true`.",
            f"{REFUSED}; recorded as accepted: `strict: false` and a named choice (openai_chat/fantasy-0024)",
            *(
                PathCheck(f"/{name}", f"The parameter {name} is not supported")
                for name in ("presence_penalty", "frequency_penalty", "max_completion_tokens", "parallel_tool_calls")
            ),
            PathCheck("/tools/*/function/strict", "The parameter strict is not supported", bool),
            PathCheck("/messages/*/name", "The parameter name is not supported"),
        ),
        Rule(
            "glm.thinking",
            "GLM 5.3 always thinks, and has the efforts low, high and max.",
            QUIRKS,
            PathCheck(
                "/thinking/type",
                "thinking cannot be disabled with this model",
                lambda kind: kind == "disabled",
                _is_newer_glm,
            ),
            PathCheck(
                "/reasoning_effort",
                "reasoning_effort must be low, high or max",
                lambda effort: effort == "medium",
                _is_newer_glm,
            ),
        ),
        Rule(
            "glm.response-format",
            "A response format is text or json_object.",
            REFUSED,
            _reject_schema("response_format json_schema is not supported"),
        ),
    ),
)

# Qwen

_QWEN = Server(
    name="qwen",
    members={"enable_thinking?": bool, "thinking_budget?": Number(int, 1)},
    thinks=lambda request: bool(request.get("enable_thinking")),
    build_error=build_openai_error,
    build_call_id=lambda call, place: f"call_{hash_call(call, place)[:24]}",
    repeats_empty_id=True,
    usage_chunk="alone",
    rules=(
        Rule(
            "qwen.role",
            "There is no role developer.",
            "reported in public issues (proma-ai/Proma#1496)",
            _reject_developer(
                lambda at: (
                    "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - "
                    f"'messages.[{at}].role'"
                )
            ),
        ),
        Rule(
            "qwen.parameter",
            "There is no `reasoning_effort`, no `strict: true`, and no file part.",
            f"{QUIRKS}; {REFUSED}",
            PathCheck("/reasoning_effort", "reasoning_effort is not supported"),
            PathCheck("/tools/*/function/strict", "strict is not supported", bool),
            PathCheck("/messages/*/content/*/file", "Unsupported content type: file"),
        ),
    ),
)

VENDORS: tuple[Server, ...] = (_DEEPSEEK, _KIMI, _GLM, _QWEN)
