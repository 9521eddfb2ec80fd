"""Evidence: what a clause of the prompt, the rest of the prompt and the results of tools say about a parameter.

A fact is given away once. Facts of the clause itself come before those of its surroundings.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from dragoman.simulator.model.language.clauses import Clause
from dragoman.simulator.model.language.facts import Fact, FactKind
from dragoman.simulator.model.language.lexicon import (
    CONCEPTS,
    DENYING,
    DIRECTIONS,
    LINKING,
    PARAMETER_KINDS,
    PLACING,
    STOP,
    weight_of,
    with_signs,
)
from dragoman.simulator.model.language.words import Word, stems

_STRICT_LINK = re.compile(r"\s*(?:=|:|(?:is|to|as|named|called|set to)\b)?\s*(?:the |a |an )?")
_WITH = re.compile(r"\b(?:with|set|using) (?:the |a )?[\w-]{1,64}\Z")
_BARE = re.compile(r"[^\s,;.!?\"']+(?:[.:/-][^\s,;.!?\"']+)*")
_TERM = r"[(-]{0,4}\d[\d.]{0,30}\){0,4}"
_EXPRESSION = re.compile(rf"(?<![\w.]){_TERM}(?:\s{{0,2}}[-+*/\u00d7\u00f7^%]\s{{0,2}}{_TERM}){{1,40}}")
_ANSWERED_BY: dict[str, tuple[FactKind, ...]] = {
    "url": ("url", "host"),
    "email": ("email",),
    "path": ("path", "host"),
    "datetime": ("datetime", "date"),
    "date": ("date", "datetime", "day"),
    "time": ("time", "datetime"),
    "place": ("name", "phrase", "opening", "quoted"),
    "code": ("code", "quoted"),
    "id": ("uuid", "id", "quoted", "number", "name"),
    "name": ("quoted", "name", "id", "path", "opening"),
    "number": ("number",),
    "query": ("quoted", "code"),
    "text": ("quoted", "code"),
    "": ("quoted", "name", "id"),
}
_KINDS_OF_FORMATS = {
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "uuid": "id",
}
STRONG = frozenset({"url", "email", "path", "datetime", "date", "time", "place"})
"""Kinds of parameters that may take a fact of their kind though nobody asked for them by name."""
QUOTABLE = frozenset(
    stems("label title name caption heading note memo comment message text content body description summary subject")
)
"""What the last word of a parameter's name is if it may take what was quoted and nothing else has taken."""
TOPICAL = frozenset({"query", "text", "code", "name", "", "id"})
"""Kinds of parameters that may hold what the whole clause is about."""


_FIRST = frozenset(stems("first given"))
_LAST = frozenset(stems("last family surname"))
_OF_REPOSITORIES = {"owner": 0, "repo": 1, "repository": 1}
_SWITCHING = frozenset(stems("include enable with use show"))
"""Of the name of something that is switched on or off, words that do not tell what that is."""
_ALL = frozenset({"all", "every"})
"""Words that tell nothing by themselves, but make another thing of what stands beside them."""
_ARTICLES = frozenset({"the", "a", "an", "my", "our", "your"})
_BESIDE_PEOPLE = frozenset({"with", "by", "named", "called"})
"""Before a name these say that it is no place."""
_QUOTING = frozenset({"saying", "says"})
_NOWHERE = frozenset[str]()
_LEADING = frozenset[str]().union(*DIRECTIONS.values())
_LONGEST_RUN = 5


class Label(Struct, frozen=True):
    """A parameter's name: as it is written, its stems, and the kind of value it names."""

    name: str
    stems: tuple[str, ...]
    kind: str


@lru_cache(maxsize=8192)
def label(name: str, form: str = "") -> Label:
    """Read a parameter's name; a format says more than a name."""
    parts = tuple(stems(name))
    if form in _KINDS_OF_FORMATS:
        return Label(name, parts, _KINDS_OF_FORMATS[form])
    kinds = [kind for part in reversed(parts) if (kind := PARAMETER_KINDS.get(part)) is not None]
    if len(kinds) > 1 and parts[-1] == "nam":  # "city_name" is a city
        kinds = kinds[1:]
    return Label(name, parts, kinds[0] if kinds else "")


NO_LABEL = Label("", (), "")


@lru_cache(maxsize=8192)
def _telling(value: str) -> tuple[str, ...]:
    """Return the stems of one of an enumeration's values, without those that tell nothing if others do."""
    parts = tuple(stems(value))
    return tuple(part for part in parts if part not in STOP) or parts


