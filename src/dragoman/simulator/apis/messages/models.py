"""What the generations of Claude models support.

A name is parsed into a family and a version; everything else follows from these two: what a request may contain, and
the model's entry in the vendor's list. An unknown name is treated as the newest generation.
"""

import re
from functools import lru_cache

from msgspec import Struct

from dragoman.simulator.apis.rule import Json, is_absent

_NEWEST = (99, 0)
_FAMILY_FIRST = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)")
_VERSION_FIRST = re.compile(r"claude-(?P<major>\d)(?:[-.](?P<minor>\d))?(?:-(?P<family>[a-z]+))?(?!\d)")
_SMALL_EFFORTS = ("low", "medium", "high")
_HIGHEST_FAMILIES = ("fable", "mythos")
_FAMILIES = ("haiku", "sonnet", "opus", "fable", "mythos")
_THINKING = ("adaptive", "between_tools", "disabled", "enabled")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_EDITS = {"clear_tool_uses_20250919": (4, 0), "clear_thinking_20251015": (4, 0), "compact_20260112": (4, 6)}
"""The first version that supports each strategy."""
_PICTURES, _DOCUMENTS, _RUNS_CODE, _CALLS_FROM_CODE = (3, 0), (3, 5), (3, 7), (4, 5)


class ClaudeModel(Struct, frozen=True, kw_only=True):
    """One model, by its name."""

    name: str
    family: str = ""
    version: tuple[int, int] = _NEWEST
    is_preview: bool = False
    """Mythos Preview, which is between the generations."""

    @property
    def exists(self) -> bool:
        """Whether the vendor has this model."""
        return not is_absent(self.name)

    @property
    def canonical_name(self) -> str:
        """The model's name on every platform and with any date."""
        return self.name if self.version == _NEWEST else f"{self.family} {self.version}"

    @property
    def is_newest(self) -> bool:
        """Whether it is of the generation that binds thinking to its conversation and rejects forced tool calls."""
        return self.version >= ((5, 1) if self.family in _HIGHEST_FAMILIES else (5, 5))

    @property
    def takes_prefill(self) -> bool:
        """Whether the conversation may end with the beginning of the answer (prefill)."""
        return self.version <= (4, 5) and not self.is_preview

    @property
    def takes_assistant_first(self) -> bool:
        """Whether the conversation may begin with an assistant message: recorded for models up to 4.6."""
        return self.version <= (4, 6) and not self.is_preview

    @property
    def takes_system_turns(self) -> bool:
        """Whether system messages may occur in the middle of the conversation."""
        first = {"opus": (4, 8), "sonnet": (5, 5), "haiku": (5, 5), "fable": (5, 0), "mythos": (5, 0)}
        return not self.is_preview and self.version >= first.get(self.family, (5, 5))

    @property
    def can_be_forced(self) -> bool:
        """Whether `tool_choice` may force a tool call."""
        return not (self.is_newest or self.is_preview)

    @property
    def takes_sampling(self) -> bool:
        """Whether temperature, top_p and top_k may differ from their defaults."""
        return self.version < (4, 7) and not self.is_preview

    @property
    def takes_both_samplings(self) -> bool:
        """Whether temperature and top_p may both be sent."""
        return self.version < ((4, 1) if self.family == "opus" else (4, 5))

    @property
    def thinking(self) -> tuple[str, ...]:
        """The types of thinking it supports."""
        if self.is_preview:
            return ("adaptive", "enabled")
        if self.version < (3, 7):
            return ("disabled",)
        if self.version < (4, 6):
            return ("enabled", "disabled")
        if self.version < (4, 7):
            return ("adaptive", "enabled", "disabled")
        if self.family == "sonnet" and self.version >= (5, 5):
            return ("adaptive", "between_tools")
        always = self.family in _HIGHEST_FAMILIES or (self.family in {"opus", ""} and self.version >= (5, 5))
        return ("adaptive",) if always else ("adaptive", "disabled")

    @property
    def thinks_by_default(self) -> bool:
        """Whether it thinks if the request has no `thinking`."""
        return self.is_preview or self.version >= (5, 0)

    @property
    def limits_effort_without_thinking(self) -> bool:
        """Whether its thinking can be disabled, but not at the highest efforts."""
        return (self.family == "opus" and self.version >= (5, 0)) or (self.family == "haiku" and self.version >= (5, 5))

    @property
    def shows_thinking(self) -> bool:
        """Whether the text of its thinking is shown unless `display` omits it."""
        return self.version < (4, 7) and not self.is_preview

    @property
    def efforts(self) -> tuple[str, ...]:
        """The efforts it supports; empty if it has no effort parameter."""
        if self.is_preview or self.version[:2] == (4, 6):
            return (*_SMALL_EFFORTS, "max")
        if self.family == "opus" and self.version == (4, 5):
            return _SMALL_EFFORTS
        return (*_SMALL_EFFORTS, "xhigh", "max") if self.version >= (4, 7) else ()

    @property
    def compiles_schemas(self) -> bool:
        """Whether it supports strict tools and structured output."""
        return self.version >= ((4, 1) if self.family == "opus" else (4, 5))

    @property
    def takes_computer_tool(self) -> bool:
        """Whether it supports the single computer tool; later models have the toolset."""
        return self.version < (5, 5)

    @property
    def max_input_tokens(self) -> int:
        """The maximum number of tokens in a request."""
        return 1_000_000 if self.version >= (4, 6) else 200_000

    @property
    def max_output_tokens(self) -> int:
        """The maximum number of tokens in an answer."""
        if self.version < (3, 5):
            return 4096
        if self.version < (3, 7):
            return 8192
        if self.family == "opus" and self.version in {(4, 0), (4, 1)}:
            return 32_000
        return 64_000 if self.version < (4, 6) else 128_000


