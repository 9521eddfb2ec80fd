"""The changes to make to the requests of one session, the calls captured from its replies, and the type of the rules.

A rule inspects a request and changes only its own concern. It returns whether it changed anything.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from time import monotonic
from typing import Literal

from msgspec import Struct, field

from dragoman.core.parts import ToolCall
from dragoman.intercept.document import GeminiDocument
from dragoman.intercept.settings import MARK


def digest_of(raw: bytes) -> bytes:
    """Return a digest of some bytes."""
    return blake2b(raw, digest_size=16).digest()


class CapturedToolCall(Struct, frozen=True, kw_only=True):
    """A call that the model made to a caller's tool, which the client never declared."""

    id: str
    """The id for the caller; generated if the model sent no usable one."""
    name: str
    """The tool name in the request to the model."""
    part: bytes
    """The part of the reply with the call, byte for byte, with its signature."""
    given: str = ""
    """The id that the model sent."""


class Group(Struct, kw_only=True):
    """All captured calls of one reply; the client gets a placeholder text instead, with the group id (`mark`)."""

    mark: str
    calls: tuple[CapturedToolCall, ...]
    before: bytes = b""
    """The contents sent to the model: the client may not keep them in its history."""
    last_turn_digest: bytes = b""
    """The digest of the client's last turn in these contents."""
    results: tuple[bytes, ...] | None = None
    """The rendered parts of each result, in the order of the calls; None until the results arrive."""
    used: bytes = b""
    """The digest of the first request that used the results: a retry of that request gets them again."""
    is_given_up: bool = False
    """Results are no longer accepted: the placeholder stays in the history as ordinary text."""
    caller_calls: tuple[ToolCall, ...] = ()
    """The calls as sent to the caller."""
    since: float = field(default_factory=monotonic)

    @property
    def is_pending(self) -> bool:
        """Whether the calls wait for results."""
        return self.results is None and not self.is_given_up

    @property
    def is_answered(self) -> bool:
        """Whether the placeholder can be replaced by calls with results."""
        return self.results is not None and not self.is_given_up


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