class Evidence:
    """What is known about one call, and what of it is used up."""

    def __init__(
        self,
        clause: Clause,
        surroundings: Iterable[Fact] = (),
        known: Mapping[str, Any] | None = None,
        tool: frozenset[str] = frozenset(),
        *,
        known_first: bool = False,
    ) -> None:
        self.clause = clause
        self.surroundings = tuple(surroundings)
        self.known = known or {}
        self.known_first = known_first
        self._tool = tool
        self._used: set[int] = set()
        self._places = {word.start: place for place, word in enumerate(clause.words)}

    def afresh(self) -> "Evidence":
        """Return the same evidence with nothing used up."""
        return Evidence(self.clause, self.surroundings, self.known, self._tool, known_first=self.known_first)

    def topic(self) -> str:
        """What the clause is about, beside the tool."""
        concepts = {CONCEPTS[part] for part in self._tool if part in CONCEPTS}
        return self.clause.topic(self._tool | {part for part in self.clause.stems if CONCEPTS.get(part) in concepts})

    def expression(self) -> str:
        """An arithmetic expression, if the clause has one."""
        found = _EXPRESSION.search(with_signs(self.clause.text))
        return found[0].strip() if found is not None else ""

    def named(self, parameter: Label, accepts: Callable[[Any], bool]) -> Any:
        """Return what the clause calls by the parameter's name, or None."""
        directions = frozenset[str]().union(*(DIRECTIONS.get(part, _NOWHERE) for part in parameter.stems))
        for fact in self._unused(self.clause.facts):
            if fact.before in directions and accepts(fact):
                return self._take(fact)
        for start in self._mentions(parameter):
            fact = self._fact_after(start)
            if fact is not None and accepts(fact):
                return self._take(fact)
        return None

    def bare(self, parameter: Label) -> str:
        """Return the word after "name is", "name:" or "name=", or the words after "about", "called" and their like."""
        for start in self._mentions(parameter):
            link = _STRICT_LINK.match(self.clause.text, start)
            if link is None or (not link[0].strip() and not _WITH.search(self.clause.text, 0, start)):
                continue
            found = _BARE.match(self.clause.text, link.end())
            if found is not None and found[0].lower() not in LINKING:
                return found[0]
        return self._after(frozenset[str]().union(*(DIRECTIONS.get(part, _NOWHERE) for part in parameter.stems)))

    def _after(self, leading: frozenset[str]) -> str:
        """Return the few words after one of those that lead to them."""
        told = self.clause.words
        for place, word in enumerate(told):
            if word.text.lower() not in leading - PLACING:
                continue
            if word.text.lower() in _QUOTING:
                return self.clause.text[word.end :].strip(" \t:,.")
            run: list[Word] = []
            for other in told[place + 1 : place + 1 + _LONGEST_RUN]:
                ended = bool(run) and self.clause.text[run[-1].end : other.start].strip() != ""
                if not run and other.text.lower() in _ARTICLES:
                    continue
                if ended or other.stem in STOP or other.text.lower() in _LEADING:
                    break
                run.append(other)
            if run:
                return self.clause.text[run[0].start : run[-1].end]
        return ""

    def number_at(self, parameter: Label, accepts: Callable[[Any], bool]) -> Any:
        """Return the number that stands beside one of the parameter's words: "5 results", "page 2"."""
        telling = {part for part in parameter.stems if part not in STOP and len(part) > 1}
        for fact in self._unused(self.clause.facts):
            if fact.kind != "number" or not accepts(fact):
                continue
            beside = self._words_beside(fact)
            if telling & beside:
                return self._take(fact)
        return None

    def fitting(self, parameter: Label, accepts: Callable[[Any], bool], *, needed: bool) -> Any:
        """Return a fact of the kind the parameter names, or None; a needed one may come from the surroundings."""
        for kind in _ANSWERED_BY[parameter.kind]:
            if kind in {"opening", "quoted"} and not needed and parameter.kind == "place":
                continue
            fact = self._first(self.clause.facts, kind, accepts, parameter)
            if fact is not None and (needed or parameter.kind != "place" or fact.before not in _BESIDE_PEOPLE):
                return self._take(fact)
        for kind in _ANSWERED_BY[parameter.kind] if needed else ():
            fact = self._first(self.surroundings, kind, accepts, parameter)
            if fact is not None and kind != "opening":
                return self._take(fact)
        return None

    def of_kind(self, kind: FactKind, accepts: Callable[[Any], bool], *, needed: bool = False) -> Any:
        """Return the next fact of a kind, or None."""
        fact = self._first(self.clause.facts, kind, accepts, NO_LABEL)
        if fact is not None:
            return self._take(fact)
        fact = self._first(self.surroundings, kind, accepts, NO_LABEL) if needed else None
        return self._take(fact) if fact is not None else None

    def part_of_name(self, parameter: Label) -> str:
        """Return a first or last name, of the first name with two."""
        first, last = not _FIRST.isdisjoint(parameter.stems), not _LAST.isdisjoint(parameter.stems)
        if first == last or parameter.kind != "name":
            return ""
        for fact in (*self.clause.facts, *self.surroundings):
            if fact.kind == "name" and " " in fact.text:
                self._take(fact)
                return fact.text.split()[0 if first else -1]
        return ""

    def part_of_repository(self, parameter: Label) -> str:
        """Return the owner or the name of a repository that is told as `owner/name`."""
        kind = next((part for part in parameter.stems if part in _OF_REPOSITORIES), "")
        for fact in (*self.clause.facts, *self.surroundings) if kind else ():
            if fact.kind == "path" and fact.text.count("/") == 1 and not fact.text.startswith((".", "/", "~")):
                self._take(fact)
                return fact.text.split("/")[_OF_REPOSITORIES[kind]]
        return ""

    def all_of(self, kinds: Iterable[FactKind]) -> list[Fact]:
        """Return all unused facts of the first of the kinds that has any, and use them up."""
        for kind in kinds:
            found = [fact for fact in self._unused(self.clause.facts) if fact.kind == kind]
            if found:
                self._used.update(map(id, found))
                return found
        return []

    def is_mentioned(self, parameter: Label) -> bool:
        """Whether the clause speaks of a parameter by a word that tells something."""
        telling = {part for part in parameter.stems if weight_of(part) == 1.0 and len(part) > 2} - _SWITCHING
        needed = telling | (_ALL & set(parameter.stems))
        return bool(telling) and needed <= self.clause.stems and not telling <= self._tool

    def is_denied(self, parameter: Label) -> bool:
        """Whether the clause says no to a parameter: "without x", "x off"."""
        told, text = self.clause.words, self.clause.text
        for place, word in enumerate(told):
            if word.stem not in parameter.stems:
                continue
            before = [other for other in told[max(0, place - 3) : place] if "," not in text[other.end : word.start]]
            behind = [other for other in told[place + 1 : place + 3] if "," not in text[word.end : other.start]]
            return any(other.text.lower() in DENYING for other in (*before, *behind))
        return False

    def says(self, value: Any) -> bool:
        """Whether the clause says one of the values of an enumeration."""
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            return False
        parts = _telling(str(value))
        if len(parts) == 1 and len(parts[0]) < 2:
            return any(word.text == str(value) for word in self.clause.words)
        return bool(parts) and self.clause.stems.issuperset(parts)

    def place_of(self, value: Any) -> int:
        """How many words of the clause stand before one of the values of an enumeration."""
        parts = _telling(str(value))
        return next((place for place, word in enumerate(self.clause.words) if word.stem in parts), 0)

    def _unused(self, found: Iterable[Fact]) -> Iterable[Fact]:
        return (fact for fact in found if id(fact) not in self._used)

    def _take(self, fact: Fact) -> Fact:
        """Use up a fact, and what is part of it or has it for a part."""
        self._used.add(id(fact))
        self._used.update(id(other) for other in self.clause.facts if other.start < fact.end and fact.start < other.end)
        return fact

    def _first(
        self, found: Iterable[Fact], kind: FactKind, accepts: Callable[[Any], bool], parameter: Label
    ) -> Fact | None:
        candidates = [fact for fact in self._unused(found) if fact.kind == kind and accepts(fact)]
        if parameter.kind == "place":
            return next((fact for fact in candidates if fact.before in PLACING), candidates[0] if candidates else None)
        return candidates[0] if candidates else None

    def _mentions(self, parameter: Label) -> Iterable[int]:
        """Places in the text right after the parameter's name."""
        told, size = self.clause.words, len(parameter.stems)
        for place in range(len(told) - size + 1) if size else ():
            if tuple(word.stem for word in told[place : place + size]) == parameter.stems:
                yield told[place + size - 1].end
        if size > 1:
            joined = self.clause.text.find(parameter.name)
            if joined >= 0:
                yield joined + len(parameter.name)

    def _fact_after(self, start: int) -> Fact | None:
        for fact in self._unused(self.clause.facts):
            if fact.start >= start:
                between = self.clause.text[start : fact.start].lower()
                return fact if len(between) < 24 and all(part in LINKING for part in between.split()) else None
        return None

    def _words_beside(self, fact: Fact) -> set[str]:
        told = self.clause.words
        place = next((at for at, word in enumerate(told) if word.start >= fact.start), len(told))
        after = place
        while after < len(told) and told[after].start < fact.end:
            after += 1
        beside = {word.stem for word in told[after : after + 2]}
        before = [word for word in told[max(0, place - 3) : place] if word.text.lower() not in LINKING]
        return beside | {word.stem for word in before[-1:]}
