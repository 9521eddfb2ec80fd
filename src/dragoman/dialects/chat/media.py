"""Images, films, sound and files of a message, read and written.

Rules: the words of a spelling are "file" for what was sent as a file, "bare" for a URL without its object or base64
without its data URL, and the format of sound.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from dragoman.core.parts import Inline, Link, Media, MediaKind, Plain, Stored
from dragoman.dialects.chat import wire
from dragoman.wire.shape import carried

ISSUER = "openai"
MediaPart = wire.ImagePart | wire.VideoPart | wire.AudioPart | wire.FilePart
_AUDIO_TYPES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def read_media(part: MediaPart) -> tuple[MediaKind, str, Inline | Link | Stored, list[str]] | None:
    """Return kind, media type, source and the words of the spelling; None for a file without one source."""
    match part:
        case wire.ImagePart(image_url=url):
            return _read_link("image", url)
        case wire.VideoPart(video_url=url):
            return _read_link("video", url)
        case wire.AudioPart(input_audio=audio):
            form = audio.format or ""
            media_type = _AUDIO_TYPES.get(form, f"audio/{form}") if form else ""
            return "audio", media_type, Inline(audio.data), [form]
        case wire.FilePart(file=file):
            return _read_file(file)


def carried_fields(part: MediaPart) -> dict[str, bytes]:
    """Return what the object around a URL has beside it, by pointer."""
    match part:
        case wire.ImagePart(image_url=wire.Url() as url):
            return carried(url, "/image_url") or {}
        case wire.VideoPart(video_url=wire.Url() as url):
            return carried(url, "/video_url") or {}
        case _:
            return {}


def _read_link(kind: MediaKind, url: wire.Url | str) -> tuple[MediaKind, str, Inline | Link, list[str]]:
    if isinstance(url, str):
        return kind, *_read_url(url), ["bare"]
    return kind, *_read_url(url.url), []


def _read_url(url: str) -> tuple[str, Inline | Link]:
    """Split a base64 data URL into type and data; any other URL is a link."""
    if not url.startswith("data:"):
        return "", Link(url)
    head, found, data = url[5:].partition(";base64,")
    return (head, Inline(data)) if found and "," not in head else ("", Link(url))


def _read_file(file: wire.File) -> tuple[MediaKind, str, Inline | Link | Stored, list[str]] | None:
    if file.file_id is not None and file.file_data is None:
        return "document", "", Stored(ISSUER, file.file_id), ["file"]
    if file.file_data is None or file.file_id is not None:
        return None
    if not file.file_data.startswith(("data:", "http://", "https://")):
        return "document", "", Inline(file.file_data), ["file", "bare"]
    media_type, source = _read_url(file.file_data)
    return _KINDS.get(media_type.partition("/")[0].lower(), "document"), media_type, source, ["file"]


def write_media(part: Media, words: Sequence[str]) -> dict[str, Any]:
    """Write media; `words` are those of its spelling."""
    source = part.source
    if part.kind in ("image", "video") and "file" not in words and not isinstance(source, Stored):
        word = f"{part.kind}_url"
        url = _write_url(part)
        return {"type": word, word: url if "bare" in words else {"url": url}}
    if part.kind == "audio" and isinstance(source, Inline) and "file" not in words:
        audio = {"data": source.data}
        form = _audio_format(part, words)
        return {"type": "input_audio", "input_audio": {**audio, "format": form} if form else audio}
    file: dict[str, str] = {"filename": part.name} if part.name else {}
    if isinstance(source, Stored):
        file["file_id"] = source.id
    elif isinstance(source, Inline) and "bare" in words:
        file["file_data"] = source.data
    else:
        file["file_data"] = _write_url(part)
    return {"type": "file", "file": file}


def _audio_format(part: Media, words: Sequence[str]) -> str:
    for word in words:
        if _AUDIO_TYPES.get(word, f"audio/{word}") == part.media_type:
            return word
    return _AUDIO_FORMATS.get(part.media_type, part.media_type.partition("/")[2])


def _write_url(part: Media) -> str:
    match part.source:
        case Link(url=url):
            return url
        case Inline(data=data):
            return f"data:{part.media_type};base64,{data}"
        case Plain(text=text):
            return f"data:{part.media_type or 'text/plain'};base64,{b64encode(text.encode()).decode()}"
        case Stored(id=name):
            return name
