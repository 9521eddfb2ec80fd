"""What may leave after something untrusted was read: a page can tell a model to send what it knows.

Rules: whoever wrote an untrusted result may have written the next call. From then on, also in later runs over the same
history, a tool that can carry data out needs a person's word, unless all it sends goes to a place on the list, or is an
address that the user wrote.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from msgspec import structs

from dragoman.agent.compaction import SUMMARY, UNTRUSTED_SUMMARY
from dragoman.core.parts import AnyPart, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.http.destinations import Destination
from dragoman.http.locations import Location, Refused, location_of
from dragoman.tools import Handler, Registry
from dragoman.tools.handler import joined

_SMALL = 1_000_000
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`|]+")
_BEHIND = ".,;:!?)]}*_"
"""What stands behind an address in a sentence, and is mostly not part of it."""


def is_untrusted(messages: Sequence[Message], registry: Registry) -> bool:
    """Tell whether anything in a history may have been written by anybody.

    Results of tools that are not ours count: what a client's tool read, nobody here knows.
    """
    names = {
        part.id: joined(part.namespace, part.name)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    for message in messages:
        if message.role == "assistant" and brings_untrusted(message.parts):
            return True
        for part in message.parts:
            if isinstance(part, Text) and part.text.startswith(UNTRUSTED_SUMMARY):
                return True
            if isinstance(part, ToolResult):
                handler = registry.get(names.get(part.call_id, part.name))
                if handler is None or handler.untrusted:
                    return True
    return False


def brings_untrusted(parts: Iterable[AnyPart]) -> bool:
    """Tell whether a model read something by itself: a vendor's own search and fetch stand in what it says."""
    return any(isinstance(part, Opaque) or (isinstance(part, Text) and part.citations) for part in parts)


def users_words(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what the user and the system said themselves; a summary is a model's."""
    return tuple(
        part.text
        for message in messages
        if message.role != "assistant"
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith((SUMMARY, UNTRUSTED_SUMMARY))
    )


class Border:
    """What may go where."""

    def __init__(self, destinations: Iterable[Destination], words: Sequence[str]) -> None:
        self._destinations = tuple(destinations)
        self._words = words

    def objection(self, call: ToolCall, handler: Handler) -> str:
        """Say why a call must not leave unasked, in words for a person; "" if it may."""
        before = "something untrusted was read before"
        arguments = _arguments(call)
        if not handler.destination or arguments is None:
            return f"{handler.name} can send data out, and {before}"
        places = _texts(arguments.get(handler.destination))
        if places and all(self._is_listed(place) for place in places):
            return ""
        if self.is_users(call, handler):
            return ""
        return f"{handler.name} would send data to {', '.join(map(_shown, places)) or 'a place unknown'}, and {before}"

    def is_users(self, call: ToolCall, handler: Handler) -> bool:
        """Tell whether a call says nothing but addresses that the user wrote."""
        arguments = _arguments(call) if handler.destination else None
        places = _texts(arguments.get(handler.destination)) if arguments is not None else []
        if arguments is None or not places:
            return False
        others = [value for name, value in arguments.items() if name != handler.destination]
        return all(map(_says_nothing, others)) and all(map(self._is_written, places))

    def _is_written(self, place: str) -> bool:
        return any(place in _addresses(text) for text in self._words)

    def _is_listed(self, place: str) -> bool:
        location = _location(place)
        return location is not None and any(listed.takes(location) for listed in self._destinations)


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", msgspec.json.decode(call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None


def _addresses(text: str) -> set[str]:
    """Return the addresses in a text, whole: a part of one is another, and which part is chosen says something."""
    found = _ADDRESS.findall(text)
    return {*found, *(address.rstrip(_BEHIND) for address in found)}


def _location(url: str) -> Location | None:
    """Return where a URL leads; None unless that is beyond doubt."""
    try:
        location = location_of(url) if url.isprintable() else None
    except Refused:
        return None
    return location and structs.replace(location, host=location.host.rstrip("."))


def host_of(url: str) -> str:
    """Return the host a URL leads to, with the port if that is not the usual one; "" unless it is beyond doubt."""
    location = _location(url)
    return location.authority if location is not None else ""


def _texts(value: Any) -> list[str]:
    """Return one address or several; none if anything else is among them."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)] if all(isinstance(each, str) for each in values) else []


def _says_nothing(value: Any) -> bool:
    """Tell whether a value can carry nothing worth hiding: a switch, a small number."""
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _SMALL)


def _shown(place: str) -> str:
    return repr(host_of(place) or place[:100])
