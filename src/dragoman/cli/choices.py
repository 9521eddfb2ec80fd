"""What `dragoman translate` can be asked for. It loads no dialect: the help of the command needs only the names."""

from collections.abc import Iterable

from dragoman.dialects import FORMS, NAMES
from dragoman.plugins import dialect_names

OPERATIONS = ("request", "response", "stream", "error")
CORE = "core"
"""The target that shows a document as the values of the core."""


def sources(*, plugins: bool) -> tuple[str, ...]:
    """Return the names of dialects; to look for those of other packages, the `plugins`, takes time."""
    return (*NAMES, *dialect_names()) if plugins else NAMES


def targets_of(dialects: Iterable[str]) -> tuple[str, ...]:
    """Return the names of targets: the dialects, those in an envelope, and the core."""
    return (*dialects, *FORMS, CORE)
