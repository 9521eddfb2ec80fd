"""Builds one reply from all turns of a run.

Each turn is adapted to the client's dialect separately, because each may come from another upstream. Server-side calls
and results are left out, or rendered in the dialect's own format after the turn that made them. Indexes are renumbered,
usage is summed. Texts of two turns are separated by a blank line, because clients join them. A client that requested an
output format receives only the text of the last turn: text before tool calls is not in that format.
"""

from collections.abc import Callable, Iterable, Sequence
from time import time
from typing import assert_never

from msgspec import structs

from dragoman.agent import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    RunEnded,
    Step,
    TurnEnded,
)
from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Tool
from dragoman.core.response import Usage, add_usage
from dragoman.core.stream import replay_part
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.reply_texts import ParagraphSeparator
from dragoman.gateway.agents.toolset import Toolset
from dragoman.interpreter.ids import generate_id, to_plain_id
from dragoman.interpreter.ledger import Ledger, open_reply_ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.searches import SearchArranger, build_arranger
from dragoman.interpreter.tool_kinds import declares_search
from dragoman.interpreter.turns import SKIP_SIGNATURE
from dragoman.tools import Execution
from dragoman.tools.handler import qualify_name

_MIN_ID_LENGTH = 16
"""Shorter ids may repeat; then saved turns would be found by another call."""
_APPROVAL_PREFIX = "mcpr_"
_PartUpdate = PartDelta | PartSigned | PartCited | PartNative | PartEnded
_PART_EVENTS = (PartStarted, PartDelta, PartSigned, PartCited, PartNative, PartEnded)


