"""A clause: a piece of a prompt that may be an ask of its own, with its words and facts."""

import re
from functools import lru_cache

from msgspec import Struct

from dragoman.simulator.model.language.facts import Fact, facts
from dragoman.simulator.model.language.lexicon import LIGHT, STOP, WEAK
from dragoman.simulator.model.language.words import Word, stems, words

_END = re.compile(
    r"(?:[.!?;]+(?=\s|\Z)|[。\uff01\uff1f\uff1b\n]+)\s*(?:(?:and )?then\s+)?|,?\s+(?:and )?then\s+", re.IGNORECASE
)
_ABBREVIATED = re.compile(r"(?:\b(?:St|Mr|Mrs|Ms|Dr|Prof|vs|etc|e\.g|i\.e)|\b[A-Z])\Z")
_TOPIC_EDGES = " \t\n.,;:!?"
_REMEMBERED = 400
_MOST_CLAUSES = 12
"""A prompt of more clauses is a document with an ask before or after it."""


class Clause(Struct, frozen=True):
    """A piece of a prompt."""

    text: str
    words: tuple[Word, ...]
    facts: tuple[Fact, ...]
    stems: frozenset[str]
    follows: bool = False
    """It goes on from the clause before: "; then …", "and …"."""

    def topic(self, besides: frozenset[str]) -> str:
        """What the clause is about: its first line without the words that lead up to it, among them `besides`."""
        for word in self.words:
            if word.stem not in STOP and word.stem not in LIGHT and word.stem not in WEAK and word.stem not in besides:
                return self.text[word.start :].partition("\n")[0].strip(_TOPIC_EDGES)
        return ""

    def with_more(self, other: "Clause") -> "Clause":
        """Return the clause with another that tells more about it."""
        return clause(f"{self.text}\n{other.text}", follows=self.follows)


def clause(text: str, *, follows: bool = False) -> Clause:
    """Read a clause; short ones are remembered, for the same piece is looked at from several sides."""
    return _short(text, follows) if len(text) <= _REMEMBERED else _read(text, follows)


def _read(text: str, follows: bool) -> Clause:
    told = words(text)
    return Clause(text, tuple(told), tuple(facts(text, told)), frozenset(stems(text)), follows)


_short = lru_cache(maxsize=512)(_read)


def clauses(prompt: str) -> list[Clause]:
    """Cut a prompt at the ends of its sentences, never inside of what is quoted."""
    whole = clause(prompt)
    pieces = cut(prompt, [found for found in _END.finditer(prompt) if _ends(prompt, found, whole)])
    if len(pieces) == 1 and not pieces[0].follows:
        return [whole]
    if len(pieces) > _MOST_CLAUSES:
        half = _MOST_CLAUSES // 2
        pieces = pieces[:half] + pieces[-half:]
    return pieces


def cut(text: str, places: list[re.Match[str]]) -> list[Clause]:
    """Cut a text at places; a piece without words is none."""
    pieces: list[Clause] = []
    start, follows = 0, False
    for place in places:
        marks = len(place[0]) - len(place[0].lstrip("?!"))
        piece = text[start : place.start() + marks]
        if piece.strip():
            pieces.append(clause(piece.strip(), follows=follows))
        start = place.end()
        follows = ";" in place[0] or place[0].strip().lower().endswith(("then", "and", "also"))
    if text[start:].strip():
        pieces.append(clause(text[start:].strip(), follows=follows))
    return pieces or [clause(text)]


def is_inside(position: int, found: tuple[Fact, ...]) -> bool:
    """Whether a place in the text belongs to a fact."""
    return any(fact.start <= position < fact.end for fact in found if fact.start <= position)


def _ends(prompt: str, place: re.Match[str], whole: Clause) -> bool:
    if is_inside(place.start(), whole.facts):
        return False
    return not (place[0].startswith(".") and _ABBREVIATED.search(prompt[max(0, place.start() - 5) : place.start()]))
