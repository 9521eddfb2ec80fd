"""Fit the parts of each message to the target. A message depends on itself and the trait row, on nothing else.

A part that needs nothing is returned as it is, the same object: most of a long history is like that.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

from msgspec import structs

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message
from dragoman.core.value import Extras, Value
from dragoman.interpreter.fitting import Fitting
from dragoman.wire import json

Fitted = AnyPart | tuple[AnyPart, ...] | None


def fit_messages(messages: tuple[Message, ...], fitting: Fitting) -> list[Message]:
    """Fit every message; one may be left without parts."""
    return [message if _is_plain(message) else _fit_message(message, fitting) for message in messages]


def _is_plain(message: Message) -> bool:
    """Tell whether a message is one plain text, as most of a long history is: every target takes that."""
    parts = message.parts
    if len(parts) != 1 or message.extras is not None or message.name:
        return False
    part = parts[0]
    return (
        isinstance(part, Text)
        and part.extras is None
        and part.signature is None
        and part.cache is None
        and not part.citations
        and part.text != ""
        and not part.text.isspace()
    )


def drop_extras(value: Value, fitting: Fitting) -> None:
    """Book every field that only another dialect understands."""
    if value.extras is not None:
        for pointer in value.extras.fields:
            fitting.ledger.dropped(value.where + pointer, "not known to the target")


def _fit_message(message: Message, fitting: Fitting) -> Message:
    parts = message.parts
    changed: list[AnyPart] | None = None
    for index, part in enumerate(parts):
        now = _FITTERS[part.__class__](part, message, fitting)
        if now is part:
            if changed is not None:
                changed.append(part)
            continue
        if changed is None:
            changed = list(parts[:index])
        if now is None:
            continue
        if isinstance(now, tuple):
            changed.extend(now)
        else:
            changed.append(now)
    if changed is None and message.extras is None and not message.name:
        return message
    drop_extras(message, fitting)
    name = message.name
    if name and not fitting.traits.speaker_names:
        fitting.ledger.field_dropped("message.name", "the target has no speaker names", message)
        name = ""
    kept = parts if changed is None else tuple(changed)
    return Message(role=message.role, parts=kept, name=name, where=message.where)


def _bare(part: Part, fitting: Fitting) -> dict[str, Any]:
    """Return the changes that take from a part what only its own dialect can say, and book them."""
    changes: dict[str, Any] = {}
    if part.extras is not None:
        mark = _anthropic_mark(part.extras) if part.cache is None and fitting.traits.cache_marks else None
        if mark is not None:
            changes["cache"] = mark
        for pointer in part.extras.fields:
            if mark is None or pointer != _MARK:
                fitting.ledger.dropped(part.where + pointer, "not known to the target")
        changes["extras"] = None
    if part.cache is not None and not fitting.traits.cache_marks:
        fitting.ledger.field_dropped("part.cache", "the target has no cache marks", part)
        changes["cache"] = None
    if part.signature is not None and part.signature.issuer != fitting.traits.issuer:
        fitting.ledger.field_dropped("part.signature", f"signed by {part.signature.issuer}", part)
        changes["signature"] = None
    return changes


_MARK = "/cache_control"


def _anthropic_mark(extras: Extras) -> str | None:
    """Return the lifetime of a cache mark in Anthropic's words, which many callers of Chat write too."""
    raw = extras.fields.get(_MARK)
    if raw is None:
        return None
    match json.peek(raw):
        case {"type": "ephemeral", "ttl": str(lifetime), **rest} if not rest:
            return lifetime
        case {"type": "ephemeral", **rest} if not rest:
            return ""
        case _:
            return None


def _changed(part: AnyPart, changes: dict[str, Any]) -> AnyPart:
    return structs.replace(part, **changes) if changes else part


def _fit_text(part: Text, _message: Message, fitting: Fitting) -> Fitted:
    text = part.text
    if not fitting.traits.empty_text and (not text or text.isspace()):
        if text or part.extras is not None:
            fitting.ledger.dropped(part.where, "the target refuses empty text")
        return None
    if part.extras is None and part.signature is None and part.cache is None and not part.citations:
        return part
    changes = _bare(part, fitting)
    if part.citations:
        fitting.ledger.field_dropped("part.citations", "citations of an earlier answer are not sent back", part)
        changes["citations"] = ()
    if part.signature is not None and not fitting.traits.text_signatures and "signature" not in changes:
        fitting.ledger.field_dropped("part.signature", "the target has no place for a signature on text", part)
        changes["signature"] = None
    return _changed(part, changes)


