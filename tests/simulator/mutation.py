"""What a mutator is: it takes a body that is accepted and yields bodies that one rule, by name, refuses."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Mutate = Callable[[dict[str, Any], Random], Iterable[dict[str, Any]]]
"""It never changes the body that it is given."""
