"""Convert MCP content to core parts and back.

Rules: nothing is dropped silently. Content that a model cannot use but a person can (the URI of a resource, a link)
becomes part of the text the model reads. Content sent twice, as text and as structured output, is rendered once. Only
hints for a user interface (annotations, icons, `_meta`) are dropped, and their names are logged.
"""

import base64
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, assert_never, cast

import msgspec

from dragoman.core.parts import (
    Content,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Stored,
    Text,
    ToolResult,
    media_kind_of,
)
from dragoman.mcp.sdk import ValidationError, types

_LOG = logging.getLogger("dragoman.mcp")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:;.*)?", re.ASCII)
_FENCED = re.compile(r"\s*```(?:json)?\n(.*)\n```\s*", re.DOTALL)
"""A value in a Markdown code block."""
_HINTS = ("annotations", "icons", "meta")
_NO_VALUE: Any = object()
_MAX_COMPARED = 20
"""Texts of a result that are looked for in its structured output, because each one takes time."""


def result_from(result: types.CallToolResult) -> ToolResult:
    """Convert the result of an MCP tool call; the executor sets the call id."""
    content = [_to_part(block) for block in result.content]
    if result.structured_content is not None:
        content = _add_structured(content, result.structured_content)
    _log_hints(result.content)
    return ToolResult(call_id="", content=tuple(content), failed=result.is_error)


def _to_part(block: types.ContentBlock) -> Content:
    match block:
        case types.TextContent(text=text):
            return Text(text=text)
        case types.ImageContent(data=data, mime_type=media_type) | types.AudioContent(data=data, mime_type=media_type):
            return _build_media(data, media_type)
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            source = Plain(resource.text)
            return Media(
                kind="document", media_type=resource.mime_type or "text/plain", source=source, name=resource.uri
            )
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return _build_media(resource.blob, resource.mime_type or "", resource.uri)
        case _:
            # Only its own server can read the target of a link: the model sees the link, the gateway never fetches it.
            return Data(json=msgspec.json.encode(_dump_block(block)))


def _build_media(data: str, media_type: str, name: str = "") -> Content:
    """Return media that every vendor can read; invalid media would make the vendor reject the whole conversation."""
    media_type = media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"
    kind = media_kind_of(media_type)
    data = data if data.isalnum() else "".join(data.split())
    try:
        readable = len(base64.b64decode(data, validate=True)) > 0
    except ValueError:
        readable = False
    if not readable:
        return Text(text=f"[left out: {f'{name} {media_type}'.strip()}, which is empty or not base64]")
    return Media(kind=kind, media_type=media_type, source=Inline(data), name=name)


def _dump_block(block: Any) -> Any:
    return {"type": block.type, **block.model_dump(by_alias=True, mode="json", exclude_none=True)}


def _add_structured(content: list[Content], value: Any) -> list[Content]:
    """Append structured output to the content, unless the text is the same value; leave texts out that it contains."""
    texts = [part.text for part in content if isinstance(part, Text)]
    decoded = [_try_decode(text) for text in texts]
    if value in decoded:
        at = next(at for at, part in enumerate(content) if isinstance(part, Text) and _try_decode(part.text) == value)
        return [*content[:at], Data(json=msgspec.json.encode(value)), *content[at + 1 :]]
    # For the structured form, servers wrap what is not an object in a member of any name; the text has it unwrapped.
    wrapped = _unwrap_single(value)
    if (wrapped is not _NO_VALUE and texts) and (
        _matches_texts([wrapped], texts, decoded)
        or _matches_texts(wrapped, texts, decoded)
        or _matches_texts(_list_block_texts(wrapped), texts, decoded)
    ):
        return content
    if 0 < len(texts) <= _MAX_COMPARED and _contains_all(value, texts, decoded):
        content = [part for part in content if not isinstance(part, Text)]
    return [*content, Data(json=msgspec.json.encode(value))]


def _contains_all(value: Any, texts: Sequence[str], decoded: Sequence[Any]) -> bool:
    """Return whether a value has every text in it, as a text or as the JSON value that the text is."""
    leaves, nested = set[Any](), list[Any]()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            nested.append(item)
            waiting += cast("dict[str, Any]", item).values() if isinstance(item, dict) else cast("list[Any]", item)
        else:
            leaves.add(item)
    return all(
        text in leaves or (json in nested if isinstance(json, dict | list) else json in leaves)
        for text, json in zip(texts, decoded, strict=True)
    )


def _unwrap_single(value: Any) -> Any:
    """Return the value of the only member of an object."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return next(iter(members.values())) if len(members) == 1 else _NO_VALUE


def _list_block_texts(value: Any) -> list[Any]:
    """Return the texts of a list of MCP text blocks, which some servers repeat in the structured form."""
    blocks = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", block).get("text") for block in blocks if isinstance(block, dict)]


def _matches_texts(values: Any, texts: Sequence[str], decoded: Sequence[Any]) -> bool:
    """Check whether each text equals the value at the same index, as text or as JSON."""
    items = cast("list[Any]", values) if isinstance(values, list) else []
    return len(items) == len(texts) and all(
        item in (text, json) for item, text, json in zip(items, texts, decoded, strict=True)
    )


def _try_decode(text: str) -> Any:
    fenced = _FENCED.fullmatch(text)
    try:
        return msgspec.json.decode(fenced[1] if fenced is not None else text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _NO_VALUE


def _log_hints(blocks: Iterable[Any]) -> None:
    hints = sorted({hint for block in blocks for hint in _HINTS if getattr(block, hint, None)})
    if hints:
        _LOG.debug("dropped display hints of a tool result: %s", ", ".join(hints))


def content_to(content: Iterable[Content]) -> list[types.ContentBlock]:
    """Convert parts to MCP content blocks."""
    return [_to_block(part) for part in content]


def _to_block(part: Content) -> types.ContentBlock:
    match part:
        case Text(text=text):
            return types.TextContent(text=text)
        case Data():
            return _find_link(part) or types.TextContent(text=part.json.decode())
        case Media():
            return _to_media_block(part)
        case Opaque(raw=raw):
            return types.TextContent(text=raw.decode("utf-8", "replace"))
        case _:
            assert_never(part)


def _to_media_block(part: Media) -> types.ContentBlock:
    media_type = part.media_type or None
    match part.source:
        case Inline(data) if part.kind == "image":
            return types.ImageContent(data=data, mime_type=part.media_type)
        case Inline(data) if part.kind == "audio":
            return types.AudioContent(data=data, mime_type=part.media_type)
        case Inline(data):
            blob = types.BlobResourceContents(uri=_uri_of(part), mime_type=media_type, blob=data)
            return types.EmbeddedResource(resource=blob)
        case Plain(text):
            resource = types.TextResourceContents(uri=_uri_of(part), mime_type=media_type, text=text)
            return types.EmbeddedResource(resource=resource)
        case Link(url):
            return types.ResourceLink(uri=url, name=part.name or url, mime_type=media_type)
        case Stored(issuer, kept):
            return types.TextContent(text=f"[{part.kind} {kept}, which {issuer} keeps]")
        case _:
            assert_never(part.source)


def _find_link(part: Data) -> types.ResourceLink | None:
    """Return the resource link that an external server sent, unchanged, or None if the part is not a link."""
    if b'"resource_link"' not in part.json:
        return None
    value = msgspec.json.decode(part.json)
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get("type") != "resource_link":
        return None
    try:
        return types.ResourceLink.model_validate(value)
    except ValidationError:
        return None


def _uri_of(part: Media) -> str:
    return part.name if ":" in part.name else f"attachment:{part.name or part.kind}"
