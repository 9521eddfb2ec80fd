"""Plain talk: histories of which nothing has to be fitted, paired or arranged, as most conversations begin.

A conversation sends its turns again with every request. What was read and written of each is remembered, behind the
turns it came after, and found again by its bytes; a full memory forgets everything, which is rare and cheap.
"""

from collections.abc import Callable, Sequence
from itertools import count

from msgspec import Struct

from dragoman.core.parts import Text
from dragoman.core.request import Message

Read = Callable[[bytes, int], tuple[Message, ...] | None]
Write = Callable[[tuple[Message, ...]], bytes]
NUMBERS = count(1)
"""What turns and frames are known by; no number stands for two."""
_COST = 512
"""Bytes that a turn takes beside its words."""


class Turn(Struct, frozen=True, eq=False):
    """A turn of plain talk, and what it is in the target's words."""

    number: int
    message: Message
    among: bytes
    """What stands for it among the turns; nothing for instructions, which stand behind them."""
    behind: bytes


class Talk:
    """Turns that were told before, `most` bytes of them."""

    def __init__(self, *, most: int = 8 << 20) -> None:
        self._most = most
        self._size = 0
        self._turns: dict[tuple[int, bytes], Turn] = {}
        self._others: dict[tuple[int, bytes], None] = {}
        """Turns that are something else, behind those that are talk."""

    def told(self, frame: int, raws: Sequence[bytes], read: Read, write: Write) -> list[Turn] | None:
        """Return the turns of a history, of which only those that are new are read; None if not all are plain talk."""
        turns = self._turns
        found: list[Turn] = []
        for raw in raws:
            turn = turns.get((frame, raw))
            if turn is None:
                return self._learned(found, frame, raws[len(found) :], read, write)
            found.append(turn)
            frame = turn.number
        return found

    def _learned(
        self, found: list[Turn], before: int, new: Sequence[bytes], read: Read, write: Write
    ) -> list[Turn] | None:
        """Add the turns that are new, and remember them."""
        if (before, new[0]) in self._others:
            return None
        messages = read(b"[%b]" % b",".join(new), len(found))
        if messages is None:
            return None
        plain = plain_talk(messages, found[-1].message if found else None)
        for raw, message in zip(new[:plain], messages, strict=False):
            turn = Turn(next(NUMBERS), message, *_written(message, write))
            self._keep(len(raw) + len(turn.among) + len(turn.behind))
            self._turns[before, raw] = turn
            found.append(turn)
            before = turn.number
        if plain == len(new):
            return found
        self._keep(len(new[plain]))
        self._others[before, new[plain]] = None
        return None

    def _keep(self, size: int) -> None:
        self._size += size + _COST
        if self._size > self._most:
            self._turns, self._others = {}, {}
            self._size = 0


def _written(message: Message, write: Write) -> tuple[bytes, bytes]:
    """Return what a turn is among the others, and behind them."""
    nothing, whole = write(()), write((message,))
    if whole.startswith(nothing[:-1]):
        return b"", whole[len(nothing) - 1 : -1]
    return whole[len(nothing) - 2 : -2], b""


def joined(turns: Sequence[Turn], opening: bytes) -> bytes:
    """Return a history that begins with `opening`, without the brace that closes it."""
    first = turns[0]
    among = [turn.among for turn in (turns if first.among else turns[1:])]
    return b"%b%b]%b" % (opening, b",".join(among), first.behind)


def plain_talk(messages: Sequence[Message], before: Message | None = None) -> int:
    """Return how many turns, behind another, are texts that stay as they are: a system's, then in turns."""
    wanted = "assistant" if before is not None and before.role == "user" else "user"
    for at, message in enumerate(messages):
        parts = message.parts
        if len(parts) != 1 or type(part := parts[0]) is not Text or message.extras is not None or message.name:
            return at
        if part.extras is not None or part.signature is not None or part.cache is not None or part.citations:
            return at
        if not part.text or part.text.isspace():
            return at
        if message.role == wanted:
            wanted = "assistant" if wanted == "user" else "user"
        elif message.role != "system" or before is not None or at:
            return at
    return len(messages)