class RunReply:
    """Converts the steps of a run to events for the client."""

    def __init__(
        self, client: Dialect, toolset: Toolset, options: ReplyOptions, current_dialect: Callable[[], str]
    ) -> None:
        self._client = client
        self._toolset = toolset
        choice = toolset.client_request.tool_choice
        self._options = structs.replace(
            options,
            single_call=choice is not None and choice.parallel is False,
            searches=declares_search(toolset.request.tools),
        )
        self._run = options.salt
        self._current_dialect = current_dialect
        """Returns the dialect of the upstream that is replying."""
        self._client_tools = toolset.client_tools
        self._adapter: EventAdapter | None = None
        self._arranger: SearchArranger | None = None
        """Arranges the vendor's own web searches and their citations in this turn."""
        self._ledgers: list[Ledger] = []
        self._started: Started | None = None
        self._reply_indexes: dict[int, int] = {}
        """The parts of this turn that the client may receive: their index in the turn and their index in the reply."""
        self._part_count = 0
        """The number of parts that the client has received."""
        self._sent_indexes: dict[int, int] = {}
        """The indexes in the reply of the adapted parts of this turn, by their index in the turn."""
        self._held: list[Step] | None = None
        """The parts of this turn that come after a call whose result the client sees: they follow the result."""
        self._open_parts: set[int] = set()
        self._hides_call = False
        self._paragraphs = ParagraphSeparator()
        self._native: list[Native] = []
        self._earlier_usage, self._usage = Usage(), Usage()
        self.client_ids: dict[str, str] = {}
        """The client's ids of calls, by the id in the run."""
        self.approved_calls: Sequence[tuple[ToolCall, ToolResult]] = ()
        """Calls that the client approved, and their results."""
        self._new_messages: list[Message] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the run has added to the history."""
        return tuple(self._new_messages)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses so far."""
        return tuple(loss for ledger in self._ledgers for loss in ledger.losses())

    def feed(self, step: Step) -> Iterable[Event]:
        """Process one step; return the events for the client."""
        if self._held is not None and isinstance(step, _PART_EVENTS):
            if not (isinstance(step, PartStarted) and self._is_shown(step.part)):
                self._held.append(step)
            return []
        match step:
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded():
                return self._update_part(step)
            case PartStarted():
                return self._start_part(step)
            case Started():
                return self._start_turn(step)
            case UsageSeen(usage):
                self._usage = usage
                self._adapt(step)
                return [UsageSeen(self._total_usage)]
            case Native(field=field):
                if self._adapter is not None:
                    return self._adapt(step)
                # Pointers into a whole reply refer to the last turn. Fields that echo the request are left out, because
                # they echo the gateway's request, not the client's.
                if "/" + field.split("/", 2)[1] not in self._client.repeated:
                    self._native.append(step)
                return []
            case TurnEnded():
                return self._end_turn(step)
            case RunEnded():
                return self._end_run(step)
            case CallStarted(call):
                function = self._toolset.find_shown(call)
                return self._emit_parts(function.render_call(call)) if function is not None else []
            case CallEnded(call, execution):
                return self._end_call(call, execution)
            case Finished() | Failed() | CallProgressed() | ApprovalAsked() | Compacted():
                return []
            case _:
                assert_never(step)

    def _start_turn(self, event: Started) -> list[Event]:
        """Start a turn; only the first one starts the reply."""
        released = self._release_arranged()
        source = dialect_named(self._current_dialect() or self._client.name)
        self._adapter = None if source is self._client else self._build_adapter(source)
        self._arranger = None if self._adapter is None else build_arranger(self._adapter)
        self._native.clear()
        self._sent_indexes.clear()
        self._hides_call = False
        if self._started is not None:
            self._adapt(self._started)
            return released
        reply_id = event.id or generate_id(self._client.reply_prefix, self._run)
        self._started = Started(reply_id, event.model, event.created or int(time()))
        events = self._adapt(self._started)
        remote = self._client.remote
        for server, error in self._toolset.server_errors.items():
            tool_list = (
                remote.render_tool_list(server, self._server_tools(server), self._toolset.client_request, error)
                if remote
                else ()
            )
            events += self._emit_blocks(tool_list)
        return events + self._render_approved()

    def _server_tools(self, server: str) -> Iterable[Tool]:
        """Yield the tools of a server with their names there."""
        for name, origin in self._toolset.tool_origins.items():
            handler = self._toolset.registry.get(name) or self._toolset.approval_registry.get(name)
            if origin.server == server and handler is not None:
                yield structs.replace(handler.definition, name=origin.tool)

    def _build_adapter(self, source: Dialect) -> EventAdapter:
        self._ledgers.append(open_reply_ledger(source))
        return EventAdapter(source, self._client, self._ledgers[-1], self._options)

    def _start_part(self, event: PartStarted) -> list[Event]:
        part = event.part
        if isinstance(part, ToolCall) and part.executor == "client":
            if qualify_name(part.namespace, part.name) not in self._client_tools:
                self._hides_call = True
                if self._is_shown(part):
                    self._held = []
                return []
            part = structs.replace(part, id=self._assign_client_id(part.id))
        elif self._is_foreign(part) or (isinstance(part, Text) and part.unread):
            return []
        index = self._reply_indexes[event.index] = len(self._reply_indexes)
        events = self._adapt(self._paragraphs.feed(PartStarted(index, part)))
        if isinstance(part, ToolCall) and self._hides_call and self._client.issuer == SKIP_SIGNATURE.issuer:
            # Gemini signs the first call of a step, which the client does not receive, so this call gets a placeholder.
            events += self._adapt(PartSigned(index, SKIP_SIGNATURE))
        return events

    def _is_shown(self, part: AnyPart) -> bool:
        return isinstance(part, ToolCall) and self._toolset.find_shown(part) is not None

    def _is_foreign(self, part: AnyPart) -> bool:
        return isinstance(part, Opaque) and part.dialect != self._client.name and self._adapter is None

    def _assign_client_id(self, call_id: str) -> str:
        """Choose the client's id for a call and store it."""
        client_id = (
            call_id if len(call_id) >= _MIN_ID_LENGTH else generate_id(self._client.call_prefix, self._run, call_id)
        )
        self.client_ids[call_id] = to_plain_id(client_id) if self._client.capabilities.plain_ids else client_id
        return self.client_ids[call_id]

    def _update_part(self, event: _PartUpdate) -> list[Event]:
        index = self._reply_indexes.get(event.index)
        return [] if index is None else self._adapt(self._paragraphs.feed(structs.replace(event, index=index)))

    def _adapt(self, event: Event) -> list[Event]:
        """Adapt an event of this turn, and renumber its part for the whole reply."""
        return self._send([event] if self._arranger is None else self._arranger.feed([event]))

    def _release_arranged(self) -> list[Event]:
        """Return what is held back until the end of a turn."""
        return self._send(self._arranger.release()) if self._arranger is not None else []

    def _send(self, turn_events: Iterable[Event]) -> list[Event]:
        if self._adapter is None:
            return self._renumber(turn_events)
        return self._renumber([adapted for event in turn_events for adapted in self._adapter.feed(event)])

    def _renumber(self, turn_events: Iterable[Event]) -> list[Event]:
        events: list[Event] = []
        for adapted in turn_events:
            match adapted:
                case PartStarted(index, part):
                    sent = self._sent_indexes[index] = self._next_index()
                    self._open_parts.add(sent)
                    events.append(PartStarted(sent, part))
                case PartEnded(index, complete):
                    self._open_parts.discard(self._sent_indexes[index])
                    events.append(PartEnded(self._sent_indexes[index], complete))
                case PartDelta() | PartSigned() | PartCited() | PartNative():
                    events.append(structs.replace(adapted, index=self._sent_indexes[adapted.index]))
                case Started() | UsageSeen() | Native() | Finished() | Failed():
                    events.append(adapted)
                case _:
                    assert_never(adapted)
        return events

    def _next_index(self) -> int:
        index, self._part_count = self._part_count, self._part_count + 1
        return index

    def _end_call(self, call: ToolCall, execution: Execution) -> list[Event]:
        """Render a call whose result the client sees, if this is one, and count what it used."""
        function = self._toolset.find_shown(call)
        if function is None:
            return []
        self._earlier_usage = add_usage(self._earlier_usage, function.count_usage(execution))
        return [*self._emit_parts(function.render_result(call, execution)), UsageSeen(self._total_usage)]

    @property
    def _total_usage(self) -> Usage:
        return add_usage(self._earlier_usage, self._usage)

    def _release_held(self) -> list[Event]:
        """Return the events of the parts that waited for the result of a call."""
        held, self._held = self._held or (), None
        return [event for step in held for event in self.feed(step)]

    def _end_turn(self, turn: TurnEnded) -> list[Event]:
        self._new_messages += turn.messages
        released = self._release_held()
        # A paused turn is continued by the next one.
        self._paragraphs.end_turn(continues=turn.response.finish.reason == "paused")
        events = self._render_own_calls(turn)
        self._reply_indexes.clear()
        self._earlier_usage, self._usage = self._total_usage, Usage()
        return released + events

    def _render_own_calls(self, turn: TurnEnded) -> list[Event]:
        """Render the server-side calls whose servers the client requested."""
        remote = self._client.remote
        if remote is None or not self._toolset.tool_origins:
            return []
        parts = [part for message in turn.messages for part in message.parts]
        results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
        events: list[Event] = []
        for call in parts:
            origin = self._toolset.tool_origins.get(call.name) if isinstance(call, ToolCall) else None
            if origin is None or not isinstance(call, ToolCall):
                continue
            needs_approval = call.id not in results
            prefix = _APPROVAL_PREFIX if needs_approval else remote.call_prefix
            client_id = self.client_ids[call.id] = generate_id(prefix, self._run, call.id)
            renamed = structs.replace(call, id=client_id, name=origin.tool)
            blocks = (
                remote.render_approval_request(origin.server, renamed)
                if needs_approval
                else remote.render_call(origin.server, renamed, results[call.id], "")
            )
            events += self._emit_blocks(blocks)
        return events

    def _render_approved(self) -> list[Event]:
        """Render the calls that the client approved with this request."""
        remote, events = self._client.remote, list[Event]()
        for call, result in self.approved_calls if remote is not None else ():
            origin = self._toolset.tool_origins.get(call.name)
            if origin is not None and remote is not None:
                renamed = structs.replace(
                    call, id=generate_id(remote.call_prefix, self._run, call.id), name=origin.tool
                )
                events += self._emit_blocks(remote.render_call(origin.server, renamed, result, call.id))
        return events

    def _emit_blocks(self, blocks: Iterable[bytes]) -> list[Event]:
        return self._emit_parts(Opaque(dialect=self._client.name, raw=raw) for raw in blocks)

    def _emit_parts(self, parts: Iterable[AnyPart]) -> list[Event]:
        """Return the events of parts that are in the client's own form."""
        # The turn may go on after them.
        before = self._send(self._arranger.flush()) if self._arranger is not None else []
        return [*before, *(event for part in parts for event in replay_part(self._next_index(), part))]

    def _end_run(self, run: RunEnded) -> list[Event]:
        if run.problem is not None:
            return self._adapt(Failed(run.problem))
        events: list[Event] = []
        if self._started is None:
            events += self._start_turn(Started("", self._toolset.request.model))
        finished = self._adapt(Finished(run.finish))
        cut_off = [PartEnded(index, complete=False) for index in sorted(self._open_parts)]
        return [*events, *cut_off, *self._native, *finished]
