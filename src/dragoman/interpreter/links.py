"""Links in a request that must be fetched for the target, and what was fetched.

The interpreter fetches nothing. It reports all links that the target does not fetch itself, and takes what was fetched.
"""

from collections.abc import Mapping

from msgspec import Struct

from dragoman.core.parts import Link, Media, MediaKind
from dragoman.core.traits import Traits

_WEB = ("http:", "https:")


class Fetched(Struct, frozen=True):
    """What stands behind a link."""

    media_type: str
    data: str
    """Base64 text."""


class NeededLink(Struct, frozen=True):
    """A link that must be fetched."""

    where: str
    """Where it stands first in the client's document."""
    kind: MediaKind


class Unfetched(Exception):  # noqa: N818  it says what is missing
    """A request cannot be translated before these links, by their addresses, are fetched."""

    def __init__(self, links: dict[str, NeededLink]) -> None:
        super().__init__(f"{len(links)} links are not fetched")
        self.links = links


class Links:
    """What was fetched for a request, and what must be; `taken` tells whether the upstream fetches links itself."""

    def __init__(self, known: Mapping[str, Fetched] | None = None, *, taken: bool = True) -> None:
        self._known = known or {}
        self.taken = taken
        self.missing: dict[str, NeededLink] = {}

    def of(self, part: Media, traits: Traits) -> Fetched | None:
        """Return what was fetched for media that the target does not fetch; note it if that is missing."""
        source = part.source
        if not isinstance(source, Link) or not source.url.lower().startswith(_WEB) or part.kind not in traits.media:
            return None
        scheme = source.url.partition(":")[0].lower()
        if self.taken and part.kind in traits.link_kinds and scheme in traits.link_schemes:
            return None
        found = self._known.get(source.url)
        if found is None:
            self.missing.setdefault(source.url, NeededLink(part.where, part.kind))
        return found
