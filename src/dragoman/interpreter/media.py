"""Adapt images, documents, audio and video to the target: kind, source, media type and file name."""

import re
from base64 import b64decode, b64encode
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import structs

from dragoman.core.parts import Inline, Link, Media, Plain, Stored, Text, media_kind_of
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import EMPTY_TEXT_REJECTED, Adaptation
from dragoman.interpreter.history_parts import Adapted, remove_foreign_fields
from dragoman.interpreter.translation import FetchFailure, show_host

NOT_FETCHED = "media_not_fetched"
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
    "heic": "image/heic",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
}
_MAGIC_PREFIXES = {
    "JVBER": "application/pdf",
    "iVBOR": "image/png",
    "/9j/": "image/jpeg",
    "R0lGO": "image/gif",
}
"""The first base64 characters of some file formats, and their media types."""
_IMAGE_HEADS = (
    (re.compile(rb"\x89PNG\r\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"....ftyp(?:hei[cx]|mif1)", re.DOTALL), "image/heic"),
    (re.compile(rb"....ftypavif", re.DOTALL), "image/avif"),
)
"""The first bytes of image formats, and their media types."""
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-jpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-webp": "image/webp",
    "image/x-gif": "image/gif",
    "application/x-pdf": "application/pdf",
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-pn-wav": "audio/wav",
}
"""Media types that are not registered (any more), and the registered ones that they mean."""
_CHARSET = re.compile(r"\s*charset\s*=\s*\"?([^\s\"]*)\"?\s*", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_STANDARD = str.maketrans("-_", "+/")
_PATH_END = re.compile(r"[?#]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def adapt_media(part: Media, message: Message, adaptation: Adaptation) -> Adapted:
    """Return the media as the target takes it, a text in its place, or None if it is dropped.

    If the target has no field for the context of a document, the context is a text before it.
    """
    if not part.context or adaptation.traits.document_contexts:
        return _adapt_file(part, message, adaptation)
    file = _adapt_file(structs.replace(part, context=""), message, adaptation)
    if adaptation.rejects_text(part.context):
        adaptation.ledger.report_dropped_field("media.context", EMPTY_TEXT_REJECTED, part)
        return file
    adaptation.ledger.report_approximated_field("media.context", "sent as a text before the document", part)
    context = Text(text=part.context, where=adaptation.ledger.find_pointer("media.context", part))
    return (context,) if file is None else (context, file)


def _adapt_file(part: Media, message: Message, adaptation: Adaptation) -> Media | Text | None:
    traits = adaptation.traits
    part = _guess_type(_unpack_data_url(part))
    fetched = adaptation.links.find_fetched(part, traits) if adaptation.links is not None else None
    if isinstance(fetched, FetchFailure):
        return _leave_out(part, fetched.reason, message, adaptation)
    host = show_host(part.source.url) if isinstance(part.source, Link) else ""
    if fetched is not None:
        part = _set_type(structs.replace(part, source=Inline(fetched.data)), fetched.media_type)
    part = _adapt_type(_correct_image_type(part, adaptation), adaptation)
    source = part.source
    if isinstance(source, Inline) and _is_text(part) and traits.document_types and not traits.text_types:
        source = _decode_text(part, source)
    if isinstance(source, Plain) and adaptation.rejects_text(source.text):
        adaptation.ledger.report_dropped(part.where, EMPTY_TEXT_REJECTED)
        return None
    if isinstance(source, Plain) and not traits.text_documents:
        adaptation.ledger.report_approximated(part.where, "a text document is sent as text")
        cache = remove_foreign_fields(part, message.role, adaptation).get("cache", part.cache)
        text = f"{part.name}\n\n{source.text}" if part.name else source.text
        return Text(text=text, where=part.where, cache=cache)
    reason = _find_rejection(part, source, message, adaptation)
    if reason is not None and fetched is not None and not (adaptation.links and adaptation.links.replaces_failed):
        unusable = f"the {part.kind}{host} cannot be used: {reason}: {fetched.media_type}"
        raise Problem("invalid_request", unusable, where=part.where, code=NOT_FETCHED)
    if reason is not None:
        return _leave_out(part, reason, message, adaptation)
    changes = remove_foreign_fields(part, message.role, adaptation)
    if isinstance(source, Plain) and (source is not part.source or part.media_type not in ("", "text/plain")):
        changes["source"] = source
        if _strip_parameters(part.media_type) != "text/plain":
            adaptation.ledger.report_approximated_field("media.media_type", "the target takes only text/plain", part)
        changes["media_type"] = "text/plain"
    if part.name and not (traits.media_names and part.kind == "document"):
        adaptation.ledger.report_dropped_field("media.name", "the target has no field for a file name", part)
        changes["name"] = ""
    if not part.name and traits.needs_file_names and part.kind == "document" and isinstance(source, Inline):
        changes["name"] = _FILE_NAMES.get(part.media_type, "document")
    if isinstance(source, Link):
        changes |= _adapt_link_type(part, source, adaptation)
    elif isinstance(source, Inline) and not part.media_type:
        adaptation.ledger.report_approximated(part.where, "no media type is given: the most common one is assumed")
        changes["media_type"] = _COMMON_TYPES[part.kind]
    return structs.replace(part, **changes) if changes else part


def _leave_out(part: Media, reason: str, message: Message, adaptation: Adaptation) -> Text | None:
    """Report media that the target does not get; a user's is replaced by a text."""
    adaptation.ledger.report_dropped(part.where, reason)
    return Text(text=f"[{part.kind} left out: {reason}]") if message.role == "user" else None


def find_document_text(part: Media) -> str | None:
    """Return the text of a text document, after its file name and context if it has them; None for other media."""
    part = _guess_type(_unpack_data_url(part))
    source = _decode_text(part, part.source) if isinstance(part.source, Inline) and _is_text(part) else part.source
    if not isinstance(source, Plain):
        return None
    return "\n\n".join(filter(None, (part.name, part.context, source.text)))


def fits_result(part: Media, traits: Traits, *, failed: bool) -> bool:
    """Return whether a tool result may contain the media; other media is sent after the result."""
    if part.kind not in traits.result_media or (failed and not traits.failed_media):
        return False
    if traits.result_types and part.media_type and _strip_parameters(part.media_type) not in traits.result_types:
        return False
    return not isinstance(part.source, Link) or _find_scheme(part.source.url) in traits.result_links


def _unpack_data_url(part: Media) -> Media:
    """Turn a `data:` URL into inline data, base64 into the standard alphabet and the URL scheme into lower case."""
    match part.source:
        case Inline(data=data) if "-" in data or "_" in data or len(data) % 4:
            return structs.replace(part, source=Inline(_to_standard_base64(data)))
        case Link(url=url) if url[:5].lower() == "data:" and "," in url:
            head, _, data = url[5:].partition(",")
            media_type, *parameters = head.split(";")
            is_base64 = bool(parameters) and parameters[-1].strip().lower() == "base64"
            content = _to_standard_base64(data) if is_base64 else b64encode(unquote_to_bytes(data)).decode()
            return _set_type(structs.replace(part, source=Inline(content)), media_type or "text/plain")
        case Link(url=url) if (found := _SCHEME.match(url)) is not None and not found[1].islower():
            return structs.replace(part, source=Link(found[1].lower() + url[found.end(1) :]))
        case _:
            return part


def _to_standard_base64(data: str) -> str:
    """Return base64 in the standard alphabet with padding: Google's clients use the URL-safe alphabet."""
    bare = data.rstrip("=")
    if len(bare) % 4 == 1 or not _BASE64.fullmatch(data):
        return data
    return bare.translate(_STANDARD) + "=" * (-len(bare) % 4)


def _guess_type(part: Media) -> Media:
    """Set the media type of inline data that came without one, by the file name or by the first bytes.

    A link gets no media type, only a kind by the extension of its path: a link to an image is not sent as a document.
    """
    if part.media_type or not isinstance(part.source, Inline | Link):
        return part
    if isinstance(part.source, Link):
        kind = media_kind_of(_find_type_by_extension(part.source))
        return structs.replace(part, kind=kind) if kind != "document" and part.kind == "document" else part
    data = part.source.data
    by_name = _TYPES.get(part.name.rpartition(".")[2].lower())
    found = by_name or next((by_magic for start, by_magic in _MAGIC_PREFIXES.items() if data.startswith(start)), "")
    return _set_type(part, found) if found else part


def _correct_image_type(part: Media, adaptation: Adaptation) -> Media:
    """Give an inline image the media type of its first bytes: Claude rejects an image of another type than stated."""
    source, stated = part.source, _strip_parameters(part.media_type)
    if not isinstance(source, Inline) or not stated.startswith("image/"):
        return part
    try:
        head = b64decode(source.data[:24])
    except ValueError:
        return part
    found = next((image_type for pattern, image_type in _IMAGE_HEADS if pattern.match(head)), stated)
    if found in (stated, _ALIASES.get(stated)):
        return part
    adaptation.ledger.report_approximated_field("media.media_type", f"the data is {found}, not {stated}", part)
    return structs.replace(part, media_type=found)


def _set_type(part: Media, media_type: str) -> Media:
    """Set the media type; a part of kind "document" also gets the kind of that type."""
    kind = media_kind_of(media_type.lower()) if part.kind == "document" else part.kind
    return structs.replace(part, media_type=media_type, kind=kind)


def _adapt_type(part: Media, adaptation: Adaptation) -> Media:
    """Return the media with the type as the target spells it: in lower case, registered, without parameters.

    A target that takes any type of a kind gets the type unchanged: audio types have the sample rate in a parameter.
    """
    accepted = _list_accepted_types(part, adaptation.traits)
    if not part.media_type or not accepted or part.media_type in accepted:
        return part
    bare = _strip_parameters(part.media_type)
    found = next((name for name in (bare, _ALIASES.get(bare, bare)) if name in accepted), None)
    if found is None:
        return part
    if any(not _CHARSET.match(parameter) for parameter in part.media_type.split(";")[1:]):
        adaptation.ledger.report_approximated_field(
            "media.media_type", "the target takes no parameters in a media type", part
        )
    return structs.replace(part, media_type=found)


def _strip_parameters(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _list_accepted_types(part: Media, traits: Traits) -> frozenset[str]:
    types = {"document": traits.document_types, "image": traits.image_types, "audio": traits.audio_types}
    return types.get(part.kind, frozenset[str]())


def _is_accepted(part: Media, media_type: str, traits: Traits) -> bool:
    accepted = _list_accepted_types(part, traits)
    is_text = traits.text_types and part.kind == "document" and _strip_parameters(media_type).startswith("text/")
    return not accepted or not media_type or media_type in accepted or is_text


def _is_text(part: Media) -> bool:
    return part.kind == "document" and _strip_parameters(part.media_type).startswith("text/")


def _decode_text(part: Media, source: Inline) -> Inline | Plain:
    charset = next(filter(None, map(_CHARSET.match, part.media_type.split(";")[1:])), None)
    try:
        return Plain(b64decode(source.data, validate=True).decode(charset[1] if charset is not None else "utf-8"))
    except (ValueError, LookupError):
        return source


def _adapt_link_type(part: Media, source: Link, adaptation: Adaptation) -> dict[str, Any]:
    if adaptation.traits.link_types:
        return {} if part.media_type else {"media_type": _guess_link_type(part, source, adaptation)}
    if not part.media_type:
        return {}
    adaptation.ledger.report_dropped_field("media.media_type", "the target takes no media type on a link", part)
    return {"media_type": ""}


def _find_rejection(
    part: Media, source: Inline | Link | Plain | Stored, message: Message, adaptation: Adaptation
) -> str | None:
    traits = adaptation.traits
    if message.role == "assistant" and not traits.assistant_media:
        return "the target takes no media in an assistant turn"
    if part.kind not in traits.media:
        return f"the target takes no {part.kind}"
    match source:
        case Stored(issuer=issuer) if issuer != traits.stored_issuer:
            return f"the target cannot read files stored at {issuer}"
        case Stored() if part.kind not in traits.stored_kinds:
            return f"the target takes no {part.kind} by file id"
        case Link() if part.kind not in traits.link_kinds:
            return f"the target does not fetch {part.kind} links"
        case Link(url=url) if _find_scheme(url) not in traits.link_schemes:
            return f"the target does not fetch {_find_scheme(url)}: links"
        case Inline() if not _is_accepted(part, part.media_type, traits):
            return f"the target takes no {part.kind} of this type"
        case Link() if traits.link_types and not _is_accepted(
            part, part.media_type or _find_type_by_extension(source), traits
        ):
            return f"the target takes no {part.kind} of this type"
        case _:
            pass
    return None


def _find_scheme(url: str) -> str:
    """Return the scheme of a link; "https" if it has none, so that the target judges the link."""
    found = _SCHEME.match(url)
    return found[1].lower() if found is not None else "https"


def _guess_link_type(part: Media, source: Link, adaptation: Adaptation) -> str:
    """Return the media type by the URL's extension, or the most common one of the kind: Gemini requires a type."""
    if found := _find_type_by_extension(source):
        return found
    adaptation.ledger.report_approximated(
        part.where, "the link has no known file extension: the most common media type is assumed"
    )
    return _COMMON_TYPES[part.kind]


def _find_type_by_extension(source: Link) -> str:
    """Return the media type for the file extension of a link's path; "" if it has none or it is unknown."""
    return _TYPES.get(_PATH_END.split(source.url, maxsplit=1)[0].rpartition(".")[2].lower(), "")
