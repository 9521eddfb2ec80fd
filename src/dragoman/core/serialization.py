"""Serialize messages to bytes and back, with the signature and the extras of every part."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.core.parts import (
    Citation,
    Data,
    FoundPage,
    FoundTools,
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
    ToolReference,
    ToolResult,
    ToolSearch,
)
from dragoman.core.request import Message
from dragoman.core.value import Extras

_TAG = "is"
_BYTES, _PAIRS = "bytes", "pairs"
_KINDS: dict[str, type[Struct]] = {
    kind.__name__: kind
    for kind in (
        Message,
        Text,
        Reasoning,
        ToolCall,
        ToolResult,
        Data,
        Media,
        Refusal,
        Opaque,
        Search,
        FoundPage,
        ToolSearch,
        FoundTools,
        ToolReference,
        Signature,
        Citation,
        Inline,
        Link,
        Plain,
        Stored,
        Extras,
    )
}


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Serialize messages to JSON; fields with their default value are left out."""
    return msgspec.json.encode([_to_plain(message) for message in messages])


def decode_messages(data: bytes) -> tuple[Message, ...]:
    """Parse messages that `encode_messages` wrote; raise `ValueError` for anything else."""
    try:
        messages = _from_plain(msgspec.json.decode(data))
    except (TypeError, KeyError) as error:
        raise ValueError(f"stored messages cannot be decoded: {error}") from None
    if not isinstance(messages, tuple) or not all(isinstance(one, Message) for one in cast("tuple[Any]", messages)):
        raise ValueError("stored messages cannot be decoded: not a list of messages")
    return cast("tuple[Message, ...]", messages)


def _to_plain(value: Any) -> Any:
    match value:
        case Struct():
            fields = ((field.name, getattr(value, field.name), field.default) for field in structs.fields(value))
            changed = {name: _to_plain(one) for name, one, default in fields if one != default}
            return {_TAG: type(value).__name__, **changed}
        case tuple() | list():
            return [_to_plain(one) for one in cast("tuple[Any]", value)]
        case bytes():
            return {_TAG: _BYTES, "base64": b64encode(value).decode()}
        case dict():
            return {_TAG: _PAIRS, "of": [[name, _to_plain(one)] for name, one in cast("dict[str, Any]", value).items()]}
        case _:
            return value


def _from_plain(plain: Any) -> Any:
    match plain:
        case {"is": "bytes", "base64": str(text)}:
            return b64decode(text)
        case {"is": "pairs", "of": pairs}:
            return {name: _from_plain(one) for name, one in cast("list[tuple[str, Any]]", pairs)}
        case {"is": str(kind), **fields}:
            return _KINDS[kind](**{str(name): _from_plain(one) for name, one in fields.items()})
        case list():
            return tuple(_from_plain(one) for one in cast("list[Any]", plain))
        case _:
            return plain
