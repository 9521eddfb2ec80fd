"""Remember the frames of requests: what stands around their histories, and what was made of it.

A frame is known again by its bytes, and forgotten with them, as `wire/outline.py` tells.
"""

from msgspec import UNSET

from dragoman.interpreter.frame import Frame, framed
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.talk import Talk
from dragoman.interpreter.translation import Asked, Translation, translated
from dragoman.wire.outline import Around, Outline, Outlines

_Mark = tuple[str, str, str, str, bool]
"""Source, target, both names of the model, and whether it streams."""


class Frames:
    """Frames, and the talk in them."""

    def __init__(self) -> None:
        self.outlines = Outlines()
        self.talk = Talk()

    def find(self, around: Around, mark: _Mark) -> Frame | None:
        """Return what was made of a frame; None if nothing was, or each request in it must be translated whole."""
        return around.made.get(mark)


def translated_in_frame(asked: Asked, frames: Frames, recall: Recall) -> Translation:
    """Translate a request whose frame may be known; learn it if it is not."""
    outline = _outlined(asked, frames.outlines)
    if outline is None:
        return translated(asked, recall)
    call, around = asked.call, outline.around
    mark = (asked.here.name, asked.there.name, asked.model, call.model, call.stream)
    frame = frames.find(around, mark)
    if frame is not None:
        told = frame.say(asked, outline, frames.talk)
        if told is not None:
            return told
    told = translated(asked, recall)
    if mark not in around.made:
        around.keep(mark, framed(asked, told, outline))
    return told


def _outlined(asked: Asked, outlines: Outlines) -> Outline | None:
    call, here = asked.call, asked.here
    if here.read_history is None or call.known:
        return None
    return call.outline if call.outline is not UNSET else outlines.of(call.body, here.history)
