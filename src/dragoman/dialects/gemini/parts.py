"""Reads and writes one part of Gemini.

Rules: a part with other content (a server-side tool call, executable code, no content) is kept whole as `Opaque`; a
signature stays on the part it signs; `functionResponse.response` is one `Data`, whatever its keys. A tool result from
another dialect is written under `output`, or under `error` if it failed.
"""

import base64
from typing import Any, assert_never

from msgspec import Raw

from dragoman.core.parts import (
    AnyPart,
    Content,
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
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.gemini.wire import (
    ISSUER,
    NAME,
    Blob,
    FileData,
    FunctionCall,
    FunctionResponse,
    GeminiPart,
)
from dragoman.wire import json
from dragoman.wire.shape import non_null_bytes
from dragoman.wire.splice import graft

Fields = dict[str, bytes] | None

NO_TEXT = "no_text"
NOT_A_THOUGHT = "thought:false"
RESPONSE = "response"
NO_RESPONSE = "no_response"
DISPLAY_NAME = "display_name"
_REFERENCE = b'"$ref"'
"""Gemini resolves {"$ref": displayName} inside a response, so other JSON that contains this key is sent as text."""
Written = Raw | dict[str, Any]


def read_part(part: GeminiPart, where: str, fields: Fields) -> AnyPart:
    """Convert a part to the core; `fields` are its unread members."""
    call, result, blob, file = part.function_call, part.function_response, part.inline_data, part.file_data
    signature = Signature(ISSUER, part.thought_signature) if part.thought_signature else None
    if call is None and result is None and blob is None and file is None:
        if part.text is None:
            return _read_without_content(part, where, fields, signature)
        extras = Extras(NAME, fields) if fields else None
        if part.thought:
            return Reasoning(texts=(part.text,), where=where, signature=signature, extras=extras)
        spelling = NOT_A_THOUGHT if part.thought is False else ""
        return Text(text=part.text, where=where, signature=signature, extras=extras, spelling=spelling)
    if (call, result, blob, file, part.text).count(None) < 4 or (call is not None and not call.name):
        return Opaque(dialect=NAME, raw=encode_part(part, fields), where=where, signature=signature)
    spelling = NOT_A_THOUGHT if part.thought is False else ""
    if part.thought:
        fields = {**(fields or {}), "/thought": b"true"}
    if call is not None:
        return _read_call(call, where, fields, signature, spelling)
    if result is not None:
        return _read_result(result, where, fields, signature, spelling)
    extras = Extras(NAME, fields) if fields else None
    return _read_media(blob or file or Blob(), where, extras, signature, spelling)


def encode_part(part: GeminiPart, fields: Fields) -> bytes:
    """Return the JSON of a part as it was received, except for white space and snake_case names."""
    body = json.encode(part)
    return graft(body, fields) if fields else body


def _read_without_content(part: GeminiPart, where: str, fields: Fields, signature: Signature | None) -> AnyPart:
    if signature is None or fields or part.thought is not None:
        return Opaque(dialect=NAME, raw=encode_part(part, fields), where=where, signature=signature)
    return Text(text="", where=where, signature=signature, spelling=NO_TEXT)


def _read_call(call: FunctionCall, where: str, fields: Fields, signature: Signature | None, spelling: str) -> ToolCall:
    arguments = non_null_bytes(call.args)
    if call.partial_args or call.will_continue:
        fields = {**(fields or {}), **_read_streaming_members(call)}
    return ToolCall(
        id=call.id or "",
        name=call.name or "",
        arguments="" if arguments is None else arguments.decode(),
        where=where,
        spelling=spelling,
        signature=signature,
        extras=Extras(NAME, fields) if fields else None,
    )


def _read_streaming_members(call: FunctionCall) -> dict[str, bytes]:
    members = (("partialArgs", call.partial_args), ("willContinue", call.will_continue))
    return {f"/functionCall/{name}": bytes(raw) for name, raw in members if non_null_bytes(raw) is not None}


def _read_result(
    result: FunctionResponse, where: str, fields: Fields, signature: Signature | None, spelling: str
) -> ToolResult:
    response = non_null_bytes(result.response)
    content: list[Content] = []
    if response is not None:
        content.append(Data(json=response, where=f"{where}/functionResponse/response"))
    for index, part in enumerate(result.parts or ()):
        inner = f"/functionResponse/parts/{index}"
        below = _take_fields(fields, inner)
        medium = part.inline_data or part.file_data
        if medium is None or (part.inline_data and part.file_data):
            body = json.encode(part)
            raw = graft(body, below) if below else body
            content.append(Opaque(dialect=NAME, raw=raw, where=where + inner))
            continue
        extras = Extras(NAME, below) if below else None
        content.append(_read_media(medium, where + inner, extras, None, ""))
    form = NO_RESPONSE if response is None else RESPONSE
    return ToolResult(
        call_id=result.id or "",
        name=result.name or "",
        content=tuple(content),
        failed=response is not None and _is_error_only(response),
        where=where,
        spelling=f"{form} {spelling}" if spelling else form,
        signature=signature,
        extras=Extras(NAME, fields) if fields else None,
    )


def _take_fields(fields: Fields, where: str) -> Fields:
    """Remove and return the fields below `where`."""
    if not fields:
        return None
    taken = {pointer: raw for pointer, raw in fields.items() if pointer.startswith(where + "/")}
    for pointer in taken:
        del fields[pointer]
    return {pointer[len(where) :]: raw for pointer, raw in taken.items()} or None


def _is_error_only(response: bytes) -> bool:
    return b'"error"' in response and json.is_object(response) and [*json.decode_object(response)] == ["error"]


def _read_media(
    medium: Blob | FileData, where: str, extras: Extras | None, signature: Signature | None, spelling: str
) -> Media:
    source = Inline(medium.data or "") if isinstance(medium, Blob) else _build_source(medium.file_uri or "")
    if medium.display_name:
        spelling = f"{DISPLAY_NAME} {spelling}".rstrip()
    return Media(
        kind=_find_kind(medium.mime_type, source),
        media_type=medium.mime_type,
        source=source,
        name=medium.display_name,
        where=where,
        extras=extras,
        signature=signature,
        spelling=spelling,
    )


def _build_source(uri: str) -> Link | Stored:
    stored = uri.startswith("files/") or ("generativelanguage.googleapis.com" in uri and "/files/" in uri)
    return Stored(ISSUER, uri) if stored else Link(uri)


def _find_kind(mime_type: str, source: Inline | Link | Stored) -> MediaKind:
    if not mime_type and isinstance(source, Link) and ("youtube.com/" in source.url or "youtu.be/" in source.url):
        return "video"
    return media_kind_of(mime_type.lower())


def write_part(part: AnyPart) -> Written | None:
    """Render a part; None for a part that Gemini cannot express."""
    written: dict[str, Any] | None
    written = {"text": part.text} if isinstance(part, Text) and part.text else _write_content(part)
    if written is None:
        return Raw(part.raw) if isinstance(part, Opaque) and part.dialect == NAME and part.raw else None
    if part.spelling and NOT_A_THOUGHT in part.spelling and "thought" not in written:
        written["thought"] = False
    if part.signature is not None:
        written["thoughtSignature"] = part.signature.value
    if part.extras is None:
        return written
    fields = own_extras(part, NAME)
    return Raw(graft(json.encode(written), fields)) if fields else written


def _write_content(part: AnyPart) -> dict[str, Any] | None:
    # The most frequent parts of a long history are tested first.
    if isinstance(part, Text):
        return {} if not part.text and part.signature and part.spelling == NO_TEXT else {"text": part.text}
    if isinstance(part, ToolResult):
        return {"functionResponse": _write_result(part)}
    if isinstance(part, ToolCall):
        call: dict[str, Any] = {"id": part.id, "name": part.name} if part.id else {"name": part.name}
        if part.arguments:
            call["args"] = Raw(part.arguments.encode())
        return {"functionCall": call}
    match part:
        case Reasoning(texts=texts):
            return {"text": "\n\n".join(texts), "thought": True} if texts or part.signature else None
        case Media():
            return _write_media(part)
        case Refusal(text=text):
            return {"text": text}
        case Data(json=raw):
            return {"text": raw.decode()}
        case Opaque():
            return None
        case _:
            assert_never(part)


def _write_media(media: Media) -> dict[str, Any]:
    # Only Vertex accepts displayName on message parts, so the name of a file from another dialect is not sent.
    name = media.name if DISPLAY_NAME in media.spelling.split() else ""
    match media.source:
        case Inline(data):
            return {"inlineData": Blob(mime_type=media.media_type, data=data, display_name=name)}
        case Plain(text):
            data = base64.b64encode(text.encode()).decode()
            return {"inlineData": Blob(mime_type=media.media_type or "text/plain", data=data, display_name=name)}
        case Link(uri) | Stored(_, uri):
            return {"fileData": FileData(mime_type=media.media_type, file_uri=uri, display_name=name)}
        case _:
            assert_never(media.source)


def _write_result(result: ToolResult) -> dict[str, Any]:
    written: dict[str, Any] = {"id": result.call_id} if result.call_id else {}
    written["name"] = result.name
    content, spelling = result.content, result.spelling
    if spelling and spelling.startswith(RESPONSE) and content and isinstance(content[0], Data):
        written["response"] = Raw(content[0].json)
        content = content[1:]
    elif not spelling or not spelling.startswith(NO_RESPONSE):
        written["response"] = {"error" if result.failed else "output": _render_answer(content)}
    parts = [part for item in content if type(item) is not Text and (part := _write_result_part(item)) is not None]
    if parts:
        written["parts"] = parts
    return written


def _render_answer(content: tuple[Content, ...]) -> Any:
    if len(content) == 1 and isinstance(content[0], Text):
        return _parse_object(content[0].text)
    texts = [item for item in content if isinstance(item, Text | Data)]
    if len(texts) == 1:
        only = texts[0]
        if isinstance(only, Text):
            return _parse_object(only.text)
        if _REFERENCE not in only.json:
            return Raw(only.json)
    return "\n".join(item.text if isinstance(item, Text) else item.json.decode() for item in texts)


def _parse_object(text: str) -> Raw | str:
    """Return a text as JSON if it is an object, else the text: other dialects send objects only as text."""
    if not text.lstrip().startswith("{"):
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return Raw(raw) if _REFERENCE not in raw and json.is_object(raw) else text


def _write_result_part(item: Content) -> dict[str, Any] | Raw | None:
    match item:
        case Opaque(dialect=dialect, raw=raw):
            return Raw(raw) if dialect == NAME else None
        case Media():
            part = _write_media(item)
            fields = own_extras(item, NAME)
            return Raw(graft(json.encode(part), fields)) if fields else part
        case _:
            return None
