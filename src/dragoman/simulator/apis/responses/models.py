"""What is known of models by their names: whether they think, how hard, and what they therefore refuse.

A name nobody knows is taken for one of the newest generation.
"""

import re
from functools import lru_cache

from msgspec import Struct

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_NEWEST = (6, 1)
_PREFIX = re.compile(r"^(?:ft:)?(?:openai[./])?")
_GPT = re.compile(r"^gpt-(\d+)(?:\.(\d+))?(.*)$")
_O_SERIES = re.compile(r"^o\d")
_CHAT = re.compile(r"^chatgpt|-chat(?:-|$)|^gpt-[34]|^davinci|^babbage")


class Model(Struct, frozen=True, kw_only=True):
    """A model. `default_effort` is "" for one that does not think."""

    name: str
    generation: tuple[int, int] = _NEWEST
    efforts: tuple[str, ...] = ()
    default_effort: str = ""

    @property
    def reasons(self) -> bool:
        """Whether it can think before it answers."""
        return bool(self.efforts)

    def effort(self, asked: str | None) -> str:
        """How hard it thinks: "" for a model that never does."""
        return asked or self.default_effort

    @property
    def tells_phase(self) -> bool:
        """Whether its messages say if they are comments or the final answer (gpt-5.3-codex and later)."""
        return self.generation >= (5, 3)


@lru_cache(maxsize=1024)
def model_of(name: str) -> Model:
    """Tell what is known of a model."""
    bare = _PREFIX.sub("", name.lower())
    if _CHAT.search(bare):
        return Model(name=name, generation=(4, 0))
    if _O_SERIES.match(bare):
        return Model(name=name, generation=(4, 9), efforts=("low", "medium", "high"), default_effort="medium")
    found = _GPT.match(bare)
    if found is None:
        thinks = "" if bare == "computer-use-preview" else "medium"
        return Model(name=name, efforts=_between("none", "max"), default_effort=thinks)
    generation = (int(found[1]), int(found[2] or 0))
    return _gpt(name, generation, found[3])


def _gpt(name: str, generation: tuple[int, int], variant: str) -> Model:
    if generation < (5, 1):
        efforts, default = _between("minimal", "high"), "medium"
    elif generation < (5, 2):
        efforts, default = _between("none", "xhigh" if "max" in variant else "high"), "none"
    elif generation < (5, 5):
        efforts, default = _between("none", "xhigh"), "none"
    elif generation < (5, 6):
        efforts, default = _between("none", "xhigh"), "medium"
    else:
        efforts, default = _between("none", "max"), "medium"
    if "-pro" in variant:
        efforts, default = tuple(effort for effort in efforts if effort not in {"none", "minimal", "low"}), "high"
    elif "astra" in variant or (generation >= (6, 1) and "sol" in variant):
        efforts = tuple(effort for effort in efforts if effort != "none")
    return Model(name=name, generation=generation, efforts=efforts, default_effort=default)


def _between(least: str, most: str) -> tuple[str, ...]:
    """Efforts from one to another; only the first generation knows the word `minimal`."""
    chosen = _EFFORTS[_EFFORTS.index(least) : _EFFORTS.index(most) + 1]
    return chosen if least == "minimal" else tuple(effort for effort in chosen if effort != "minimal")
