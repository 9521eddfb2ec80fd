"""Facts of a text: what could be the value of an argument.

One pass of one pattern finds quoted texts, code, addresses, dates, paths and numbers; the words between them give
names. No pattern may start inside a word it could have started before: a long line costs no more than its length.
"""

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal

from msgspec import Struct

from dragoman.simulator.model.language.lexicon import (
    CONCEPTS,
    COUNTRIES,
    DAYS,
    IMPERATIVE,
    LIGHT,
    MONTHS,
    NUMBERS,
    OPENING,
    PLACING,
    STOP,
    STOP_WORDS,
    WEAK,
)
from dragoman.simulator.model.language.words import Word, words

FactKind = Literal[
    "quoted", "code", "url", "email", "uuid", "datetime", "date", "time", "path", "host", "id", "number", "name",
    "opening", "phrase", "day",
]  # fmt: skip

_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_FACT = re.compile(
    r"```[^\n`]*\n(?P<fence>.*?)(?:```|\Z)"
    r"|`(?P<code>[^`\n]{1,4000})`"
    r"|(?<![\w\"])\"(?P<double>[^\"\n]{1,4000})\"|“(?P<curly>[^”\n]{1,4000})”|„(?P<low>[^“”\n]{1,4000})[“”]"
    r"|«(?P<guillemet>[^»\n]{1,4000})»|「(?P<corner>[^」\n]{1,4000})」|(?<!\w)'(?P<single>[^'\n]{1,1000})'(?!\w)"
    r"|(?P<url>https?://[^\s<>\"'`)\]}]+)"
    r"|(?<![\w.+-])(?P<email>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"
    r"|(?<![\w-])(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![\w-])"
    r"|(?<![\w-])(?P<datetime>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)(?!\w)"
    r"|(?<![\w-])(?P<date>\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}\.\d{1,2}\.\d{4})(?![\w-])"
    rf"|(?<!\w)(?P<spoken>(?i:(?:{_MONTH})[a-z]*\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:{_MONTH})[a-z]* \d{{4}}))(?!\w)"
    r"|(?<![\w:])(?P<time>\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?|\d{1,2} ?[ap]m)(?![\w:])"
    r"|(?<![\w./~-])(?P<path>(?:~|\.{1,2})?/[\w.@/-]+|[A-Za-z]:\\[\w.\\-]+|[\w-]{1,128}(?:/[\w.@-]+)+"
    r"|\.[a-z][\w-]+(?:\.[\w-]+)*)"
    r"|(?<![\w./@-])(?P<dotted>[\w-]{1,128}(?:\.[\w-]{1,128}){0,8}\.[a-zA-Z][a-zA-Z0-9]{0,9})(?!\w)"
    r"|(?<![\w-])(?P<serial>\d{1,6}(?:-[0-9A-Za-z]{1,12}){2,6})(?![\w-])"
    r"|(?<![\w.])(?P<measure>\d+(?:\.\d+)?)(?=(?:%|°|[a-zA-Z]{1,3})(?!\w))"
    r"|(?P<unspaced>[\u3400-\u9fff\u30a0-\u30ff]{2,8}?)(?=\u306e|\u7684|\u5929\u6c14|\u5929\u6c23|\u5929\u6c17)"
    r"|(?<![\w-])(?P<id>[A-Z]{2,12}-\d+|(?=[A-Za-z_]{0,64}\d)(?=\d{0,64}[A-Za-z])[A-Za-z0-9_]{3,64})(?![\w-])"
    r"|(?<![\w.])(?P<number>[-+]?\d+(?:[,_]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)(?!\w)",
    re.DOTALL,
)
_LISTED_SUFFIXES = (
    "py js ts tsx jsx json jsonl yaml yml toml md txt csv tsv html htm css xml sql sh rs go c h cc cpp java kt rb "
    "php pdf png jpg jpeg gif svg webp mp3 mp4 wav zip tar gz log ini cfg conf lock ipynb docx xlsx pptx env "
    "parquet db"
)
_SUFFIXES = frozenset(_LISTED_SUFFIXES.split())
_BREAK = re.compile(r"[.!?;\n…。\uff01\uff1f]\s*\Z")
_JOINERS = frozenset({"of", "de", "la", "del", "da", "do", "van", "von", "der", "the", "di"})
_ARTICLES = frozenset({"Los", "Las", "La", "El", "Le", "Les", "Il"})
_JOINING = re.compile(rf"[ \u00a0]\Z|(?: (?:{'|'.join(sorted(_JOINERS))})){{1,2}} \Z")
_CONJUNCTION = re.compile(
    r"\s*(?:,|;|、|と|和|,?\s+(?:and|or|und|oder|et|ou|y|e|plus|sowie|as well as)\b|&)\s*"
    r"(?:(?:and|in|at|for|of|the|near|user|number|id)\s+){0,2}"
)
_AT = re.compile(r"(?:,? at |, | )\Z")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d)(?::\d\d)?)? ?([ap]m)?", re.IGNORECASE)
_LONGEST_PHRASE = 3
_LARGEST = 1e300