def _fit_reasoning(part: Reasoning, _message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    if traits.reasoning_text and part.texts:
        changes = _bare(part, fitting)
        if part.signature is not None and "signature" not in changes:
            fitting.ledger.field_dropped("part.signature", "the target has no place for it", part)
            changes["signature"] = None
        return _changed(part, changes)
    if traits.shows_thinking and part.signature is not None and part.signature.issuer == traits.issuer:
        return _changed(part, _bare(part, fitting))
    fitting.ledger.dropped(part.where, "reasoning of another vendor's model cannot be replayed")
    return None


def _fit_call(part: ToolCall, _message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    changes = _bare(part, fitting) if part.extras is not None or part.cache is not None else {}
    signature = part.signature
    if signature is not None and not (traits.call_signatures and signature.issuer == traits.issuer):
        fitting.ledger.field_dropped("part.signature", f"signed by {signature.issuer}", part)
        changes["signature"] = None
    name = fitting.name(part.name, part.namespace)
    if name != part.name:
        changes["name"] = name
        if not traits.namespaces:
            changes["namespace"] = ""
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
        changes["arguments"] = wrap_free_text(part.arguments)
    elif part.form == "json":
        arguments = _object_text(part, fitting) if traits.object_arguments else part.arguments or "{}"
        if arguments is not part.arguments:
            changes["arguments"] = arguments
    return structs.replace(part, **changes) if changes else part


def wrap_free_text(text: str) -> str:
    """Say a free-form tool's input as a function's arguments."""
    return json.encode({"input": text}).decode()


def _object_text(call: ToolCall, fitting: Fitting) -> str:
    arguments = call.arguments
    if json.is_object(arguments):
        return arguments
    if not arguments.strip():
        return "{}"
    fitting.ledger.field_approximated("call.arguments", "not a JSON object: sent as text under INVALID_JSON", call)
    return json.encode({"INVALID_JSON": arguments}).decode()


def _fit_result(part: ToolResult, message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    if _is_plain_result(part) and (part.form == "json" or traits.custom_tools):
        return part
    changes = _bare(part, fitting)
    content: list[Content] = []
    moved: list[AnyPart] = []
    for item in part.content:
        now = _FITTERS[item.__class__](item, message, fitting) if not isinstance(item, Data) else item
        for one in now if isinstance(now, tuple) else (now,):
            if isinstance(one, Media) and one.kind not in traits.result_media:
                fitting.ledger.approximated(one.where, "moved out of the tool result, behind it")
                content.append(Text(text=f"[{one.kind} follows]"))
                moved.append(one)
            elif one is not None:
                content.append(one)  # pyright: ignore[reportArgumentType]
    if part.failed and not traits.failed_results:
        fitting.ledger.field_approximated("result.failed", 'said as text: "Error: …"', part)
        changes["failed"] = False
        content = [Text(text="Error: " + _result_text(content))]
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
    if part.name and (name := fitting.name(part.name)) != part.name:
        changes["name"] = name
    if not _same(content, part.content):
        changes["content"] = tuple(content)
    fitted = structs.replace(part, **changes) if changes else part
    return (fitted, *moved) if moved else fitted


def _is_plain_result(part: ToolResult) -> bool:
    content = part.content
    if part.failed or part.name or part.extras is not None or part.cache is not None or len(content) != 1:
        return False
    only = content[0]
    return isinstance(only, Text) and only.extras is None and only.cache is None and not only.text.isspace()


def _same(left: list[Content], right: tuple[Content, ...]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))


def _result_text(content: list[Content]) -> str:
    texts = [
        item.text if isinstance(item, Text) else item.json.decode() for item in content if isinstance(item, Text | Data)
    ]
    return "\n".join(texts)


def _fit_media(part: Media, message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    source = part.source
    if isinstance(source, Inline) and _is_text(part) and traits.document_types:
        source = _plain(source)
    if isinstance(source, Plain) and not traits.text_documents:
        fitting.ledger.approximated(part.where, "a text document is sent as text")
        _bare(part, fitting)
        return Text(text=f"{part.name}\n\n{source.text}" if part.name else source.text, where=part.where)
    refusal = _media_refusal(part, source, message, fitting)
    if refusal is not None:
        fitting.ledger.dropped(part.where, refusal)
        return Text(text=f"[{part.kind} left out: {refusal}]") if message.role == "user" else None
    changes = _bare(part, fitting)
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
    return _changed(part, changes)


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
        case Inline() if part.kind == "document" and traits.document_types:
            if part.media_type not in traits.document_types:
                return "the target takes no documents of this type"
        case _:
            pass
    return None


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


def _guessed_type(part: Media, source: Link, fitting: Fitting) -> str:
    """Name the media type by the URL's ending, or the commonest of the kind: Gemini wants one where others do not."""
    ending = source.url.split("?", 1)[0].rsplit(".", 1)[-1].lower()
    if ending in _TYPES:
        return _TYPES[ending]
    fitting.ledger.approximated(part.where, "the link does not say its media type: the commonest is assumed")
    return _COMMON_TYPES[part.kind]


def _fit_refusal(part: Refusal, _message: Message, fitting: Fitting) -> Fitted:
    if fitting.traits.refusals:
        return _changed(part, _bare(part, fitting))
    _bare(part, fitting)
    if not part.text:
        return None
    return Text(text=part.text, where=part.where)


def _fit_opaque(part: Opaque, _message: Message, fitting: Fitting) -> Fitted:
    if part.dialect == fitting.traits.dialect:
        return part
    fitting.ledger.dropped(part.where, "a block only its own dialect understands")
    return None


def _fit_data(part: Data, _message: Message, _fitting: Fitting) -> Fitted:
    return part


_FITTERS: dict[type, Callable[[Any, Message, Fitting], Fitted]] = {
    Text: _fit_text,
    Reasoning: _fit_reasoning,
    ToolCall: _fit_call,
    ToolResult: _fit_result,
    Media: _fit_media,
    Refusal: _fit_refusal,
    Opaque: _fit_opaque,
    Data: _fit_data,
}
