"""Times that last: "1 hour 30 minutes", for a parameter that counts them in some unit."""

import re

from dragoman.simulator.model.language.lexicon import NUMBERS
from dragoman.simulator.model.language.words import stem

_SECONDS = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_MILLISECONDS = frozenset({"ms", "millisecond", "millis", "milli"})
_BY_STEM = {stem(word): seconds for word, seconds in _SECONDS.items()}
_SPOKEN = frozenset(("a", "an", "one", *NUMBERS))
_LASTING = re.compile(
    rf"(?<![\w.])(\d{{1,9}}(?:\.\d{{1,6}})?|{'|'.join(sorted(_SPOKEN))})[ -]?"
    r"(seconds?|secs?|minutes?|mins?|hours?|days?|weeks?)(?!\w)",
    re.IGNORECASE,
)


def duration(text: str, parameter: tuple[str, ...]) -> float | None:
    """Return how long a text says something lasts, in the unit that the stems of a parameter's name tell."""
    scale = next((1 / _BY_STEM[part] for part in reversed(parameter) if part in _BY_STEM), None)
    if not _MILLISECONDS.isdisjoint(parameter):
        scale = 1000.0
    told = _LASTING.findall(text) if scale is not None else []
    if scale is None or not told:
        return None
    return round(sum(_amount(number) * _SECONDS[unit.lower().removesuffix("s")] for number, unit in told) * scale, 6)


def _amount(number: str) -> float:
    said = number.lower()
    return float(NUMBERS.get(said, 1)) if said in _SPOKEN else float(said)
