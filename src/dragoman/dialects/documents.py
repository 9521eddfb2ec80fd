"""The names of documents and targets of translations, which the command line lists without importing a dialect."""

from collections.abc import Iterable

from dragoman.dialects import FORMS

DOCUMENTS = ("request", "response", "stream", "error")
"""The kinds of documents that can be translated."""
CORE = "core"
"""The target that shows a document as its core values in JSON."""


def list_targets(dialects: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the targets of a translation: the dialects, their enveloped forms, and the core."""
    return (*dialects, *FORMS, CORE)
