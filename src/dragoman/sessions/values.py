"""What is kept, as values.

A turn is what a client gave and what the model said to it. Turns form a tree: each knows the one it goes on from, and a
conversation is a name for the newest of a row of them. Items stand in the client's own dialect, byte for byte.
"""

from collections.abc import Mapping
from uuid import uuid4

from msgspec import Struct, field


def generate_key() -> str:
    """Return a key that nobody can guess."""
    return uuid4().hex


class Item(Struct, frozen=True):
    """One item of a history."""

    id: str
    body: bytes
    said: bool = False
    """The model said it; otherwise the client gave it."""


class Turn(Struct, frozen=True, kw_only=True):
    """What a client gave, and what it was answered."""

    owner: str
    dialect: str
    key: str = field(default_factory=generate_key)
    parent: str = ""
    """The key of the turn it goes on from."""
    id: str = ""
    """What the client calls it, if it can ask for it by name."""
    conversation: str = ""
    model: str = ""
    items: tuple[Item, ...] = ()
    settings: bytes = b"{}"
    """The members of the request that hold for what follows, as one JSON object."""
    calls: Mapping[str, str] = {}
    """The calls in it: the name of the tool by the call's id."""
    digest: str = ""
    """What was asked, so that the same question is known again."""
    attempt: str = ""
    """What the client calls this attempt, if it says so."""
    reply: bytes = b""
    """The whole answer, as the client would have got it at once."""
    status: str = "completed"
    created: int = 0
    delivered: bool = False
    """The client has got the answer, as far as can be known here."""


class Conversation(Struct, frozen=True, kw_only=True):
    """A name for a row of turns."""

    owner: str
    id: str
    dialect: str
    head: str = ""
    """The key of the newest turn."""
    revision: int = 0
    """How often it has changed; 0 for one that is not kept yet."""
    metadata: bytes = b"{}"
    created: int = 0


class History(Struct, frozen=True, kw_only=True):
    """All that was said up to a turn."""

    items: tuple[Item, ...] = ()
    calls: Mapping[str, str] = {}
    settings: bytes = b"{}"
    last: Turn | None = None
    """The newest turn, with its own items."""


class Conflict(Exception):  # noqa: N818  it says what happened
    """Somebody else has changed the conversation meanwhile."""


class Unavailable(Exception):  # noqa: N818  it says what the store is
    """The store cannot be asked now."""
