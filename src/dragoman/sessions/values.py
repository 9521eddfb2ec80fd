"""The values in the session store.

A turn is what a client sent and what the model replied. Turns form a tree: each has a parent that it continues from,
and a conversation is a name for the newest turn of a chain. Items are kept in the client's dialect, byte for byte.
"""

from collections.abc import Mapping
from uuid import uuid4

from msgspec import Struct, field


def generate_key() -> str:
    """Return a random key that cannot be guessed."""
    return uuid4().hex


class Item(Struct, frozen=True):
    """One input or output item of a turn."""

    id: str
    body: bytes
    is_output: bool = False
    """Whether the model produced it; otherwise the client sent it."""


class Turn(Struct, frozen=True, kw_only=True):
    """What a client sent, and the reply to it."""

    owner: str
    dialect: str
    key: str = field(default_factory=generate_key)
    parent: str = ""
    """The key of the turn that it continues."""
    id: str = ""
    """The id by which the client can request it; "" if it has none."""
    conversation: str = ""
    model: str = ""
    items: tuple[Item, ...] = ()
    settings: bytes = b"{}"
    """The fields of the request that also apply to later turns, as one JSON object."""
    calls: Mapping[str, str] = {}
    """The calls in it: tool names by call id."""
    digest: str = ""
    """A digest of the request, to recognise the same request when it is repeated."""
    attempt: str = ""
    """The client's id of this attempt, if it sent one."""
    reply: bytes = b""
    """The whole reply, in the form of a reply that is not streamed."""
    status: str = "completed"
    created: int = 0
    delivered: bool = False
    """Whether the client has received the reply, as far as the gateway can know."""


class Conversation(Struct, frozen=True, kw_only=True):
    """A name for a chain of turns."""

    owner: str
    id: str
    dialect: str
    head: str = ""
    """The key of the newest turn."""
    revision: int = 0
    """The number of changes; 0 if it is not stored yet."""
    metadata: bytes = b"{}"
    created: int = 0


class History(Struct, frozen=True, kw_only=True):
    """All items and calls up to and including a turn."""

    items: tuple[Item, ...] = ()
    calls: Mapping[str, str] = {}
    settings: bytes = b"{}"
    last: Turn | None = None
    """The newest turn, with its own items."""


class Conflict(Exception):  # noqa: N818  named after the event
    """Another request has changed the conversation."""


class Unavailable(Exception):  # noqa: N818  named after the state
    """The store cannot be used at the moment."""
