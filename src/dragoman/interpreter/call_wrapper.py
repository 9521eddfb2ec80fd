"""Expands the call `multi_tool_use.parallel`, in which some GPT models wrap several calls, into these calls.

Its arguments are `{"tool_uses": [{"recipient_name": "functions.NAME", "parameters": {...}}, …]}`. No client declares
such a tool, so none could run it. The arguments of each call keep their bytes.
"""

from collections.abc import Iterable

from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.core.events import Event, Failed, PartCited, PartDelta, PartEnded, PartNative, PartSigned, PartStarted
from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.response import Response
from dragoman.core.stream import replay_part
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json

_WRAPPERS = frozenset({("", "multi_tool_use.parallel"), ("multi_tool_use", "parallel")})
WRAPPER_NAMES = frozenset(name for _, name in _WRAPPERS)
"""Names of calls that may be wrappers; most replies have none, and so need no expansion."""
_NAMESPACE = "functions."
_EXPANDED = "the wrapper multi_tool_use.parallel is expanded into its calls"
_PartEvent = PartStarted | PartDelta | PartSigned | PartCited | PartNative | PartEnded
_PART_EVENTS = (PartStarted, PartDelta, PartSigned, PartCited, PartNative, PartEnded)


class _ToolUse(Struct):
    """One call in a wrapper."""

    recipient_name: str
    parameters: Raw = Raw(b"{}")


class _Wrapper(Struct):
    """The arguments of a wrapper."""

    tool_uses: list[_ToolUse]


_WRAPPER: Decoder[_Wrapper] = Decoder(_Wrapper)


def _is_wrapper(part: AnyPart) -> bool:
    return type(part) is ToolCall and (part.namespace, part.name) in _WRAPPERS


def _expand(wrapper: ToolCall, ledger: Ledger) -> list[ToolCall]:
    """Return the calls in a wrapper; the wrapper itself if its arguments are cut off or are no list of calls."""
    try:
        uses = json.decode_with(_WRAPPER, wrapper.arguments).tool_uses if wrapper.complete else []
    except json.Malformed:
        uses = []
    if not uses:
        return [wrapper]
    ledger.report_approximated(wrapper.where, _EXPANDED)
    calls: list[ToolCall] = []
    for index, use in enumerate(uses):
        name, arguments = use.recipient_name.removeprefix(_NAMESPACE), bytes(use.parameters).decode()
        call = structs.replace(wrapper, name=name, namespace="", arguments=arguments)
        if index:
            call_id = f"{wrapper.id}_{index}" if wrapper.id else ""
            call = structs.replace(call, id=call_id, signature=None, extras=None)
        calls.append(call)
    return calls


def expand_calls(response: Response, ledger: Ledger) -> Response:
    """Return a whole reply with the calls of its wrappers."""
    parts: list[AnyPart] = []
    for part in response.parts:
        parts += _expand(part, ledger) if isinstance(part, ToolCall) and _is_wrapper(part) else [part]
    return structs.replace(response, parts=tuple(parts))


class CallExpander:
    """Expands the wrappers in a stream: each is held until it ends, and so are the parts that start after it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._wrapper: ToolCall | None = None
        self._index = 0
        """The index of the open wrapper."""
        self._arguments: list[str] = []
        self._other: list[_PartEvent] = []
        """Other events of the wrapper: its signature and the fields of its vendor."""
        self._waiting: list[_PartEvent] = []
        self._shift = 0
        """How many parts more than in the upstream's stream there are before the next part."""
        self._start = 0
        """The upstream's index from which parts are renumbered."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events with the calls of wrappers in their place."""
        expanded: list[Event] = []
        for event in events:
            if not isinstance(event, _PART_EVENTS):
                if type(event) is Failed:
                    self._wrapper = None
                expanded.append(event)
            elif self._wrapper is None:
                self._pass(event, expanded)
            elif event.index < self._index:
                expanded.append(event)
            elif event.index > self._index:
                self._waiting.append(event)
            else:
                self._hold(self._wrapper, event, expanded)
        return expanded

    def _pass(self, event: _PartEvent, expanded: list[Event]) -> None:
        if type(event) is PartStarted and isinstance(event.part, ToolCall) and _is_wrapper(event.part):
            self._wrapper, self._index = event.part, event.index
            self._arguments, self._other = [], []
        else:
            shift = self._shift if event.index >= self._start else 0
            expanded.append(structs.replace(event, index=event.index + shift) if shift else event)

    def _hold(self, wrapper: ToolCall, event: _PartEvent, expanded: list[Event]) -> None:
        """Hold an event of the open wrapper; at its end, emit the calls and what waited for them."""
        if type(event) is PartDelta:
            self._arguments.append(event.text)
            return
        if type(event) is not PartEnded:
            self._other.append(event)
            return
        whole = structs.replace(wrapper, arguments="".join(self._arguments), complete=event.complete)
        first = self._index + self._shift
        calls = _expand(whole, self._ledger)
        for number, call in enumerate(calls):
            started, *rest = replay_part(first + number, call)
            others = [structs.replace(other, index=first) for other in self._other] if number == 0 else []
            expanded += [started, *others, *rest]
        self._shift += len(calls) - 1
        self._start = self._index + 1
        self._wrapper = None
        waiting, self._waiting = self._waiting, []
        expanded += self.feed(waiting)
