"""What passed: one exchange of an intercepted client, for whoever looks on.

The bodies are as they came and as they left. Credentials are in none of it: headers that could be one are left out, and
so is a key in the query.
"""

from collections.abc import Callable
from os import urandom
from time import monotonic, time

from msgspec import Struct, field

from dragoman.http.message import Headers
from dragoman.intercept.captured import Captured

_MOST_KEPT = 8 << 20
"""Bytes of a reply."""


def _fresh_id() -> str:
    return f"in_{urandom(8).hex()}"


class Passing(Struct, kw_only=True):
    """One exchange, filled in as it goes on. Bodies of a reply are kept only while somebody looks on."""

    id: str = field(default_factory=_fresh_id)
    name: str
    """What stands behind `/intercept/` in its path."""
    session: str = ""
    upstream: str = ""
    method: str
    target: str
    """The path and query at the upstream as the client wrote them, without a key."""
    target_left: str = ""
    headers: Headers = ()
    came: bytes = b""
    left: bytes = b""
    """The body that the upstream was sent; the same object as `came` where nothing was changed."""
    rules: tuple[str, ...] = ()
    """What was done to it, in this order."""
    problem: str = ""
    """Why it was sent on as it came, though there was something to be done."""
    blocked: bool = False
    """It was answered here, because calls were waiting for their results."""
    status: int = 0
    reply_headers: Headers = ()
    reply_came: bytes = b""
    reply_left: bytes = b""
    captured: tuple[Captured, ...] = ()
    is_seen: bool = False
    """Somebody looks on, so what passes is kept until it is over."""
    is_cut: bool = False
    """More of the reply passed than is kept here."""
    began: float = field(default_factory=time)
    clock: float = field(default_factory=monotonic)
    seconds: float | None = None

    def note(self, came: bytes, left: bytes) -> None:
        """Keep a piece of the reply, as it came and as it left, unless too much of it has passed already."""
        if not self.is_seen:
            return
        self.is_cut = self.is_cut or len(self.reply_came) + len(came) > _MOST_KEPT
        if not self.is_cut:
            self.reply_came += came
            self.reply_left += left

    def close(self) -> None:
        """It is over."""
        self.seconds = monotonic() - self.clock


Looker = Callable[[Passing], None]
"""Is told of an exchange that is over; must not take long."""
