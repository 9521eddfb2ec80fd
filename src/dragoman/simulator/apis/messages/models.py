"""What the generations of Claude models take and refuse.

A name is read into a family and a version; everything else follows from these two: what a request may ask for, and what
the vendor's list of models says. A name nobody knows is taken for the newest generation.
"""

import re
from functools import lru_cache

from msgspec import Struct

from dragoman.simulator.rule import Json, is_absent

_NEWEST = (99, 0)
_FAMILY_FIRST = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)")
_VERSION_FIRST = re.compile(r"claude-(?P<major>\d)(?:[-.](?P<minor>\d))?(?:-(?P<family>[a-z]+))?(?!\d)")
_SMALL_EFFORTS = ("low", "medium", "high")
_HIGHEST_FAMILIES = ("fable", "mythos")
_FAMILIES = ("haiku", "sonnet", "opus", "fable", "mythos")
_THINKING = ("adaptive", "between_tools", "disabled", "enabled")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_EDITS = {"clear_tool_uses_20250919": (4, 0), "clear_thinking_20251015": (4, 0), "compact_20260112": (4, 6)}
"""The first version that has each strategy."""
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
        """Whether the vendor has it."""
        return not is_absent(self.name)

    @property
    def canonical_name(self) -> str:
        """What it is called on every platform, of whichever date."""
        return self.name if self.version == _NEWEST else f"{self.family} {self.version}"

    @property
    def is_newest(self) -> bool:
        """Whether it belongs to the generation that binds its thoughts and refuses to be forced."""
        return self.version >= ((5, 1) if self.family in _HIGHEST_FAMILIES else (5, 5))

    @property
    def takes_prefill(self) -> bool:
        """Whether the conversation may end with the beginning of the answer."""
        return self.version <= (4, 5) and not self.is_preview

    @property
    def takes_assistant_first(self) -> bool:
        """Whether the conversation may begin with the model: recorded for models up to 4.6."""
        return self.version <= (4, 6) and not self.is_preview

    @property
    def takes_system_turns(self) -> bool:
        """Whether instructions may stand in the middle of the conversation."""
        first = {"opus": (4, 8), "sonnet": (5, 5), "haiku": (5, 5), "fable": (5, 0), "mythos": (5, 0)}
        return not self.is_preview and self.version >= first.get(self.family, (5, 5))

    @property
    def can_be_forced(self) -> bool:
        """Whether a tool call may be demanded."""
        return not (self.is_newest or self.is_preview)

    @property
    def takes_sampling(self) -> bool:
        """Whether temperature, top_p and top_k may differ from their defaults."""
        return self.version < (4, 7) and not self.is_preview

    @property
    def takes_both_samplings(self) -> bool:
        """Whether temperature and top_p may stand together."""
        return self.version < ((4, 1) if self.family == "opus" else (4, 5))

    @property
    def thinking(self) -> tuple[str, ...]:
        """The types of thinking it takes."""
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
        """Whether it thinks when nothing is said about thinking."""
        return self.is_preview or self.version >= (5, 0)

    @property
    def limits_effort_without_thinking(self) -> bool:
        """Whether its thinking can be disabled, but not at the highest efforts."""
        return (self.family == "opus" and self.version >= (5, 0)) or (self.family == "haiku" and self.version >= (5, 5))

    @property
    def shows_thinking(self) -> bool:
        """Whether the words of its thoughts are shown unless they are asked to be left out."""
        return self.version < (4, 7) and not self.is_preview

    @property
    def efforts(self) -> tuple[str, ...]:
        """The efforts it takes; none when it knows no effort."""
        if self.is_preview or self.version[:2] == (4, 6):
            return (*_SMALL_EFFORTS, "max")
        if self.family == "opus" and self.version == (4, 5):
            return _SMALL_EFFORTS
        return (*_SMALL_EFFORTS, "xhigh", "max") if self.version >= (4, 7) else ()

    @property
    def compiles_schemas(self) -> bool:
        """Whether it has strict tools and structured output."""
        return self.version >= ((4, 1) if self.family == "opus" else (4, 5))

    @property
    def takes_computer_tool(self) -> bool:
        """Whether it takes the single computer tool; later ones take the toolset."""
        return self.version < (5, 5)

    @property
    def max_input_tokens(self) -> int:
        """The most tokens a request may have."""
        return 1_000_000 if self.version >= (4, 6) else 200_000

    @property
    def max_output_tokens(self) -> int:
        """The most tokens one answer may have."""
        if self.version < (3, 5):
            return 4096
        if self.version < (3, 7):
            return 8192
        if self.family == "opus" and self.version in {(4, 0), (4, 1)}:
            return 32_000
        return 64_000 if self.version < (4, 6) else 128_000


@lru_cache(maxsize=256)
def parse_model_name(name: str) -> ClaudeModel:
    """Read a model's name, whatever a platform put around it."""
    bare = name.lower().rpartition("/")[2].partition("@")[0]
    if "mythos-preview" in bare:
        return ClaudeModel(name=name, family="mythos", version=(4, 8), is_preview=True)
    found = _FAMILY_FIRST.search(bare) or _VERSION_FIRST.search(bare)
    if found is None:
        return ClaudeModel(name=name)
    version = (int(found["major"]), int(found["minor"] or 0))
    return ClaudeModel(name=name, family=found["family"] or "", version=version)


def build_list_entry(model: ClaudeModel) -> Json:
    """Return what a model's entry in the vendor's list says beside its names."""
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
