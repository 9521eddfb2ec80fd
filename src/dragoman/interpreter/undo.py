"""Aliases for names and ids that a target does not accept, and how a reply is turned back into the caller's terms.

An alias is deterministic and injective, the same on call and result; legal names and ids pass unchanged. It keeps a
readable head and ends in a hash of the original, so the same history is translated to the same bytes on every turn.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b, sha256

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
from dragoman.interpreter.schema.arguments import ArgumentUndo, restore_arguments
from dragoman.wire import json

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]+")


def hash_text(text: str, length: int) -> str:
    """Return `length` hexadecimal digits that stand for `text`."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def alias_name(name: str, traits: Traits) -> str:
    """Return `name` if the target takes it, else its alias."""
    return _alias_cached(name, traits.name_first_digit, traits.name_symbols, traits.name_max)


@lru_cache(maxsize=8192)
def _alias_cached(name: str, first_digit: bool, symbols: str, max_length: int) -> str:
    first = "A-Za-z0-9_-" if first_digit else "A-Za-z_"
    if re.fullmatch(rf"[{first}][A-Za-z0-9{re.escape(symbols)}]{{0,{max_length - 1}}}", name):
        return name
    head = _ILLEGAL.sub("_", name)
    if not head or not (first_digit or head[0].isalpha() or head[0] == "_"):
        head = "_" + head
    return f"{head[: max_length - 9]}_{hash_text(name, 8)}"


def alias_id(call_id: str, traits: Traits) -> str:
    """Return `call_id` if the target takes it, else its alias."""
    if traits.id_exact is not None:
        legal = len(call_id) == traits.id_exact and call_id.isalnum() and call_id.isascii()
        return call_id if legal else hash_text(call_id, traits.id_exact)
    return to_plain_id(call_id, traits.id_max)


def to_plain_id(call_id: str, max_length: int = 64) -> str:
    """Return `call_id` if it is of letters, digits, `_` and `-` only, else its alias."""
    if len(call_id) <= max_length and _LEGAL_ID.fullmatch(call_id):
        return call_id
    return f"{_ILLEGAL.sub('_', call_id)[:15]}_{hash_text(call_id, 24)}"


def generate_id(prefix: str, *seed: object) -> str:
    """Make an id in a client's own style from what identifies the call."""
    text = "\x00".join(map(str, seed))
    return prefix + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def build_call_id_stem(reply_id: str, salt: str) -> str:
    """Return what the ids of all calls of one reply begin with that came without one."""
    return blake2b(f"{reply_id}\x00{salt}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()[:20]


Arguments = dict[str, tuple[ArgumentUndo, ...]]
"""How values were changed for the tools' schemas, by the tools' full names, in the order they were changed."""


class TextCallSettings(Struct, frozen=True):
    """How to detect calls in the text of a model whose tools are described in the prompt."""

    names: tuple[str, ...]
    """The tools that are described."""
    single_call: bool = False
    """Only one call of an answer is wanted."""
    stop: str = ""
    """A stop sequence that was added to the caller's."""
    forbidden: bool = False
    """No tool may be called, and the model knows of calls only from the history."""


class Undo(Struct, frozen=True):
    """How to turn what the target answers back into the caller's terms."""

    names: dict[str, tuple[str, str]] = {}
    """Alias of a tool's name -> (namespace, name)."""
    custom: frozenset[str] = frozenset()
    """Free-form tools that were wrapped as functions, by the caller's name."""
    arguments: Arguments = {}
    single_call: bool = False
    """The caller wants one call at a time, and the target was only asked for that in the prompt."""
    text_calls: TextCallSettings | None = None
    """Calls are in the target's text."""


NO_UNDO = Undo()


def qualify_name(name: str, namespace: str) -> str:
    """Return a name that differs for tools of the same name in different namespaces."""
    # A call of a tool that was declared alone but loaded later has its own name for a namespace (OpenAI).
    return name if namespace in ("", name) else f"{namespace}__{name}"


_PartEvent = PartStarted | PartDelta | PartSigned | PartCited | PartNative | PartEnded
_PART_EVENTS = (PartStarted, PartDelta, PartSigned, PartCited, PartNative, PartEnded)


def _keep_event(event: Event) -> list[Event]:
    return [event]


class ReplyPipeline:
    """Events of a reply in, events for the client out: parts one after the other, in the caller's terms, adapted.

    The part with the lowest index that has not ended passes; events of later parts wait for it. Arguments that must
    change are held until they are whole. `adapt` returns what becomes of an event at the client.
    """

    def __init__(self, undo: Undo, adapt: Callable[[Event], list[Event]] = _keep_event) -> None:
        self._undo = undo
        self._adapt = adapt
        self._needs_restore = bool(undo.names or undo.custom or undo.arguments)
        self._open = 0
        self._waiting: dict[int, list[_PartEvent]] = {}
        self._held: tuple[ToolCall, list[str]] | None = None
        """The open call and its arguments so far, if these must change."""

    def feed(self, event: Event) -> list[Event]:
        """Take the next event."""
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
        """Tell whether the deltas of a part need neither order nor restoring."""
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
        if named.name in undo.custom or qualify_name(named.name, named.namespace) in undo.arguments:
            self._held = (call, [])
        return PartStarted(index, named)

    def _restore_arguments(self, index: int, held: tuple[ToolCall, list[str]]) -> list[Event]:
        self._held = None
        call, pieces = held
        arguments = restore_call(structs.replace(call, arguments="".join(pieces)), self._undo).arguments
        return self._adapt(PartDelta(index, arguments)) if arguments else []

    def _release_waiting(self) -> list[Event]:
        """Return what has waited for the part that ended, up to the first part that is still open."""
        events: list[Event] = []
        while (waiting := self._waiting.pop(self._open, None)) is not None:
            for event in waiting:
                events += self._feed_open(event)
            if type(waiting[-1]) is not PartEnded:
                break
            self._open += 1
        return events


def restore_call(call: ToolCall, undo: Undo) -> ToolCall:
    """Return a whole call in the caller's terms."""
    if undo.names or undo.custom:
        call = _restore_name(call, undo)
    arguments = call.arguments
    steps = undo.arguments.get(qualify_name(call.name, call.namespace) if call.namespace else call.name)
    if steps is not None:
        for step in reversed(steps):
            arguments = restore_arguments(arguments, step)
    if undo.custom and call.name in undo.custom:
        arguments = _unwrap_free_text(arguments)
    return call if arguments is call.arguments else structs.replace(call, arguments=arguments)


def _restore_name(call: ToolCall, undo: Undo) -> ToolCall:
    namespace, name = undo.names.get(call.name, (call.namespace, call.name))
    form = "text" if name in undo.custom else call.form
    if (namespace, name, form) == (call.namespace, call.name, call.form):
        return call
    return structs.replace(call, namespace=namespace, name=name, form=form)


def _unwrap_free_text(arguments: str) -> str:
    """Take a free-form input out of the function it was wrapped in; anything else is the text itself."""
    try:
        value = json.decode(arguments)
    except json.Malformed:
        return arguments
    match value:
        case {"input": str(text)}:
            return text
        case _:
            return arguments
