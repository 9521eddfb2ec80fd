"""Rules about sampling, thinking and effort, which differ from one generation of models to the next."""

from collections.abc import Iterator

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import (
    ThinkingBetweenTools,
    ThinkingDisabled,
    ThinkingEnabled,
)
from dragoman.simulator.rule import Situation, Violation

_NO_ENABLED = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
    "to control thinking behavior."
)
_NO_DISABLED = (
    '"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not specified; '
    'use "thinking.type.enabled" with "budget_tokens" for extended thinking.'
)
_NO_ADAPTIVE = "adaptive thinking is not supported on this model"
_NO_BETWEEN = '"thinking.type.between_tools" is not supported for this model.'
_REFUSED_THINKING = {
    "enabled": _NO_ENABLED,
    "disabled": _NO_DISABLED,
    "adaptive": _NO_ADAPTIVE,
    "between_tools": _NO_BETWEEN,
}
_TROUBLE = "wire/anthropic_messages.md section 6.1; platform.claude.com thinking-troubleshooting"


@rule("sampling", "wire/anthropic_messages.md section 2; inspect_ai#3721")
def sampling(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Models from 4.7 on refuse sampling that is not the default."""
    asked = reading.generating
    if asked is None or reading.model.takes_sampling:
        return
    given = {"temperature": asked.temperature not in {None, 1}, "top_p": asked.top_p not in {None, 1}}
    for member, used in {**given, "top_k": asked.top_k is not None}.items():
        if used:
            yield Violation(f"`{member}` is deprecated for this model.", f"/{member}")


@rule("temperature-and-top-p", "wire/anthropic_messages.md section 2; litellm#15097")
def both_samplings(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Models from 4.5 on take one of temperature and top_p."""
    asked = reading.generating
    both = asked is not None and asked.temperature is not None and asked.top_p is not None
    if both and not reading.model.takes_both_samplings:
        words = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        yield Violation(words, "/top_p")


@rule("thinking-type", _TROUBLE)
def thinking_type(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The type of thinking must be one the model has."""
    thinking = reading.request.thinking
    if thinking is None:
        return
    kind = str(type(thinking).__struct_config__.tag)
    if kind not in reading.model.thinking:
        yield Violation(_REFUSED_THINKING[kind], "/thinking/type")


@rule("thinking-sampling", "wire/anthropic_messages.md section 2")
def thinking_sampling(reading: Reading, _: Situation) -> Iterator[Violation]:
    """While thinking, sampling stays at its default."""
    asked = reading.generating
    if asked is None or not reading.thinks or not reading.model.takes_sampling:
        return
    see = "Please consult our documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
    if asked.temperature not in {None, 1}:
        yield Violation(f"`temperature` may only be set to 1 when thinking is enabled. {see}", "/temperature")
    if asked.top_k is not None:
        yield Violation(f"`top_k` must be unset when thinking is enabled. {see}", "/top_k")
    if asked.top_p is not None and asked.top_p < 0.95:
        words = "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
        yield Violation(f"{words} {see}", "/top_p")


@rule("thinking-budget", "wire/anthropic_messages.md section 6.1")
def thinking_budget(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The budget of thoughts is below max_tokens."""
    asked = reading.generating
    if asked is None or not isinstance(asked.thinking, ThinkingEnabled):
        return
    interleaved = any(beta.startswith("interleaved-thinking-") for beta in reading.betas or ())
    if asked.thinking.budget_tokens >= asked.max_tokens and not interleaved:
        see = "Please consult our documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
        words = f"`max_tokens` must be greater than `thinking.budget_tokens`. {see}#budget-rules-and-tuning"
        yield Violation(words, "/thinking/budget_tokens")


@rule("effort", "platform.claude.com effort; llm-rosetta#289")
def effort(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The effort must be one the model has."""
    config = reading.request.output_config
    if config is None or config.effort is None:
        return
    efforts = reading.model.efforts
    if not efforts:
        yield Violation("This model does not support the effort parameter.", "/output_config/effort")
    elif config.effort not in efforts:
        words = f"This model does not support effort level '{config.effort}'. Supported levels: {', '.join(efforts)}."
        yield Violation(words, "/output_config/effort")


@rule("thinking-effort", _TROUBLE)
def thinking_effort(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The highest efforts cannot go without thinking."""
    config = reading.request.output_config
    if config is None or config.effort not in {"xhigh", "max"}:
        return
    thinking = reading.request.thinking
    kind = "between_tools" if isinstance(thinking, ThinkingBetweenTools) else "disabled"
    quiet = isinstance(thinking, ThinkingDisabled) and reading.model.quiet_only_up_to_high
    if quiet or kind == "between_tools":
        words = f'"thinking.type.{kind}" is not supported with effort "{config.effort}". Use effort "high" or below.'
        yield Violation(words, "/output_config/effort")


RULES = (sampling, both_samplings, thinking_type, thinking_sampling, thinking_budget, effort, thinking_effort)
