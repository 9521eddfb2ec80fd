"""Remember the frames of requests: what stands around their histories, in the caller's bytes, and what was made of it.

A frame that comes for the first time leaves only its mark; when it comes again, what is made of it is worth
remembering. It is known again by its bytes: what stands before the history and behind it is the same, and what stands
between is an array that is whole. What is kept is bounded by its size, and what was not used for longest goes first.
There is no lock: every step replaces a value whole, and all that a race can lose is a memory.
"""

from msgspec import Struct

from dragoman.interpreter.frame import Frame, framed
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.talk import Talk
from dragoman.interpreter.translation import Asked, Translation, translated
from dragoman.wire import array

_Mark = tuple[str, str, str, str, bool, bytes]
"""Source, target, both names of the model, whether it streams, and what stands before the history."""

_MOST_STRANGE = 64
_ONE_OF = 7
"""After so many requests in a row whose frames nobody knows, only one of so many is looked at; odd, for clients take
turns."""


class Known(Struct, eq=False):
    """What is known of a frame; no `frame` if each request must be translated whole."""

    tail: bytes
    """What stands behind the history's last item."""
    frame: Frame | None
    used: int = 0
    """When it was used last."""


class Frames:
    """Frames of requests, `most` bytes of them in the callers' words."""

    def __init__(self, *, most: int = 4 << 20, marks: int = 4096) -> None:
        self._most = most
        self._marks = marks
        self._now = 0
        self._strange = 0
        """How many requests came since a frame was known."""
        self._seen: dict[int, None] = {}
        """How frames hash that came once."""
        self._known: dict[_Mark, tuple[Known, ...]] = {}
        self.talk = Talk()

    def find(self, mark: _Mark, body: bytes) -> Known | None:
        """Return what is known of the frame of a body; of several the one that leaves least to the history."""
        found: Known | None = None
        room = len(body) - len(mark[-1])
        for known in self._known.get(mark, ()):
            if (
                body.endswith(known.tail)
                and len(known.tail) <= room
                and (found is None or len(found.tail) < len(known.tail))
            ):
                found = known
        if found is not None:
            self._now = found.used = self._now + 1
            self._strange = 0
        return found

    def is_worth_a_look(self) -> bool:
        """Tell whether to look for the frame of a request: where each is another, that is mostly in vain."""
        self._strange += 1
        return self._strange <= _MOST_STRANGE or self._strange % _ONE_OF == 0

    def is_new(self, mark: _Mark, tail: bytes) -> bool:
        """Tell whether a frame comes for the first time, and note that it came."""
        hashed = hash((mark, tail))
        if hashed in self._seen:
            return False
        if len(self._seen) >= self._marks:
            self._seen = {}
        self._seen[hashed] = None
        return True

    def keep(self, mark: _Mark, tail: bytes, frame: Frame | None) -> None:
        """Remember a frame."""
        self._now += 1
        others = [known for known in self._known.get(mark, ()) if known.tail != tail]
        self._known[mark] = (*others, Known(tail, frame, self._now))
        self._shrink()

    def _shrink(self) -> None:
        """Forget what was not used for longest, a quarter of all, when it is too much."""
        every = [(known, mark) for mark, alike in list(self._known.items()) for known in alike]
        size = sum(_size(known, mark) for known, mark in every)
        if size <= self._most:
            return
        for known, mark in sorted(every, key=lambda one: one[0].used):
            others = tuple([one for one in self._known.get(mark, ()) if one is not known])
            if others:
                self._known[mark] = others
            else:
                self._known.pop(mark, None)
            size -= _size(known, mark)
            if size <= self._most * 3 // 4:
                return


def _size(known: Known, mark: _Mark) -> int:
    return len(mark[-1]) + len(known.tail)


def translated_in_frame(asked: Asked, frames: Frames, recall: Recall) -> Translation:
    """Translate a request whose frame may be known; learn it if it is not."""
    call, here = asked.call, asked.here
    body = call.body
    start = array.first(body, here.history) if here.read_history is not None and not call.known else None
    if start is None:
        return translated(asked, recall)
    mark = (here.name, asked.there.name, asked.model, call.model, call.stream, body[:start])
    known = frames.find(mark, body)
    if known is not None and known.frame is not None:
        told = known.frame.say(asked, body[start - 1 : len(body) - len(known.tail) + 1], frames.talk)
        if told is not None:
            return told
    told = translated(asked, recall)
    if (known is None or known.frame is not None) and frames.is_worth_a_look():
        _learn(asked, told, frames, mark, known)
    return told


def _learn(asked: Asked, told: Translation, frames: Frames, mark: _Mark, known: Known | None) -> None:
    """Remember a frame that came before, or that it came."""
    body, name, start = asked.call.body, asked.here.history, len(mark[-1])
    found = array.items(body, name, start) if array.opening(body, name) == start else None
    if found is None:
        return
    tail = body[len(body) - found[1] :]
    if (known is not None and known.tail == tail) or frames.is_new(mark, tail):
        return
    frames.keep(mark, tail, framed(asked, told, body[start - 1 : len(body) - len(tail) + 1]))
