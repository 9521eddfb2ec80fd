"""A request to translate, the links that must be fetched for it, and the translated request.

The interpreter fetches nothing. It reports all links that the target does not fetch itself, and takes what was fetched.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from dragoman.core.losses import Loss
from dragoman.core.parts import Link, Media, MediaKind, Signature
from dragoman.core.request import Request
from dragoman.core.traits import TextCalls, Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.tools_cache import ToolSet
from dragoman.interpreter.undo import NO_UNDO, Undo


class SignatureLookup(Protocol):
    """Knows the signatures of calls by their ids, each under the digest of what the call says."""

    @property
    def scope(self) -> str:
        """Whose signatures these are."""
        ...

    def find_signatures(self, call_id: str) -> Mapping[str, Signature] | None:
        """Return the signatures of calls with an id; None if that must be looked up first."""
        ...


_WEB_SCHEMES = ("http:", "https:")


class FetchedMedia(Struct, frozen=True):
    """What stands behind a link."""

    media_type: str
    data: str
    """Base64 text."""


class NeededLink(Struct, frozen=True):
    """A link that must be fetched."""

    where: str
    """Where it stands first in the client's document."""
    kind: MediaKind


class MissingLinks(Exception):  # noqa: N818  it says what is missing
    """A request cannot be translated before these links, by their addresses, are fetched."""

    def __init__(self, links: dict[str, NeededLink]) -> None:
        super().__init__(f"{len(links)} links are not fetched")
        self.links = links


class Links(Struct):
    """What was fetched for a request, and what must be."""

    known: Mapping[str, FetchedMedia] = {}
    upstream_fetches: bool = True
    """The upstream fetches links itself."""
    missing: dict[str, NeededLink] = field(default_factory=dict[str, NeededLink])

    def find_fetched(self, part: Media, traits: Traits) -> FetchedMedia | None:
        """Return what was fetched for media that the target does not fetch; note it if that is missing."""
        source = part.source
        if (
            not isinstance(source, Link)
            or not source.url.lower().startswith(_WEB_SCHEMES)
            or part.kind not in traits.media
        ):
            return None
        scheme = source.url.partition(":")[0].lower()
        if self.upstream_fetches and part.kind in traits.link_kinds and scheme in traits.link_schemes:
            return None
        found = self.known.get(source.url)
        if found is None:
            self.missing.setdefault(source.url, NeededLink(part.where, part.kind))
        return found


class Translation(Struct, frozen=True, kw_only=True):
    """A translated request and what is needed to translate its reply back."""

    call: Call
    losses: tuple[Loss, ...] = ()
    undo: Undo = NO_UNDO
    request: Request | None = None
    """The caller's request in the core; None when its bytes were passed on unread."""
    tool_set: ToolSet | None = None
    """Its tools as the cache has them; None for those that did not come as one array."""


class TranslationTask(Struct, frozen=True):
    """A request to translate, its two dialects and the options; see `translate_request`."""

    call: Call
    here: Dialect
    there: Dialect
    model: str = ""
    form: str = ""
    strict: bool = False
    signer: SignatureLookup | None = None
    links: Links | None = None
    text_calls: TextCalls = ""
