"""Searches tools by words (BM25) or by a regular expression: their names, descriptions and arguments.

The index is of the client's tools, so all of it is untrusted: the text of a tool is bounded, and so are the steps that
a regular expression takes.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import log
from typing import Any

from msgspec import Struct

from dragoman.core.request import Tool
from dragoman.interpreter.linear_pattern import LinearPattern
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json

MAX_TEXT = 20_000
"""The most characters of a tool that are searched."""
MAX_PATTERN = 200
_MAX_DEPTH = 8
_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL_CASE = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_NAME_WEIGHT = 3
"""How often a word of a name counts."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""The constants k1 and b of BM25."""


def find_words(text: str) -> list[str]:
    """Return the words of a text in lower case; names in camelCase and snake_case are several words."""
    return _WORD.findall(_CAMEL_CASE.sub(" ", text).lower())


class _Entry(Struct, frozen=True):
    """What is searched of one tool."""

    name: str
    text: str
    """The name, the description, and the names and descriptions of the arguments, one per line."""

    @property
    def words(self) -> list[str]:
        return [*find_words(self.name) * (_NAME_WEIGHT - 1), *find_words(self.text)]


class ToolIndex:
    """An index of tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._entries = [_read_entry(tool) for tool in tools]

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(entry.words) for entry in self._entries]

    def search(self, query: str, limit: int) -> tuple[str, ...]:
        """Return the names of the tools that fit a query best; tools that the query names come first."""
        named = _find_named(query, [entry.name for entry in self._entries])
        scores = self._score(frozenset(find_words(query)))
        ranked = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at))
        return tuple(dict.fromkeys([*named, *(self._entries[at].name for at in ranked)]))[:limit]

    def _score(self, words: frozenset[str]) -> list[float]:
        counts = self._counts
        sizes = [count.total() for count in counts]
        mean = sum(sizes) / max(len(sizes), 1) or 1.0
        scores = [0.0] * len(counts)
        for word in sorted(words):
            holders = [at for at, count in enumerate(counts) if word in count]
            weight = log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
            for at in holders:
                found, share = counts[at][word], 1 - _LENGTH_SHARE + _LENGTH_SHARE * sizes[at] / mean
                scores[at] += weight * found * (_SATURATION + 1) / (found + _SATURATION * share)
        return scores

    def match(self, pattern: str, limit: int) -> tuple[str, ...]:
        """Return the names of the tools that a regular expression matches, in the order of the tools; case is ignored.

        Raise `ValueError` if the expression is wrong, too long or too costly.
        """
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"the pattern is longer than {MAX_PATTERN} characters")
        compiled = LinearPattern(pattern)
        found: list[str] = []
        for entry in self._entries:
            if len(found) < limit and any(compiled.search(line) for line in entry.text.split("\n")):
                found.append(entry.name)
        return tuple(found)


def _find_named(query: str, names: Sequence[str]) -> list[str]:
    """Return the tools whose whole names are in a query, such as `a, b` or `select:a,b`, in that order."""
    known = {name.lower(): name for name in reversed(names)}
    return [known[word] for word in re.split(r"[\s,;:\"'`]+", query.lower()) if word in known]


def _read_entry(tool: Tool) -> _Entry:
    name = qualify_name(tool.name, tool.namespace)
    schema = json.peek(tool.parameters) if tool.parameters else None
    lines = [name, tool.description, tool.namespace_description, *_list_arguments(schema, 0)]
    return _Entry(name, "\n".join(filter(None, lines))[:MAX_TEXT])


def _list_arguments(schema: Any, depth: int) -> Iterator[str]:
    """Yield the names and descriptions of the arguments, also of nested ones."""
    if depth > _MAX_DEPTH:
        return
    members = json.as_object(schema)
    for name, inner in json.as_object(members.get("properties")).items():
        yield name
        if description := json.get_text(json.as_object(inner), "description"):
            yield description
        yield from _list_arguments(inner, depth + 1)
    yield from _list_arguments(members.get("items"), depth + 1) if "items" in members else ()
