"""Former names in the public Python API: programs that use them continue to work."""

from functools import wraps
from operator import attrgetter
from typing import Any


def keep_attributes(owner: type, **names: str) -> None:
    """Let instances of a class have attributes under former names, too; `names` has the present name of each."""
    for former, present in names.items():
        setattr(owner, former, property(attrgetter(present)))


def keep_parameters(owner: type, method: str, **names: str) -> None:
    """Let a method take keyword arguments by former names, too; `names` has the present name of each."""
    function: Any = getattr(owner, method)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{names.get(name, name): value for name, value in kwargs.items()})

    setattr(owner, method, call)
