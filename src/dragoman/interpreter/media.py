"""Fit an image, document, sound or film to the target: what it takes, in which form, and how it must be named."""

from base64 import b64decode
from typing import Any

from msgspec import structs

from dragoman.core.parts import Inline, Link, Media, Plain, Stored, Text
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.fitting import Fitting
from dragoman.interpreter.foreign import without_foreign

_FILE_NAMES = {"application/pdf": "document.pdf", "text/plain": "document.txt"}
_COMMON_TYPES = {
    "image": "image/jpeg",
    "document": "application/pdf",
    "audio": "audio/mpeg",
    "video": "video/mp4",
}
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
}


def fit_media(part: Media, message: Message, fitting: Fitting) -> Media | Text | None:
    """Return the media as the target takes it, words in its place, or nothing."""
    traits = fitting.traits
    source = part.source
    if isinstance(source, Inline) and _is_text(part) and traits.document_types:
        source = _plain(source)
    if isinstance(source, Plain) and not traits.text_documents:
        fitting.ledger.approximated(part.where, "a text document is sent as text")
        without_foreign(part, fitting)
        return Text(text=f"{part.name}\n\n{source.text}" if part.name else source.text, where=part.where)
    refusal = _media_refusal(part, source, message, fitting)
    if refusal is not None:
        fitting.ledger.dropped(part.where, refusal)
        return Text(text=f"[{part.kind} left out: {refusal}]") if message.role == "user" else None
    changes = without_foreign(part, fitting)
    if source is not part.source:
        changes["source"] = source
        if part.media_type != "text/plain":
            fitting.ledger.field_approximated("media.media_type", "a text document is plain text there", part)
            changes["media_type"] = "text/plain"
    if part.name and not (traits.media_names and part.kind == "document"):
        fitting.ledger.field_dropped("media.name", "the target has no place for a name", part)
        changes["name"] = ""
    if not part.name and traits.needs_file_names and part.kind == "document" and isinstance(source, Inline):
        changes["name"] = _FILE_NAMES.get(part.media_type, "document")
    if isinstance(source, Link):
        changes |= _link_type(part, source, fitting)
    return structs.replace(part, **changes) if changes else part


def _is_taken(part: Media, traits: Traits) -> bool:
    types = {"document": traits.document_types, "image": traits.image_types, "audio": traits.audio_types}
    accepted = types.get(part.kind, frozenset[str]())
    return not accepted or part.media_type.lower() in accepted


def _is_text(part: Media) -> bool:
    return part.kind == "document" and part.media_type.startswith("text/")


def _plain(source: Inline) -> Inline | Plain:
    try:
        return Plain(b64decode(source.data, validate=True).decode())
    except ValueError:
        return source


def _link_type(part: Media, source: Link, fitting: Fitting) -> dict[str, Any]:
    if fitting.traits.link_types:
        return {} if part.media_type else {"media_type": _guessed_type(part, source, fitting)}
    if not part.media_type:
        return {}
    fitting.ledger.field_dropped("media.media_type", "a link has no media type there", part)
    return {"media_type": ""}


def _media_refusal(
    part: Media, source: Inline | Link | Plain | Stored, message: Message, fitting: Fitting
) -> str | None:
    traits = fitting.traits
    if message.role == "assistant" and not traits.assistant_media:
        return "the target takes no media in an assistant turn"
    if part.kind not in traits.media:
        return f"the target takes no {part.kind}"
    match source:
        case Stored(issuer=issuer) if issuer != traits.stored_issuer:
            return f"a file stored at {issuer} means nothing to the target"
        case Stored() if part.kind not in traits.stored_kinds:
            return f"the target takes no {part.kind} by file id"
        case Link() if part.kind not in traits.link_kinds:
            return f"the target fetches no {part.kind}"
        case Inline() if part.media_type and not _is_taken(part, traits):
            return f"the target takes no {part.kind} of this type"
        case _:
            pass
    return None


def _guessed_type(part: Media, source: Link, fitting: Fitting) -> str:
    """Name the media type by the URL's ending, or the commonest of the kind: Gemini wants one where others do not."""
    ending = source.url.split("?", 1)[0].rsplit(".", 1)[-1].lower()
    if ending in _TYPES:
        return _TYPES[ending]
    fitting.ledger.approximated(part.where, "the link does not say its media type: the commonest is assumed")
    return _COMMON_TYPES[part.kind]
