"""The texts of two turns are paragraphs: what is said after calls does not run into what was said before.

A text of a later turn has an item, a block or a part of its own where the client's dialect has such, but every client
joins them, and a stream of Gemini's or Chat's is nothing but pieces of one text. So it begins with a blank line.
"""

from msgspec import structs

from dragoman.core.events import Event, PartCited, PartDelta, PartStarted
from dragoman.core.parts import Citation, Text

_GAP = "\n\n"


class Paragraphs:
    """Events of a run's turns in, the same with blank lines out."""

    def __init__(self) -> None:
        self._end = ""
        """How the text that was said so far ends."""
        self._is_new = False
        """A turn has begun since."""
        self._waiting: set[int] = set()
        """Texts of this turn that have said nothing yet."""
        self._moved: dict[int, int] = {}
        """By how much the words of a text stand behind where the model put them."""

    def turn(self, *, goes_on: bool = False) -> None:
        """A turn is over; the next one may be the rest of it."""
        self._waiting.clear()
        self._moved.clear()
        self._is_new = bool(self._end) and not goes_on

    def told(self, event: Event) -> Event:
        """Return an event of this turn as it is told."""
        match event:
            case PartStarted(index, Text()):
                self._waiting.add(index)
            case PartDelta(index, text) if index in self._waiting and text:
                self._waiting.discard(index)
                if self._is_new:
                    event = self._apart(event)
                self._end = text[-len(_GAP) :]
                self._moved.setdefault(index, 0)
            case PartDelta(index, text) if index in self._moved and text:
                self._end = (self._end + text)[-len(_GAP) :]
            case PartCited(index, citation) if self._moved.get(index):
                return PartCited(index, _moved(citation, self._moved[index]))
            case _:
                pass
        return event

    def _apart(self, event: PartDelta) -> PartDelta:
        """Begin a paragraph, unless the words do so themselves."""
        self._is_new = False
        breaks = len(self._end) - len(self._end.rstrip("\n")) + len(event.text) - len(event.text.lstrip("\n"))
        gap = _GAP[breaks:]
        self._moved[event.index] = len(gap)
        return structs.replace(event, text=gap + event.text)


def _moved(citation: Citation, by: int) -> Citation:
    """Return a citation of words that stand further behind."""
    if citation.start is None or citation.end is None or not citation.url:
        return citation
    moved = structs.replace(citation, start=citation.start + by, end=citation.end + by)
    # Its own form has the old places.
    return structs.replace(moved, dialect="", raw=b"") if citation.raw else moved
