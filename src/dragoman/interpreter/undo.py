"""Aliases for tool names that a target does not accept, and the undo that restores a reply.

An alias is deterministic and injective, as for `ids`; valid names are not changed.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct, structs

from dragoman.core.events import (
    Event,
    Failed,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
)
from dragoman.core.parts import ToolCall
from dragoman.core.traits import Traits
from dragoman.interpreter.ids import ILLEGAL, hash_text
from dragoman.interpreter.schema.arguments import ArgumentUndo, restore_arguments
from dragoman.wire import json


def alias_name(name: str, traits: Traits) -> str:
    """Return `name` if the target takes it, else its alias."""
    return _alias_cached(name, traits.name_first_digit, traits.name_symbols, traits.name_max)


@lru_cache(maxsize=8192)
def _alias_cached(name: str, first_digit: bool, symbols: str, max_length: int) -> str:
    first = "A-Za-z0-9_-" if first_digit else "A-Za-z_"
    if re.fullmatch(rf"[{first}][A-Za-z0-9{re.escape(symbols)}]{{0,{max_length - 1}}}", name):
        return name
    head = ILLEGAL.sub("_", name)
    if not head or not (first_digit or head[0].isalpha() or head[0] == "_"):
        head = "_" + head
    return f"{head[: max_length - 9]}_{hash_text(name, 8)}"


Arguments = dict[str, tuple[ArgumentUndo, ...]]
"""How arguments were changed for the converted schemas, by the tools' qualified names, in the order of the changes."""


class TextCallSettings(Struct, frozen=True):
    """How to detect calls in the text of a model whose tools are described in the prompt."""

    names: tuple[str, ...]
    """The names of the described tools."""
    single_call: bool = False
    """Only the first call of a reply is sent."""
    stop: str = ""
    """A stop sequence that was added to the caller's."""
    forbidden: bool = False
    """No tool may be called; the model sees calls only in the history."""


class Undo(Struct, frozen=True):
    """The record of reversible changes to a request, to be undone in the reply."""

    names: dict[str, tuple[str, str]] = {}
    """Alias of a tool's name -> (namespace, name)."""
    custom: frozenset[str] = frozenset()
    """Free-form tools that were wrapped as functions, by the caller's name."""
    arguments: Arguments = {}
    natives: Mapping[str, str] = {}
    """Name of a function at the target -> type of the vendor's own tool that it replaces."""
    single_call: bool = False
    """The caller allows one call at a time, and only the prompt requests that of the target."""
    text_calls: TextCallSettings | None = None
    """Set if calls are to be parsed from the model's text."""


NO_UNDO = Undo()


def qualify_name(name: str, namespace: str) -> str:
    """Return a name that is unique for tools of the same name in different namespaces."""
    # A call of a tool without a namespace that was loaded later has the tool's name as its namespace (OpenAI).
    return name if namespace in ("", name) else f"{namespace}__{name}"


_PartEvent = PartStarted | PartDelta | PartSigned | PartCited | PartNative | PartEnded
_PART_EVENTS = (PartStarted, PartDelta, PartSigned, PartCited, PartNative, PartEnded)


def _keep_event(event: Event) -> list[Event]:
    return [event]


class ReplyPipeline:
    """Turns a reply's events into events for the client: puts parts in order, undoes aliases, then calls `adapt`.

    Events of the first part that has not ended are processed; those of later parts are buffered until it ends.
    Arguments that must be restored are buffered until they are complete. `adapt` returns the client's events for one.
    """

    def __init__(self, undo: Undo, adapt: Callable[[Event], list[Event]] = _keep_event) -> None:
        self._undo = undo
        self._adapt = adapt
        self._needs_restore = bool(undo.names or undo.custom or undo.arguments or undo.natives)
        self._open = 0
        self._waiting: dict[int, list[_PartEvent]] = {}
        self._held: tuple[ToolCall, list[str]] | None = None
        """The open call and its arguments so far, if these must be restored."""

    def feed(self, event: Event) -> list[Event]:
        """Return the client's events for the next event."""
        if not isinstance(event, _PART_EVENTS):
            if type(event) is Failed:
                self._waiting.clear()
            return self._adapt(event)
        if event.index != self._open:
            self._waiting.setdefault(event.index, []).append(event)
            return []
        events = self._feed_open(event)
        if type(event) is PartEnded:
            self._open += 1
            if self._waiting:
                events = [*events, *self._release_waiting()]
        return events

    def can_pass(self, index: int) -> bool:
        """Return whether the deltas of a part can be forwarded: it is the open part, and is not to be restored."""
        return index == self._open and self._held is None

    def _feed_open(self, event: _PartEvent) -> list[Event]:
        """Restore and adapt an event of the open part."""
        if self._needs_restore:
            if type(event) is PartStarted and type(event.part) is ToolCall:
                event = self._restore_start(event.index, event.part)
            elif self._held is not None and type(event) is PartDelta:
                self._held[1].append(event.text)
                return []
            elif self._held is not None and type(event) is PartEnded:
                return [*self._restore_arguments(event.index, self._held), *self._adapt(event)]
        return self._adapt(event)

    def _restore_start(self, index: int, call: ToolCall) -> PartStarted:
        named, undo = _restore_name(call, self._undo), self._undo
        if named.native or named.name in undo.custom or qualify_name(named.name, named.namespace) in undo.arguments:
            self._held = (call, [])
        return PartStarted(index, named)

    def _restore_arguments(self, index: int, held: tuple[ToolCall, list[str]]) -> list[Event]:
        self._held = None
        call, pieces = held
        arguments = restore_call(structs.replace(call, arguments="".join(pieces)), self._undo).arguments
        return self._adapt(PartDelta(index, arguments)) if arguments else []

    def _release_waiting(self) -> list[Event]:
        """Return the buffered events of the parts after the one that ended, up to the first that is still open."""
        events: list[Event] = []
        while (waiting := self._waiting.pop(self._open, None)) is not None:
            for event in waiting:
                events += self._feed_open(event)
            if type(waiting[-1]) is not PartEnded:
                break
            self._open += 1
        return events


def restore_call(call: ToolCall, undo: Undo) -> ToolCall:
    """Return a complete call with the caller's own tool name and arguments."""
    alias = call.name
    if undo.names or undo.custom or undo.natives:
        call = _restore_name(call, undo)
    arguments = call.arguments
    name = alias if call.native else qualify_name(call.name, call.namespace) if call.namespace else call.name
    steps = undo.arguments.get(name)
    if steps is not None:
        for step in reversed(steps):
            arguments = restore_arguments(arguments, step)
    if call.form == "text" and call.name in undo.custom:
        arguments = _unwrap_free_text(arguments)
    return call if arguments is call.arguments else structs.replace(call, arguments=arguments)


def _restore_name(call: ToolCall, undo: Undo) -> ToolCall:
    namespace, name = undo.names.get(call.name, (call.namespace, call.name))
    native = undo.natives.get(call.name, call.native) if undo.natives else call.native
    form = "text" if name in undo.custom and not native else call.form
    if (namespace, name, form, native) == (call.namespace, call.name, call.form, call.native):
        return call
    return structs.replace(call, namespace=namespace, name=name, form=form, native=native)


def _unwrap_free_text(arguments: str) -> str:
    """Return the free-form input from the arguments of the function it was wrapped in; other arguments unchanged."""
    try:
        value = json.decode(arguments)
    except json.Malformed:
        return arguments
    match value:
        case {"input": str(text)}:
            return text
        case _:
            return arguments
