"""Reads and writes one content block of Messages, for requests, replies and streams.

A block that no other dialect understands is kept whole as `Opaque`. Values of `spelling`: for a tool result "string" or
"blocks" for the form of its content, and "is_error" if `is_error: false` was sent; for a thinking block "unsigned" if
it had no signature.
"""

import base64
import binascii
from collections.abc import Callable, Iterable
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
    Reasoning,
    Refusal,
    Search,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.searches import GENERATED_MARK
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.messages.searches import read_web_search, write_web_search
from dragoman.dialects.messages.text_blocks import read_texts
from dragoman.dialects.messages.tool_search import write_search
from dragoman.dialects.messages.wire import (
    ABSENT,
    ISSUER,
    NAME,
    Base64Source,
    Block,
    CacheControl,
    DocumentBlock,
    FileSource,
    ImageBlock,
    RedactedBlock,
    ResultBlock,
    Source,
    TextBlock,
    TextSource,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UrlSource,
)
from dragoman.wire.json import decode, encode, is_json
from dragoman.wire.shape import Wire
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unknown, Unread

Fields = dict[str, bytes] | None


def build_extras(fields: Fields) -> Extras | None:
    """Return unread fields as extras of this dialect; None if there are none."""
    return Extras(NAME, fields) if fields else None


def read_cache_mark(control: CacheControl | None) -> str | None:
    """Return the lifetime of a cache breakpoint: "" for the default, None without a breakpoint."""
    return None if control is None else control.ttl or ""


def write_cache_mark(lifetime: str | None) -> CacheControl | None:
    """Render a cache breakpoint from its lifetime."""
    return None if lifetime is None else CacheControl("ephemeral", lifetime or None)


def read_part(block: Block, where: str, unread: Unread | None) -> AnyPart:
    """Read one block; its unread members become its extras."""
    return _READERS[type(block)](block, where, unread)


def _take_unread(unread: Unread | None, where: str) -> Fields:
    return None if unread is None else unread.take(where)


def _read_unknown(block: Unknown, where: str, unread: Unread | None) -> Opaque:
    del unread
    raw = bytes(block.raw)
    found = read_web_search(raw, where) if b'"web_search' in raw else None
    return found or read_texts(Opaque(where=where, dialect=NAME, raw=raw), _read_content)


def _read_text(block: TextBlock, where: str, unread: Unread | None) -> Text:
    citations = block.citations
    return Text(
        where=where,
        spelling="" if citations is None or citations else "citations",
        extras=None if unread is None else build_extras(unread.take(where)),
        text=block.text,
        citations=tuple(map(read_citation, citations)) if citations else (),
        cache=read_cache_mark(block.cache_control),
    )


def _read_thinking(block: ThinkingBlock, where: str, unread: Unread | None) -> Reasoning:
    return Reasoning(
        where=where,
        spelling="unsigned" if block.signature is None else "",
        extras=build_extras(_take_unread(unread, where)),
        texts=(block.thinking,) if block.thinking else (),
        signature=Signature(ISSUER, block.signature) if block.signature else None,
    )


def _read_redacted(block: RedactedBlock, where: str, unread: Unread | None) -> Reasoning:
    extras = build_extras(_take_unread(unread, where))
    return Reasoning(where=where, extras=extras, redacted=True, signature=Signature(ISSUER, block.data))


def _read_call(block: ToolUseBlock, where: str, unread: Unread | None) -> ToolCall:
    fields = _take_unread(unread, where)
    if block.caller is not ABSENT:
        fields = {"/caller": bytes(block.caller), **(fields or {})}
    return ToolCall(
        where=where,
        extras=build_extras(fields),
        id=block.id,
        name=block.name,
        arguments=bytes(block.input).decode(),
        namespace=block.toolset_name or "",
        cache=read_cache_mark(block.cache_control),
    )


