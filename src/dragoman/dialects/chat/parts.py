"""One part of a message, read and written.

Rules: a part owns the unread fields below it. A part's `spelling` is the word this dialect used where it has several:
"part" for a refusal or a reply's text inside a content list, "thinking" for Mistral's reasoning, "untyped" for a call
without a type, "object" for arguments that were no text.
"""

from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.core.parts import (
    AnyPart,
    Citation,
    Data,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.chat import wire, wire_reply
from dragoman.dialects.chat.media import MediaPart, carried_fields, read_media, write_media
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import encode, graft
from dragoman.wire.shape import ABSENT, Wire, carried
from dragoman.wire.unread import Unknown, Unread

GOOGLE = "google"
_NULL = b"null"
_get_call_rest = attrgetter("type", "custom", "extra_content")
_get_sent_rest = attrgetter("type", "custom", "extra_content", "index")
"""What a call has beside a function."""
_NO_REST = (("function", None, None), ("function", None, None, ABSENT))
_MARK = "/prompt_cache_breakpoint"
_THINKING_TEXT: Decoder[wire.ChatTextPart] = Decoder(wire.ChatTextPart)
_ANNOTATION: Decoder[wire_reply.Annotation] = Decoder(wire_reply.Annotation)


_PREFIX = f"{NAME} "


class Spelling:
    """Values of `spelling`: how this dialect said a thing that it can say in several ways.

    They begin with its name, because other dialects use the same words for other things.
    """

    CALL = f"{NAME} call"
    MESSAGE = f"{NAME} message"
    PART = f"{NAME} part"
    THINKING = f"{NAME} thinking"
    FUNCTION = f"{NAME} function"
    FUNCTION_CALL = f"{NAME} function_call"
    ANY = f"{NAME} any"
    ALLOWED_TOOLS = f"{NAME} allowed_tools"


REASONING_MEMBERS = {f"{NAME} {word}": word for word in ("reasoning_content", "reasoning")}
"""The member of a message that holds reasoning, by spelling."""


def spell(*words: str) -> str:
    """Return the spelling of those words that are not empty; "" for none."""
    said = " ".join([word for word in words if word])
    return _PREFIX + said if said else ""


def words_of(spelling: str) -> tuple[str, ...] | list[str]:
    """Return the words of a spelling, none of a foreign one."""
    return spelling[len(_PREFIX) :].split() if spelling.startswith(_PREFIX) else ()


def extras_at(unread: Unread | None, where: str, owner: Struct | None = None) -> Extras | None:
    """Take what nobody read below `where`, and what its owner there only carries."""
    below = known_extras(unread.take(where)) if unread is not None else None
    fields = carried(owner) if owner is not None else None
    return _add_fields(below, fields) if fields else below


def _add_fields(extras: Extras | None, fields: dict[str, bytes]) -> Extras | None:
    return known_extras({**fields, **(extras.fields if extras is not None else {})})


def known_extras(fields: dict[str, bytes] | None) -> Extras | None:
    """Make extras of unread fields; null is absent."""
    told = {pointer: raw for pointer, raw in fields.items() if raw != _NULL} if fields else None
    return Extras(NAME, told) if told else None


def with_extras(value: dict[str, Any], owner: Any) -> dict[str, Any] | Raw:
    """Put the owner's unread fields back."""
    fields = own_extras(owner, NAME)
    return Raw(graft(encode(value), fields)) if fields else value


def whole_again(value: Wire, extras: Extras | None) -> bytes:
    """Put a value that was taken apart together again."""
    return graft(encode(value), extras.fields) if extras is not None else encode(value)


def read_part(part: wire.Part, where: str, unread: Unread | None) -> AnyPart:
    """Read one item of a content list."""
    if (
        type(part) is wire.ChatTextPart
        and unread is None
        and part.prompt_cache_breakpoint is None
        and part.cache_control is ABSENT
    ):
        return Text(text=part.text, where=where)
    cache, extras = _read_mark(part, extras_at(unread, where, part))
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


def _read_mark(part: wire.Part, extras: Extras | None) -> tuple[str | None, Extras | None]:
    """Read a cache mark; one of a mode nobody knows stays in extras."""
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
    found = read_media(part)
    if found is None:
        return Opaque(dialect=NAME, raw=whole_again(part, extras), where=where)
    kind, media_type, source, words = found
    if fields := carried_fields(part):
        extras = _add_fields(extras, fields)
    return Media(
        kind=kind,
        media_type=media_type,
        source=source,
        name=(part.file.filename or "") if isinstance(part, wire.FilePart) else "",
        where=where,
        spelling=spell(*words),
        extras=extras,
        cache=cache,
    )


def _read_thinking(part: wire.ThinkingPart, where: str, extras: Extras | None) -> Reasoning | Opaque:
    try:
        texts = tuple(_THINKING_TEXT.decode(raw).text for raw in part.thinking)
    except (msgspec.MsgspecError, RecursionError):
        return Opaque(dialect=NAME, raw=whole_again(part, extras), where=where)
    return Reasoning(texts=texts, where=where, spelling=Spelling.THINKING, extras=extras)


def read_call(call: wire.ChatCall, where: str, unread: Unread | None) -> ToolCall | Opaque:
    """Read one call; a kind of call nobody knows stays whole."""
    function = call.function
    rest = _get_sent_rest if type(call) is wire.SentCall else _get_call_rest
    if unread is None and function is not None and rest(call) in _NO_REST:
        arguments = function.arguments
        if isinstance(arguments, str):
            return ToolCall(id=call.id or "", name=function.name or "", arguments=arguments, where=where)
    unknown = extras_at(unread, where)
    extras = _call_extras(call, _add_fields(unknown, carried(call) or {}))
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
            spelling=spell(spelling, "object" if isinstance(arguments, dict) else ""),
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
    return Opaque(dialect=NAME, raw=whole_again(call, unknown), where=where, spelling=Spelling.CALL)


def _call_extras(call: wire.ChatCall, extras: Extras | None) -> Extras | None:
    """Keep what a server says of the other kind of call, beside the one it is."""
    if call.function is None or call.custom is None:
        return extras
    other, pointer = (call.function, "/function") if call.type == "custom" else (call.custom, "/custom")
    if not any(structs.astuple(other)):
        return extras
    return Extras(NAME, {**(extras.fields if extras is not None else {}), pointer: encode(other)})


def read_arguments(arguments: str | dict[str, Any] | None) -> str:
    """Return arguments as text, whatever the server made of them."""
    if isinstance(arguments, dict):
        return encode(arguments).decode()
    return arguments or ""


def read_legacy_call(call: wire.ChatFunctionCall, where: str, unread: Unread | None) -> ToolCall:
    """Read a call from before calls had ids."""
    return ToolCall(
        id="",
        name=call.name or "",
        arguments=read_arguments(call.arguments),
        where=where,
        spelling=Spelling.FUNCTION_CALL,
        extras=extras_at(unread, where),
    )


def read_citation(raw: Raw, *places: str) -> Citation:
    """Read an annotation that stands at `places`."""
    try:
        cited = _ANNOTATION.decode(raw).url_citation
    except (msgspec.MsgspecError, RecursionError):
        cited = None
    if cited is None:
        return Citation(NAME, bytes(raw), places=places)
    return Citation(
        NAME,
        bytes(raw),
        places=places,
        url=cited.url,
        title=cited.title or "",
        quote=cited.content or "",
        start=cited.start_index,
        end=cited.end_index,
    )


def write_citation(citation: Citation, begin: int, size: int) -> dict[str, Any] | Raw | None:
    """Write an annotation of a text of `size` that begins at `begin`; None for a foreign one that has no URL."""
    if citation.dialect == NAME:
        return Raw(citation.raw)
    if not citation.url:
        return None
    page = {
        "url": citation.url,
        "title": citation.title,
        "start_index": begin + (citation.start or 0),
        "end_index": begin + (size if citation.end is None else citation.end),
    }
    return {"type": "url_citation", "url_citation": page}


def write_part(part: AnyPart) -> dict[str, Any] | Raw | None:
    """Write one item of a content list; None for what has no place in one."""
    match part:
        case Text(text=text):
            value: dict[str, Any] = {"type": "text", "text": text}
        case Media():
            value = write_media(part, words_of(part.spelling))
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
    if part.cache is not None:
        mark = {"mode": "explicit"}
        value["prompt_cache_breakpoint"] = {**mark, "ttl": part.cache} if part.cache else mark
    return with_extras(value, part)


def write_call(call: ToolCall) -> dict[str, Any] | Raw:
    """Write one call of a history."""
    value: dict[str, Any] = {"id": call.id} if call.id else {}
    if call.form == "text":
        value["type"] = "custom"
        value["custom"] = {"name": call.name, "input": call.arguments}
    elif not call.spelling:
        value["type"] = "function"
        value["function"] = {"name": call.name, "arguments": call.arguments}
    else:
        spelling = words_of(call.spelling)
        if "untyped" not in spelling:
            value["type"] = "function"
        as_object = "object" in spelling and call.arguments.startswith("{")
        arguments = Raw(call.arguments.encode()) if as_object else call.arguments
        value["function"] = {"name": call.name, "arguments": arguments}
    return with_call_fields(value, call)


def with_call_fields(value: dict[str, Any], call: ToolCall) -> dict[str, Any] | Raw:
    """Put Google's signature and the unread fields of a call back."""
    if call.signature is not None and call.signature.issuer == GOOGLE:
        value["extra_content"] = {GOOGLE: {"thought_signature": call.signature.value}}
    return value if call.extras is None else with_extras(value, call)


def is_legacy(call: ToolCall) -> bool:
    """Tell whether a call is from before calls had ids."""
    return call.spelling == Spelling.FUNCTION_CALL and not call.id
