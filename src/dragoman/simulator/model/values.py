"""Sample values for schemas that a prompt does not fill: samples, numbers, texts that match a pattern."""

import math
import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.rule import Json

_FILLER = "example"
_SAMPLES = {
    "date": "2026-01-15",
    "datetime": "2026-01-15T09:30:00Z",
    "date-time": "2026-01-15T09:30:00Z",
    "time": "09:30:00Z",
    "email": "someone@example.org",
    "hostname": "www.example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "url": "https://example.org/",
    "uri": "https://example.org/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "path": "example.txt",
    "place": "Paris",
}
"""Sample values, by the format of a schema or the kind of a parameter."""
_PRINTABLE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:;/@ !#$%&'()*+<=>?[]^`{|}~\"\\"
_SET = re.compile(r"\[\^?(?:\\.|[^\]\\])(?:\\.|[^\]\\])*\]")
_REPEAT = r"(?P<repeat>[*+?]|\{(?P<low>\d{1,5})(?P<open>,\d{0,5})?\})?\??"
_GROUP = re.compile(rf"(?<!\\)\((?:\?:)?(?P<inner>(?:\\.|[^()\\])*)\){_REPEAT}", re.DOTALL)
_ATOM = re.compile(rf"(?P<atom>\\.|.){_REPEAT}", re.DOTALL)
_LONGEST = 20_000


def generate_samples(kind: str, schema: Json, label_kind: str) -> Iterator[Any]:
    """Yield sample values of a type, the best first; `label_kind` is the kind that the parameter's name implies."""
    yield from (schema[key] for key in ("default", "example") if schema.get(key, "") != "")
    yield from schema.get("examples", ())
    if "enum" in schema:
        yield from schema["enum"]
    elif kind == "string":
        yield from _generate_texts(schema, label_kind)
    elif kind in {"integer", "number"}:
        yield from _generate_numbers(schema)
    elif kind == "boolean":
        yield from (False, True)


def _generate_texts(schema: Json, label_kind: str) -> Iterator[str]:
    sample = _SAMPLES.get(schema.get("format", "")) or _SAMPLES.get(label_kind)
    if sample is not None:
        yield sample
    yield _FILLER
    least = schema.get("minLength", 0)
    if "pattern" in schema:
        yield build_match(schema["pattern"])
        yield build_match(schema["pattern"], least)
    size = min(max(least, min(len(_FILLER), schema.get("maxLength", 0))), _LONGEST)
    yield (_FILLER * (size // len(_FILLER) + 1))[:size]


def _generate_numbers(schema: Json) -> Iterator[int | float]:
    low = max((schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
    high = min((schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
    step = schema.get("multipleOf", 1)
    start = low if low is not None else high if high is not None else 1
    yield from (1, 0, start, start + step, start - step)
    if step > 0 and math.isfinite(start / step):
        first = math.ceil(start / step)
        yield from (first * step, (first + 1) * step, (first - 1) * step)
    if low is not None and high is not None:
        yield from ((low + high) / 2, low + (high - low) / 1000)


def build_match(pattern: str, least: int = 0) -> str:
    """Return a text that a simple regular expression should match, with at least `least` repeats where it allows them.

    Sets, groups, alternatives and repeats are expanded. Lookaround and backreferences are not: validate the text.
    """
    try:
        pattern = _SET.sub(lambda found: re.escape(_find_character(found[0])), pattern)
        while (group := _GROUP.search(pattern)) is not None:
            text = re.escape(_expand_pattern(group["inner"], 0))
            text *= min(_count_repeats(group, 0), _LONGEST // max(1, len(text)))
            pattern = pattern[: group.start()] + text + pattern[group.end() :]
        return _expand_pattern(pattern, least)
    except re.error:
        return ""


def _expand_pattern(pattern: str, least: int) -> str:
    """Expand the first alternative of a pattern without groups."""
    first = re.match(r"(?:\\.|[^|\\])*", pattern, re.DOTALL)
    atoms = _ATOM.finditer(first[0] if first is not None else "")
    return "".join(_find_character(atom["atom"]) * _count_repeats(atom, least) for atom in atoms)[:_LONGEST]


def _find_character(atom: str) -> str:
    """Return a character that a set, an escape or a character matches; "" for an anchor."""
    other = atom if len(atom) == 1 and atom not in "^$" else ""
    return next((character for character in _PRINTABLE if re.fullmatch(atom, character)), other)


def _count_repeats(found: re.Match[str], least: int) -> int:
    """Return how often something is repeated."""
    low = int(found["low"] or {"+": 1, None: 1}.get(found["repeat"], 0))
    is_open = found["repeat"] in {"*", "+"} or found["open"] is not None
    high = int((found["open"] or ",")[1:] or _LONGEST)
    return min(high, max(low, least)) if is_open else low
