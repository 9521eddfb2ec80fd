"""The registry of dialects by name: the built-in ones and those that other packages register."""

from collections.abc import Callable
from importlib import import_module

from dragoman.core.problems import Problem
from dragoman.dialects import NAMES
from dragoman.dialects.record import Dialect


class _Dialects(dict[str, Dialect]):
    """Dialects by name. An unknown name raises a `Problem` that lists the known names."""

    def __missing__(self, name: str) -> Dialect:
        raise Problem("invalid_request", f"unknown dialect {name!r}; use one of {', '.join(self)}")


DIALECTS: dict[str, Dialect] = _Dialects({name: import_module(f"dragoman.dialects.{name}").DIALECT for name in NAMES})
dialect_named: Callable[[str], Dialect] = DIALECTS.__getitem__
"""Return the dialect with a name. A bound method, not a Python function: the hot path calls it often."""


def register(dialect: Dialect) -> None:
    """Add a dialect of another package. Gateways that start afterwards serve its paths."""
    if dialect.name in DIALECTS:
        raise ValueError(f"a dialect named {dialect.name!r} is already registered")
    if not dialect.traits or dialect.traits[-1][0] != "*":
        raise ValueError(f"the last traits row of {dialect.name!r} must have the pattern `*`, which matches any model")
    DIALECTS[dialect.name] = dialect


def unregister(name: str) -> None:
    """Remove a dialect that `register` added."""
    if name in NAMES:
        raise ValueError(f"{name!r} is a built-in dialect and cannot be removed")
    del DIALECTS[name]
