"""Rules about a request as a whole: its size, its betas, its model, and the parameters that the model supports."""

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.simulator.apis.messages.errors import (
    NOT_PERMITTED,
    describe_extra,
    describe_model_not_found,
    describe_unknown_tag,
    format_pointer,
)
from dragoman.simulator.apis.messages.read import read_model_request
from dragoman.simulator.apis.messages.request import MessagesRequest, as_list, define_rule, find_output_schemas
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation, when_set
from dragoman.simulator.apis.usage import count_request_tokens

_MEGABYTE = 1 << 20
_MOST_BYTES = 32 * _MEGABYTE
_MOST_BYTES_ON_VERTEX = 30 * _MEGABYTE
_MOST_MESSAGES = 100_000
_SMALL = 20_000
"""A body of fewer bytes cannot exceed the token limit, whatever its content."""
_SECTION = "wire/anthropic_messages.md section"
_TROUBLE = f"{_SECTION} 6.1; platform.claude.com thinking-troubleshooting"
_SEE = "Please consult our documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
_UNSUPPORTED_THINKING = {
    "enabled": (
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    ),
    "disabled": (
        '"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not '
        'specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.'
    ),
    "adaptive": "adaptive thinking is not supported on this model",
    "between_tools": '"thinking.type.between_tools" is not supported for this model.',
}
RequestCondition = Callable[[MessagesRequest], bool]


