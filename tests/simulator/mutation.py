"""The type of a mutator: it takes an accepted body and yields bodies that one rule, by name, rejects."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Mutate = Callable[[dict[str, Any], Random], Iterable[dict[str, Any]]]
"""It never changes the body it is given."""
