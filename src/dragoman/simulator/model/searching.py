"""Search the simulator's own documents, and answer with sentences of theirs, word for word."""

import math
import re
from collections import Counter
from functools import cache

from msgspec import Struct

from dragoman.simulator.model.documents import DOCUMENTS, Document
from dragoman.simulator.model.language.clauses import clause
from dragoman.simulator.model.language.lexicon import ASKING, LIGHT, STOP, WEB
from dragoman.simulator.model.language.words import stems
from dragoman.simulator.talk import Source

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_SATURATION, _LENGTH = 1.2, 0.75
_TITLE = 2
_SELF = 0.25
_MOST_SOURCES = 3
_NEAR = 0.35
"""A document that is this much worse than the best is not worth quoting."""
_LEAST = 1.5
_LONGEST_QUERY = 200


class Found(Struct, frozen=True):
    """What was searched for, and what was found."""

    query: str
    sources: tuple[Source, ...]
    hit: bool
    """Whether a document is about it; else the source is the document that says what is searched."""


class _Index(Struct, frozen=True):
    counts: tuple[Counter[str], ...]
    lengths: tuple[int, ...]
    average: float
    rarity: dict[str, float]


def asks_for_search(prompt: str) -> bool:
    """Whether a prompt asks something a search could answer."""
    return "?" in prompt or not ASKING.isdisjoint(stems(prompt))


def asks_for_web(prompt: str) -> bool:
    """Whether a prompt asks for the web by name."""
    return not WEB.isdisjoint(stems(prompt))


def search(prompt: str) -> Found:
    """Find the documents a prompt asks for."""
    asked = [
        part for part in dict.fromkeys(stems(prompt)) if part not in STOP and part not in LIGHT and part not in ASKING
    ]
    query = clause(prompt).topic(ASKING)[:_LONGEST_QUERY] or prompt.strip()[:_LONGEST_QUERY]
    ranked = sorted(((_score(asked, place), -place) for place in range(1, len(DOCUMENTS))), reverse=True)
    best = ranked[0][0]
    if best < _LEAST:
        return Found(query, (_source(DOCUMENTS[0], asked),), hit=False)
    near = [DOCUMENTS[-place] for score, place in ranked[:_MOST_SOURCES] if score >= best * _NEAR]
    return Found(query, tuple(_source(document, asked) for document in near), hit=True)


def _score(asked: list[str], place: int) -> float:
    index = _index()
    counts = index.counts[place]
    stretch = _SATURATION * (1 - _LENGTH + _LENGTH * index.lengths[place] / index.average)
    return sum(
        index.rarity.get(part, 0.0) * counts[part] * (_SATURATION + 1) / (counts[part] + stretch)
        for part in asked
        if part in counts
    )


def _source(document: Document, asked: list[str]) -> Source:
    """Quote the sentence that has most of what is asked for; that it is about the title goes without saying."""
    index = _index()
    title = set(stems(document.title))

    def weight(sentence: str) -> float:
        told = set(stems(sentence))
        return sum(index.rarity.get(part, 0.0) * (_SELF if part in title else 1) for part in asked if part in told)

    return Source(url=document.url, title=document.title, quote=max(sentences(document), key=weight))


def sentences(document: Document) -> list[str]:
    """Return a document's sentences."""
    return _SENTENCE.split(document.text)


@cache
def _index() -> _Index:
    counts = tuple(Counter(stems(document.text) + stems(document.title) * _TITLE) for document in DOCUMENTS)
    lengths = tuple(count.total() for count in counts)
    held = Counter(part for count in counts for part in count)
    total = len(DOCUMENTS)
    rarity = {part: math.log(1 + (total - number + 0.5) / (number + 0.5)) for part, number in held.items()}
    return _Index(counts, lengths, sum(lengths) / total, rarity)
