"""The changes to make to the requests of one session, and the type of the rules that make them.

A rule inspects a request and changes only its own concern. It returns whether it changed anything.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from dragoman.intercept.captured import Group
from dragoman.intercept.document import GeminiDocument
from dragoman.intercept.settings import MARK

MARKS = re.compile(r"dt-[0-9a-f]{16}")
"""The marks of call groups, as written in placeholders."""


class CallerTools(Struct, frozen=True, kw_only=True):
    """The tools of a caller, in Gemini's format."""

    objects: tuple[bytes, ...] = ()
    names: frozenset[str] = frozenset()
    """The names of the functions among them: calls of these are captured from replies."""
    config: bytes | None = None
    """The functionCallingConfig for these tools."""


class RewritePlan(Struct, frozen=True, kw_only=True):
    """The changes to make, as known when a request arrives."""

    strip: Literal["all", "none"] | tuple[str, ...] = "all"
    tools: CallerTools = CallerTools()
    groups: Mapping[str, Group] = {}
    """The call groups of this session, by mark."""
    ready: Group | None = None
    """The calls whose results no request has used yet, or that this same request used before."""
    placeholder: str = MARK
    prompt: str = ""
    model: str = ""
    system: str = ""
    system_mode: Literal["append", "replace"] = "append"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to change."""
        return not (self.tools.objects or self.groups or self.model or self.system)

    def find_groups(self, text: str) -> list[Group]:
        """Return the groups whose placeholders are in a text, in order of appearance."""
        return [self.groups[mark] for mark in MARKS.findall(text) if mark in self.groups]

    def placeholder_of(self, group: Group) -> re.Pattern[str]:
        """Return a pattern for the placeholder of a group that ignores how a client wraps lines."""
        chunks = self.placeholder.replace(MARK, group.mark).split()
        return re.compile(r"\s+".join(map(re.escape, chunks)))


Rule = Callable[[GeminiDocument, RewritePlan], bool]
"""Changes a request; returns whether it did."""
