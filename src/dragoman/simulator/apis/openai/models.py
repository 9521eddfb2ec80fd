"""What OpenAI's models support on each of its two endpoints, by model name.

An unknown name is treated as the newest generation. Models whose names are not OpenAI's run on OpenAI-compatible
servers, and are not subject to limits of OpenAI's own models. Dates and sizes in names make no difference.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

ToolPolicy = Literal["any", "without-effort", "effort-none", "never"]
"""When function tools are accepted: always; unless an effort other than `none` is requested; only with an explicit
effort of `none`; never.
"""


class Family(Struct, frozen=True, kw_only=True):
    """One generation of models."""

    generation: tuple[int, int]
    efforts: tuple[str, ...] = ()
    """Supported reasoning efforts; a family without any does not reason. GPT-5.6 supports `max` on Responses only, as
    probes of both endpoints showed.
    """
    default_effort: str = "none"
    """The default effort; "" for a model without one."""
    tools: ToolPolicy = "any"
    custom_tools: bool = True
    structured: bool = True
    """Supports a response format of type json_schema."""
    own: bool = True
    """The name is that of an OpenAI model."""

    @property
    def reasons(self) -> bool:
        """Whether it is a reasoning model, at any effort."""
        return bool(self.efforts)


_UP_TO_HIGH = ("low", "medium", "high")
_UP_TO_XHIGH = (*_UP_TO_HIGH, "xhigh")
_NEWEST = Family(
    generation=(6, 0), efforts=("none", *_UP_TO_XHIGH, "max"), default_effort="medium", tools="effort-none"
)
_PREFIX = re.compile(r"^(?:ft:)?(?:openai[./])?")
_OWN = re.compile(r"(?:gpt-(?!oss)|o\d|chatgpt|codex|computer-use|davinci|babbage)")
_ELSEWHERE = r"(?:[\w.-]+/)?(?:gemma|llama|qwen|mistral|mixtral|ministral|deepseek|phi|gpt-oss|command-r|granite)"
_UNKNOWN = Family(generation=(6, 0), efforts=_NEWEST.efforts, default_effort="medium", own=False)
_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (_ELSEWHERE, Family(generation=(4, 1), custom_tools=False, own=False)),
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
_GPT = re.compile(r"^gpt-(\d+)(?:\.(\d+))?(.*)$")
_O_SERIES = re.compile(r"^o\d")
_NOT_REASONING = re.compile(r"^chatgpt|-chat(?:-|$)|^gpt-[34]|^davinci|^babbage")
_COMPLETIONS_ONLY = re.compile(r"gpt-3\.5-turbo-instruct|davinci-002|babbage-002")
_RESPONSES_ONLY = re.compile(r"(?:gpt-5|gpt-6|o1|o3).*-(?:pro|codex|deep-research)(?:-|$)|codex-mini|computer-use")


def _strip_prefix(model: str) -> str:
    """Return the name without the prefixes of a fine-tuned model and of a router."""
    return _PREFIX.sub("", model.lower())


@lru_cache(maxsize=256)
def find_chat_family(model: str) -> Family:
    """Return the family of a model on Chat Completions."""
    name = _strip_prefix(model)
    for pattern, family in _FAMILIES:
        if pattern.match(name):
            return family
    return _NEWEST if _OWN.match(name) else _UNKNOWN


@lru_cache(maxsize=256)
def find_responses_family(model: str) -> Family:
    """Return the family of a model on Responses."""
    name = _strip_prefix(model)
    if _NOT_REASONING.search(name):
        return Family(generation=(4, 0), default_effort="")
    if _O_SERIES.match(name):
        return Family(generation=(4, 2), efforts=_UP_TO_HIGH, default_effort="medium")
    found = _GPT.match(name)
    if found is None:
        default = "" if name == "computer-use-preview" else "medium"
        own = _OWN.match(name) is not None
        return Family(generation=(6, 1), efforts=("none", *_UP_TO_XHIGH, "max"), default_effort=default, own=own)
    generation = (int(found[1]), int(found[2] or 0))
    efforts, default = _find_gpt_efforts(generation, found[3])
    return Family(generation=generation, efforts=efforts, default_effort=default)


def _find_gpt_efforts(generation: tuple[int, int], variant: str) -> tuple[tuple[str, ...], str]:
    """Return the reasoning efforts that a model supports on Responses, and its default."""
    if generation < (5, 1):
        efforts, default = ("minimal", *_UP_TO_HIGH), "medium"
    elif generation < (5, 2):
        efforts, default = ("none", *(_UP_TO_XHIGH if "max" in variant else _UP_TO_HIGH)), "none"
    else:
        efforts = ("none", *_UP_TO_XHIGH) if generation < (5, 6) else ("none", *_UP_TO_XHIGH, "max")
        default = "none" if generation < (5, 5) else "medium"
    if "-pro" in variant:
        return tuple(effort for effort in efforts if effort not in {"none", "minimal", "low"}), "high"
    if "astra" in variant or (generation >= (6, 1) and "sol" in variant):
        efforts = tuple(effort for effort in efforts if effort != "none")
    return efforts, default


def when_generation_from(major: int, minor: int) -> Callable[[Any], bool]:
    """Return a condition that is true for OpenAI models of this generation or a later one."""
    return lambda request: request.family.own and request.family.generation >= (major, minor)


def when_generation_before(major: int, minor: int) -> Callable[[Any], bool]:
    """Return a condition that is true for OpenAI models of an earlier generation."""
    return lambda request: request.family.own and request.family.generation < (major, minor)


def is_reasoning(request: Any) -> bool:
    """Return whether the model of a request is an OpenAI reasoning model, at any effort."""
    return request.family.own and request.family.reasons


def is_thinking(request: Any, effort: str | None) -> bool:
    """Return whether the model of a request reasons at this effort (None for the default)."""
    return (effort or request.family.default_effort) not in {"", "none"}


def is_search_model(model: str) -> bool:
    """Return whether a model has built-in web search."""
    return "-search" in model


def is_audio_model(model: str) -> bool:
    """Return whether a model has audio input and output."""
    return "audio" in model


def is_for_completions(model: str) -> bool:
    """Return whether a model is served by the legacy Completions API only."""
    return _COMPLETIONS_ONLY.match(_strip_prefix(model)) is not None


def is_for_responses(model: str) -> bool:
    """Return whether a model is served by the Responses API only."""
    return _RESPONSES_ONLY.match(_strip_prefix(model)) is not None