def _read_result(block: ToolResultBlock, where: str, unread: Unread | None) -> ToolResult:
    raw = block.content
    spelling = ""
    content: tuple[Content, ...] = ()
    if isinstance(raw, str):
        spelling = "string"
        content = (Text(where=f"{where}/content", text=raw),)
    elif raw is not None:
        spelling = "blocks"
        content = tuple([_read_content(inner, f"{where}/content/{index}", unread) for index, inner in enumerate(raw)])
    if block.is_error is False:
        spelling += " is_error"
    return ToolResult(
        where=where,
        spelling=spelling,
        extras=None if unread is None else build_extras(unread.take(where)),
        call_id=block.tool_use_id,
        content=content,
        failed=block.is_error is True,
        cache=read_cache_mark(block.cache_control),
    )


def _read_content(block: ResultBlock, where: str, unread: Unread | None) -> Content:
    match block:
        case TextBlock():
            return _read_text(block, where, unread)
        case Unknown():
            return _read_unknown(block, where, unread)
        case _:
            return _read_media(block, where, unread)


def _read_media(block: ImageBlock | DocumentBlock, where: str, unread: Unread | None) -> Media | Opaque:
    fields = _take_unread(unread, where)
    document = block if isinstance(block, DocumentBlock) else None
    spelling = media_type = ""
    match block.source:
        case Base64Source(media_type, data):
            source = Inline(data)
            spelling = "base64"
        case UrlSource(url):
            source = Link(url)
        case FileSource(file_id):
            source = Stored(ISSUER, file_id)
        case TextSource(media_type, data):
            source = Plain(data)
        case unknown:
            body = encode(_restore_raw_source(block, unknown))
            whole = Opaque(where=where, dialect=NAME, raw=graft(body, fields) if fields else body)
            return read_texts(whole, _read_content)
    if document is not None and document.citations is not ABSENT:
        fields = {"/citations": bytes(document.citations), **(fields or {})}
    return Media(
        where=where,
        spelling=spelling,
        extras=build_extras(fields),
        kind="image" if document is None else "document",
        media_type=media_type,
        source=source,
        name="" if document is None else document.title or "",
        context="" if document is None else document.context or "",
        cache=read_cache_mark(block.cache_control),
    )


def _restore_raw_source(block: ImageBlock | DocumentBlock, source: Source) -> Any:
    """Restore the raw source of a block whose source type is unknown, so that the block can be encoded whole."""
    if isinstance(source, Unknown):
        block.source = source.raw  # pyright: ignore[reportAttributeAccessIssue]
    return block


_READERS: dict[type[Any], Callable[[Any, str, Unread | None], AnyPart]] = {
    TextBlock: _read_text,
    ImageBlock: _read_media,
    DocumentBlock: _read_media,
    ThinkingBlock: _read_thinking,
    RedactedBlock: _read_redacted,
    ToolUseBlock: _read_call,
    ToolResultBlock: _read_result,
    Unknown: _read_unknown,
}


def read_citation(raw: Raw) -> Citation:
    """Read the members of a citation that other dialects can express; `raw` keeps the whole citation."""
    members: Any = decode(raw)
    if not isinstance(members, dict):
        return Citation(NAME, bytes(raw))

    def first_text(*names: str) -> str:
        values: list[Any] = [members.get(name) for name in names]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return next((value for value in values if isinstance(value, str)), "")

    source = first_text("url", "source")
    return Citation(
        NAME,
        bytes(raw),
        url=source if source.startswith(("http://", "https://")) else "",
        title=first_text("title", "document_title"),
        quote=first_text("cited_text"),
    )


def write_citation(citation: Citation) -> Raw | None:
    """Write a citation: one from Messages unchanged, another dialect's by its URL; None if it has no URL."""
    if citation.dialect == NAME:
        return Raw(citation.raw)
    if not citation.url:
        return None
    members = {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title or None,
        "cited_text": citation.quote,
        "encrypted_index": GENERATED_MARK,
    }
    return Raw(encode(members))


def write_part(part: AnyPart) -> Wire | Raw | None:
    """Write one block; None for a part that Messages cannot express."""
    if isinstance(part, Opaque):
        return Raw(part.raw) if part.dialect == NAME else write_search(part)
    block = _write_block(part)
    if block is None or part.extras is None:
        return block
    fields = own_extras(part, NAME)
    return Raw(graft(encode(block), fields)) if fields else block


