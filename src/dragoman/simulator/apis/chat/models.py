"""What OpenAI's models take on this endpoint, by name.

A name nobody knows is treated as the newest generation that takes tools. Models that are not OpenAI's, and stand behind
servers that speak as it does, take what its models took that do not reason. Dates and sizes in names change nothing.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

ToolPolicy = Literal["any", "without-effort", "effort-none", "never"]
"""When function tools are taken: always; unless an effort other than none is asked for; only with effort none said
outright; not at all."""


class Family(Struct, frozen=True, kw_only=True):
    """One generation of models."""

    generation: tuple[int, int]
    efforts: tuple[str, ...] = ()
    """Words of `reasoning_effort`; a family without any does not reason. GPT-5.6 knows `max` on Responses only: probes
    of both endpoints agree."""
    default_effort: str = "none"
    tools: ToolPolicy = "any"
    custom_tools: bool = True
    structured: bool = True
    """Takes a response format of type json_schema."""

    @property
    def reasons(self) -> bool:
        """Whether it is a reasoning model, at whatever effort."""
        return bool(self.efforts)


_UP_TO_HIGH = ("low", "medium", "high")
_UP_TO_XHIGH = (*_UP_TO_HIGH, "xhigh")
_NEWEST = Family(
    generation=(6, 0), efforts=("none", *_UP_TO_XHIGH, "max"), default_effort="medium", tools="effort-none"
)
_ELSEWHERE = r"(?:[\w.-]+/)?(?:gemma|llama|qwen|mistral|mixtral|ministral|deepseek|phi|gpt-oss|command-r|granite)"
_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (_ELSEWHERE, Family(generation=(4, 1), custom_tools=False)),
        (
            r"gpt-3\.?5|gpt-4o-2024-05-13|gpt-4(?![.o])",
            Family(generation=(4, 0), custom_tools=False, structured=False),
        ),
        (r"gpt-4|chatgpt-4o|gpt-audio|gpt-5-chat|gpt-5-search", Family(generation=(4, 1), custom_tools=False)),
        (
            r"o1-mini|o1-preview",
            Family(
                generation=(4, 2), efforts=_UP_TO_HIGH, default_effort="medium", custom_tools=False, structured=False
            ),
        ),
        (
            r"o[134](?![0-9])",
            Family(generation=(4, 2), efforts=_UP_TO_HIGH, default_effort="medium", custom_tools=False),
        ),
        (r"gpt-5(?!\.)", Family(generation=(5, 0), efforts=("minimal", *_UP_TO_HIGH), default_effort="medium")),
        (r"gpt-5\.[123]-chat", Family(generation=(5, 1), efforts=("medium",), default_effort="medium")),
        (r"gpt-5\.1", Family(generation=(5, 1), efforts=("none", *_UP_TO_HIGH))),
        (r"gpt-5\.[23]", Family(generation=(5, 2), efforts=("none", *_UP_TO_XHIGH))),
        (r"gpt-5\.4", Family(generation=(5, 4), efforts=("none", *_UP_TO_XHIGH), tools="without-effort")),
        (r"gpt-5\.5", Family(generation=(5, 5), efforts=("none", *_UP_TO_XHIGH), tools="without-effort")),
        (
            r"gpt-5\.6",
            Family(generation=(5, 6), efforts=("none", *_UP_TO_XHIGH), default_effort="medium", tools="effort-none"),
        ),
        (
            r"gpt-6-astra|gpt-6\.1-sol",
            Family(generation=(6, 1), efforts=(*_UP_TO_XHIGH, "max"), default_effort="medium", tools="never"),
        ),
    )
)
_COMPLETIONS_ONLY = re.compile(r"gpt-3\.5-turbo-instruct|davinci-002|babbage-002")
_RESPONSES_ONLY = re.compile(r"(?:gpt-5|gpt-6|o1|o3).*-(?:pro|codex|deep-research)(?:-|$)|codex-mini|computer-use")


def _own_name(model: str) -> str:
    return model.removeprefix("ft:")


@lru_cache(maxsize=256)
def family_of(model: str) -> Family:
    """Return the family of a model."""
    name = _own_name(model)
    for pattern, family in _FAMILIES:
        if pattern.match(name):
            return family
    return _NEWEST


def since(major: int, minor: int) -> Callable[[Any], bool]:
    """Make a condition: the model of a request is of this generation or a later one."""
    return lambda request: request.family.generation >= (major, minor)


def before(major: int, minor: int) -> Callable[[Any], bool]:
    """Make a condition: the model of a request is of an earlier generation."""
    return lambda request: request.family.generation < (major, minor)


def is_reasoning(request: Any) -> bool:
    """Tell whether the model of a request is a reasoning model, at whatever effort."""
    return request.family.reasons


def effort_of(model: str, asked: str | None) -> str:
    """Return how hard a model thinks; "none" also for models that cannot."""
    return asked or family_of(model).default_effort


def is_search_model(model: str) -> bool:
    """Tell whether a model searches the web by itself."""
    return "-search" in model


def is_audio_model(model: str) -> bool:
    """Tell whether a model hears and speaks."""
    return "audio" in model


def is_for_completions(model: str) -> bool:
    """Tell whether a model only completes texts."""
    return _COMPLETIONS_ONLY.match(_own_name(model)) is not None


def is_for_responses(model: str) -> bool:
    """Tell whether a model is served by the Responses API only."""
    return _RESPONSES_ONLY.match(_own_name(model)) is not None