class Fact(Struct, frozen=True):
    """A value found in a text: as it is written, as an argument would hold it, and the word before it."""

    kind: FactKind
    text: str
    value: str | int | float
    start: int
    end: int
    before: str = ""


def facts(text: str, known_words: list[Word] | None = None) -> list[Fact]:
    """Find the facts of a text, in order."""
    told = words(text) if known_words is None else known_words
    found = [fact for match in _FACT.finditer(text) if (fact := _read(match)) is not None]
    free = _outside(told, found)
    found.extend(_names(text, free))
    if not any(fact.kind == "name" for fact in found):
        found.extend(_phrases(text, free))
    found.extend(_small(free))
    found.extend(_moments(text, found))
    found.sort(key=_place)
    return _with_words_before(found, told)


def _place(fact: Fact) -> int:
    return fact.start


def conjoined(text: str, found: list[Fact]) -> list[list[Fact]]:
    """Return the enumerations among the facts: two or more of a kind, joined by "and" or commas."""
    groups: list[list[Fact]] = []
    for fact in found:
        group = groups[-1] if groups else []
        if group and _family(group[-1]) == _family(fact) and _joins(text[group[-1].end : fact.start]):
            group.append(fact)
        else:
            groups.append([fact])
    return [group for group in groups if len(group) > 1 and not _is_one(text, group)]


def _family(fact: Fact) -> FactKind:
    return "name" if fact.kind == "opening" else fact.kind


def _joins(between: str) -> bool:
    return len(between) < 40 and _CONJUNCTION.fullmatch(between) is not None


def _is_one(text: str, group: list[Fact]) -> bool:
    """Two names and only a comma are one place with its country; two numbers likewise are one pair."""
    return len(group) == 2 and text[group[0].end : group[1].start].strip() == "," and group[0].kind != "quoted"


def _read(match: re.Match[str]) -> Fact | None:
    name = match.lastgroup or ""
    text = match[name]
    start, end = match.span()
    match name:
        case "fence" | "code":
            return Fact("code", text.strip("\n"), text.strip("\n"), start, end) if text.strip() else None
        case "double" | "curly" | "low" | "guillemet" | "corner" | "single":
            return Fact("quoted", text, text, start, end)
        case "url":
            text = text.rstrip(".,;:!?")
            return Fact("url", text, text, start, start + len(text))
        case "date" | "spoken":
            return Fact("date", text, _iso(text), start, end)
        case "datetime":
            return Fact("datetime", text, text.replace(" ", "T"), start, end)
        case "path":
            text = text.rstrip(".")
            return Fact("path", text, text, start, start + len(text))
        case "dotted":
            is_file = text.rpartition(".")[2].lower() in _SUFFIXES
            return Fact("path" if is_file else "host", text, text, start, end)
        case "number" | "measure":
            return Fact("number", text, _number(text), start, end)
        case "unspaced":
            return Fact("name", text, text, start, end)
        case "serial":
            return Fact("id", text, text, start, end)
        case "email" | "uuid" | "time" | "id":
            return Fact(name, text, text, start, end)
        case _:
            return None


def _number(text: str) -> int | float:
    plain = text.replace(",", "").replace("_", "")
    try:
        number = int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    except ValueError:  # more digits than Python reads
        return 0
    return number if abs(number) < _LARGEST else 0


def _iso(text: str) -> str:
    parts = re.findall(r"[A-Za-z]{3,}|\d+", text)
    if len(parts) != 3 or len(parts[0]) == 4:
        return text
    month, day = parts[0], parts[1]
    if parts[1][:3].lower() in MONTHS or ("." in text and month.isdigit()):
        month, day = day, month
    try:
        number = int(month) if month.isdigit() else MONTHS.get(month[:3].lower(), 0)
        return date(int(parts[2]), number, int(day)).isoformat()
    except ValueError:
        return text


def _outside(told: list[Word], found: list[Fact]) -> list[Word]:
    """Words that are in none of the facts found so far."""
    free: list[Word] = []
    spans = iter(found)
    span = next(spans, None)
    for word in told:
        while span is not None and span.end <= word.start:
            span = next(spans, None)
        if span is None or word.end <= span.start:
            free.append(word)
    return free


