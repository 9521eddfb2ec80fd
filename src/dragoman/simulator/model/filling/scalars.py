"""Fill texts and numbers."""

import math
import re
from typing import TYPE_CHECKING, Any

from dragoman.simulator.model.filling.evidence import STRONG, TOPICAL, Label
from dragoman.simulator.model.filling.need import ABSENT, FITTING, NAMED, NEEDED, Need
from dragoman.simulator.model.language.durations import duration
from dragoman.simulator.model.language.facts import Fact
from dragoman.simulator.model.schemas.formats import as_format, sample
from dragoman.simulator.model.schemas.json_values import same
from dragoman.simulator.model.schemas.node import Node
from dragoman.simulator.model.schemas.patterns import written
from dragoman.simulator.model.schemas.validity import fits_format, fits_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from dragoman.simulator.model.filling.filling import Filling

_FORMATS_OF_FACTS = {
    "date": ("date", "datetime"),
    "date-time": ("datetime", "date"),
    "time": ("time",),
    "email": ("email",),
    "uri": ("url",),
    "url": ("url",),
    "uuid": ("uuid",),
    "hostname": ("host",),
}
_EXAMPLE = re.compile(r"(?:e\.g\.|for example|such as|like)[,:]?\s*[`'\"“]?([^`'\"“”();\n]{2,60})", re.IGNORECASE)
_FILLER = "example"
_SAMPLES = {
    "url": "https://example.org/",
    "email": "someone@example.org",
    "path": "example.txt",
    "datetime": "2026-01-15T09:30:00Z",
    "date": "2026-01-15",
    "time": "09:30",
    "place": "Paris",
    "number": "1",
}
"""What stands in for a needed value that nobody told."""
_LONGEST = 2000
_LONGEST_PADDED = 20_000
_LONGEST_DRAWN = 100
_LARGEST = 1e300
"""Larger numbers cannot be divided without care, and nobody means them."""
_TRIES = 8


def fits_text(node: Node, text: str) -> bool:
    """Whether a text is one a node allows, as far as can be told without its neighbours."""
    if len(text) < node.least_length or (node.most_length is not None and len(text) > node.most_length):
        return False
    if node.format and not fits_format(node.format, text):
        return False
    return all(fits_pattern(pattern, text) for pattern in node.patterns) and text not in node.forbidden


def fill_string(filling: "Filling", node: Node, parameter: Label, need: Need) -> Any:
    """Return a text for a node."""
    evidence = filling.evidence
    if need == NEEDED:
        return _needed_string(filling, node, parameter)
    if evidence is None:
        return ABSENT

    def accepts(fact: Fact) -> bool:
        return fact.kind != "opening" and fits_text(node, as_format(fact, node.format))

    if need == NAMED:
        part = evidence.part_of_name(parameter) or evidence.part_of_repository(parameter)
        if part and fits_text(node, part):
            return part
        fact = evidence.named(parameter, accepts)
        if fact is not None:
            return as_format(fact, node.format)
        bare = evidence.bare(parameter)
        return bare if bare and fits_text(node, bare) else ABSENT
    for kind in _FORMATS_OF_FACTS.get(node.format, ()):
        fact = evidence.of_kind(kind, accepts)  # pyright: ignore[reportArgumentType]  the table holds kinds of facts
        if fact is not None:
            return as_format(fact, node.format)
    if parameter.kind in STRONG and not node.format:
        fact = evidence.fitting(parameter, accepts, needed=False)
        if fact is not None:
            return str(fact.value)
    return ABSENT


def _needed_string(filling: "Filling", node: Node, parameter: Label) -> str:
    evidence = filling.evidence
    if evidence is not None:

        def accepts(fact: Fact) -> bool:
            return fits_text(node, str(fact.value))

        if not node.format:
            if parameter.kind == "code":
                expression = evidence.expression()
                if expression and fits_text(node, expression):
                    return expression
            fact = evidence.fitting(parameter, accepts, needed=True)
            if fact is not None:
                return str(fact.value)
        topic = evidence.topic() if parameter.kind in TOPICAL else ""
        if topic and fits_text(node, topic[:_LONGEST]):
            filling.topical = True
            return topic[:_LONGEST]
    if parameter.name:
        filling.guessed.append(parameter.name)
    return _invented(filling, node, parameter)


def _invented(filling: "Filling", node: Node, parameter: Label) -> str:
    for candidate in _candidates(filling, node, parameter):
        if fits_text(node, candidate):
            return candidate
    return _FILLER


