"""Words of a text, and their stems.

A stem is not a linguist's: it is what makes "searches", "searching" and "search" equal, and nothing more. Scripts that
are written without spaces give pairs of letters instead of words.
"""

import re
from functools import lru_cache

from msgspec import Struct

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]{2,}")
_ENDINGS = ("ations", "ation", "ators", "ator", "ions", "ion", "ings", "ing", "ers", "er", "ors", "or", "ed")
_VOWELS = frozenset("aeiouy")
_SHORTEST = 4
"""Letters that must be left before an ending is taken off: "string" is not a way of "str"."""


class Word(Struct, frozen=True):
    """A word as it is written, and where."""

    text: str
    stem: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Return the words of a text with their places."""
    return [Word(found[0], stem(found[0]), found.start(), found.end()) for found in _WORD.finditer(text)]


def stems(text: str) -> list[str]:
    """Return the stems of a text or of an identifier, in order: `getUserByID` has four."""
    found = [stem(word) for word in _WORD.findall(_HUMP.sub(" ", text))]
    for run in _UNSPACED.findall(text):
        found.extend(run[at : at + 2] for at in range(len(run) - 1))
    return found


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Reduce a word to what its forms have in common."""
    plain = word.lower().replace("\u2019", "'")
    plain = plain.removesuffix("'s")
    if len(plain) < _SHORTEST:
        return plain
    if plain.endswith(("ies", "ied")):
        return plain[:-3] + "y"
    if plain.endswith("s") and not plain.endswith(("ss", "us", "is")):
        plain = plain[:-1]
    for ending in _ENDINGS:
        if plain.endswith(ending) and len(plain) - len(ending) >= _SHORTEST:
            return _single(plain[: -len(ending)].removesuffix("at"))
    if len(plain) < _SHORTEST:
        return plain
    return plain.removesuffix("ate").removesuffix("e") if len(plain) > _SHORTEST else plain.removesuffix("e")


def _single(plain: str) -> str:
    """Take back the doubling of "running" and "cancelled", but not that of "calling" and "spelling"."""
    if plain.endswith("ell") and not _VOWELS.isdisjoint(plain[:-3]):
        return plain[:-1]
    return plain[:-1] if plain[-1:] == plain[-2:-1] and plain[-1:] not in "sl" else plain.removesuffix("e")
