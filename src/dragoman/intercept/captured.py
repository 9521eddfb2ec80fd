"""Calls that were taken out of a reply, and what became of them; and digests to recognise what is not kept."""

from hashlib import blake2b
from time import monotonic

from msgspec import Struct, field

from dragoman.core.parts import ToolCall


def digest_of(raw: bytes) -> bytes:
    """Return what is the same for the same bytes."""
    return blake2b(raw, digest_size=16).digest()


class CapturedToolCall(Struct, frozen=True, kw_only=True):
    """A call that a model made of a tool which the client never declared."""

    id: str
    """What the caller knows it by; made here where the model gave none."""
    name: str
    """What the tool is called in the request that the model saw."""
    part: bytes
    """The part it stood in, byte for byte, with its signature."""
    given: str = ""
    """The id that the model gave."""


class Group(Struct, kw_only=True):
    """All calls of one reply. The client was told one placeholder instead of them, with the mark in it."""

    mark: str
    calls: tuple[CapturedToolCall, ...]
    before: bytes = b""
    """The contents that the model had seen, as they were sent: a client may not remember them."""
    last_turn_digest: bytes = b""
    """The digest of the client's last turn in them."""
    results: tuple[bytes, ...] | None = None
    """What stands for each result among the parts of a turn, in the order of the calls; None until they are there."""
    used: bytes = b""
    """The digest of the request that took them first: the same one gets them again."""
    is_given_up: bool = False
    """Nobody waits for results any more: the placeholder stays what it is, plain words."""
    caller_calls: tuple[ToolCall, ...] = ()
    """The calls as their caller knows them."""
    since: float = field(default_factory=monotonic)

    @property
    def is_pending(self) -> bool:
        """Whether results are waited for."""
        return self.results is None and not self.is_given_up

    @property
    def is_answered(self) -> bool:
        """Whether the placeholder stands for calls with results."""
        return self.results is not None and not self.is_given_up
