"""Convert a fetched page to a text, or to media (images, PDF), for a model.

Only the encodings of the web are decoded: Python has others, and some of those take hours for a large page.
"""

import codecs
import re
from base64 import b64encode

from msgspec import Struct

from dragoman.core.parts import Inline, Media, MediaKind
from dragoman.http.addresses import LinkRefused
from dragoman.http.safe_fetch import LinkedPage
from dragoman.tools.web.converter import MAX_INPUT, MAX_TEXT, ConversionError, Converter

_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w:.-]{1,40})""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w:.-]{1,40})""")
_SEARCH_LIMIT = 2048
_FALLBACK_ENCODING = "cp1252"
"""The encoding of a page that declares none and is not UTF-8."""
_ENCODINGS = {
    "utf-8": "utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le unicode",
    "utf-16-be": "utf-16be",
    "cp1252": "windows-1252 cp1252 iso-8859-1 iso8859-1 latin1 latin-1 l1 us-ascii ascii x-cp1252",
    "cp1250": "windows-1250 cp1250",
    "cp1251": "windows-1251 cp1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "cp874": "windows-874 tis-620 iso-8859-11",
    "cp866": "ibm866 cp866",
    "iso8859-2": "iso-8859-2 latin2",
    "iso8859-3": "iso-8859-3 latin3",
    "iso8859-4": "iso-8859-4 latin4",
    "iso8859-5": "iso-8859-5 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 latin-9 latin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic",
    "gb18030": "gbk gb2312 gb_2312-80 x-gbk cp936",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
    "euc_jp": "euc-jp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji",
    "cp949": "euc-kr ks_c_5601-1987 windows-949 korean",
}
_ENCODING_BY_LABEL = {label: name for name, labels in _ENCODINGS.items() for label in (name, *labels.split())}


def decode_text(body: bytes, charset: str) -> str:
    """Decode a page by its byte order mark, the charset of the Content-Type, its own declaration, or as UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    encoding = _ENCODING_BY_LABEL.get(charset.lower()) or _find_declared_encoding(body[:_SEARCH_LIMIT])
    if encoding:
        return body.decode(encoding, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode(_FALLBACK_ENCODING, "replace")


def _find_declared_encoding(start: bytes) -> str:
    """Return the encoding that a page declares; a declaration that is readable as ASCII is never UTF-16."""
    found = _XML_ENCODING.match(start) or _META_CHARSET.search(start)
    encoding = _ENCODING_BY_LABEL.get(found.group(1).decode("ascii", "ignore").lower(), "") if found else ""
    return "utf-8" if encoding.startswith("utf-16") else encoding


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
"""Media types of text by the names that servers use; the model gets the name on the right, never the server's text."""
_ENDINGS = {"+json": _JSON, "+xml": _XML, "+yaml": _PLAIN}
_NAME = re.compile(r"[a-z]+/[a-z0-9.+-]{1,60}")
_MAGIC: dict[str, tuple[int, bytes, MediaKind]] = {
    "image/png": (0, b"\x89PNG\r\n\x1a\n", "image"),
    "image/jpeg": (0, b"\xff\xd8\xff", "image"),
    "image/gif": (0, b"GIF8", "image"),
    "image/webp": (8, b"WEBP", "image"),
    "application/pdf": (0, b"%PDF-", "document"),
}
_CHUNK = 1 << 16
_HTML_START = re.compile(
    rb"\s{0,99}(?:<!--.{0,999}?-->\s{0,99})?<(?:!doctype html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\u2066-\u2069\u202a-\u202e\ufeff\U000e0000-\U000e007f]"
)
"""Invisible characters: terminals interpret some as control codes, and others can hide text that a model reads."""


class WebDocument(Struct, frozen=True):
    """A fetched page as text or media."""

    url: str
    kind: str
    text: str = ""
    title: str = ""
    media: Media | None = None
    is_truncated: bool = False
    """The page is longer than the part that was read."""

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        source = self.media.source if self.media is not None else None
        return 1000 + 2 * len(self.text) + (len(source.data) if isinstance(source, Inline) else 0)


def require_readable_type(kind: str) -> None:
    """Raise `LinkRefused` for a media type that is not supported; an empty type is guessed later from the content."""
    if kind and kind not in _MAGIC and kind not in _HTML and not text_media_type(kind):
        shown = kind if _NAME.fullmatch(kind) else "something else"
        raise LinkRefused(f"it is {shown}, and only texts, HTML, PDF and images can be read")


def text_media_type(kind: str) -> str:
    """Return the media type under which a text is shown to the model; "" if the type is not plain text."""
    if kind in _TEXTS:
        return _TEXTS[kind]
    return _ENDINGS.get(kind[kind.rfind("+") :], _PLAIN if kind.startswith("text/") else "")


async def parse_document(page: LinkedPage, converter: Converter) -> WebDocument:
    """Convert a fetched page; raises `LinkRefused`."""
    kind = page.media_type or _guess_media_type(page.body)
    require_readable_type(kind)
    if kind in _MAGIC:
        return WebDocument(url=page.url, kind=kind, media=_build_media(kind, page.body))
    if kind not in _HTML:
        text, is_beginning = await converter.run_in_thread(lambda: _decode_plain(page))
        return WebDocument(url=page.url, kind=text_media_type(kind), text=text, is_truncated=is_beginning)
    try:
        markdown = await converter.to_markdown(decode_text(page.body[:MAX_INPUT], page.charset), page.url)
    except ConversionError as error:
        raise LinkRefused(str(error)) from None
    return WebDocument(
        url=page.url,
        kind=kind,
        text=await converter.run_in_thread(lambda: strip_invisible(markdown.text)),
        title=strip_invisible(markdown.title),
        is_truncated=len(page.body) > MAX_INPUT,
    )


def strip_invisible(text: str) -> str:
    """Return a text without invisible characters.

    It works in chunks: a text of only such characters takes a second, and a single `sub` would block other threads.
    """
    if not _INVISIBLE.search(text):
        return text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(_INVISIBLE.sub("", plain[at : at + _CHUNK]) for at in range(0, len(plain), _CHUNK))


def _decode_plain(page: LinkedPage) -> tuple[str, bool]:
    """Return the decoded text of a page, cut to `MAX_TEXT` characters, and whether it was cut."""
    text = decode_text(page.body, page.charset)
    return strip_invisible(text[:MAX_TEXT]), len(text) > MAX_TEXT


def _build_media(kind: str, body: bytes) -> Media:
    at, magic, family = _MAGIC[kind]
    if not body.startswith(magic, at):
        raise LinkRefused(f"its content is not {kind}, although its content-type says so")
    return Media(kind=family, media_type=kind, source=Inline(b64encode(body).decode()))


def _guess_media_type(body: bytes) -> str:
    """Guess the media type of a page without a Content-Type from its first bytes."""
    for kind, (at, magic, _) in _MAGIC.items():
        if body.startswith(magic, at):
            return kind
    if _HTML_START.match(body):
        return "text/html"
    if b"\0" in body[:4096]:
        raise LinkRefused("it has no content-type, and its content is not text")
    return "text/plain"
