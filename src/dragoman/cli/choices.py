"""The sources of `dragoman translate`, without loading a dialect: --help needs only names."""

from dragoman.dialects import NAMES
from dragoman.plugins import dialect_names


def sources(*, plugins: bool) -> tuple[str, ...]:
    """Return the names of the dialects; with `plugins`, also those of other packages, whose lookup is slow."""
    return (*NAMES, *dialect_names()) if plugins else NAMES
