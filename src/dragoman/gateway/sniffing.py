"""What kind of media some bytes are: their beginning tells, and only for text the word of a server counts."""

from dragoman.core.parts import MediaKind

_BEGINNINGS: tuple[tuple[int, bytes, str], ...] = (
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
"""At a place, how files of a type begin; the first that fits is meant."""
_TEXTS = frozenset({"application/json", "application/xml", "application/javascript"})
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def sniffed(body: bytes, said: str) -> str:
    """Return the type of media that bytes are, "" for none; `said` is what their server calls them."""
    for at, mark, media_type in _BEGINNINGS:
        if body.startswith(mark, at):
            return media_type
    is_text = said.startswith("text/") or said in _TEXTS
    return said if is_text and _reads(body) else ""


def _reads(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body


def kind_of(media_type: str) -> MediaKind:
    """Return the kind of media that a type is of."""
    return _KINDS.get(media_type.partition("/")[0], "document")
