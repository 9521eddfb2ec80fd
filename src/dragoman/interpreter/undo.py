"""Turn what a target answers back into the caller's terms: tool names, free-form inputs, values changed to fit."""

from msgspec import structs

from dragoman.core.events import Event, PartDelta, PartEnded, PartStarted
from dragoman.core.parts import ToolCall
from dragoman.interpreter.fitting import Undo, full_name
from dragoman.interpreter.schemas.arguments import restore
from dragoman.wire import json


class Restorer:
    """Events in, events in the caller's terms out. Arguments that must change are held until they are whole."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self.idle = not (undo.names or undo.custom or undo.arguments)
        """Nothing has to be restored: every event passes as it is."""
        self._held: dict[int, tuple[ToolCall, list[str]]] = {}

    def feed(self, event: Event) -> list[Event]:
        """Take the next event."""
        if self.idle:
            return [event]
        match event:
            case PartStarted(index, ToolCall() as call):
                named = _named(call, self._undo)
                if named.name in self._undo.custom or _full_name(named) in self._undo.arguments:
                    self._held[index] = (call, [])
                return [PartStarted(index, named)]
            case PartDelta(index, text) if index in self._held:
                self._held[index][1].append(text)
                return []
            case PartEnded(index) if index in self._held:
                call, pieces = self._held.pop(index)
                text = restore_call(structs.replace(call, arguments="".join(pieces)), self._undo).arguments
                return [PartDelta(index, text), event] if text else [event]
            case _:
                return [event]

    def passes(self, index: int) -> bool:
        """Tell whether what a part grows by passes as it is."""
        return index not in self._held

    def whole(self, part: ToolCall) -> ToolCall:
        """Return a whole call in the caller's terms."""
        return restore_call(part, self._undo)


def restore_call(call: ToolCall, undo: Undo) -> ToolCall:
    """Return a whole call in the caller's terms."""
    if undo.names or undo.custom:
        call = _named(call, undo)
    arguments = call.arguments
    steps = undo.arguments.get(_full_name(call) if call.namespace else call.name)
    if steps is not None:
        for step in reversed(steps):
            arguments = restore(arguments, step)
    if undo.custom and call.name in undo.custom:
        arguments = _free_text(arguments)
    return call if arguments is call.arguments else structs.replace(call, arguments=arguments)


def _named(call: ToolCall, undo: Undo) -> ToolCall:
    namespace, name = undo.names.get(call.name, (call.namespace, call.name))
    form = "text" if name in undo.custom else call.form
    if (namespace, name, form) == (call.namespace, call.name, call.form):
        return call
    return structs.replace(call, namespace=namespace, name=name, form=form)


def _full_name(call: ToolCall) -> str:
    return full_name(call.name, call.namespace)


def _free_text(arguments: str) -> str:
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
