"""Builds one reply from all turns of a run.

Each turn is adapted to the client's dialect separately, because each may come from another upstream. Server-side calls
and results are left out, or rendered in the dialect's own format after the turn that made them. Indexes are renumbered,
usage is summed. Texts of two turns are separated by a blank line, because clients join them. A client that requested an
output format receives only the text of the last turn: text before tool calls is not in that format.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
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
from dragoman.agent.history import calls_of
from dragoman.agent.limits import add_usage
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
from dragoman.core.parts import AnyPart, Citation, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Tool
from dragoman.core.response import Usage
from dragoman.core.stream import replay_part
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.toolset import Toolset
from dragoman.interpreter.ids import generate_id, to_plain_id
from dragoman.interpreter.ledger import Ledger, open_reply_ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.turns import SKIP_SIGNATURE
from dragoman.tools.handler import qualify_name

_MIN_ID_LENGTH = 16
"""Shorter ids may repeat; then saved turns would be found by another call."""
_APPROVAL_PREFIX = "mcpr_"
_PartUpdate = PartDelta | PartSigned | PartCited | PartNative | PartEnded


class RunReply:
    """Converts the steps of a run to events for the client."""

    def __init__(
        self, client: Dialect, toolset: Toolset, run: str, current_dialect: Callable[[], str], *, is_whole: bool
    ) -> None:
        self._client = client
        self._toolset = toolset
        self._run = run
        self._current_dialect = current_dialect
        """Returns the dialect of the upstream that is replying."""
        self._is_whole = is_whole
        self._client_tools = toolset.client_tools
        self._adapter: EventAdapter | None = None
        self._ledgers: list[Ledger] = []
        self._started: Started | None = None
        self._reply_indexes: dict[int, int] = {}
        """The parts of this turn that the client may receive: their index in the turn and their index in the reply."""
        self._offset = self._turn_parts = 0
        """The number of parts that the client has received before this turn, and in it."""
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
                return [UsageSeen(add_usage(self._earlier_usage, usage))]
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
            case Finished() | Failed() | CallStarted() | CallProgressed() | CallEnded() | ApprovalAsked() | Compacted():
                return []
            case _:
                assert_never(step)

    def _start_turn(self, event: Started) -> list[Event]:
        """Start a turn; only the first one starts the reply."""
        source = dialect_named(self._current_dialect() or self._client.name)
        self._adapter = None if source is self._client else self._build_adapter(source)
        self._native.clear()
        self._hides_call = False
        if self._started is not None:
            self._adapt(self._started)
            return []
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
        events += self._render_approved()
        self._offset, self._turn_parts = self._offset + self._turn_parts, 0
        return events

    def _server_tools(self, server: str) -> Iterable[Tool]:
        """Yield the tools of a server with their names there."""
        for name, origin in self._toolset.tool_origins.items():
            handler = self._toolset.registry.get(name) or self._toolset.approval_registry.get(name)
            if origin.server == server and handler is not None:
                yield structs.replace(handler.definition, name=origin.tool)

    def _build_adapter(self, source: Dialect) -> EventAdapter:
        self._ledgers.append(open_reply_ledger(source))
        choice = self._toolset.client_request.tool_choice
        single = choice is not None and choice.parallel is False
        return EventAdapter(source, self._client, self._ledgers[-1], ReplyOptions(self._run, single, self._is_whole))

    def _start_part(self, event: PartStarted) -> list[Event]:
        part = event.part
        if isinstance(part, ToolCall) and part.executor == "client":
            if qualify_name(part.namespace, part.name) not in self._client_tools:
                self._hides_call = True
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
        events: list[Event] = []
        for adapted in self._adapter.feed(event) if self._adapter is not None else [event]:
            match adapted:
                case PartStarted(index, part):
                    self._turn_parts = max(self._turn_parts, index + 1)
                    self._open_parts.add(self._offset + index)
                    events.append(PartStarted(self._offset + index, part))
                case PartEnded(index, complete):
                    self._open_parts.discard(self._offset + index)
                    events.append(PartEnded(self._offset + index, complete))
                case PartDelta() | PartSigned() | PartCited() | PartNative():
                    events.append(structs.replace(adapted, index=self._offset + adapted.index))
                case Started() | UsageSeen() | Native() | Finished() | Failed():
                    events.append(adapted)
                case _:
                    assert_never(adapted)
        return events

    def _end_turn(self, turn: TurnEnded) -> list[Event]:
        self._new_messages += turn.messages
        # A paused turn is continued by the next one.
        self._paragraphs.end_turn(continues=turn.response.finish.reason == "paused")
        events = self._render_own_calls(turn)
        self._offset, self._turn_parts = self._offset + self._turn_parts, 0
        self._reply_indexes.clear()
        self._earlier_usage, self._usage = add_usage(self._earlier_usage, self._usage), Usage()
        return events

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
        events: list[Event] = []
        for raw in blocks:
            index, self._turn_parts = self._offset + self._turn_parts, self._turn_parts + 1
            events += replay_part(index, Opaque(dialect=self._client.name, raw=raw))
        return events

    def _end_run(self, run: RunEnded) -> list[Event]:
        if run.problem is not None:
            return self._adapt(Failed(run.problem))
        events: list[Event] = []
        if self._started is None:
            events += self._start_turn(Started("", self._toolset.request.model))
        events += [PartEnded(index, complete=False) for index in sorted(self._open_parts)]
        return [*events, *self._native, *self._adapt(Finished(run.finish))]


_PARAGRAPH_BREAK = "\n\n"


class ParagraphSeparator:
    """Inserts blank lines between the texts of a run's turns."""

    def __init__(self) -> None:
        self._text_end = ""
        """The last characters of the text so far."""
        self._is_new_turn = False
        """Whether the next text is the first of a new turn."""
        self._empty_texts: set[int] = set()
        """Texts of this turn that are still empty."""
        self._offsets: dict[int, int] = {}
        """The number of characters inserted at the start of each text."""

    def end_turn(self, *, continues: bool = False) -> None:
        """End a turn; if `continues`, the next one is the rest of it."""
        self._empty_texts.clear()
        self._offsets.clear()
        self._is_new_turn = bool(self._text_end) and not continues

    def feed(self, event: Event) -> Event:
        """Return an event, with a paragraph break before the first text of a turn."""
        match event:
            case PartStarted(index, Text()):
                self._empty_texts.add(index)
            case PartDelta(index, text) if index in self._empty_texts and text:
                self._empty_texts.discard(index)
                if self._is_new_turn:
                    event = self._add_break(event)
                self._text_end = text[-len(_PARAGRAPH_BREAK) :]
                self._offsets.setdefault(index, 0)
            case PartDelta(index, text) if index in self._offsets and text:
                self._text_end = (self._text_end + text)[-len(_PARAGRAPH_BREAK) :]
            case PartCited(index, citation) if self._offsets.get(index):
                return PartCited(index, _shift_citation(citation, self._offsets[index]))
            case _:
                pass
        return event

    def _add_break(self, event: PartDelta) -> PartDelta:
        """Insert the line breaks that are missing before a new paragraph."""
        self._is_new_turn = False
        present = (
            len(self._text_end) - len(self._text_end.rstrip("\n")) + len(event.text) - len(event.text.lstrip("\n"))
        )
        missing = _PARAGRAPH_BREAK[present:]
        self._offsets[event.index] = len(missing)
        return structs.replace(event, text=missing + event.text)


