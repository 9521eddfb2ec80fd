"""Calls captured from a reply, with their results; and digests to recognise requests that are not stored."""

from hashlib import blake2b
from time import monotonic

from msgspec import Struct, field

from dragoman.core.parts import ToolCall


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
