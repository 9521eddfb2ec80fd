"""The operations, sources and targets of `dragoman translate`, without loading a dialect: --help needs only names."""

from collections.abc import Iterable

from dragoman.dialects import FORMS, NAMES
from dragoman.plugins import dialect_names

OPERATIONS = ("request", "response", "stream", "error")
CORE = "core"
"""The target that prints a document as its core values in JSON."""


def sources(*, plugins: bool) -> tuple[str, ...]:
    """Return the names of the dialects; with `plugins`, also those of other packages, whose lookup is slow."""
    return (*NAMES, *dialect_names()) if plugins else NAMES


def targets_of(dialects: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the targets: the dialects, their enveloped forms, and the core."""
    return (*dialects, *FORMS, CORE)