def write_parts(parts: Iterable[AnyPart]) -> list[Wire | Raw]:
    """Write the blocks of all parts that Messages can express."""
    blocks: list[Wire | Raw] = []
    for part in parts:
        block = write_part(part)
        if block is not None:
            blocks.append(block)
        elif type(part) is Search:
            blocks += write_web_search(part)
    return blocks


def _write_block(part: AnyPart) -> Wire | None:  # one case for each kind of part
    match part:
        case Text():
            return _write_text(part)
        case ToolCall():
            return _write_call(part)
        case ToolResult():
            return _write_result(part)
        case Reasoning():
            return _write_reasoning(part)
        case Media():
            return _write_media(part)
        case Refusal(text=text):
            return TextBlock(text, cache_control=write_cache_mark(part.cache))
        case Data(json=json):
            return TextBlock(json.decode(), cache_control=write_cache_mark(part.cache))
        case Opaque():
            return None
        case _:
            assert_never(part)


def _write_text(part: Text) -> TextBlock:
    citations: list[Raw] = []
    if part.citations:
        citations = [raw for citation in part.citations if (raw := write_citation(citation)) is not None]
    if not citations and part.spelling != "citations":
        return TextBlock(part.text, cache_control=write_cache_mark(part.cache))
    return TextBlock(part.text, citations, write_cache_mark(part.cache))


def _write_call(part: ToolCall) -> ToolUseBlock | None:
    # The input is inserted as raw JSON: a call that was cut off would make the whole body invalid.
    if not part.complete:
        return None
    arguments = Raw(part.arguments.encode()) if part.arguments else ABSENT
    return ToolUseBlock(
        part.id, part.name, arguments, write_cache_mark(part.cache), toolset_name=part.namespace or None
    )


def _write_reasoning(part: Reasoning) -> ThinkingBlock | RedactedBlock | None:
    value = part.signature.value if part.signature else ""
    if part.redacted:
        return RedactedBlock(value) if value else None
    signature = None if not value and part.spelling == "unsigned" else value
    return ThinkingBlock("\n\n".join(part.texts), signature)


def is_plain(part: AnyPart) -> bool:
    """Return whether a part is plain text, which a string can replace without loss."""
    return isinstance(part, Text) and part.cache is None and not part.citations and own_extras(part, NAME) is None


def _write_result(part: ToolResult) -> ToolResultBlock:
    content: Any = None
    match part.content:
        case (Text(text=text) as only,) if "blocks" not in part.spelling and is_plain(only):
            content = text
        case () if "blocks" not in part.spelling:
            content = None
        case several:
            content = write_parts(several)
    failed = True if part.failed else False if "is_error" in part.spelling else None
    return ToolResultBlock(part.call_id, content, failed, write_cache_mark(part.cache))


def _write_media(part: Media) -> ImageBlock | DocumentBlock | None:
    if part.kind == "image":
        match part.source:
            case Inline(data):
                return ImageBlock(Base64Source(part.media_type or "image/png", data), write_cache_mark(part.cache))
            case Link(url):
                return ImageBlock(UrlSource(url), write_cache_mark(part.cache))
            case Stored(_, file_id):
                return ImageBlock(FileSource(file_id), write_cache_mark(part.cache))
            case Plain():
                return None
            case _:
                assert_never(part.source)
    if part.kind != "document":
        return None
    source, cache_mark = _build_document_source(part), write_cache_mark(part.cache)
    return DocumentBlock(source, part.name or None, part.context or None, cache_mark)


def _build_document_source(part: Media) -> Source:
    match part.source:
        case Inline(data):
            text = _decode_text(data) if part.media_type.startswith("text/") and part.spelling != "base64" else None
            if text is not None:
                return TextSource("text/plain", text)
            return Base64Source(part.media_type or "application/pdf", data)
        case Link(url):
            return UrlSource(url)
        case Stored(_, file_id):
            return FileSource(file_id)
        case Plain(text):
            return TextSource(part.media_type or "text/plain", text)
        case _:
            assert_never(part.source)


def _decode_text(data: str) -> str | None:
    """Decode a base64 text document, because only PDFs may be sent as base64; None if it is not UTF-8."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def is_whole_call(part: AnyPart) -> bool:
    """Return whether a part is a complete call whose arguments are valid JSON."""
    return isinstance(part, ToolCall) and part.complete and is_json(part.arguments)
