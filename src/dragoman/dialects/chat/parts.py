"""Parses and renders one part of a message.

Rules: the unknown fields inside a part become that part's extras. A part's `spelling` records which wire form was used:
"part" for a refusal or a reply's text inside a content list, "thinking" for Mistral's reasoning, "file" for media sent
as a file, "bare" for a URL that is not wrapped in an object or base64 that is not a data URL, the audio format,
"untyped" for a call without a type, "object" for arguments sent as a JSON object instead of a string.
"""

from base64 import b64encode
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, assert_never

import msgspec
from msgspec import Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import (
    AnyPart,
    Citation,
    Data,
    Inline,
    Link,
    Media,
    MediaKind,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    media_kind_of,
)
from dragoman.core.value import Extras
from dragoman.dialects.chat import wire, wire_reply
from dragoman.dialects.chat.fields import (
    Spelling,
    add_fields,
    encode_with_extras,
    join_spelling,
    restore_extras,
    split_spelling,
    take_extras,
)
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import encode
from dragoman.wire.shape import ABSENT, get_raw_members
from dragoman.wire.unread import Unknown, Unread

GOOGLE = "google"
_get_call_rest = attrgetter("type", "custom", "extra_content")
_get_sent_rest = attrgetter("type", "custom", "extra_content", "index")
"""The members of a call other than `id` and `function`."""
_NO_REST = (("function", None, None), ("function", None, None, ABSENT))
_MARK = "/prompt_cache_breakpoint"
_THINKING_TEXT: Decoder[wire.ChatTextPart] = Decoder(wire.ChatTextPart)
_ANNOTATION: Decoder[wire_reply.Annotation] = Decoder(wire_reply.Annotation)
ISSUER = "openai"
MediaPart = wire.ImagePart | wire.VideoPart | wire.AudioPart | wire.FilePart
_AUDIO_TYPES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}


def read_part(part: wire.Part, where: str, unread: Unread | None) -> AnyPart:
    """Parse one item of a content list."""
    if (
        type(part) is wire.ChatTextPart
        and unread is None
        and part.prompt_cache_breakpoint is None
        and part.cache_control is ABSENT
    ):
        return Text(text=part.text, where=where)
    cache, extras = _read_mark(part, take_extras(unread, where, part))
    match part:
        case wire.ChatTextPart(text=text):
            return Text(text=text, where=where, extras=extras, cache=cache)
        case wire.ImagePart() | wire.VideoPart() | wire.AudioPart() | wire.FilePart():
            return _read_media(part, where, extras, cache)
        case wire.RefusalPart(refusal=text):
            return Refusal(text=text, where=where, spelling=Spelling.PART, extras=extras)
        case wire.ThinkingPart():
            return _read_thinking(part, where, extras)
        case Unknown(raw=raw):
            return Opaque(dialect=NAME, raw=bytes(raw), where=where)
        case _:
            assert_never(part)


def _read_mark(part: wire.Part, extras: Extras | None) -> tuple[str | None, Extras | None]:
    """Parse a cache mark; one with an unknown mode stays in extras."""
    if isinstance(part, wire.RefusalPart | wire.ThinkingPart | Unknown) or part.prompt_cache_breakpoint is None:
        return None, extras
    mark = part.prompt_cache_breakpoint
    if mark.mode == "explicit":
        return mark.ttl or "", extras
    given = {"/mode": mark.mode, "/ttl": mark.ttl}
    fields = {f"{_MARK}{name}": encode(value) for name, value in given.items() if value is not None}
    known = extras.fields if extras is not None else {}
    if not fields and not any(pointer.startswith(f"{_MARK}/") for pointer in known):
        fields = {_MARK: b"{}"}
    return None, Extras(NAME, {**known, **fields})


def _read_media(part: MediaPart, where: str, extras: Extras | None, cache: str | None) -> Media | Opaque:
    found = _find_source(part)
    if found is None:
        return Opaque(dialect=NAME, raw=encode_with_extras(part, extras), where=where)
    kind, media_type, source, flags = found
    if fields := _read_url_fields(part):
        extras = add_fields(extras, fields)
    return Media(
        kind=kind,
        media_type=media_type,
        source=source,
        name=(part.file.filename or "") if isinstance(part, wire.FilePart) else "",
        where=where,
        spelling=join_spelling(*flags),
        extras=extras,
        cache=cache,
    )


