"""The result of a call: its parts, how much of it a model gets, and the results that are kept by idempotency key.

A text stays a text, media stay media, everything else is a JSON value. Nothing is cut in silence: what is left out is
said at its place. A tool with side effects runs once for each key: a second request waits for the running call. An
interrupted call is remembered as such and not run again: whether it had its effect is not known. The memory is bounded
in calls and bytes; the oldest is evicted first.
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, assert_never, cast

import msgspec
from msgspec import Struct, structs

from dragoman.core.parts import Content, Data, Inline, Media, MediaKind, Opaque, Plain, Text, ToolCall, ToolResult
from dragoman.tools.handler import Handler

_PARTS = (Text, Data, Media, Opaque)
_BYTES = (bytes, bytearray, memoryview)
_MAGIC: tuple[tuple[int, bytes, MediaKind, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    (0, b"\xff\xd8\xff", "image", "image/jpeg"),
    (0, b"GIF8", "image", "image/gif"),
    (8, b"WEBP", "image", "image/webp"),
    (0, b"%PDF-", "document", "application/pdf"),
    (8, b"WAVE", "audio", "audio/wav"),
    (0, b"ID3", "audio", "audio/mpeg"),
    (0, b"\xff\xfb", "audio", "audio/mpeg"),
    (0, b"OggS", "audio", "audio/ogg"),
    (0, b"fLaC", "audio", "audio/flac"),
    (4, b"ftyp", "video", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video", "video/webm"),
)


class Returned(Struct, frozen=True):
    """What a tool returned, in the neutral language."""

    content: tuple[Content, ...]
    failed: bool = False


def returned(value: Any) -> Returned:
    """Read what a tool returned; a `TypeError` or `ValueError` says what of it no model can be told."""
    if isinstance(value, ToolResult):
        return Returned(tuple(map(_part, value.content)), value.failed)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
        items = cast("list[Any]", value)
        if any(isinstance(item, (*_PARTS, *_BYTES)) for item in items):
            return Returned(tuple(_part(item) for item in items))
    return Returned((_part(value),))


def _part(value: Any) -> Content:
    if isinstance(value, Text):
        return structs.replace(value, text=encodable(value.text))
    if isinstance(value, _PARTS):
        return value
    if isinstance(value, str):
        return Text(text=encodable(str(value)))
    if isinstance(value, _BYTES):
        return _media(bytes(cast("bytes", value)))
    return Data(json=msgspec.json.encode(value, enc_hook=_plain))


def encodable(text: str) -> str:
    """Return a text that can be written as UTF-8: half a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _media(data: bytes) -> Content:
    """Return bytes as what they begin like; a text if they are one."""
    for at, magic, kind, media_type in _MAGIC:
        if data.startswith(magic, at):
            return Media(kind=kind, media_type=media_type, source=Inline(base64.b64encode(data).decode()))
    try:
        return Text(text=data.decode())
    except UnicodeDecodeError:
        source = Inline(base64.b64encode(data).decode())
        return Media(kind="document", media_type="application/octet-stream", source=source)


def _plain(value: Any) -> Any:
    """Return an object that knows its own data (a pydantic model, and whatever works like one) as that data."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__qualname__} is neither text nor JSON")


class Trimmed(Struct, frozen=True):
    """A result within its limits."""

    content: tuple[Content, ...]
    size: int
    """Bytes before anything was cut, media as they are sent."""
    cut: bool


def trimmed(content: Iterable[Content], most: int, most_media: int) -> Trimmed:
    """Keep the first `most` bytes of text and JSON, and the media that fit into `most_media`."""
    kept: list[Content] = []
    size = 0
    cut = False
    for part in content:
        length = size_of(part)
        size += length
        if isinstance(part, Media) and not isinstance(part.source, Plain):
            fits = length <= most_media
            most_media -= length if fits else 0
            kept.append(part if fits else Text(text=f"[left out: {part.media_type or part.kind}, {length:,} bytes]"))
        else:
            fits = length <= most
            kept += [part] if fits else _beginning(part, most)
            most = most - length if fits else 0
        cut = cut or not fits
    return Trimmed(tuple(kept), size, cut)


def _beginning(part: Content, most: int) -> list[Content]:
    """Return what fits of a part; half a JSON value is a text."""
    match part:
        case Text(text=text) | Media(source=Plain(text)):
            start = text[:most].encode()[:most]
        case Data(json=raw):
            start = raw[:most]
        case Media() | Opaque():
            start = b""
        case _:
            assert_never(part)
    text = start.decode("utf-8", "ignore")
    return [Text(text=text)] if text else []


def size_of(part: Content) -> int:
    """Return the bytes a part takes on its way."""
    match part:
        case Text(text=text) | Media(source=Plain(text)):
            return len(text) if text.isascii() else len(text.encode())
        case Data(json=raw) | Opaque(raw=raw):
            return len(raw)
        case Media(source=Inline(data)):
            return len(data)
        case Media():
            return 0
        case _:
            assert_never(part)


Outcome = Literal[
    "succeeded",
    "failed",
    "unknown",
    "invalid",
    "timeout",
    "error",
    "oversized",
    "stuck",
    "conflict",
    "denied",
    "skipped",
    "cancelled",
]
"""How a call ended. "failed" is the tool's own word; "error" is an exception it did not mean to raise.

