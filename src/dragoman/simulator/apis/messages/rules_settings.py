"""Rules about a request as a whole: its size, its betas, its model, and what the model takes."""

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.simulator.apis.messages.errors import NOT_PERMITTED, dotted, extra, no_publisher_model, unknown_tag
from dragoman.simulator.apis.messages.read import read_ask
from dragoman.simulator.apis.messages.request import MessagesRequest, formats, items_of, rule
from dragoman.simulator.model.usage import ask_tokens
from dragoman.simulator.rule import Json, Refuse, Rule, Situation, Violation, has

_MEGABYTE = 1 << 20
_MOST_BYTES = 32 * _MEGABYTE
_MOST_BYTES_ON_VERTEX = 30 * _MEGABYTE
_MOST_MESSAGES = 100_000
_SMALL = 20_000
"""So few bytes cannot be too many tokens, whatever they say."""
_SECTION = "wire/anthropic_messages.md section"
_TROUBLE = f"{_SECTION} 6.1; platform.claude.com thinking-troubleshooting"
_SEE = "Please consult our documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
_REFUSED_THINKING = {
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
When = Callable[[MessagesRequest], bool]


@rule("request-size", f"{_SECTION} 1; platform.claude.com api/errors")
def _request_size(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """A body has at most 32 MB, on Vertex 30."""
    if request.size > (_MOST_BYTES_ON_VERTEX if request.vertex else _MOST_BYTES):
        yield Violation("Request exceeds the maximum allowed number of bytes.", "", 413)


@rule("prompt-length", "wire/mapping.md section 7; recorded: anthropic/ruby-llm-0027")
def _prompt_length(request: MessagesRequest, situation: Situation) -> Iterator[Violation]:
    """A request has no more tokens than the model can read."""
    if request.size < _SMALL or situation.counting:
        return
    tokens = ask_tokens(read_ask(request))
    most = 1_000_000 if request.has_beta("context-1m-") else request.model.most_input
    if tokens > most:
        yield Violation(f"prompt is too long: {tokens} tokens > {most} maximum", "/messages")


def _without(*betas: str) -> When:
    """Make a condition: the headers are known, and ask for none of these betas."""
    return lambda request: request.betas is not None and not request.has_beta(*betas)


def _beta(path: str, *betas: str) -> Refuse:
    """Refuse a member that is unknown without a beta."""
    return Refuse(path, extra, when=_without(*betas))


def _beta_tool(start: str, beta: str) -> Refuse:
    """Refuse a type of tools that is unknown without a beta."""
    return Refuse(
        "/tools/*/type",
        lambda where, kind: f"{dotted(where).removesuffix('.type')}: {unknown_tag(kind)}",
        lambda kind: kind.startswith(start),
        _without(beta),
    )


def _beta_change(*betas: str, is_inline: bool) -> Refuse:
    """Refuse a change of the tools on the way without a beta."""
    return Refuse(
        "/messages/*/content/*",
        lambda where, block: f"{dotted(where)}: {unknown_tag(block['type'])}",
        lambda block: (
            block.get("type") in {"tool_addition", "tool_removal"}
            and (block["tool"]["type"] == "tool_definition") == is_inline
        ),
        _without(*betas),
    )


@rule("model-exists", "recorded: anthropic/braintrust-sdk-python-0001")
def _model_exists(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """The model must exist."""
    name = request.model.name
    if not request.model.exists:
        yield Violation(no_publisher_model(name) if request.vertex else f"model: {name}", "/model", 404)


def _is_october(request: MessagesRequest) -> bool:
    return request.version == "2026-10-21"


@rule("version-blocks", f"{_SECTION} 0")
def _october_blocks(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """Version 2026-10-21 has no documents of the model and no citations of the user."""
    for turn in request.turns if _is_october(request) else ():
        for block in turn.blocks:
            if turn.role == "assistant" and block.kind == "document":
                words = "`document` blocks are not permitted in assistant messages"
                yield Violation(f"{block.path}: {words}", block.where)
            elif turn.role == "user" and _cites(block.members):
                yield Violation(f"{block.path}.text.citations: {NOT_PERMITTED}", block.where)


def _cites(block: Json) -> bool:
    """Tell whether a text has citations: the block itself, or one in a result that is shown to the model."""
    if block.get("type", "text") == "text":
        return bool(block.get("citations"))
    return any(map(_cites, items_of(block.get("content"))))


@rule("max-tokens", "platform.claude.com about-claude/models/overview")
def _max_tokens(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """max_tokens is at most what the model can write."""
    most = 128_000 if request.has_beta("output-128k") else request.model.most_output
    if (request.get("max_tokens") or 0) > most:
        words = f"which is the maximum allowed number of output tokens for {request.model.name}"
        yield Violation(f"max_tokens: {request.get('max_tokens')} > {most}, {words}", "/max_tokens")


def is_forced(kind: str | None) -> bool:
    """Tell whether a choice of tools forces the model to call."""
    return kind in {"any", "tool"}


def thinks_as(kind: str) -> When:
    """Make a condition: this type of thinking is asked for."""
    return lambda request: request.thinking == kind


def _prewarm(member: str, when: When) -> Refuse:
    words = f"max_tokens: 0 is not supported together with `{member}`"
    return Refuse("/max_tokens", words, when=lambda request: request.get("max_tokens") == 0 and when(request))


def _sampling(member: str, words: str, test: Callable[[Any], bool] | None, *, thinking: bool) -> Refuse:
    """Refuse a sampling member for models that take none, or while a model thinks that takes them otherwise."""
    return Refuse(
        f"/{member}",
        words,
        test,
        lambda request: (
            request.model.takes_sampling and request.thinks if thinking else not request.model.takes_sampling
        ),
    )


def _deprecated(member: str, test: Callable[[Any], bool] | None = None) -> Refuse:
    return _sampling(member, f"`{member}` is deprecated for this model.", test, thinking=False)


def _exceeds_budget(request: MessagesRequest) -> bool:
    most = request.get("max_tokens")
    budget = request.document["thinking"]["budget_tokens"]
    return most is not None and budget >= most and not request.has_beta("interleaved-thinking-")


@rule("effort", "platform.claude.com effort; llm-rosetta#289", root="output_config")
def _effort(request: MessagesRequest, _: Situation) -> Iterator[Violation]:
    """The effort must be one the model has."""
    effort, efforts = request.at("/output_config/effort"), request.model.efforts
    if effort is not None and not efforts:
        yield Violation("This model does not support the effort parameter.", "/output_config/effort")
    elif effort is not None and effort not in efforts:
        words = f"This model does not support effort level '{effort}'. Supported levels: {', '.join(efforts)}."
        yield Violation(words, "/output_config/effort")


def _high_effort(kind: str, when: When) -> Refuse:
    return Refuse(
        "/output_config/effort",
        lambda _, effort: (
            f'"thinking.type.{kind}" is not supported with effort "{effort}". Use effort "high" or below.'
        ),
        lambda effort: effort in {"xhigh", "max"},
        lambda request: thinks_as(kind)(request) and when(request),
    )


RULES: tuple[Rule[MessagesRequest], ...] = (
    _request_size,
    Rule(
        "messages.message-count",
        "There are at most 100,000 messages.",
        f"{_SECTION} 1; no source for the words",
        Refuse(
            "/messages",
            lambda _, value: f"messages: List should have at most {_MOST_MESSAGES} items, not {len(value)}",
            lambda value: len(value) > _MOST_MESSAGES,
        ),
    ),
    _prompt_length,
    Rule(
        "messages.beta-header",
        "A beta feature needs its beta header.",
        f"{_SECTION}s 2, 3, 4 and 6.3; the vendor's list of betas; no source for the words",
        _beta("/mcp_servers", "mcp-client-"),
        _beta("/context_management", "context-management-", "compact-"),
        _beta("/compaction", "compact-"),
        _beta("/fallbacks", "server-side-fallback-"),
        _beta("/fallback_credit_token", "fallback-credit-"),
        _beta("/output_format", "structured-outputs-"),
        _beta("/output_config/task_budget", "task-budgets-"),
        _beta("/thinking/block_binding", "thinking-binding-controls-"),
        Refuse(
            "/thinking/display",
            "thinking.display: Input should be 'summarized' or 'omitted'",
            lambda display: display == "updates",
            _without("thinking-display-updates-"),
        ),
        _beta("/messages/*/clear_at", "mid-conversation-system-clear-at-"),
        _beta("/messages/*/output_config", "mid-conversation-output-config-"),
        _beta_change("inline-tools-", is_inline=True),
        _beta_change("mid-conversation-tool-changes-", "inline-tools-", is_inline=False),
        _beta_tool("advisor_", "advisor-tool-"),
        _beta_tool("mcp_toolset", "mcp-client-"),
        _beta_tool("computer_20", "computer-use-"),
    ),
    _model_exists,
    Rule(
        "messages.thread-unsupported",
        "Threads are not kept here, and are refused as the vendor refuses what it cannot thread.",
        "clients/README.md, State held by the server",
        Refuse("/thread", "thread: Message threads are not supported for this request."),
    ),
    Rule(
        "messages.version-sampling",
        "Version 2026-10-21 has no sampling members.",
        f"{_SECTION} 0",
        *(Refuse(f"/{member}", extra, when=_is_october) for member in ("temperature", "top_p", "top_k")),
    ),
    _october_blocks,
    _max_tokens,
    Rule(
        "messages.prewarm",
        "max_tokens 0 only fills the cache.",
        "platform.claude.com prompt-caching, Limitations",
        _prewarm("stream", has("/stream")),
        _prewarm("thinking", thinks_as("enabled")),
        _prewarm("output_config.format", lambda request: bool(formats(request))),
        _prewarm("tool_choice", lambda request: is_forced(request.at("/tool_choice/type"))),
    ),
    Rule(
        "messages.stop-sequences",
        "A stop sequence is more than white space.",
        "no source: not documented",
        Refuse(
            "/stop_sequences/*",
            "stop_sequences: each stop sequence must contain non-whitespace",
            lambda stop: not stop.strip(),
        ),
    ),
    Rule(
        "messages.sampling",
        "Models from 4.7 on refuse sampling that is not the default.",
        f"{_SECTION} 2; inspect_ai#3721",
        _deprecated("temperature", lambda value: value != 1),
        _deprecated("top_p", lambda value: value != 1),
        _deprecated("top_k"),
    ),
    Rule(
        "messages.temperature-and-top-p",
        "Models from 4.5 on take one of temperature and top_p.",
        f"{_SECTION} 2; litellm#15097",
        Refuse(
            "/top_p",
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            when=lambda request: request.get("temperature") is not None and not request.model.takes_both_samplings,
        ),
    ),
    Rule(
        "messages.thinking-type",
        "The type of thinking must be one the model has.",
        _TROUBLE,
        Refuse(
            "/thinking/type",
            lambda _, kind: _REFUSED_THINKING[kind],
            when=lambda request: request.thinking not in request.model.thinking,
        ),
    ),
    Rule(
        "messages.thinking-sampling",
        "While thinking, sampling stays at its default.",
        f"{_SECTION} 2",
        _sampling(
            "temperature",
            f"`temperature` may only be set to 1 when thinking is enabled. {_SEE}",
            lambda value: value != 1,
            thinking=True,
        ),
        _sampling("top_k", f"`top_k` must be unset when thinking is enabled. {_SEE}", None, thinking=True),
        _sampling(
            "top_p",
            f"`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled. {_SEE}",
            lambda value: value < 0.95,
            thinking=True,
        ),
    ),
    Rule(
        "messages.thinking-budget",
        "The budget of thoughts is below max_tokens.",
        f"{_SECTION} 6.1",
        Refuse(
            "/thinking/budget_tokens",
            f"`max_tokens` must be greater than `thinking.budget_tokens`. {_SEE}#budget-rules-and-tuning",
            when=lambda request: thinks_as("enabled")(request) and _exceeds_budget(request),
        ),
    ),
    _effort,
    Rule(
        "messages.thinking-effort",
        "The highest efforts cannot go without thinking.",
        _TROUBLE,
        _high_effort("disabled", lambda request: request.model.quiet_only_up_to_high),
        _high_effort("between_tools", lambda _: True),
    ),
)