def _find_source(part: MediaPart) -> tuple[MediaKind, str, Inline | Link | Stored, list[str]] | None:
    """Return kind, media type, source and spelling flags; None for a file with no source or more than one."""
    match part:
        case wire.ImagePart(image_url=url):
            return _read_link("image", url)
        case wire.VideoPart(video_url=url):
            return _read_link("video", url)
        case wire.AudioPart(input_audio=audio):
            audio_format = audio.format or ""
            media_type = _AUDIO_TYPES.get(audio_format, f"audio/{audio_format}") if audio_format else ""
            return "audio", media_type, Inline(audio.data), [audio_format]
        case wire.FilePart(file=file):
            return _read_file(file)
        case _:
            assert_never(part)


def _read_url_fields(part: MediaPart) -> dict[str, bytes]:
    """Return the other members of the object that contains a URL, by pointer."""
    match part:
        case wire.ImagePart(image_url=wire.Url() as url):
            return get_raw_members(url, "/image_url") or {}
        case wire.VideoPart(video_url=wire.Url() as url):
            return get_raw_members(url, "/video_url") or {}
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
    return media_kind_of(media_type.lower()), media_type, source, ["file"]


def _read_thinking(part: wire.ThinkingPart, where: str, extras: Extras | None) -> Reasoning | Opaque:
    try:
        texts = tuple(_THINKING_TEXT.decode(raw).text for raw in part.thinking)
    except (msgspec.MsgspecError, RecursionError):
        return Opaque(dialect=NAME, raw=encode_with_extras(part, extras), where=where)
    return Reasoning(texts=texts, where=where, spelling=Spelling.THINKING, extras=extras)


def read_call(call: wire.ChatCall, where: str, unread: Unread | None) -> ToolCall | Opaque:
    """Parse one call; a call of an unknown type becomes opaque."""
    function = call.function
    rest = _get_sent_rest if type(call) is wire.SentCall else _get_call_rest
    if unread is None and function is not None and rest(call) in _NO_REST:
        arguments = function.arguments
        if isinstance(arguments, str):
            return ToolCall(id=call.id or "", name=function.name or "", arguments=arguments, where=where)
    unknown = take_extras(unread, where)
    extras = _keep_other_call(call, add_fields(unknown, get_raw_members(call) or {}))
    google = call.extra_content.google if call.extra_content is not None else None
    signature = Signature(GOOGLE, google.thought_signature) if google and google.thought_signature else None
    if call.function is not None and call.type != "custom":
        arguments = call.function.arguments
        spelling = "untyped" if call.type is None else ""
        return ToolCall(
            id=call.id or "",
            name=call.function.name or "",
            arguments=read_arguments(arguments),
            where=where,
            spelling=join_spelling(spelling, "object" if isinstance(arguments, dict) else ""),
            signature=signature,
            extras=extras,
        )
    if call.custom is not None:
        return ToolCall(
            id=call.id or "",
            name=call.custom.name or "",
            arguments=call.custom.input or "",
            form="text",
            where=where,
            signature=signature,
            extras=extras,
        )
    return Opaque(dialect=NAME, raw=encode_with_extras(call, unknown), where=where, spelling=Spelling.CALL)


def _keep_other_call(call: wire.ChatCall, extras: Extras | None) -> Extras | None:
    """Keep the other member in extras if a call has both `function` and `custom`."""
    if call.function is None or call.custom is None:
        return extras
    other, pointer = (call.function, "/function") if call.type == "custom" else (call.custom, "/custom")
    if not any(structs.astuple(other)):
        return extras
    return Extras(NAME, {**(extras.fields if extras is not None else {}), pointer: encode(other)})


def read_arguments(arguments: str | dict[str, Any] | None) -> str:
    """Return arguments as JSON text; some servers send an object, or nothing."""
    if isinstance(arguments, dict):
        return encode(arguments).decode()
    return arguments or ""


def read_legacy_call(call: wire.ChatFunctionCall, where: str, unread: Unread | None) -> ToolCall:
    """Parse the legacy `function_call` member, which has no id."""
    return ToolCall(
        id="",
        name=call.name or "",
        arguments=read_arguments(call.arguments),
        where=where,
        spelling=Spelling.FUNCTION_CALL,
        extras=take_extras(unread, where),
    )


