"""What a model accepts: the row that its name finds, whatever a platform makes of the name."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls, Traits
from dragoman.dialects.registry import DIALECTS

_BEFORE = re.compile(r"^(?:ft:)?(?:[a-z-]+\.)*(?=[a-z])")
"""What platforms put before a name beside a path: `us.anthropic.`, `openai.`, `ft:`."""
_BEHIND = re.compile(r"[:@].*$|-20\d{6}.*$")
"""What they put behind it: `@20260901`, `:0`, `:free`; and a date, which is no version."""
_VERSION_FIRST = re.compile(r"^claude-([4-9](?:-\d{1,2})?)-([a-z]+)")


def bare_name(model: str) -> str:
    """Return what a model is called in the rows, whatever a platform makes of its name."""
    name = _BEHIND.sub("", _BEFORE.sub("", model.lower().rpartition("/")[2]), count=1)
    if name.startswith("claude-"):
        name = _VERSION_FIRST.sub(r"claude-\2-\1", name.replace(".", "-"))
    return name


@lru_cache(maxsize=1024)
def traits_for(dialect: str, model: str, text_calls: TextCalls = "") -> Traits:
    """Return the row for `model` behind `dialect`; with `text_calls` tools are told to it in words."""
    if text_calls:
        return structs.replace(traits_for(dialect, model), text_calls=text_calls)
    there = DIALECTS.get(dialect)
    if there is None:
        raise Problem("invalid_request", f"unknown dialect {dialect!r}")
    name = bare_name(model)
    return next(traits for pattern, traits in there.traits if fnmatchcase(name, pattern))