def _candidates(filling: "Filling", node: Node, parameter: Label) -> "Iterator[str]":
    yield from (text for text in node.suggestions if isinstance(text, str) and text)
    told = _EXAMPLE.search(node.description)
    if told is not None and not node.format:
        yield told[1].strip().rstrip(".,")
    known = sample(node.format) or _SAMPLES.get(parameter.kind)
    if known is not None:
        yield known
    if filling.evidence is not None and not node.format:
        yield filling.evidence.clause.text[:_LONGEST]
    for pattern in node.patterns:
        yield from _by_pattern(pattern, node, filling.chance)
    if filling.chance is not None and node.least_length <= _LONGEST_DRAWN:
        yield "".join(filling.chance.choice("abcdefgh") for _ in range(max(1, node.least_length)))
    yield _FILLER
    size = min(max(node.least_length, min(len(_FILLER), node.most_length or 0)), _LONGEST_PADDED)
    yield (_FILLER * (size // len(_FILLER) + 1))[:size]


def _by_pattern(pattern: str, node: Node, chance: "Random | None") -> "Iterator[str]":
    yield written(pattern, 0, chance)
    yield written(pattern, node.least_length, chance)
    if chance is not None:
        for _ in range(_TRIES):
            yield written(pattern, node.least_length, chance)


def fits_number(node: Node, number: Any, *, whole: bool) -> bool:
    """Whether a number is one a node allows."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < _LARGEST:
        return False
    if (whole and number != int(number)) or any(same(number, denied) for denied in node.forbidden):
        return False
    if (node.minimum is not None and number < node.minimum) or (node.maximum is not None and number > node.maximum):
        return False
    if (node.above is not None and number <= node.above) or (node.below is not None and number >= node.below):
        return False
    return all(_is_multiple(number, step) for step in node.multiples)


def _is_multiple(number: float, step: float) -> bool:
    times = number / step
    return math.isfinite(times) and math.isclose(times, round(times), abs_tol=1e-9)


def fill_number(filling: "Filling", node: Node, parameter: Label, need: Need, *, whole: bool) -> Any:
    """Return a number for a node."""
    evidence = filling.evidence

    def accepts(fact: Fact) -> bool:
        return fact.kind == "number" and fits_number(node, fact.value, whole=whole)

    lasting = duration(evidence.clause.text, parameter.stems) if evidence is not None and need != FITTING else None
    if lasting is not None and fits_number(node, lasting, whole=whole):
        return int(lasting) if lasting == int(lasting) else lasting
    fact: Fact | None = None
    if evidence is not None and need == NAMED:
        fact = evidence.named(parameter, accepts) or evidence.number_at(parameter, accepts)
    elif evidence is not None and need == NEEDED:
        fact = evidence.of_kind("number", accepts, needed=True)
    if fact is not None:
        return int(fact.value) if whole else fact.value
    if need != NEEDED:
        return ABSENT
    if parameter.name:
        filling.guessed.append(parameter.name)
    for suggestion in node.suggestions:
        if fits_number(node, suggestion, whole=whole):
            return suggestion
    return _number(filling, node, whole=whole)


def _number(filling: "Filling", node: Node, *, whole: bool) -> int | float:
    """Think of a number: the smallest good one, or any between the bounds."""
    low, high = _bound(node.minimum, node.above, max), _bound(node.maximum, node.below, min)
    step = node.multiples[0] if node.multiples else 1
    start = low if low is not None else min(high, 1) if high is not None else 1
    if not math.isfinite(start / step):
        return start
    candidates: list[int | float] = [1, 0, start, start + step, math.ceil(start)]
    first = math.ceil(start / step)
    candidates += [(first + more) * step for more in (0, 1, 2, -1)]
    if high is not None:
        middle = (start + high) / 2
        candidates += [math.floor(high), high, middle, start + (high - start) / 1000]
        if math.isfinite(high / step):
            candidates.append(math.floor(high / step) * step)
    for other in node.multiples[1:]:
        candidates += [step * other * times for times in range(1, 4)]
    if filling.chance is not None:
        filling.chance.shuffle(candidates)
    for candidate in candidates:
        if fits_number(node, candidate, whole=whole):
            return int(candidate) if whole or candidate == int(candidate) else candidate
    return start


def _bound(one: float | None, other: float | None, pick: Any) -> int | float | None:
    given = [bound for bound in (one, other) if bound is not None]
    return pick(given) if given else None