def read_citation(raw: Raw, *pointers: str) -> Citation:
    """Parse an annotation that is located at `pointers`."""
    try:
        cited = _ANNOTATION.decode(raw).url_citation
    except (msgspec.MsgspecError, RecursionError):
        cited = None
    if cited is None:
        return Citation(NAME, bytes(raw), places=pointers)
    return Citation(
        NAME,
        bytes(raw),
        places=pointers,
        url=cited.url,
        title=cited.title or "",
        quote=cited.content or "",
        start=cited.start_index,
        end=cited.end_index,
    )


def write_citation(citation: Citation, begin: int, size: int) -> dict[str, Any] | Raw | None:
    """Render an annotation of a text that starts at offset `begin` and is `size` characters long.

    Returns None for a citation from another dialect that has no URL.
    """
    if citation.dialect == NAME:
        return Raw(citation.raw)
    if not citation.url:
        return None
    page: dict[str, Any] = {
        "url": citation.url,
        "title": citation.title,
        **({"content": citation.quote} if citation.quote else {}),
        "start_index": begin + (citation.start or 0),
        "end_index": begin + (size if citation.end is None else citation.end),
    }
    return {"type": "url_citation", "url_citation": page}


def write_part(part: AnyPart) -> dict[str, Any] | Raw | None:
    """Render one item of a content list; None for a part that cannot be in one."""
    match part:
        case Text(text=text):
            value: dict[str, Any] = {"type": "text", "text": text}
        case Media():
            value = _write_media(part, split_spelling(part.spelling))
        case Data(json=raw):
            value = {"type": "text", "text": raw.decode()}
        case Refusal(text=text):
            value = {"type": "refusal", "refusal": text}
        case Reasoning(texts=texts):
            value = {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts]}
        case Opaque(dialect=dialect, raw=raw):
            return Raw(raw) if dialect == NAME else None
        case ToolCall() | ToolResult():
            return None
        case _:
            assert_never(part)
    if part.cache is not None:
        mark = {"mode": "explicit"}
        value["prompt_cache_breakpoint"] = {**mark, "ttl": part.cache} if part.cache else mark
    return restore_extras(value, part)


def _write_media(part: Media, flags: Sequence[str]) -> dict[str, Any]:
    """Render media in the wire form that the spelling `flags` record."""
    source = part.source
    if part.kind in ("image", "video") and "file" not in flags and not isinstance(source, Stored):
        part_type = f"{part.kind}_url"
        url = _write_url(part)
        return {"type": part_type, part_type: url if "bare" in flags else {"url": url}}
    if part.kind == "audio" and isinstance(source, Inline) and "file" not in flags:
        audio = {"data": source.data}
        audio_format = _find_audio_format(part, flags)
        return {"type": "input_audio", "input_audio": {**audio, "format": audio_format} if audio_format else audio}
    file: dict[str, str] = {"filename": part.name} if part.name else {}
    if isinstance(source, Stored):
        file["file_id"] = source.id
    elif isinstance(source, Inline) and "bare" in flags:
        file["file_data"] = source.data
    else:
        file["file_data"] = _write_url(part)
    return {"type": "file", "file": file}


def _find_audio_format(part: Media, flags: Sequence[str]) -> str:
    for flag in flags:
        if _AUDIO_TYPES.get(flag, f"audio/{flag}") == part.media_type:
            return flag
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
        case _:
            assert_never(part.source)


def write_call(call: ToolCall) -> dict[str, Any] | Raw:
    """Render one call of a conversation history."""
    value: dict[str, Any] = {"id": call.id} if call.id else {}
    if call.form == "text":
        value["type"] = "custom"
        value["custom"] = {"name": call.name, "input": call.arguments}
    elif not call.spelling:
        value["type"] = "function"
        value["function"] = {"name": call.name, "arguments": call.arguments}
    else:
        spelling = split_spelling(call.spelling)
        if "untyped" not in spelling:
            value["type"] = "function"
        as_object = "object" in spelling and call.arguments.startswith("{")
        arguments = Raw(call.arguments.encode()) if as_object else call.arguments
        value["function"] = {"name": call.name, "arguments": arguments}
    return restore_call_fields(value, call)


def restore_call_fields(value: dict[str, Any], call: ToolCall) -> dict[str, Any] | Raw:
    """Add Google's signature and the extras of a call back to its JSON object."""
    if call.signature is not None and call.signature.issuer == GOOGLE:
        value["extra_content"] = {GOOGLE: {"thought_signature": call.signature.value}}
    return value if call.extras is None else restore_extras(value, call)