@lru_cache(maxsize=256)
def parse_model_name(name: str) -> ClaudeModel:
    """Parse a model's name, without what platforms add to it."""
    bare = name.lower().rpartition("/")[2].partition("@")[0]
    if "mythos-preview" in bare:
        return ClaudeModel(name=name, family="mythos", version=(4, 8), is_preview=True)
    found = _FAMILY_FIRST.search(bare) or _VERSION_FIRST.search(bare)
    if found is None:
        return ClaudeModel(name=name)
    version = (int(found["major"]), int(found["minor"] or 0))
    return ClaudeModel(name=name, family=found["family"] or "", version=version)


def build_list_entry(model: ClaudeModel) -> Json:
    """Return a model's entry in the vendor's list, without its names."""
    return {
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": model.family if model.family in _FAMILIES else None,
        "max_input_tokens": model.max_input_tokens,
        "max_tokens": model.max_output_tokens,
        "capabilities": _build_capabilities(model),
    }


def _build_capabilities(model: ClaudeModel) -> Json:
    version = model.version
    thinking = {kind: _build_support(kind in model.thinking) for kind in _THINKING}
    edits = {name: _build_support(version >= first) for name, first in _EDITS.items()}
    server = {
        "web_search": _build_support(version >= _DOCUMENTS),
        "code_execution": _build_support(version >= _RUNS_CODE),
    }
    efforts = {level: _build_support(level in model.efforts) for level in _EFFORTS}
    return {
        "batch": {"supported": True},
        "citations": _build_support(version >= _DOCUMENTS),
        "code_execution": _build_support(version >= _CALLS_FROM_CODE),
        "context_management": {**_build_support(version >= min(_EDITS.values())), **edits},
        "effort": {**_build_support(bool(model.efforts)), **efforts},
        "image_input": _build_support(version >= _PICTURES),
        "pdf_input": _build_support(version >= _DOCUMENTS),
        "server_tools": {**_build_support(version >= _DOCUMENTS), **server},
        "structured_outputs": _build_support(model.compiles_schemas),
        "thinking": {**_build_support(model.thinking != ("disabled",)), "types": thinking},
    }


def _build_support(supported: bool) -> Json:
    return {"supported": supported}
