"""What a model's name tells of it: its generation and family, and what Google refuses from there on.

A name nobody knows is held to be of the newest generation.
"""

import re
from functools import lru_cache

from msgspec import Struct

_NAME = re.compile(r"gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:-(?P<family>pro|flash-lite|flash))?")
_ALIASES = {
    # What stands behind a name without a number, where a recording tells it: gemini/mastra-0036 and its neighbours.
    "gemini-pro-latest": "gemini-3.1-pro",
    "gemini-flash-latest": "gemini-3.6-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro": "gemini-1.0-pro",
    "gemini-pro-vision": "gemini-1.0-pro",
}
_BUDGETS = {"pro": (128, 32_768), "flash": (0, 24_576), "flash-lite": (512, 24_576)}


class Generation(Struct, frozen=True):
    """A model's place in the line."""

    number: tuple[int, int] = (4, 0)
    family: str = ""

    @property
    def signs(self) -> bool:
        """It names and signs its calls, and wants the signatures back."""
        return self.number >= (3, 0)

    @property
    def exact(self) -> bool:
        """It takes no prefill, no penalties, no second candidate, and pairs results by id and name."""
        return self.number >= (3, 6) or (self.number == (3, 5) and self.family == "flash-lite")

    @property
    def combines(self) -> bool:
        """It takes functions together with Google's own tools, with JSON output, and media in results."""
        return self.number >= (3, 0)

    @property
    def thinks(self) -> bool:
        """It can think."""
        return self.number >= (2, 5)

    @property
    def always_thinks(self) -> bool:
        """Its thinking cannot be switched off."""
        return self.family == "pro" and self.thinks

    @property
    def levels(self) -> tuple[str, ...]:
        """The thinking levels it takes."""
        if self.number < (3, 0):
            return ()
        small = self.family == "flash-lite" or (self.family == "flash" and self.number < (3, 7))
        return ("MINIMAL", "LOW", "MEDIUM", "HIGH") if small else ("LOW", "MEDIUM", "HIGH")

    @property
    def most_input(self) -> int:
        """The most tokens a request may have."""
        return 1_048_576 if self.number >= (1, 5) else 32_768

    @property
    def budgets(self) -> tuple[int, int] | None:
        """The least and the most budget it takes beside 0 and -1; None where any is taken, and not heeded."""
        return _BUDGETS.get(self.family) if self.number == (2, 5) else None


def known_as(model: str) -> str:
    """Return a model's name without what stands before it in a path; of an alias, the name it stands for."""
    name = model.rpartition("/")[2]
    return _ALIASES.get(name, name)


@lru_cache(maxsize=1024)
def generation_of(model: str) -> Generation:
    """Read a model's name, with or without what stands before it in a path."""
    name = known_as(model)
    if name.startswith("gemma"):
        return Generation((2, 0), "gemma")
    found = _NAME.match(name)
    if found is None:
        return Generation()
    return Generation((int(found["major"]), int(found["minor"] or 0)), found["family"] or "")
