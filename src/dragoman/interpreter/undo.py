"""Turn what a target answers back into the caller's terms: tool names, free-form inputs, values changed to fit."""

from msgspec import structs

from dragoman.core.events import Event, PartDelta, PartEnded, PartStarted
from dragoman.core.parts import AnyPart, ToolCall
from dragoman.interpreter.fitting import Undo, full_name
from dragoman.interpreter.schemas.arguments import changes, restore
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
                named = self._named(call)
                if named.name in self._undo.custom or _full_name(named) in self._undo.arguments:
                    self._held[index] = (named, [])
                return [PartStarted(index, named)]
            case PartDelta(index, text) if index in self._held:
                self._held[index][1].append(text)
                return []
            case PartEnded(index) if index in self._held:
                call, pieces = self._held.pop(index)
                text = self._restored(call, "".join(pieces))
                return [PartDelta(index, text), event] if text else [event]
            case _:
                return [event]

    def passes(self, index: int) -> bool:
        """Tell whether what a part grows by passes as it is."""
        return index not in self._held

    def whole(self, part: ToolCall) -> ToolCall:
        """Return a whole call in the caller's terms."""
        undo = self._undo
        named = self._named(part) if undo.names or undo.custom else part
        if not undo.custom and named.name not in undo.arguments and not named.namespace:
            return named
        text = self._restored(named, named.arguments)
        return named if text is named.arguments else structs.replace(named, arguments=text)

    def _named(self, call: ToolCall) -> ToolCall:
        namespace, name = self._undo.names.get(call.name, (call.namespace, call.name))
        form = "text" if name in self._undo.custom else call.form
        if (namespace, name, form) == (call.namespace, call.name, call.form):
            return call
        return structs.replace(call, namespace=namespace, name=name, form=form)

    def _restored(self, call: ToolCall, arguments: str) -> str:
        steps = self._undo.arguments.get(_full_name(call) if call.namespace else call.name)
        if steps is not None:
            for step in reversed(steps):
                arguments = restore(arguments, step)
        return _free_text(arguments) if call.name in self._undo.custom else arguments


def restored(parts: tuple[AnyPart, ...], undo: Undo) -> tuple[AnyPart, ...]:
    """Return the parts of a whole reply in the caller's terms; the same ones if nothing changes."""
    if not (undo.names or undo.custom or undo.arguments):
        return parts
    restorer: Restorer | None = None
    changed: list[AnyPart] | None = None
    for index, part in enumerate(parts):
        if type(part) is not ToolCall:
            continue
        # Most calls have their own names, and arguments without a number that would be written otherwise.
        if not undo.names and not undo.custom and not part.namespace:
            steps = undo.arguments.get(part.name)
            if steps is None or not any(changes(part.arguments, step) for step in steps):
                continue
        restorer = restorer or Restorer(undo)
        changed = changed or [*parts]
        changed[index] = restorer.whole(part)
    return parts if changed is None else tuple(changed)


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
