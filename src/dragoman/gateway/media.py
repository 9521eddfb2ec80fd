"""Fetches linked media for upstreams that do not fetch links themselves.

All links of a request are fetched concurrently, within one byte limit and one time limit. Fetched media is cached for a
few minutes, because a conversation repeats its links with every turn.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from msgspec import Struct, structs

from dragoman.core.parts import media_kind_of
from dragoman.core.problems import Problem
from dragoman.http.addresses import LinkRefused
from dragoman.http.safe_fetch import ByteBudget, ExpiringCache, GuardedFetcher
from dragoman.interpreter.media import NOT_FETCHED
from dragoman.interpreter.translation import (
    FetchedMedia,
    FetchFailure,
    Links,
    MissingLinks,
    NeededLink,
    show_host,
)
from dragoman.tasks import run_all

T = TypeVar("T")
_CACHE_SECONDS = 300.0
_MAX_CACHE_BYTES = 64 << 20
_FAILURE_SECONDS = 60.0
"""How long a failure is kept for the other turns of an agent's run, which repeat the link: its text stays the same."""
_MAX_FAILURE_BYTES = 1 << 20
_Fetched = FetchedMedia | FetchFailure


class MediaLimits(Struct, frozen=True, kw_only=True):
    """Limits for the media of one request."""

    fetch: bool = True
    max_bytes: int = 20 << 20
    max_links: int = 20
    seconds: float = 20.0


class MediaFetcher:
    """Fetches and caches linked media."""

    def __init__(self, guard: GuardedFetcher, limits: MediaLimits | None = None) -> None:
        self._guard = guard
        self._limits = limits or MediaLimits()
        self._cache: ExpiringCache[FetchedMedia] = ExpiringCache(_CACHE_SECONDS, _MAX_CACHE_BYTES)
        self._failures: ExpiringCache[FetchFailure] = ExpiringCache(_FAILURE_SECONDS, _MAX_FAILURE_BYTES)

    async def translate_with_media(
        self, translate: Callable[[Links | None], T], missing: MissingLinks, links: Links
    ) -> T:
        """Fetch the missing links and translate a request with them, and with the settings of `links`.

        A link that cannot be fetched is an error, or a text in its place if `links` says so.
        """
        needed = missing.links
        refused = self._find_refused(needed)
        if refused and not links.replaces_failed:
            url, reason = next(iter(refused.items()))
            raise _build_error(url, needed[url], reason)
        fetched = await self._fetch_all(
            {url: link for url, link in needed.items() if url not in refused}, explains=links.replaces_failed
        )
        fetched |= {url: _build_failure(url, reason) for url, reason in refused.items()}
        try:
            return translate(structs.replace(links, known=fetched, missing={}))
        except MissingLinks as still_missing:
            raise _build_error(*next(iter(still_missing.links.items())), "the gateway did not fetch it") from None

    def _find_refused(self, links: Iterable[str]) -> dict[str, str]:
        """Return the links that the configuration does not allow to fetch, each with the reason."""
        if not self._limits.fetch:
            return dict.fromkeys(links, "the upstream does not fetch links, and `fetch` in [media] is off")
        most = self._limits.max_links
        reason = f"the request has more than {most} links to fetch (`max_links` in [media])"
        return dict.fromkeys(islice(links, most, None), reason)

    async def _fetch_all(self, links: dict[str, NeededLink], *, explains: bool) -> dict[str, _Fetched]:
        """Fetch links concurrently; `explains` if a failure is returned rather than raised."""
        found: dict[str, _Fetched] = {url: media for url in links if (media := self._cache.get(url)) is not None}
        if explains:
            found |= {url: failure for url in links if (failure := self._failures.get(url)) is not None}
        budget = ByteBudget(self._limits.max_bytes)
        uncached = [(url, link) for url, link in links.items() if url not in found]
        fetches = (self._fetch_or_fail(url, link, budget, explains=explains) for url, link in uncached)
        fetched = await run_all(fetches, "fetch media")
        return found | dict(zip((url for url, _ in uncached), fetched, strict=True))

    async def _fetch_or_fail(self, url: str, link: NeededLink, budget: ByteBudget, *, explains: bool) -> _Fetched:
        try:
            return await self._fetch_one(url, link, budget)
        except LinkRefused as refusal:
            if not explains:
                raise _build_error(url, link, str(refusal)) from None
            failure = _build_failure(url, str(refusal))
            self._failures.put(url, failure, len(url) + len(failure.reason))
            return failure

    async def _fetch_one(self, url: str, link: NeededLink, budget: ByteBudget) -> FetchedMedia:
        """Fetch a link; raises `LinkRefused`."""
        download = await self._guard.fetch(url, budget, self._limits.seconds)
        media_type = sniff_media_type(download.body, download.media_type)
        if not media_type or link.kind not in ("document", media_kind_of(media_type)):
            raise LinkRefused(f"its content is not of type {link.kind}")
        fetched = FetchedMedia(media_type, b64encode(download.body).decode())
        self._cache.put(url, fetched, len(fetched.data))
        return fetched


def _build_failure(url: str, reason: str) -> FetchFailure:
    return FetchFailure(f"the link{show_host(url)} cannot be fetched: {reason}")


def _build_error(url: str, link: NeededLink, reason: str) -> Problem:
    message = f"the {link.kind}{show_host(url)} cannot be fetched: {reason}"
    return Problem("invalid_request", message, where=link.where, code=NOT_FETCHED)


_MAGIC_BYTES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypheix", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp", "video/mp4"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
)
"""Offset, magic bytes and media type; the first match counts."""
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/javascript"})


def sniff_media_type(body: bytes, declared_type: str) -> str:
    """Return the media type of a body, "" if it is unknown; `declared_type` is what the server sent."""
    for offset, magic, media_type in _MAGIC_BYTES:
        if body.startswith(magic, offset):
            return media_type
    is_text = declared_type.startswith("text/") or declared_type in _TEXT_TYPES
    return declared_type if is_text and _is_utf8_text(body) else ""


def _is_utf8_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body
