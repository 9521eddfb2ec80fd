"""A request to translate, the links that must be fetched for it, and the translated request.

The interpreter fetches nothing. It reports the links that the target does not fetch itself, and gets their content from
its caller.
"""

from collections.abc import Mapping
from typing import Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from dragoman.core.losses import Loss, Strict
from dragoman.core.parts import Link, Media, MediaKind, Signature
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.traits import TextCalls, Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.tools_cache import ToolSet
from dragoman.interpreter.undo import NO_UNDO, Undo

PlacedKind = Literal["reasoning", "redacted", "text"]


class PlacedSignature(Struct, frozen=True, omit_defaults=True):
    """A signed part of a reply other than a call, and its position."""

    kind: PlacedKind
    signature: Signature
    offset: int = 0
    """The number of characters of text before it, since the start of the reply or the last call."""
    texts: tuple[str, ...] = ()
    """The texts of a reasoning part."""
    length: int = 0
    """The length of a signed text."""


class SavedSignatures(Struct, frozen=True):
    """What is signed in a section of a reply, which ends with a call or, without any call, with the reply."""

    call: Signature | None = None
    placed: tuple[PlacedSignature, ...] = ()


class SignatureLookup(Protocol):
    """Looks up what is signed in the sections of earlier replies.

    The key of a section is the id of its call and the digest of the call's name and arguments, or is made from the text
    of an answer without calls.
    """

    @property
    def scope(self) -> str:
        """The owner of these signatures."""
        ...

    @property
    def is_empty(self) -> bool:
        """Nothing of the owner is known to be saved."""
        ...

    def find_signatures(self, section_id: str) -> Mapping[str, SavedSignatures] | None:
        """Return what is saved for the sections with an id, by digest; None if the id must be looked up first."""
        ...


_WEB_SCHEMES = ("http:", "https:")
_MAX_SHOWN_HOST = 100


def show_host(url: str) -> str:
    """Return " at HOST" for a URL, "" if it has no host; its user name, path and query can be secret."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return f" at {host[:_MAX_SHOWN_HOST]}" if host else ""


class FetchedMedia(Struct, frozen=True):
    """The fetched content of a link."""

    media_type: str
    data: str
    """Base64 text."""


class FetchFailure(Struct, frozen=True):
    """Why a link could not be fetched, as a text for the model."""

    reason: str


class NeededLink(Struct, frozen=True):
    """A link that must be fetched."""

    where: str
    """The pointer of its first use in the client's document."""
    kind: MediaKind


class MissingLinks(Exception):  # noqa: N818  it lists what is missing
    """Raised if a request cannot be translated before these links, by URL, are fetched."""

    def __init__(self, links: dict[str, NeededLink]) -> None:
        super().__init__(f"{len(links)} links are not fetched")
        self.links = links


class Links(Struct):
    """The fetched links of a request by URL, and those still to be fetched."""

    known: Mapping[str, FetchedMedia | FetchFailure] = {}
    upstream_fetches: bool = True
    """The upstream fetches links itself."""
    replaces_failed: bool = False
    """A text takes the place of media that cannot be fetched or used, so that an agent's run goes on."""
    missing: dict[str, NeededLink] = {}

    def find_fetched(self, part: Media, traits: Traits) -> FetchedMedia | FetchFailure | None:
        """Return the content of media that the target does not fetch itself; record its link if it is missing."""
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


class TurnFunctionsNeeded(Problem):
    """Raised if the target lacks a tool of the request, and the caller of the translation can run it within the turn.

    `purposes` says what is lacking: "search" is a web search.
    """

    def __init__(self, purposes: frozenset[str], where: str = "") -> None:
        super().__init__("unsupported", f"the target has no {', '.join(sorted(purposes))}", where=where)
        self.purposes = purposes


class Translation(Struct, frozen=True, kw_only=True):
    """A translated request and what is needed to translate its reply back."""

    call: Call
    losses: tuple[Loss, ...] = ()
    undo: Undo = NO_UNDO
    request: Request | None = None
    """The caller's request in the core; None if its bytes were forwarded without parsing."""
    tool_set: ToolSet | None = None
    """The cache entry of its tools; None for tools that did not come as one array."""


class TranslationTask(Struct, frozen=True):
    """A request to translate, its two dialects and the options; see `translate_request`."""

    call: Call
    source: Dialect
    """The caller's dialect."""
    target: Dialect
    """The target's dialect."""
    model: str = ""
    form: str = ""
    strict: Strict = False
    signer: SignatureLookup | None = None
    links: Links | None = None
    text_calls: TextCalls = ""
    cache_marks: bool = False
    exact: bool = False
    """In its own dialect, only the model's name is changed."""
    server: str = ""
    """The name of the server's row in the target dialect; "" to find it by the model."""
    turn_functions: frozenset[str] = frozenset()
    """What the caller can run itself, such as "search"; `TurnFunctionsNeeded` is raised if the target lacks it."""
