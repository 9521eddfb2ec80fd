"""Servers that run the models of others: vLLM and OpenRouter, and the rules that only one of them has."""

from collections.abc import Iterator

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.declarations import Number, StringEnum
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation
from dragoman.simulator.apis.servers.server import (
    QUIRKS,
    REFUSED,
    Server,
    ServerRequest,
    find_calling_turns,
    hash_call,
)

# vLLM


def _read_template_switch(request: ServerRequest) -> bool:
    switches: Json = request.object("chat_template_kwargs")
    return not any(switches.get(name) is False for name in ("enable_thinking", "thinking"))


def _build_vllm_error(rejection: ApiRejection, message: str) -> Json:
    kind = "BadRequestError" if rejection.status < 500 else "InternalServerError"
    return {"message": message, "type": kind, "param": None, "code": rejection.status}


_VLLM = Server(
    name="vllm",
    members={
        "chat_template_kwargs?": dict,
        "thinking_token_budget?": Number(int, 0),
        "include_reasoning?": bool,
        "reasoning_effort?": StringEnum("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    },
    thinks=lambda request: request.get("reasoning_effort") != "none" and _read_template_switch(request),
    build_error=_build_vllm_error,
    reasoning="reasoning",
    build_call_id=lambda call, place: f"chatcmpl-tool-{hash_call(call, place)[:32]}",
    usage_chunk="alone",
    stop_if_named=True,
    sends_error_end=True,
    checks_pairs=False,
    choice_members=lambda reason: {"stop_reason": None} if reason else {},
    rules=(
        Rule(
            "vllm.tool-choice",
            "A tool choice other than `none` needs tools.",
            f"{REFUSED} (read in the server's source)",
            PathCheck(
                "/tool_choice",
                "When using `tool_choice`, `tools` must be set.",
                lambda choice: choice != "none",
                lambda request: not request.list("tools"),
            ),
        ),
    ),
)

# OpenRouter


def _is_reasoning(request: ServerRequest) -> bool:
    options = request.object("reasoning")
    return bool(options) and options.get("enabled") is not False and options.get("effort") != "none"


def _check_details(request: ServerRequest, context: CheckContext) -> Iterator[Violation]:
    for at, message in find_calling_turns(request):
        details: list[Json] = message.get("reasoning_details") or []
        where = f"/messages/{at}/reasoning_details"
        if _is_reasoning(request) and not details:
            yield Violation("Provider returned error: the reasoning before a tool call is missing", where)
        if details and not context.recorded and not _is_genuine(details, request):
            yield Violation("Provider returned error: invalid signature in reasoning_details", where)


def _is_genuine(details: list[Json], request: ServerRequest) -> bool:
    """Return whether the parts of one thought, as they were streamed or whole, have their signature."""
    text = "".join(str(one.get("text") or "") for one in details)
    signatures = [one["signature"] for one in details if one.get("signature")]
    return len(signatures) == 1 and request.signer.judge(str(signatures[0]), text) == "genuine"


def _build_router_error(rejection: ApiRejection, message: str) -> Json:
    return {"code": rejection.status, "message": message, "metadata": {"provider_name": "Anthropic", "raw": message}}


def _render_native_reason(reason: str) -> Json:
    return {
        "native_finish_reason": {"tool_calls": "tool_use", "stop": "end_turn"}.get(reason, reason),
        "logprobs": None,
    }


_OPENROUTER = Server(
    name="openrouter",
    members={
        "reasoning?": {
            "effort?": StringEnum("none", "minimal", "low", "medium", "high", "xhigh"),
            "max_tokens?": Number(int, 1),
            "exclude?": bool,
            "enabled?": bool,
        },
        "provider?": dict,
        "include_reasoning?": bool,
    },
    thinks=_is_reasoning,
    build_error=_build_router_error,
    reasoning="reasoning",
    signs_reasoning=True,
    build_call_id=lambda call, place: f"toolu_bdrk_{hash_call(call, place)[:24]}",
    comment=b": OPENROUTER PROCESSING\n\n",
    reply_members={"provider": "Anthropic"},
    choice_members=_render_native_reason,
    rules=(
        Rule(
            "openrouter.reasoning",
            "While Claude thinks, messages with calls have their `reasoning_details`; these are unchanged.",
            f"{QUIRKS}; recorded: openai_chat/rig-0229 (the signature); error text: no source",
            _check_details,
        ),
    ),
)

HOSTS: tuple[Server, ...] = (_VLLM, _OPENROUTER)
