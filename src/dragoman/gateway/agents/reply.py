"""Builds one reply from all turns of a run.

Every turn is adapted to the client's dialect by itself, for each may come from another upstream. Our calls and results
are left out, or rendered in the dialect's own form behind the turn that made them. Indexes are renumbered, usage is
summed. Texts of two turns are separated by a blank line: clients join them. A client that asked for an output format
receives only the text of the last turn: what a model says before it calls tools is not in that format.
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
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.turns import SKIP_SIGNATURE
from dragoman.interpreter.undo import generate_id, to_plain_id
from dragoman.tools.handler import qualify_name

_MIN_ID_LENGTH = 16
"""Ids with fewer letters may be given again: what is kept under them would be found by another call."""
_APPROVAL_PREFIX = "mcpr_"
_PartUpdate = PartDelta | PartSigned | PartCited | PartNative | PartEnded


class RunReply:
    """Steps of a run in, events for its client out."""

    def __init__(
        self, client: Dialect, toolset: Toolset, run: str, current_dialect: Callable[[], str], *, is_whole: bool
    ) -> None:
        self._client = client
        self._toolset = toolset
        self._run = run
        self._current_dialect = current_dialect
        """Who speaks now: the dialect of the upstream that answers."""
        self._is_whole = is_whole
        self._client_tools = toolset.client_tools
        self._adapter: EventAdapter | None = None
        self._ledgers: list[Ledger] = []
        self._started: Started | None = None
        self._reply_indexes: dict[int, int] = {}
        """Parts of this turn that the client may hear of, by their index, and their place among those."""
        self._offset = self._turn_parts = 0
        """Parts that the client has heard of before this turn, and in it."""
        self._open_parts: set[int] = set()
        self._hides_call = False
        self._paragraphs = ParagraphSeparator()
        self._native: list[Native] = []
        self._earlier_usage, self._usage = Usage(), Usage()
        self.client_ids: dict[str, str] = {}
        """What the client calls a call that it was told of, by our own id."""
        self.approved_calls: Sequence[tuple[ToolCall, ToolResult]] = ()
        """Calls that the client has allowed, and their results."""
        self._new_messages: list[Message] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the run has added to the history."""
        return tuple(self._new_messages)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be said so far."""
        return tuple(loss for ledger in self._ledgers for loss in ledger.losses())

    def feed(self, step: Step) -> Iterable[Event]:
        """Take one step, return what the client is told of it."""
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
                # Pointers into a whole reply mean the last turn; what repeats a request repeats ours, not the client's.
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
        """Begin a turn; only the first is the beginning of a reply."""
        here = dialect_named(self._current_dialect() or self._client.name)
        self._adapter = None if here is self._client else self._build_adapter(here)
        self._native.clear()
        self._hides_call = False
        if self._started is not None:
            self._adapt(self._started)
            return []
        reply_id = event.id or generate_id(self._client.reply_prefix, self._run)
        self._started = Started(reply_id, event.model, event.created or int(time()))
        told = self._adapt(self._started)
        remote = self._client.remote
        for server, error in self._toolset.server_errors.items():
            listed = (
                remote.render_tool_list(server, self._server_tools(server), self._toolset.client_request, error)
                if remote
                else ()
            )
            told += self._emit_blocks(listed)
        told += self._render_approved()
        self._offset, self._turn_parts = self._offset + self._turn_parts, 0
        return told

    def _server_tools(self, server: str) -> Iterable[Tool]:
        """Iterate the tools of a server, each with the name it has there."""
        for name, origin in self._toolset.tool_origins.items():
            handler = self._toolset.registry.get(name) or self._toolset.approval_registry.get(name)
            if origin.server == server and handler is not None:
                yield structs.replace(handler.definition, name=origin.tool)

    def _build_adapter(self, here: Dialect) -> EventAdapter:
        self._ledgers.append(Ledger(here.reply_pointers))
        choice = self._toolset.client_request.tool_choice
        single = choice is not None and choice.parallel is False
        return EventAdapter(here, self._client, self._ledgers[-1], ReplyOptions(self._run, single, self._is_whole))

    def _start_part(self, event: PartStarted) -> list[Event]:
        part = event.part
        if isinstance(part, ToolCall) and part.executor == "client":
            if qualify_name(part.namespace, part.name) not in self._client_tools:
                self._hides_call = True
                return []
            part = structs.replace(part, id=self._assign_client_id(part.id))
        elif self._is_foreign(part) or (isinstance(part, Text) and part.unread):
            return []
        place = self._reply_indexes[event.index] = len(self._reply_indexes)
        told = self._adapt(self._paragraphs.feed(PartStarted(place, part)))
        if isinstance(part, ToolCall) and self._hides_call and self._client.issuer == SKIP_SIGNATURE.issuer:
            # The first call of a step is the one that is signed, and the client does not hear of that.
            told += self._adapt(PartSigned(place, SKIP_SIGNATURE))
        return told

    def _is_foreign(self, part: AnyPart) -> bool:
        return isinstance(part, Opaque) and part.dialect != self._client.name and self._adapter is None

    def _assign_client_id(self, call_id: str) -> str:
        """Return what the client calls a call, and remember it."""
        told_id = (
            call_id if len(call_id) >= _MIN_ID_LENGTH else generate_id(self._client.call_prefix, self._run, call_id)
        )
        self.client_ids[call_id] = to_plain_id(told_id) if self._client.holds.plain_ids else told_id
        return self.client_ids[call_id]

    def _update_part(self, event: _PartUpdate) -> list[Event]:
        place = self._reply_indexes.get(event.index)
        return [] if place is None else self._adapt(self._paragraphs.feed(structs.replace(event, index=place)))

    def _adapt(self, event: Event) -> list[Event]:
        """Fit an event of this turn, and put it in its place in the whole reply."""
        told: list[Event] = []
        for fitted in self._adapter.feed(event) if self._adapter is not None else [event]:
            match fitted:
                case PartStarted(index, part):
                    self._turn_parts = max(self._turn_parts, index + 1)
                    self._open_parts.add(self._offset + index)
                    told.append(PartStarted(self._offset + index, part))
                case PartEnded(index, complete):
                    self._open_parts.discard(self._offset + index)
                    told.append(PartEnded(self._offset + index, complete))
                case PartDelta() | PartSigned() | PartCited() | PartNative():
                    told.append(structs.replace(fitted, index=self._offset + fitted.index))
                case Started() | UsageSeen() | Native() | Finished() | Failed():
                    told.append(fitted)
                case _:
                    assert_never(fitted)
        return told

    def _end_turn(self, turn: TurnEnded) -> list[Event]:
        self._new_messages += turn.messages
        # A turn that was paused goes on where it was.
        self._paragraphs.end_turn(continues=turn.response.finish.reason == "paused")
        told = self._render_own_calls(turn)
        self._offset, self._turn_parts = self._offset + self._turn_parts, 0
        self._reply_indexes.clear()
        self._earlier_usage, self._usage = add_usage(self._earlier_usage, self._usage), Usage()
        return told

    def _render_own_calls(self, turn: TurnEnded) -> list[Event]:
        """Tell of our own calls where the client asked for their server."""
        remote = self._client.remote
        if remote is None or not self._toolset.tool_origins:
            return []
        parts = [part for message in turn.messages for part in message.parts]
        results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
        told: list[Event] = []
        for call in parts:
            origin = self._toolset.tool_origins.get(call.name) if isinstance(call, ToolCall) else None
            if origin is None or not isinstance(call, ToolCall):
                continue
            is_asked = call.id not in results
            prefix = _APPROVAL_PREFIX if is_asked else remote.call_prefix
            told_id = self.client_ids[call.id] = generate_id(prefix, self._run, call.id)
            named = structs.replace(call, id=told_id, name=origin.tool)
            blocks = (
                remote.render_approval_request(origin.server, named)
                if is_asked
                else remote.render_call(origin.server, named, results[call.id], "")
            )
            told += self._emit_blocks(blocks)
        return told

    def _render_approved(self) -> list[Event]:
        """Tell of the calls that the client has allowed with this request."""
        remote, told = self._client.remote, list[Event]()
        for call, result in self.approved_calls if remote is not None else ():
            origin = self._toolset.tool_origins.get(call.name)
            if origin is not None and remote is not None:
                named = structs.replace(call, id=generate_id(remote.call_prefix, self._run, call.id), name=origin.tool)
                told += self._emit_blocks(remote.render_call(origin.server, named, result, call.id))
        return told

    def _emit_blocks(self, blocks: Iterable[bytes]) -> list[Event]:
        told: list[Event] = []
        for raw in blocks:
            index, self._turn_parts = self._offset + self._turn_parts, self._turn_parts + 1
            told += replay_part(index, Opaque(dialect=self._client.name, raw=raw))
        return told

    def _end_run(self, run: RunEnded) -> list[Event]:
        if run.problem is not None:
            return self._adapt(Failed(run.problem))
        told: list[Event] = []
        if self._started is None:
            told += self._start_turn(Started("", self._toolset.request.model))
        told += [PartEnded(index, complete=False) for index in sorted(self._open_parts)]
        return [*told, *self._native, *self._adapt(Finished(run.finish))]


_GAP = "\n\n"


class ParagraphSeparator:
    """Events of a run's turns in, the same with blank lines out."""

    def __init__(self) -> None:
        self._text_end = ""
        """How the text that was said so far ends."""
        self._turn_began = False
        """A turn has begun since."""
        self._waiting: set[int] = set()
        """Texts of this turn that have said nothing yet."""
        self._offsets: dict[int, int] = {}
        """By how much the words of a text stand behind where the model put them."""

    def end_turn(self, *, continues: bool = False) -> None:
        """A turn is over; the next one may be the rest of it."""
        self._waiting.clear()
        self._offsets.clear()
        self._turn_began = bool(self._text_end) and not continues

    def feed(self, event: Event) -> Event:
        """Return an event of this turn as it is told."""
        match event:
            case PartStarted(index, Text()):
                self._waiting.add(index)
            case PartDelta(index, text) if index in self._waiting and text:
                self._waiting.discard(index)
                if self._turn_began:
                    event = self._add_gap(event)
                self._text_end = text[-len(_GAP) :]
                self._offsets.setdefault(index, 0)
            case PartDelta(index, text) if index in self._offsets and text:
                self._text_end = (self._text_end + text)[-len(_GAP) :]
            case PartCited(index, citation) if self._offsets.get(index):
                return PartCited(index, _shift_citation(citation, self._offsets[index]))
            case _:
                pass
        return event

    def _add_gap(self, event: PartDelta) -> PartDelta:
        """Begin a paragraph, unless the words do so themselves."""
        self._turn_began = False
        breaks = len(self._text_end) - len(self._text_end.rstrip("\n")) + len(event.text) - len(event.text.lstrip("\n"))
        gap = _GAP[breaks:]
        self._offsets[event.index] = len(gap)
        return structs.replace(event, text=gap + event.text)


def _shift_citation(citation: Citation, by: int) -> Citation:
    """Return a citation of words that stand further behind."""
    if citation.start is None or citation.end is None or not citation.url:
        return citation
    moved = structs.replace(citation, start=citation.start + by, end=citation.end + by)
    # Its own form has the old places.
    return structs.replace(moved, dialect="", raw=b"") if citation.raw else moved


async def drop_interim_texts(steps: AsyncIterator[Step]) -> AsyncIterator[Step]:
    """Iterate steps of a run without the texts that stand before calls of ours."""
    held: list[Step] = []
    async for step in steps:
        match step:
            case PartStarted(part=Text()):
                held.append(step)
                continue
            case TurnEnded() if _continues_after(step):
                told = _drop_texts(held)
            case TurnEnded() | RunEnded():
                told = iter(held)
            case _ if held:
                held.append(step)  # behind a text, so that the order stays
                continue
            case _:
                told = iter(())
        for each in told:
            yield each
        held.clear()
        yield step


def _continues_after(turn: TurnEnded) -> bool:
    """Tell whether the model is asked again after a turn: all of its calls were ours, or one could not be read."""
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
