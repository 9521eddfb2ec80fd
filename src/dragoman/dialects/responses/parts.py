"""Parses and renders single content parts.

Rules: parsing needs the part's pointer (`where`) and its unknown members; rendering needs to know the role, because
text is `output_text` in an assistant message and `input_text` in any other. `spelling` records the wire form of a part:
"input_text", "output_text", "full" (output_text with empty logprobs), "bare" (output_text without annotations), "bare
data" (file data that is not a data URL), "input" (any other media), "part" (an opaque content part, not an opaque
item).
"""

import base64
from collections.abc import Iterable
from typing import Any, assert_never

from msgspec import Raw

from dragoman.core.parts import (
    AnyPart,
    Citation,
    Content,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Refusal,
    Stored,
    Text,
)
from dragoman.core.problems import Problem
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.responses.wire import (
    ISSUER,
    MARKED,
    NAME,
    ContentPart,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    OutputText,
    ReasoningText,
    RefusalText,
)
from dragoman.wire import json
from dragoman.wire.shape import non_null_bytes
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unknown, Unread

BARE_DATA = "bare data"
PART = "part"
INPUT = "input"
_DEFAULT_FILENAMES = {"application/pdf": "document.pdf", "text/plain": "document.txt"}
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


def read_part(part: ContentPart, where: str, fields: dict[str, bytes] | None) -> AnyPart:
    """Parse one content part that is located at `where`; `fields` are its unknown members."""
    match part:
        case InputText(text=text, prompt_cache_breakpoint=None):
            extras = None if fields is None else Extras(NAME, fields)
            return Text(where=where, spelling="input_text", extras=extras, text=text)
        case OutputText():
            return _read_output_text(part, where, fields or {})
        case RefusalText(refusal=refusal):
            return Refusal(where=where, extras=build_extras(fields), text=refusal)
        case ReasoningText() | Unknown():
            raw = bytes(part.raw) if isinstance(part, Unknown) else graft(json.encode(part), fields or {})
            return Opaque(where=where, spelling=PART, dialect=NAME, raw=raw)
        case InputText(text=text):
            cache, extras = _read_mark(part, fields)
            return Text(where=where, spelling="input_text", extras=extras, text=text, cache=cache)
        case InputImage() | InputFile() | InputAudio():
            return _read_media(part, where, fields or {})
        case _:
            assert_never(part)


def read_contents(parts: list[ContentPart], where: str, inner: str, unread: Unread | None) -> tuple[AnyPart, ...]:
    """Parse a list of parts; `inner` is the list's pointer inside its item, whose unknown fields are in `unread`."""
    if unread is None:
        return tuple([read_part(part, f"{where}/{index}", None) for index, part in enumerate(parts)])
    return tuple(
        [read_part(part, f"{where}/{index}", unread.take(f"{inner}/{index}")) for index, part in enumerate(parts)]
    )


def build_extras(fields: dict[str, bytes] | None) -> Extras | None:
    """Return extras with these fields; None if there are none."""
    return Extras(NAME, fields) if fields else None


def read_citation(raw: bytes) -> Citation:
    """Parse one annotation; its raw JSON is always kept."""
    if json.first_byte(raw) != b"{":
        return Citation(NAME, raw)
    members: dict[str, Any] = json.decode(raw)
    start, end = members.get("start_index"), members.get("end_index")
    return Citation(
        NAME,
        raw,
        url=json.get_text(members, "url"),
        title=json.get_text(members, "title") or json.get_text(members, "filename"),
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )


def _read_mark(part: MARKED, fields: dict[str, bytes] | None) -> tuple[str | None, Extras | None]:
    mark = part.prompt_cache_breakpoint
    if mark is None:
        return None, build_extras(fields)
    kept = dict(fields or {})
    if mark.mode != "explicit":
        kept["/prompt_cache_breakpoint/mode"] = json.encode(mark.mode)
    return mark.ttl or "", build_extras(kept)


def _read_output_text(part: OutputText, where: str, fields: dict[str, bytes]) -> Text:
    logprobs = bytes(part.logprobs)
    spelling = "full" if logprobs == b"[]" else "output_text"
    if non_null_bytes(logprobs) is not None and (spelling != "full" or part.annotations is None):
        fields = {**fields, "/logprobs": logprobs}
    cache, extras = _read_mark(part, fields)
    return Text(
        where=where,
        spelling="bare" if part.annotations is None else spelling,
        extras=extras,
        text=part.text,
        cache=cache,
        citations=tuple([read_citation(bytes(raw)) for raw in part.annotations or ()]),
    )


def _read_media(part: InputImage | InputFile | InputAudio, where: str, fields: dict[str, bytes]) -> Media:
    match part:
        case InputImage(image_url=url, file_id=file_id):
            kind, name, data = "image", "", None
            if part.detail is not None:
                fields = {**fields, "/detail": json.encode(part.detail)}
        case InputFile(file_url=url, file_id=file_id, file_data=data):
            kind, name = "document", part.filename or ""
        case InputAudio(input_audio=audio):
            cache, extras = _read_mark(part, fields)
            media_type = "audio/mpeg" if audio.format == "mp3" else f"audio/{audio.format}"
            source = Inline(audio.data)
            return Media(where=where, extras=extras, cache=cache, kind="audio", media_type=media_type, source=source)
        case _:
            assert_never(part)
    media_type, source, spelling, rest = _read_source(data, url, file_id, where)
    cache, extras = _read_mark(part, {**fields, **rest})
    return Media(
        where=where,
        spelling=spelling,
        extras=extras,
        cache=cache,
        kind=kind,
        media_type=media_type,
        source=source,
        name=name,
    )


