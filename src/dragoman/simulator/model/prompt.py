"""Find what a prompt mentions literally, and match it with the parameters of a tool.

Mentions are quoted text, code, addresses, dates, paths, numbers, capitalised names, and what follows "in". Nothing is
understood: a parameter gets the mention next to its name, or the next one of its kind.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal, assert_never

from msgspec import Struct

LookupStage = Literal["named", "required", "optional"]
"""What to look for: a value next to the parameter's name, any value for a required parameter, or an optional one."""
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'-]*(?![\w/@]|\.\w)"
_NAME = rf"{_CAPITALISED}(?: {_CAPITALISED})*"
_MENTION = re.compile(
    r"```[^\n`]*\n(?P<block>.*?)(?:```|\Z)|`(?P<code>[^`\n]{1,4000})`"
    r"|(?<![\w\"])\"(?P<double>[^\"\n]{1,4000})\"(?!\s*:)|“(?P<curly>[^”\n]{1,4000})”"
    r"|(?<!\w)'(?P<single>[^'\n]{1,1000})'(?!\w)"
    r"|(?P<url>https?://[^\s<>\"'`)\]}]*[^\s<>\"'`)\]}.,;:!?])"
    r"|(?<![\w.+-])(?P<email>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"
    r"|(?<![\w-])(?P<datetime>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)(?!\w)"
    r"|(?<![\w-])(?P<date>\d{4}-\d\d-\d\d)(?![\w-])|(?<![\w:])(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?![\w:])"
    r"|(?<![\w./~-])(?P<path>(?:~|\.{1,2})?/[\w.@/-]*\w|[\w-]{1,128}(?:/[\w.@-]*\w)+"
    r"|[\w-]{1,128}(?:\.[\w-]{1,128}){0,8}\.[a-z][a-z0-9]{0,5}(?!\w))"
    r"|(?<![\w-])(?P<id>[A-Z]{2,12}-\d+|(?=[A-Za-z_]{1,64}\d)[A-Za-z0-9_]{3,64})(?![\w-])"
    r"|(?<![\w.])(?P<number>[-+]?\d{1,300}(?:,\d{3}){0,90}(?:\.\d{1,300})?)(?![\w.]*\w)"
    rf"|(?<!\w)(?P<name>{_NAME}(?:, {_NAME}(?! [A-Z]|,? (?:and|or)\b|, ))?)",
    re.DOTALL,
)
_IN = re.compile(r"\b(?:in|at|near|for)\s+([^\W\d_]{2,40}(?: [^\W\d_]{2,40}){0,2})")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_END = re.compile(r"[.!?;]+(?=\s|\Z)\s*(?:then\s+)?|\n+|,?\s+(?:and\s+)?then\s+", re.IGNORECASE)
_LIST = re.compile(r"\s*(?:,|&|,?\s+(?:and|or)\b|[.?]\s+And\b)\s*(?:(?:and|in|at|for|of|the|near)\s+){0,2}")
_MOST_CLAUSES = 12
"""A prompt with more clauses is a document with a request before or after it."""


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _split_set(
    "a an the this that these those it its i me my you your we us our they them their he she his her him is are was "
    "were be been am do does did have has had can could will would shall should may might must and or but so if then "
    "than as of in on at to for from by with without about into over near please thanks thank hello hi hey ok yes no "
    "not what what's which who when where why how there here just also too very now any some all each more most only "
    "other again let want need like tell give show know say up out off get fetch find list make use call tool function"
)
"""Words that do not help to select a tool."""
_LINK_WORDS = _split_set("is are of to as be the a an named called titled labelled set at")
_KINDS = {
    "url": _split_set("url uri link href website webpage page"),
    "email": _split_set("email mail recipient"),
    "path": _split_set("path file filename directory folder"),
    "date": _split_set("date day"),
    "time": _split_set("time"),
    "place": _split_set("city location place country town region state address origin destination"),
    "text": _split_set(
        "query question search prompt text content message body description comment note summary input subject topic "
        "code command expression sql script patch reason task thought"
    ),
}
"""Kinds of parameters, by the words of their names."""
_KIND_OF_FORMAT = {"email": "email", "uri": "url", "date": "date", "date-time": "datetime", "time": "time"}
_MENTION_KINDS = {
    "date": ("date", "datetime"),
    "datetime": ("datetime", "date"),
    "place": ("name", "quoted"),
    "text": ("quoted", "code"),
    "": ("quoted", "name", "id", "code", "path", "email", "number"),
}
"""Kinds of mentions that fit a kind of parameter, where that is not just the kind of the same name."""
_PREPOSITIONS = {
    "from": _split_set("from origin source start"),
    "to": _split_set("to destination target end recipient"),
}


