"""What a tool returned as parts of a result, and how much of it a model is given.

Rules: a text stays a text, media stay media, everything else is a JSON value. Nothing is cut in silence: what is left
out is told in words, at its place.
"""

import base64
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.core.parts import Content, Data, Inline, Media, MediaKind, Opaque, Plain, Text, ToolResult

_PARTS = (Text, Data, Media, Opaque)
_BYTES = (bytes, bytearray, memoryview)
_MAGIC: tuple[tuple[int, bytes, MediaKind, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    (0, b"\xff\xd8\xff", "image", "image/jpeg"),
    (0, b"GIF8", "image", "image/gif"),
    (8, b"WEBP", "image", "image/webp"),
    (0, b"%PDF-", "document", "application/pdf"),
    (8, b"WAVE", "audio", "audio/wav"),
    (0, b"ID3", "audio", "audio/mpeg"),
    (0, b"\xff\xfb", "audio", "audio/mpeg"),
    (0, b"OggS", "audio", "audio/ogg"),
    (0, b"fLaC", "audio", "audio/flac"),
    (4, b"ftyp", "video", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video", "video/webm"),
)


class Returned(Struct, frozen=True):
    """What a tool returned, in the neutral language."""

    content: tuple[Content, ...]
    failed: bool = False


def returned(value: Any) -> Returned:
    """Read what a tool returned; a `TypeError` or `ValueError` says what of it no model can be told."""
    if isinstance(value, ToolResult):
        return Returned(tuple(map(_part, value.content)), value.failed)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
        items = cast("list[Any]", value)
        if any(isinstance(item, (*_PARTS, *_BYTES)) for item in items):
            return Returned(tuple(_part(item) for item in items))
    return Returned((_part(value),))


def _part(value: Any) -> Content:
    if isinstance(value, Text):
        return structs.replace(value, text=encodable(value.text))
    if isinstance(value, _PARTS):
        return value
    if isinstance(value, str):
        return Text(text=encodable(str(value)))
    if isinstance(value, _BYTES):
        return _media(bytes(cast("bytes", value)))
    return Data(json=msgspec.json.encode(value, enc_hook=_plain))


def encodable(text: str) -> str:
    """Return a text that can be written as UTF-8: half a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _media(data: bytes) -> Content:
    """Return bytes as what they begin like; a text if they are one."""
    for at, magic, kind, media_type in _MAGIC:
        if data.startswith(magic, at):
            return Media(kind=kind, media_type=media_type, source=Inline(base64.b64encode(data).decode()))
    try:
        return Text(text=data.decode())
    except UnicodeDecodeError:
        source = Inline(base64.b64encode(data).decode())
        return Media(kind="document", media_type="application/octet-stream", source=source)


def _plain(value: Any) -> Any:
    """Return an object that knows its own data (a pydantic model, and whatever works like one) as that data."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__qualname__} is neither text nor JSON")


class Trimmed(Struct, frozen=True):
    """A result within its limits."""

    content: tuple[Content, ...]
    size: int
    """Bytes before anything was cut, media as they are sent."""
    cut: bool


def trimmed(content: Iterable[Content], most: int, most_media: int) -> Trimmed:
    """Keep the first `most` bytes of text and JSON, and the media that fit into `most_media`."""
    kept: list[Content] = []
    size = 0
    cut = False
    for part in content:
        length = size_of(part)
        size += length
        if isinstance(part, Media) and not isinstance(part.source, Plain):
            fits = length <= most_media
            most_media -= length if fits else 0
            kept.append(part if fits else Text(text=f"[left out: {part.media_type or part.kind}, {length:,} bytes]"))
        else:
            fits = length <= most
            kept += [part] if fits else _beginning(part, most)
            most = most - length if fits else 0
        cut = cut or not fits
    return Trimmed(tuple(kept), size, cut)


def _beginning(part: Content, most: int) -> list[Content]:
    """Return what fits of a part; half a JSON value is a text."""
    match part:
        case Text(text=text) | Media(source=Plain(text)):
            start = text[:most].encode()[:most]
        case Data(json=raw):
            start = raw[:most]
        case _:
            start = b""
    text = start.decode("utf-8", "ignore")
    return [Text(text=text)] if text else []


def size_of(part: Content) -> int:
    """Return the bytes a part takes on its way."""
    match part:
        case Text(text=text) | Media(source=Plain(text)):
            return len(text) if text.isascii() else len(text.encode())
        case Data(json=raw) | Opaque(raw=raw):
            return len(raw)
        case Media(source=Inline(data)):
            return len(data)
        case _:
            return 0