def _read_source(
    data: str | None, url: str | None, file_id: str | None, where: str
) -> tuple[str, Inline | Link | Stored, str, dict[str, bytes]]:
    """Choose the source of the content: data, then URL, then file id; the others stay in extras."""
    content = data if data is not None else url
    if content is None:
        if file_id is None:
            raise Problem("invalid_request", "an image or file needs a URL, data or a file_id", where=where)
        return "", Stored(ISSUER, file_id), INPUT, {}
    unused = {"/file_url": url if data is not None else None, "/file_id": file_id}
    rest = {pointer: json.encode(value) for pointer, value in unused.items() if value is not None}
    found = split_data_url(content)
    if found is not None:
        return found[0], Inline(found[1]), INPUT, rest
    return ("", Link(content), INPUT, rest) if data is None else ("", Inline(content), BARE_DATA, rest)


def split_data_url(url: str) -> tuple[str, str] | None:
    """Split a base64 data URL into media type and data."""
    if not url.startswith("data:"):
        return None
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    return head[5:-7], data


def write_part(part: AnyPart, *, assistant: bool) -> Any:
    """Render one content part; None if this dialect cannot express it."""
    match part:
        case Text():
            wire = _write_text(part, assistant=assistant)
        case Refusal(text=text):
            wire: dict[str, Any] = {"type": "refusal", "refusal": text}
        case Media():
            wire = _write_media(part)
        case Data(json=raw):
            wire = {"type": "output_text" if assistant else "input_text", "text": raw.decode()}
        case Opaque(dialect=dialect, raw=raw):
            return Raw(raw) if dialect == NAME else None
        case _:
            return None
    if part.cache is not None:
        mark = {"mode": "explicit"}
        wire["prompt_cache_breakpoint"] = {**mark, "ttl": part.cache} if part.cache else mark
    fields = own_extras(part, NAME)
    if not fields:
        return wire
    return Raw(graft(json.encode(wire), {name: raw for name, raw in fields.items() if not is_item_field(name)}))


ITEM_FIELDS = "/item/"


def is_item_field(name: str) -> bool:
    """Return whether a field of a reply's part belongs to the message item that contains the part."""
    return name.startswith(ITEM_FIELDS)


def find_field_pointer(where: str, name: str) -> str:
    """Return the pointer in the reply of an extra field of the part at `where`."""
    if not is_item_field(name):
        return where + name
    return where.partition("/content")[0] + name[len(ITEM_FIELDS) - 1 :]


def write_contents(parts: tuple[Content, ...] | list[AnyPart], *, assistant: bool) -> list[Any]:
    """Render a list of parts without those that this dialect cannot express."""
    written = [write_part(part, assistant=assistant) for part in parts]
    return [part for part in written if part is not None]


def write_citations(citations: Iterable[Citation], size: int) -> list[Any]:
    """Render the annotations of a text of `size` characters; skip citations of other dialects without a URL."""
    annotations: list[Any] = []
    for citation in citations:
        if citation.dialect == NAME:
            annotations.append(Raw(citation.raw))
        elif citation.url:
            annotations.append(
                {
                    "type": "url_citation",
                    "url": citation.url,
                    "title": citation.title,
                    "start_index": citation.start or 0,
                    "end_index": size if citation.end is None else citation.end,
                }
            )
    return annotations


def _write_text(part: Text, *, assistant: bool) -> dict[str, Any]:
    spelling = part.spelling
    if spelling == "input_text" or (not assistant and spelling not in ("output_text", "full", "bare")):
        return {"type": "input_text", "text": part.text}
    wire: dict[str, Any] = {"type": "output_text", "text": part.text}
    if spelling != "bare" or part.citations:
        wire["annotations"] = write_citations(part.citations, len(part.text))
    if spelling == "full":
        wire["logprobs"] = []
    return wire


def _write_media(part: Media) -> dict[str, Any]:
    if part.kind == "audio" and isinstance(part.source, Inline):
        subtype = part.media_type.removeprefix("audio/")
        return {
            "type": "input_audio",
            "input_audio": {"data": part.source.data, "format": _AUDIO_FORMATS.get(subtype, subtype)},
        }
    image = part.kind == "image"
    wire: dict[str, Any] = {"type": "input_image" if image else "input_file"}
    match part.source:
        case Link(url=url):
            wire["image_url" if image else "file_url"] = url
        case Stored(id=file_id):
            wire["file_id"] = file_id
        case Inline(data=data):
            media_type = part.media_type or ("image/png" if image else "application/octet-stream")
            url = data if part.spelling == BARE_DATA else f"data:{media_type};base64,{data}"
            wire["image_url" if image else "file_data"] = url
        case Plain(text=text):
            encoded = base64.b64encode(text.encode()).decode()
            wire["file_data"] = f"data:text/plain;base64,{encoded}"
        case _:
            assert_never(part.source)
    is_own = part.spelling in (INPUT, BARE_DATA)
    if image:
        # OpenAI's type requires `detail`; the value that a client of this dialect sent is in the extras.
        if not is_own:
            wire["detail"] = "auto"
        return wire
    if part.name:
        wire["filename"] = part.name
    elif "file_data" in wire and not is_own:
        media_type = "text/plain" if isinstance(part.source, Plain) else part.media_type
        wire["filename"] = _DEFAULT_FILENAMES.get(media_type, "document")
    return wire