class PromptMention(Struct, frozen=True):
    """A value in a text, with the words around it; `label` is the last word before it that is not a link word."""

    kind: str
    value: str | int | float
    start: int
    end: int
    before: str = ""
    label: str = ""
    after: str = ""


class Clause(Struct, frozen=True):
    """A piece of a prompt that may request one call."""

    text: str
    words: tuple[str, ...]
    mentions: tuple[PromptMention, ...]

    def find_topic(self, ignored_words: frozenset[str]) -> str:
        """Return the first line without its leading stop words and ignored words."""
        for found in _WORD.finditer(self.text):
            word = normalise_word(found[0])
            if word not in STOP_WORDS and word not in ignored_words:
                return self.text[found.start() :].partition("\n")[0].strip(" \t.,;:!?")
        return ""


class ParameterLabel(Struct, frozen=True):
    """A parameter's name: as it is written, its words, its kind, and the kinds of mentions that fit it."""

    name: str
    words: tuple[str, ...]
    kind: str
    mention_kinds: tuple[str, ...]


def normalise_word(word: str) -> str:
    """Return a word in lower case and, judging by an English `s`, in the singular."""
    word = word.lower().removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def split_words(text: str) -> list[str]:
    """Return the normal forms of the words of a text or of an identifier: `getUserByID` has four."""
    return [normalise_word(word) for word in _WORD.findall(_HUMP.sub(" ", text))]


@lru_cache(maxsize=8192)
def read_label(name: str, form: str = "") -> ParameterLabel:
    """Analyse a parameter's name; its format takes precedence over the name."""
    words = tuple(split_words(name))
    named = (kind for word in reversed(words) for kind, known in _KINDS.items() if word in known)
    kind = _KIND_OF_FORMAT.get(form) or next(named, "")
    return ParameterLabel(name, words, kind, _MENTION_KINDS.get(kind, (kind,)))


@lru_cache(maxsize=256)
def read_clause(text: str) -> Clause:
    """Find the words and mentions of a text."""
    return Clause(
        text, tuple(split_words(text)), tuple(sorted(_find_mentions(text), key=lambda mention: mention.start))
    )


def split_clauses(prompt: str) -> list[Clause]:
    """Split a prompt at the ends of its sentences."""
    pieces = split_at(read_clause(prompt), _END.finditer(prompt))
    half = _MOST_CLAUSES // 2
    return pieces if len(pieces) <= _MOST_CLAUSES else pieces[:half] + pieces[-half:]


def split_at(clause: Clause, places: Iterable[re.Match[str]]) -> list[Clause]:
    """Split a clause at matches, but not within a mention; pieces without a word are dropped."""
    pieces: list[str] = []
    start = 0
    for place in places:
        if not any(mention.start <= place.start() < mention.end for mention in clause.mentions):
            pieces.append(clause.text[start : place.start()])
            start = place.end()
    pieces.append(clause.text[start:])
    return [read_clause(piece.strip()) for piece in pieces if piece.strip()]


def find_enumerations(clause: Clause) -> list[list[PromptMention]]:
    """Return the groups of mentions of one kind that are joined by "and" or commas."""
    groups: list[list[PromptMention]] = [[]]
    for mention in clause.mentions:
        last = groups[-1][-1] if groups[-1] else mention
        if last.kind != mention.kind or _LIST.fullmatch(clause.text[last.end : mention.start]) is None:
            groups.append([])
        groups[-1].append(mention)
    return [group for group in groups if len(group) > 1]


def _find_mentions(text: str) -> Iterator[PromptMention]:
    found = [mention for match in _MENTION.finditer(text) for mention in _read_match(text, match)]
    yield from found
    for match in _IN.finditer(text) if all(mention.kind != "name" for mention in found) else ():
        start = match.start(1)
        phrase = " ".join(takewhile(lambda word: normalise_word(word) not in STOP_WORDS, match[1].split(" ")))
        if phrase and not any(mention.start <= start < mention.end for mention in found):
            yield _make_mention(text, "name", phrase, start, start + len(phrase))


