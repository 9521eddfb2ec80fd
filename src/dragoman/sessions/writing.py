"""Messages of the core as JSON and back, so that a conversation is kept as it is: calls, results, signatures and all.

Rules: every value carries the name of its class; bytes carry a mark. What stands at its default is left out, so that a
field which is added later has its default in what was kept before.
"""

import base64
from typing import Any, cast

import msgspec
from msgspec import NODEFAULT, Struct

from dragoman.core import parts, request, value
from dragoman.core.request import Message

_CLASS = "is"
_BYTES = "base64"
_CLASSES: dict[str, type[Struct]] = {
    name: found
    for room in (parts, request, value)
    for name, found in vars(room).items()
    if isinstance(found, type) and issubclass(found, Struct)
}


def written(message: Message) -> bytes:
    """Return a message as JSON."""
    return msgspec.json.encode(_plain(message))


def read(body: bytes) -> Message:
    """Return the message that was written."""
    message = _valued(msgspec.json.decode(body))
    if not isinstance(message, Message):
        raise TypeError(f"a message was kept as {type(message).__name__}")
    return message


def _plain(thing: Any) -> Any:
    if isinstance(thing, Struct):
        held = {
            field.name: _plain(member)
            for field in msgspec.structs.fields(thing)
            if (member := getattr(thing, field.name)) != field.default or field.default is NODEFAULT
        }
        return {_CLASS: type(thing).__name__, **held}
    if isinstance(thing, bytes):
        return {_CLASS: _BYTES, "data": base64.b64encode(thing).decode()}
    if isinstance(thing, dict):
        return {key: _plain(member) for key, member in cast("dict[str, Any]", thing).items()}
    if isinstance(thing, tuple):
        return [_plain(member) for member in cast("tuple[Any, ...]", thing)]
    return thing


def _valued(thing: Any) -> Any:
    if isinstance(thing, list):
        return tuple(_valued(member) for member in cast("list[Any]", thing))
    if not isinstance(thing, dict):
        return thing
    members = cast("dict[str, Any]", thing)
    name = members.get(_CLASS)
    if name == _BYTES:
        return base64.b64decode(members["data"])
    if name not in _CLASSES:
        return {key: _valued(member) for key, member in members.items()}
    return _CLASSES[name](**{key: _valued(member) for key, member in members.items() if key != _CLASS})
