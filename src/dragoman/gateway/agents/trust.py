"""Remembers which answers came after something untrusted was read, for clients that are not told of our calls.

A client that has only the text of an answer sends only that back. So what was said in such a run is known again by what
it says, white space aside; a history with it counts as untrusted, though nothing in it shows why. Words too few to
instruct anybody are not remembered, so that "Done." stays what it is. What cannot be looked up counts as untrusted.
"""

import contextlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby

from dragoman.core.parts import Text
from dragoman.core.request import Message
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable

_PREFIX = "untrusted:"
_FEWEST = 16
"""Characters, white space aside, below which a text instructs nobody."""


class Trust:
    """Knows answers that may repeat a stranger's words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def doubt(self, owner: str, messages: Iterable[Message]) -> None:
        """Remember what was said in a run that read something untrusted."""
        # All turns of a run are one answer to its client.
        said = (message for message in messages if message.role == "assistant")
        marks = dict.fromkeys(_marks(said), b"")
        if marks:
            with contextlib.suppress(Unavailable):
                await self._store.keep_asides(owner, marks)

    async def is_doubted(self, owner: str, messages: Iterable[Message]) -> bool:
        """Tell whether anything in a history was said in such a run."""
        marks = tuple(dict.fromkeys(_marks(messages)))
        try:
            return bool(marks) and bool(await self._store.asides(owner, marks))
        except Unavailable:
            return True


def _marks(messages: Iterable[Message]) -> Iterator[str]:
    """Iterate the marks of what a model said: of each text, and of all texts of one answer together."""
    for role, group in groupby(messages, lambda message: message.role):
        if role != "assistant":
            continue
        parts = [part for message in group for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, Text) and not part.unread]
        for text in (*texts, "".join(texts)):
            bare = "".join(text.split())
            if len(bare) >= _FEWEST:
                yield _PREFIX + sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()
