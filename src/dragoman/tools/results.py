"""Tool results: convert the output of a tool, cut it to the limits, and cache results by idempotency key.

A string becomes a text part, media stay media, everything else becomes JSON. Every cut leaves a note in its place. A
tool with side effects runs once for each key: a second call with the key waits for the running one. An interrupted call
is cached as interrupted and not run again, because it is not known whether it had its effect. The cache is bounded in
entries and bytes; the oldest entry is evicted first.
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from mimetypes import guess_type
from pathlib import Path, PurePath
from typing import Any, Literal, assert_never, cast

import msgspec
from msgspec import Struct, structs

from dragoman.core.parts import Content, Data, Inline, Media, MediaKind, Opaque, Plain, Text, ToolCall, ToolResult
from dragoman.tools.handler import Handler

_PARTS = (Text, Data, Media, Opaque)
_BYTES = (bytes, bytearray, memoryview)
_UNKNOWN_TYPE = "application/octet-stream"
_MAX_FILE = 64 << 20
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


class ToolOutput(Struct, frozen=True):
    """The output of a tool as core parts."""

    content: tuple[Content, ...]
    failed: bool = False


def reads_files(value: Any) -> bool:
    """Return whether converting the return value of a tool reads a file."""
    items = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    return any(isinstance(item, PurePath) for item in items)


def parse_output(value: Any) -> ToolOutput:
    """Convert the return value of a tool.

    Raises `TypeError` or `ValueError` for a value that is not text, media or JSON, `OSError` for a missing file.
    """
    if isinstance(value, ToolResult):
        return ToolOutput(tuple(map(_to_part, value.content)), value.failed)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
        items = cast("list[Any]", value)
        if any(isinstance(item, (*_PARTS, *_BYTES, PurePath)) or _is_image(item) for item in items):
            return ToolOutput(tuple(_to_part(item) for item in items))
    return ToolOutput((_to_part(value),))


def _to_part(value: Any) -> Content:
    if isinstance(value, Text):
        return structs.replace(value, text=replace_surrogates(value.text))
    if isinstance(value, _PARTS):
        return value
    if isinstance(value, str):
        return Text(text=replace_surrogates(str(value)))
    if isinstance(value, _BYTES):
        return _media_from_bytes(bytes(cast("bytes", value)))
    if isinstance(value, PurePath):
        return _media_from_file(Path(value))
    if _is_image(value):
        return _media_from_bytes(value._repr_png_())
    return Data(json=msgspec.json.encode(value, enc_hook=dump_model))


def replace_surrogates(text: str) -> str:
    """Return a text that can be encoded as UTF-8: a lone surrogate becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _is_image(value: Any) -> bool:
    """Return whether a value can be drawn as PNG, as images of Pillow and other objects that notebooks show."""
    return callable(getattr(value, "_repr_png_", None)) and not isinstance(value, type)


def _media_from_file(path: Path) -> Content:
    if (size := path.stat().st_size) > _MAX_FILE:
        raise ValueError(f"{path.name} has {size:,} bytes; at most {_MAX_FILE:,} can be returned")
    media_type, _ = guess_type(path.name)
    return _media_from_bytes(path.read_bytes(), media_type or _UNKNOWN_TYPE)


def _media_from_bytes(data: bytes, other_type: str = _UNKNOWN_TYPE) -> Content:
    """Return bytes as media of the type that their first bytes show, as text if they are UTF-8, or as a document."""
    for at, magic, kind, media_type in _MAGIC:
        if data.startswith(magic, at):
            return Media(kind=kind, media_type=media_type, source=Inline(base64.b64encode(data).decode()))
    try:
        return Text(text=data.decode())
    except UnicodeDecodeError:
        source = Inline(base64.b64encode(data).decode())
        return Media(kind="document", media_type=other_type, source=source)


