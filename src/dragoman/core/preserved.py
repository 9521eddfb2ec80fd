"""Messages as bytes that can be kept, and back: every part with its signature and what only its dialect understands."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.core.parts import (
    Citation,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
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
    """Write messages down."""
    return msgspec.json.encode([_to_plain(message) for message in messages])


def decode_messages(data: bytes) -> tuple[Message, ...]:
    """Read messages that were written down; a `ValueError` if these are none."""
    try:
        messages = _from_plain(msgspec.json.decode(data))
    except (TypeError, KeyError) as error:
        raise ValueError(f"these are no messages: {error}") from None
    if not isinstance(messages, tuple) or not all(isinstance(one, Message) for one in cast("tuple[Any]", messages)):
        raise ValueError("these are no messages")
    return cast("tuple[Message, ...]", messages)


def _to_plain(value: Any) -> Any:
    match value:
        case Struct():
            said = ((field.name, getattr(value, field.name), field.default) for field in structs.fields(value))
            return {_TAG: type(value).__name__, **{name: _to_plain(one) for name, one, usual in said if one != usual}}
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