def _read_match(text: str, match: re.Match[str]) -> Iterator[PromptMention]:
    kind = match.lastgroup or ""
    value: str | int | float = match[kind]
    if kind == "name":
        yield from _read_names(text, match)
        return
    if kind == "number":
        digits = match[kind].replace(",", "")
        value = float(digits) if "." in digits else int(digits)
    elif kind == "block":
        kind, value = "code", match[kind].strip("\n")
    elif kind in {"double", "curly", "single"}:
        kind = "quoted"
    yield _make_mention(text, kind, value, match.start(), match.end())


def _read_names(text: str, match: re.Match[str]) -> Iterator[PromptMention]:
    """Yield a capitalised name without stop words and without the capitalised word that begins a sentence."""
    value, start = match["name"].removesuffix("'s"), match.start()
    before, rest = text[:start].rstrip(" "), text[match.end() :].strip(" .?!\n")
    skip = bool(rest) and (not before or before[-1] in ".!?;\n")
    while value:
        word = value.partition(" ")[0]
        if not skip and normalise_word(word.rstrip(",")) not in STOP_WORDS:
            yield _make_mention(text, "name", value, start, start + len(value))
            return
        skip = False
        start += len(word) + 1
        value = value[len(word) + 1 :]


def _make_mention(text: str, kind: str, value: str | float, start: int, end: int) -> PromptMention:
    before = split_words(_END.split(text[max(0, start - 60) : start])[-1])
    after = split_words(_END.split(text[end : end + 40])[0])
    label = next((word for word in reversed(before) if word not in _LINK_WORDS), "")
    return PromptMention(kind, value, start, end, before[-1] if before else "", label, after[0] if after else "")


class Evidence:
    """The values available for one call: those in its clause, and mentions elsewhere. Each mention is used once."""

    def __init__(
        self, clause: Clause, others: Iterable[PromptMention] = (), tool_words: frozenset[str] = frozenset()
    ) -> None:
        self.clause = clause
        self.used: set[int] = set()
        self._others = tuple(others)
        self._tool_words = tool_words

    def find_topic(self) -> str:
        """Return the topic of the clause without the words of the tool's name."""
        return self.clause.find_topic(self._tool_words)

    def find(
        self, label: ParameterLabel, kinds: tuple[str, ...], accepts: Callable[[Any], bool], stage: LookupStage
    ) -> Any:
        """Return a value for a parameter, or None."""
        own, others = self.clause.mentions, self._others
        match stage:
            case "named":
                found = _find_adjacent(own, label, kinds)
            case "required":
                found = [
                    *_select_kinds(own, kinds),
                    *_find_adjacent(others, label, kinds),
                    *_select_kinds(others, kinds),
                ]
            case "optional":
                found = [one for one in _select_kinds(own, kinds) if one.kind != "name" or one.before in {"in", "at"}]
            case _:
                assert_never(stage)
        for mention in found:
            if id(mention) not in self.used and accepts(mention.value):
                self.used.add(id(mention))
                return mention.value
        return None

    def find_all(self, kinds: Iterable[str], accepts: Callable[[Any], bool]) -> list[Any]:
        """Return all values of the first kind that has one."""
        for kind in kinds:
            unused = [one for one in self.clause.mentions if one.kind == kind and id(one) not in self.used]
            found = [mention for mention in unused if accepts(mention.value)]
            self.used.update(map(id, found))
            if found:
                return [mention.value for mention in found]
        return []

    def find_position(self, value: Any) -> int | None:
        """Return the position of an enum option in the clause; None if the clause does not contain it."""
        words = split_words(str(value)) if isinstance(value, str | int | float) else []
        found = bool(words) and not isinstance(value, bool) and set(words) <= set(self.clause.words)
        return self.clause.words.index(words[0]) if found else None


def _find_adjacent(
    mentions: Iterable[PromptMention], label: ParameterLabel, kinds: tuple[str, ...]
) -> list[PromptMention]:
    """Return the mentions next to one of a parameter's words: "page 2", "5 results", "from Paris"."""
    leading = {word for word, words in _PREPOSITIONS.items() if not words.isdisjoint(label.words)}
    before = [one for one in mentions if one.label in label.words or one.before in leading]
    return before or [one for one in mentions if kinds == (one.kind,) == ("number",) and one.after in label.words]


def _select_kinds(mentions: Iterable[PromptMention], kinds: Iterable[str]) -> list[PromptMention]:
    return [mention for kind in kinds for mention in mentions if mention.kind == kind]