def dump_model(value: Any) -> Any:
    """Return the data of a pydantic model or any other object with `model_dump`."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__qualname__} is neither text nor JSON")


class TrimmedOutput(Struct, frozen=True):
    """An output after it was cut to its limits."""

    content: tuple[Content, ...]
    size: int
    """Bytes before the cut, media in base64 as they are sent."""
    is_cut: bool


def trim_output(content: Iterable[Content], max_bytes: int, max_media: int) -> TrimmedOutput:
    """Keep the first `max_bytes` bytes of text and JSON, and the media that fit into `max_media` bytes."""
    kept: list[Content] = []
    size = 0
    cut = False
    for part in content:
        length = size_of(part)
        size += length
        if isinstance(part, Media) and not isinstance(part.source, Plain):
            fits = length <= max_media
            max_media -= length if fits else 0
            kept.append(part if fits else Text(text=f"[left out: {part.media_type or part.kind}, {length:,} bytes]"))
        else:
            fits = length <= max_bytes
            kept += [part] if fits else _cut_part(part, max_bytes)
            max_bytes = max_bytes - length if fits else 0
        cut = cut or not fits
    return TrimmedOutput(tuple(kept), size, cut)


def _cut_part(part: Content, max_bytes: int) -> list[Content]:
    """Return the beginning of a part that fits; a cut JSON value becomes text."""
    match part:
        case Text(text=text) | Media(source=Plain(text)):
            start = text[:max_bytes].encode()[:max_bytes]
        case Data(json=raw):
            start = raw[:max_bytes]
        case Media() | Opaque():
            start = b""
        case _:
            assert_never(part)
    text = start.decode("utf-8", "ignore")
    return [Text(text=text)] if text else []


def size_of(part: Content) -> int:
    """Return the bytes of a part as it is sent; linked media count as 0."""
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
"""How a call ended. "failed" is reported by the tool (`ToolFailure`); "error" is an unexpected exception.

The last three are set by the agent: the call was not allowed, it was pointless to run it, or it was interrupted.
"""


class Execution(Struct, frozen=True, kw_only=True):
    """The record of one finished call."""

    result: ToolResult
    outcome: Outcome
    handler: Handler | None = None
    """The tool that was called, with its flags; None for an unknown one."""
    milliseconds: float = 0.0
    size: int = 0
    """Bytes of the tool's output before it was cut."""
    repeated: bool = False
    """The tool was not run: this is the cached result of an earlier call with the same idempotency key."""

    @property
    def has_run(self) -> bool:
        """Whether the tool was started, so that it may have had side effects."""
        return self.outcome not in ("unknown", "invalid", "stuck", "conflict", "denied", "skipped")


def build_result(call: ToolCall, content: tuple[Content, ...], *, failed: bool) -> ToolResult:
    """Build the result part of a call."""
    return ToolResult(call_id=call.id, name=call.name, content=content, failed=failed, form=call.form)


def build_refusal(call: ToolCall, handler: Handler | None, outcome: Outcome, message: str) -> Execution:
    """Build a failed execution whose message, for the model, explains why the call failed and what it can do."""
    result = build_result(call, (Text(text=replace_surrogates(message)),), failed=True)
    return Execution(result=result, outcome=outcome, handler=handler)


def repeat_for(call: ToolCall, execution: Execution) -> Execution:
    """Return the execution of an earlier call as the result of this one."""
    result = structs.replace(execution.result, call_id=call.id, name=call.name)
    return structs.replace(execution, result=result, repeated=True)


CallIdentity = tuple[str, str]


class IdempotencyCache:
    """Results of calls with side effects by idempotency key, with the arguments that they were made with."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._executions: OrderedDict[str, tuple[CallIdentity, Execution]] = OrderedDict()
        self._running: dict[str, tuple[CallIdentity, asyncio.Future[Execution]]] = {}

    def __len__(self) -> int:
        return len(self._executions)

    async def run(
        self, key: str, call: ToolCall, handler: Handler, work: Callable[[], Awaitable[Execution]]
    ) -> Execution:
        """Return the cached result of this key, or wait for the running call, or run `work` if the key is new."""
        identity = (handler.name, call.arguments)
        earlier = self._executions.get(key) or self._running.get(key)
        if earlier is None:
            return await self._run_first(key, identity, call, handler, work)
        if earlier[0] != identity:
            message = f"the idempotency key of this call was used before for another call of {earlier[0][0]!r}"
            return build_refusal(call, handler, "conflict", message)
        ended = earlier[1]
        return repeat_for(call, ended if isinstance(ended, Execution) else await asyncio.shield(ended))

    async def _run_first(
        self,
        key: str,
        identity: CallIdentity,
        call: ToolCall,
        handler: Handler,
        work: Callable[[], Awaitable[Execution]],
    ) -> Execution:
        future: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._running[key] = (identity, future)
        message = "this call was interrupted; whether it had its effect is not known. Look before you try again."
        execution = build_refusal(call, handler, "error", message)
        try:
            execution = await work()
        finally:
            del self._running[key]
            future.set_result(execution)
            if execution.has_run:
                self._store(key, identity, execution)
        return execution

    def _store(self, key: str, identity: CallIdentity, execution: Execution) -> None:
        self._executions[key] = (identity, execution)
        self._bytes += _entry_size(identity, execution)
        while self._executions and (len(self._executions) > self._max_entries or self._bytes > self._max_bytes):
            _, evicted = self._executions.popitem(last=False)
            self._bytes -= _entry_size(*evicted)


def _entry_size(identity: CallIdentity, execution: Execution) -> int:
    return len(identity[1]) + sum(map(size_of, execution.result.content))