def _names(text: str, free: list[Word]) -> Iterator[Fact]:
    """Words with a capital, together where they stand together."""
    open_at, end = -1, -1
    kind: FactKind = "name"
    for place, word in enumerate(free):
        capital = word.text[0].isupper() and (word.text.lower() not in STOP_WORDS or _is_article(free, place))
        if open_at >= 0 and word.text in _JOINERS:
            continue
        joined = open_at >= 0 and capital and _continues(text, end, word)
        if open_at >= 0 and not joined:
            yield _name(text, kind, open_at, end)
            open_at = -1
        if not capital:
            continue
        if joined:
            end = word.end
            continue
        first = word.start == 0 or _BREAK.search(text[max(0, word.start - 4) : word.start]) is not None
        if first and (not _is_telling(word) or _commands(free, place)):
            continue
        open_at, end = word.start, word.end
        kind = "opening" if first and not word.text.isupper() else "name"
    if open_at >= 0:
        yield _name(text, kind, open_at, end)


def _name(text: str, kind: FactKind, start: int, end: int) -> Fact:
    """Two words with a capital are a name, even where a sentence begins."""
    told = text[start:end]
    return Fact("name" if " " in told else kind, told, told, start, end)


def _is_article(free: list[Word], place: int) -> bool:
    """Whether a word begins a name such as "Los Angeles"."""
    return free[place].text in _ARTICLES and place + 1 < len(free) and free[place + 1].text[0].isupper()


def _is_telling(word: Word) -> bool:
    """Whether a word with which a sentence begins may be a name rather than a verb or what is asked for."""
    return word.stem not in WEAK and word.stem not in LIGHT and word.stem not in OPENING and word.stem not in CONCEPTS


def _commands(free: list[Word], place: int) -> bool:
    """Whether a word is a verb that begins a command: "Invent a …"."""
    return place + 1 < len(free) and free[place + 1].text.lower() in IMPERATIVE


def _continues(text: str, end: int, word: Word) -> bool:
    between = text[end : word.start]
    if between.strip() == ",":
        return word.text.lower() in COUNTRIES or (len(word.text) == 2 and word.text.isupper())
    return between == "-" or (len(between) < 12 and _JOINING.match(between) is not None)


def _phrases(text: str, free: list[Word]) -> Iterator[Fact]:
    """Lower-case words after "in" and "at": people do not always write capitals."""
    at = 0
    while at < len(free):
        if free[at].text.lower() not in PLACING:
            at += 1
            continue
        at += 1
        while at < len(free):
            run = _run(text, free, at)
            if not run:
                break
            yield Fact(
                "phrase", text[run[0].start : run[-1].end], text[run[0].start : run[-1].end], run[0].start, run[-1].end
            )
            at += len(run)
            if at < len(free) and free[at].text.lower() in {"and", "or"}:
                at += 1
            elif at >= len(free) or text[run[-1].end : free[at].start].strip() != ",":
                break


def _run(text: str, free: list[Word], at: int) -> list[Word]:
    run: list[Word] = []
    for word in free[at : at + _LONGEST_PHRASE]:
        said = word.text.lower()
        if (
            word.stem in STOP
            or word.stem in DAYS
            or said in NUMBERS
            or (run and text[run[-1].end : word.start].strip())
        ):
            break
        run.append(word)
    return run


def _small(free: list[Word]) -> Iterator[Fact]:
    """Numbers and days that are told in words."""
    for word in free:
        number = NUMBERS.get(word.text.lower())
        if number is not None:
            yield Fact("number", word.text, number, word.start, word.end)
        elif word.stem in DAYS:
            yield Fact("day", word.text, word.text, word.start, word.end)


def _moments(text: str, found: list[Fact]) -> list[Fact]:
    """Dates together with the times that follow them."""
    dates = {fact.end: fact for fact in found if fact.kind == "date"}
    moments: list[Fact] = []
    for fact in found if dates else ():
        between = _AT.search(text, max(0, fact.start - 8), fact.start) if fact.kind == "time" else None
        day = dates.get(between.start()) if between is not None else None
        clock = _CLOCK.fullmatch(fact.text)
        if day is None or clock is None:
            continue
        hour = int(clock[1]) % 12 + (12 if clock[3].lower() == "pm" else 0) if clock[3] else int(clock[1])
        value = f"{day.value}T{hour:02}:{clock[2] or '00'}:00Z"
        moments.append(Fact("datetime", text[day.start : fact.end], value, day.start, fact.end))
    return moments


def _with_words_before(found: list[Fact], told: list[Word]) -> list[Fact]:
    marked: list[Fact] = []
    at = 0
    for fact in found:
        while at < len(told) and told[at].end <= fact.start:
            at += 1
        before = told[at - 1].text.lower() if at else ""
        marked.append(Fact(fact.kind, fact.text, fact.value, fact.start, fact.end, before))
    return marked