The last three are the words of whoever decides what is run: it may not be, it would lead nowhere, it was interrupted.
"""


class Execution(Struct, frozen=True, kw_only=True):
    """One call that is over."""

    result: ToolResult
    outcome: Outcome
    handler: Handler | None = None
    """The tool that was called, with its flags; None for an unknown one."""
    milliseconds: float = 0.0
    size: int = 0
    """Bytes the tool returned, before anything was cut."""
    repeated: bool = False
    """It was not run: this is what came of the call that had the same key before."""

    @property
    def ran(self) -> bool:
        """Tell whether the tool was begun, so that it may have changed something."""
        return self.outcome not in ("unknown", "invalid", "stuck", "conflict", "denied", "skipped")


def answered(call: ToolCall, content: tuple[Content, ...], *, failed: bool) -> ToolResult:
    """Return the result of a call."""
    return ToolResult(call_id=call.id, name=call.name, content=content, failed=failed, form=call.form)


def refused(call: ToolCall, handler: Handler | None, outcome: Outcome, words: str) -> Execution:
    """Return a failed result that tells the model why, and what it can do."""
    result = answered(call, (Text(text=encodable(words)),), failed=True)
    return Execution(result=result, outcome=outcome, handler=handler)


def repeated_for(call: ToolCall, execution: Execution) -> Execution:
    """Return what came of an earlier call as the answer to this one."""
    result = structs.replace(execution.result, call_id=call.id, name=call.name)
    return structs.replace(execution, result=result, repeated=True)


Said = tuple[str, str]


class Once:
    """The memory of one executor."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[Said, Execution]] = OrderedDict()
        self._under_way: dict[str, tuple[Said, asyncio.Future[Execution]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def run(
        self, key: str, call: ToolCall, handler: Handler, work: Callable[[], Awaitable[Execution]]
    ) -> Execution:
        """Return what came of the call with this key; run it if there was none."""
        said = (handler.name, call.arguments)
        earlier = self._known.get(key) or self._under_way.get(key)
        if earlier is None:
            return await self._first(key, said, call, handler, work)
        if earlier[0] != said:
            words = f"the idempotency key of this call was used before for another call of {earlier[0][0]!r}"
            return refused(call, handler, "conflict", words)
        ended = earlier[1]
        return repeated_for(call, ended if isinstance(ended, Execution) else await asyncio.shield(ended))

    async def _first(
        self, key: str, said: Said, call: ToolCall, handler: Handler, work: Callable[[], Awaitable[Execution]]
    ) -> Execution:
        future: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._under_way[key] = (said, future)
        words = "this call was interrupted; whether it had its effect is not known. Look before you try again."
        execution = refused(call, handler, "error", words)
        try:
            execution = await work()
        finally:
            del self._under_way[key]
            future.set_result(execution)
            if execution.ran:
                self._remember(key, said, execution)
        return execution

    def _remember(self, key: str, said: Said, execution: Execution) -> None:
        self._known[key] = (said, execution)
        self._bytes += _weight(said, execution)
        while self._known and (len(self._known) > self._most or self._bytes > self._most_bytes):
            _, forgotten = self._known.popitem(last=False)
            self._bytes -= _weight(*forgotten)


def _weight(said: Said, execution: Execution) -> int:
    return len(said[1]) + sum(map(size_of, execution.result.content))
