"""The dialects by name: those of this package, and those that are registered from outside."""

from collections.abc import Callable
from importlib import import_module

from dragoman.core.problems import Problem
from dragoman.dialects import NAMES
from dragoman.dialects.record import Dialect


class _Dialects(dict[str, Dialect]):
    """Dialects by name; an unknown name is a `Problem` that lists the known ones."""

    def __missing__(self, name: str) -> Dialect:
        raise Problem("invalid_request", f"unknown dialect {name!r}: one of {', '.join(self)}")


DIALECTS: dict[str, Dialect] = _Dialects({name: import_module(f"dragoman.dialects.{name}").DIALECT for name in NAMES})
dialect_named: Callable[[str], Dialect] = DIALECTS.__getitem__
"""Return the dialect of a name. It is asked for so often that a function of ours around it could be measured."""


def register(dialect: Dialect) -> None:
    """Add a dialect of another package; a gateway that is opened afterwards serves its paths."""
    if dialect.name in DIALECTS:
        raise ValueError(f"there is a dialect {dialect.name!r} already")
    if not dialect.traits or dialect.traits[-1][0] != "*":
        raise ValueError(f"the last traits row of {dialect.name!r} must be for `*`, that is any model")
    DIALECTS[dialect.name] = dialect


def unregister(name: str) -> None:
    """Remove a dialect that `register` added."""
    if name in NAMES:
        raise ValueError(f"{name!r} is a dialect of this package")
    del DIALECTS[name]
