"""What is to be done to the requests of one session, and the rules that do it, in their order.

A rule looks at a request and changes what is its own business in it. Each tells whether it did something.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from dragoman.intercept.captured import Group
from dragoman.intercept.document import GeminiDocument
from dragoman.intercept.settings import MARK

MARKS = re.compile(r"dt-[0-9a-f]{16}")
"""The names of groups of calls, as they stand in placeholders."""


class CallerTools(Struct, frozen=True, kw_only=True):
    """Tools of a caller, as Gemini is told of them."""

    objects: tuple[bytes, ...] = ()
    names: frozenset[str] = frozenset()
    """Functions among them: calls of these are taken out of replies."""
    config: bytes | None = None
    """The functionCallingConfig that goes with them."""


class RewritePlan(Struct, frozen=True, kw_only=True):
    """What is to be done, as far as it is known when a request comes."""

    strip: Literal["all", "none"] | tuple[str, ...] = "all"
    tools: CallerTools = CallerTools()
    groups: Mapping[str, Group] = {}
    """Calls of this session by their marks."""
    ready: Group | None = None
    """Calls with results that no request has taken yet, or that this one took before."""
    placeholder: str = MARK
    prompt: str = ""
    model: str = ""
    system: str = ""
    system_mode: Literal["append", "replace"] = "append"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be done."""
        return not (self.tools.objects or self.groups or self.model or self.system)

    def find_groups(self, text: str) -> list[Group]:
        """Return the groups whose placeholders stand in a text, in their order."""
        return [self.groups[mark] for mark in MARKS.findall(text) if mark in self.groups]

    def placeholder_of(self, group: Group) -> re.Pattern[str]:
        """Return what the placeholder of a group looks like, however a client has laid it out."""
        words = self.placeholder.replace(MARK, group.mark).split()
        return re.compile(r"\s+".join(map(re.escape, words)))


Rule = Callable[[GeminiDocument, RewritePlan], bool]
"""Changes a request; tells whether it did."""
