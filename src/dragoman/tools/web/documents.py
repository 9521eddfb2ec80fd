"""What stood at an address, as something a model can be given: a text, or media that it may know how to look at."""

import re
from base64 import b64encode

from msgspec import Struct

from dragoman.core.parts import Inline, Media, MediaKind
from dragoman.http.guarded import Page
from dragoman.http.locations import Refused
from dragoman.tools.web.charsets import text_of
from dragoman.tools.web.converter import LONGEST_INPUT, LONGEST_TEXT, Converter, NotConvertedError

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_JSON, _XML, _PLAIN = "application/json", "application/xml", "text/plain"
_TEXTS = {
    **{kind: kind for kind in (_JSON, _XML, _PLAIN, "text/markdown", "text/csv", "text/css", "text/javascript")},
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/x-ndjson": _JSON,
    "application/jsonl": _JSON,
    "application/yaml": _PLAIN,
    "application/x-yaml": _PLAIN,
    "application/toml": _PLAIN,
    "application/sql": _PLAIN,
    "application/x-sh": _PLAIN,
}
"""Texts by the names that servers have for them, and what a model is told: none of a server's own words."""
_ENDINGS = {"+json": _JSON, "+xml": _XML, "+yaml": _PLAIN}
_NAME = re.compile(r"[a-z]+/[a-z0-9.+-]{1,60}")
_MAGIC: dict[str, tuple[int, bytes, MediaKind]] = {
    "image/png": (0, b"\x89PNG\r\n\x1a\n", "image"),
    "image/jpeg": (0, b"\xff\xd8\xff", "image"),
    "image/gif": (0, b"GIF8", "image"),
    "image/webp": (8, b"WEBP", "image"),
    "application/pdf": (0, b"%PDF-", "document"),
}
_STRETCH = 1 << 16
_LIKE_HTML = re.compile(
    rb"\s{0,99}(?:<!--.{0,999}?-->\s{0,99})?<(?:!doctype html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\u2066-\u2069\u202a-\u202e\ufeff\U000e0000-\U000e007f]")
"""Characters that a reader does not see: a terminal obeys some of them, and a model reads words made of others."""


class Document(Struct, frozen=True):
    """What stood at an address."""

    url: str
    kind: str
    text: str = ""
    title: str = ""
    media: Media | None = None
    is_beginning: bool = False
    """There was more than is read."""

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        source = self.media.source if self.media is not None else None
        return 1000 + 2 * len(self.text) + (len(source.data) if isinstance(source, Inline) else 0)


def accept(kind: str) -> None:
    """Raise `Refused` for a media type that no model can be given; none at all is looked into."""
    if kind and kind not in _MAGIC and kind not in _HTML and not text_kind(kind):
        shown = kind if _NAME.fullmatch(kind) else "something else"
        raise Refused(f"it is {shown}, and only texts, HTML, PDF and images can be read")


def text_kind(kind: str) -> str:
    """Return what a text is called; "" for what is no text that is told as it is."""
    if kind in _TEXTS:
        return _TEXTS[kind]
    return _ENDINGS.get(kind[kind.rfind("+") :], _PLAIN if kind.startswith("text/") else "")


async def document_of(page: Page, converter: Converter) -> Document:
    """Read a page; raises `Refused`."""
    kind = page.kind or _guessed(page.body)
    accept(kind)
    if kind in _MAGIC:
        return Document(url=page.url, kind=kind, media=_media(kind, page.body))
    if kind not in _HTML:
        text, is_beginning = await converter.apart(lambda: _plain(page))
        return Document(url=page.url, kind=text_kind(kind), text=text, is_beginning=is_beginning)
    try:
        markdown = await converter.markdown(text_of(page.body[:LONGEST_INPUT], page.charset), page.url)
    except NotConvertedError as error:
        raise Refused(str(error)) from None
    return Document(
        url=page.url,
        kind=kind,
        text=await converter.apart(lambda: cleaned(markdown.text)),
        title=cleaned(markdown.title),
        is_beginning=len(page.body) > LONGEST_INPUT,
    )


def cleaned(text: str) -> str:
    """Return a text without what cannot be seen.

    It is done in stretches: of a text that is nothing else it takes a second, and Python lets nothing run within.
    """
    if not _UNSEEN.search(text):
        return text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(_UNSEEN.sub("", plain[at : at + _STRETCH]) for at in range(0, len(plain), _STRETCH))


def _plain(page: Page) -> tuple[str, bool]:
    """Return a text as it is told, and whether that is only its beginning."""
    text = text_of(page.body, page.charset)
    return cleaned(text[:LONGEST_TEXT]), len(text) > LONGEST_TEXT


def _media(kind: str, body: bytes) -> Media:
    at, magic, family = _MAGIC[kind]
    if not body.startswith(magic, at):
        raise Refused(f"it is no {kind}, though its server says so")
    return Media(kind=family, media_type=kind, source=Inline(b64encode(body).decode()))


def _guessed(body: bytes) -> str:
    """Return the kind of what nobody named."""
    for kind, (at, magic, _) in _MAGIC.items():
        if body.startswith(magic, at):
            return kind
    if _LIKE_HTML.match(body):
        return "text/html"
    if b"\0" in body[:4096]:
        raise Refused("its server does not say what it is, and it is no text")
    return "text/plain"