@define_rule("request-size", f"{_SECTION} 1; platform.claude.com api/errors")
def _check_request_size(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The body has at most 32 MB, on Vertex 30 MB."""
    if request.size > (_MOST_BYTES_ON_VERTEX if request.vertex else _MOST_BYTES):
        yield Violation("Request exceeds the maximum allowed number of bytes.", "", 413)


@define_rule("prompt-length", "wire/mapping.md section 7; recorded: anthropic/ruby-llm-0027")
def _check_prompt_length(request: MessagesRequest, context: CheckContext) -> Iterator[Violation]:
    """The request does not exceed the model's context window."""
    if request.size < _SMALL or context.counting:
        return
    tokens = count_request_tokens(read_model_request(request))
    most = 1_000_000 if request.has_beta("context-1m-") else request.model.max_input_tokens
    if tokens > most:
        yield Violation(f"prompt is too long: {tokens} tokens > {most} maximum", "/messages")


def _when_no_beta(*betas: str) -> RequestCondition:
    """Return a condition that is true if the headers are known and name none of these betas."""
    return lambda request: request.betas is not None and not request.has_beta(*betas)


def _require_beta(path: str, *betas: str) -> PathCheck:
    """Return a check that rejects a field that is unknown without a beta."""
    return PathCheck(path, describe_extra, when=_when_no_beta(*betas))


def _require_tool_beta(start: str, beta: str) -> PathCheck:
    """Return a check that rejects a tool type that is unknown without a beta."""
    return PathCheck(
        "/tools/*/type",
        lambda where, kind: f"{format_pointer(where).removesuffix('.type')}: {describe_unknown_tag(kind)}",
        lambda kind: kind.startswith(start),
        _when_no_beta(beta),
    )


def _require_tool_change_beta(*betas: str, is_inline: bool) -> PathCheck:
    """Return a check that rejects mid-conversation tool changes without a beta."""
    return PathCheck(
        "/messages/*/content/*",
        lambda where, block: f"{format_pointer(where)}: {describe_unknown_tag(block['type'])}",
        lambda block: (
            block.get("type") in {"tool_addition", "tool_removal"}
            and (block["tool"]["type"] == "tool_definition") == is_inline
        ),
        _when_no_beta(*betas),
    )


@define_rule("model-exists", "recorded: anthropic/braintrust-sdk-python-0001")
def _check_model_exists(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The model exists."""
    name = request.model.name
    if not request.model.exists:
        yield Violation(describe_model_not_found(name) if request.vertex else f"model: {name}", "/model", 404)


def _is_version_2026_10(request: MessagesRequest) -> bool:
    return request.version == "2026-10-21"


@define_rule("version-blocks", f"{_SECTION} 0")
def _check_version_blocks(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """Version 2026-10-21 has no documents in assistant turns and no citations in user turns."""
    for turn in request.turns if _is_version_2026_10(request) else ():
        for block in turn.blocks:
            if turn.role == "assistant" and block.kind == "document":
                message = "`document` blocks are not permitted in assistant messages"
                yield Violation(f"{block.path}: {message}", block.where)
            elif turn.role == "user" and _has_citations(block.members):
                yield Violation(f"{block.path}.text.citations: {NOT_PERMITTED}", block.where)


def _has_citations(block: Json) -> bool:
    """Return whether a text has citations: the block itself, or one nested in a result."""
    if block.get("type", "text") == "text":
        return bool(block.get("citations"))
    return any(map(_has_citations, as_list(block.get("content"))))


@define_rule("max-tokens", "platform.claude.com about-claude/models/overview")
def _check_max_tokens(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """`max_tokens` does not exceed the model's limit."""
    most = 128_000 if request.has_beta("output-128k") else request.model.max_output_tokens
    if (request.get("max_tokens") or 0) > most:
        message = f"which is the maximum allowed number of output tokens for {request.model.name}"
        yield Violation(f"max_tokens: {request.get('max_tokens')} > {most}, {message}", "/max_tokens")


def forces_call(kind: str | None) -> bool:
    """Return whether a tool choice forces the model to call."""
    return kind in {"any", "tool"}


def when_thinking_type(kind: str) -> RequestCondition:
    """Return a condition that is true if the request has this type of thinking."""
    return lambda request: request.thinking == kind


def _reject_with_prewarm(member: str, when: RequestCondition) -> PathCheck:
    message = f"max_tokens: 0 is not supported together with `{member}`"
    return PathCheck("/max_tokens", message, when=lambda request: request.get("max_tokens") == 0 and when(request))


def _reject_sampling(member: str, message: str, test: Callable[[Any], bool] | None, *, thinking: bool) -> PathCheck:
    """Return a check on a sampling parameter, for models without sampling or for a model with sampling that thinks."""
    return PathCheck(
        f"/{member}",
        message,
        test,
        lambda request: (
            request.model.takes_sampling and request.thinks if thinking else not request.model.takes_sampling
        ),
    )


def _reject_deprecated(member: str, test: Callable[[Any], bool] | None = None) -> PathCheck:
    return _reject_sampling(member, f"`{member}` is deprecated for this model.", test, thinking=False)


def _exceeds_budget(request: MessagesRequest) -> bool:
    most = request.get("max_tokens")
    budget = request.document["thinking"]["budget_tokens"]
    return most is not None and budget >= most and not request.has_beta("interleaved-thinking-")


@define_rule("effort", "platform.claude.com effort; llm-rosetta#289", root="output_config")
def _check_effort(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The effort is one that the model supports."""
    effort, efforts = request.at("/output_config/effort"), request.model.efforts
    if effort is not None and not efforts:
        yield Violation("This model does not support the effort parameter.", "/output_config/effort")
    elif effort is not None and effort not in efforts:
        message = f"This model does not support effort level '{effort}'. Supported levels: {', '.join(efforts)}."
        yield Violation(message, "/output_config/effort")


def _reject_high_effort(kind: str, when: RequestCondition) -> PathCheck:
    return PathCheck(
        "/output_config/effort",
        lambda _, effort: (
            f'"thinking.type.{kind}" is not supported with effort "{effort}". Use effort "high" or below.'
        ),
        lambda effort: effort in {"xhigh", "max"},
        lambda request: when_thinking_type(kind)(request) and when(request),
    )


RULES: tuple[Rule[MessagesRequest], ...] = (
    _check_request_size,
    Rule(
        "messages.message-count",
        "There are at most 100,000 messages.",
        f"{_SECTION} 1; no source for the error text",
        PathCheck(
            "/messages",
            lambda _, value: f"messages: List should have at most {_MOST_MESSAGES} items, not {len(value)}",
            lambda value: len(value) > _MOST_MESSAGES,
        ),
    ),
    _check_prompt_length,
    Rule(
        "messages.beta-header",
        "A beta feature needs its beta header.",
        f"{_SECTION}s 2, 3, 4 and 6.3; the vendor's list of betas; no source for the error text",
        _require_beta("/mcp_servers", "mcp-client-"),
        _require_beta("/context_management", "context-management-", "compact-"),
        _require_beta("/compaction", "compact-"),
        _require_beta("/fallbacks", "server-side-fallback-"),
        _require_beta("/fallback_credit_token", "fallback-credit-"),
        _require_beta("/output_format", "structured-outputs-"),
        _require_beta("/output_config/task_budget", "task-budgets-"),
        _require_beta("/thinking/block_binding", "thinking-binding-controls-"),
        PathCheck(
            "/thinking/display",
            "thinking.display: Input should be 'summarized' or 'omitted'",
            lambda display: display == "updates",
            _when_no_beta("thinking-display-updates-"),
        ),
        _require_beta("/messages/*/clear_at", "mid-conversation-system-clear-at-"),
        _require_beta("/messages/*/output_config", "mid-conversation-output-config-"),
        _require_tool_change_beta("inline-tools-", is_inline=True),
        _require_tool_change_beta("mid-conversation-tool-changes-", "inline-tools-", is_inline=False),
        _require_tool_beta("advisor_", "advisor-tool-"),
        _require_tool_beta("mcp_toolset", "mcp-client-"),
        _require_tool_beta("computer_20", "computer-use-"),
    ),
    _check_model_exists,
    Rule(
        "messages.thread-unsupported",
        "Threads are not supported, and rejected as the vendor rejects requests it cannot thread.",
        "clients/README.md, State held by the server",
        PathCheck("/thread", "thread: Message threads are not supported for this request."),
    ),
    Rule(
        "messages.version-sampling",
        "Version 2026-10-21 has no sampling parameters.",
        f"{_SECTION} 0",
        *(
            PathCheck(f"/{member}", describe_extra, when=_is_version_2026_10)
            for member in ("temperature", "top_p", "top_k")
        ),
    ),
    _check_version_blocks,
    _check_max_tokens,
    Rule(
        "messages.prewarm",
        "`max_tokens: 0` only fills the cache, without parameters that need an answer.",
        "platform.claude.com prompt-caching, Limitations",
        _reject_with_prewarm("stream", when_set("/stream")),
        _reject_with_prewarm("thinking", when_thinking_type("enabled")),
        _reject_with_prewarm("output_config.format", lambda request: bool(find_output_schemas(request))),
        _reject_with_prewarm("tool_choice", lambda request: forces_call(request.at("/tool_choice/type"))),
    ),
    Rule(
        "messages.stop-sequences",
        "A stop sequence has more than white space.",
        "no source: not documented",
        PathCheck(
            "/stop_sequences/*",
            "stop_sequences: each stop sequence must contain non-whitespace",
            lambda stop: not stop.strip(),
        ),
    ),
    Rule(
        "messages.sampling",
        "Models from 4.7 on reject sampling parameters that are not the default.",
        f"{_SECTION} 2; inspect_ai#3721",
        _reject_deprecated("temperature", lambda value: value != 1),
        _reject_deprecated("top_p", lambda value: value != 1),
        _reject_deprecated("top_k"),
    ),
    Rule(
        "messages.temperature-and-top-p",
        "Models from 4.5 on accept one of temperature and top_p.",
        f"{_SECTION} 2; litellm#15097",
        PathCheck(
            "/top_p",
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            when=lambda request: request.get("temperature") is not None and not request.model.takes_both_samplings,
        ),
    ),
    Rule(
        "messages.thinking-type",
        "The type of thinking is one that the model supports.",
        _TROUBLE,
        PathCheck(
            "/thinking/type",
            lambda _, kind: _UNSUPPORTED_THINKING[kind],
            when=lambda request: request.thinking not in request.model.thinking,
        ),
    ),
    Rule(
        "messages.thinking-sampling",
        "While thinking, sampling parameters stay at their defaults.",
        f"{_SECTION} 2",
        _reject_sampling(
            "temperature",
            f"`temperature` may only be set to 1 when thinking is enabled. {_SEE}",
            lambda value: value != 1,
            thinking=True,
        ),
        _reject_sampling("top_k", f"`top_k` must be unset when thinking is enabled. {_SEE}", None, thinking=True),
        _reject_sampling(
            "top_p",
            f"`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled. {_SEE}",
            lambda value: value < 0.95,
            thinking=True,
        ),
    ),
    Rule(
        "messages.thinking-budget",
        "The thinking budget is below `max_tokens`.",
        f"{_SECTION} 6.1",
        PathCheck(
            "/thinking/budget_tokens",
            f"`max_tokens` must be greater than `thinking.budget_tokens`. {_SEE}#budget-rules-and-tuning",
            when=lambda request: when_thinking_type("enabled")(request) and _exceeds_budget(request),
        ),
    ),
    _check_effort,
    Rule(
        "messages.thinking-effort",
        "The highest efforts need thinking.",
        _TROUBLE,
        _reject_high_effort("disabled", lambda request: request.model.limits_effort_without_thinking),
        _reject_high_effort("between_tools", lambda _: True),
    ),
)