def _shift_citation(citation: Citation, by: int) -> Citation:
    """Shift the positions of a citation."""
    if citation.start is None or citation.end is None or not citation.url:
        return citation
    shifted = structs.replace(citation, start=citation.start + by, end=citation.end + by)
    # The raw form has the old positions.
    return structs.replace(shifted, dialect="", raw=b"") if citation.raw else shifted


async def drop_interim_texts(steps: AsyncIterator[Step], *, is_stream: bool) -> AsyncIterator[Step]:
    """Yield the steps of a run without the texts before server-side calls.

    In a stream, a text that begins as a JSON value is sent as the answer; any other waits for the end of its turn.
    """
    buffer: list[Step] = []
    is_answer = has_call = False
    async for step in steps:
        released: Iterator[Step] = iter(())
        match step:
            case TurnEnded() | RunEnded():
                is_interim = isinstance(step, TurnEnded) and _continues_after(step)
                released = _drop_texts(buffer) if is_interim else iter(buffer)
                is_answer = has_call = False
            case PartDelta(text=text) if is_stream and not has_call and _begins_json(buffer, text):
                released, is_answer = iter(buffer), True
            case _ if buffer or (not is_answer and isinstance(step, PartStarted) and isinstance(step.part, Text)):
                buffer.append(step)  # what follows a buffered text waits too, to keep the order
                continue
            case _:
                has_call = has_call or (isinstance(step, PartStarted) and isinstance(step.part, ToolCall))
        for buffered in released:
            yield buffered
        buffer.clear()
        yield step


def _begins_json(buffer: Sequence[Step], text: str) -> bool:
    """Return whether a piece is the first of a buffered text that is not blank, and begins an object or array."""
    blank = all(isinstance(step, PartDelta) and not step.text.strip() for step in buffer[1:])
    return bool(buffer) and text.lstrip().startswith(("{", "[")) and blank


def _continues_after(turn: TurnEnded) -> bool:
    """Return whether the model is called again after a turn: all its calls were server-side, or one was malformed."""
    results = [part for message in turn.messages for part in message.parts if isinstance(part, ToolResult)]
    calls = calls_of(turn.response.parts)
    return turn.response.finish.reason == "malformed_call" or bool(calls and len(results) >= len(calls))


def _drop_texts(steps: Iterable[Step]) -> Iterator[Step]:
    texts: set[int] = set()
    for step in steps:
        match step:
            case PartStarted(index, Text()):
                texts.add(index)
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() if step.index in texts:
                pass
            case _:
                yield step
