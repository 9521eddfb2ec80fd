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
from dragoman.interpreter.undo import generate_id, plain_id
from dragoman.tools.handler import qualify_name

_SHORT = 16
"""Ids with fewer letters may be given again: what is kept under them would be found by another call."""
_ASKED = "mcpr_"
_Inner = PartDelta | PartSigned | PartCited | PartNative | PartEnded


class RunReply:
    """Steps of a run in, events for its client out."""

    def __init__(self, client: Dialect, crew: Toolset, run: str, spoken: Callable[[], str], *, whole: bool) -> None:
        self._client = client
        self._crew = crew
        self._run = run
        self._spoken = spoken
        """Who speaks now: the dialect of the upstream that answers."""
        self._whole = whole
        self._theirs = crew.theirs
        self._fitter: EventAdapter | None = None
        self._ledgers: list[Ledger] = []
        self._started: Started | None = None
        self._places: dict[int, int] = {}
        """Parts of this turn that the client may hear of, by their index, and their place among those."""
        self._offset = self._told = 0
        """Parts that the client has heard of before this turn, and in it."""
        self._open: set[int] = set()
        self._hides_call = False
        self._paragraphs = Paragraphs()
        self._native: list[Native] = []
        self._before, self._usage = Usage(), Usage()
        self.ids: dict[str, str] = {}
        """What the client calls a call that it was told of, by our own id."""
        self.approved: Sequence[tuple[ToolCall, ToolResult]] = ()
        """Calls that the client has allowed, and their results."""
        self._added: list[Message] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the run has added to the history."""
        return tuple(self._added)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be said so far."""
        return tuple(loss for ledger in self._ledgers for loss in ledger.losses())

    def feed(self, step: Step) -> Iterable[Event]:
        """Take one step, return what the client is told of it."""
        match step:
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded():
                return self._inner(step)
            case PartStarted():
                return self._part(step)
            case Started():
                return self._turn(step)
            case UsageSeen(usage):
                self._usage = usage
                self._fitted(step)
                return [UsageSeen(add_usage(self._before, usage))]
            case Native(field=field):
                if self._fitter is not None:
                    return self._fitted(step)
                # Pointers into a whole reply mean the last turn; what repeats a request repeats ours, not the client's.
                if "/" + field.split("/", 2)[1] not in self._client.repeated:
                    self._native.append(step)
                return []
            case TurnEnded():
                return self._turned(step)
            case RunEnded():
                return self._ended(step)
            case Finished() | Failed() | CallStarted() | CallProgressed() | CallEnded() | ApprovalAsked() | Compacted():
                return []
            case _:
                assert_never(step)

    def _turn(self, event: Started) -> list[Event]:
        """Begin a turn; only the first is the beginning of a reply."""
        here = dialect_named(self._spoken() or self._client.name)
        self._fitter = None if here is self._client else self._fitter_of(here)
        self._native.clear()
        self._hides_call = False
        if self._started is not None:
            self._fitted(self._started)
            return []
        reply_id = event.id or generate_id(self._client.reply_prefix, self._run)
        self._started = Started(reply_id, event.model, event.created or int(time()))
        told = self._fitted(self._started)
        remote = self._client.remote
        for server, error in self._crew.listed.items():
            listed = remote.opening(server, self._tools_of(server), self._crew.asked, error) if remote else ()
            told += self._blocks(listed)
        told += self._approved()
        self._offset, self._told = self._offset + self._told, 0
        return told

    def _tools_of(self, server: str) -> Iterable[Tool]:
        """Iterate the tools of a server, each with the name it has there."""
        for name, origin in self._crew.servers.items():
            handler = self._crew.registry.get(name) or self._crew.waiting.get(name)
            if origin.server == server and handler is not None:
                yield structs.replace(handler.definition, name=origin.tool)

    def _fitter_of(self, here: Dialect) -> EventAdapter:
        self._ledgers.append(Ledger(here.reply_pointers))
        choice = self._crew.asked.tool_choice
        single = choice is not None and choice.parallel is False
        return EventAdapter(here, self._client, self._ledgers[-1], ReplyOptions(self._run, single, self._whole))

    def _part(self, event: PartStarted) -> list[Event]:
        part = event.part
        if isinstance(part, ToolCall) and part.executor == "client":
            if qualify_name(part.namespace, part.name) not in self._theirs:
                self._hides_call = True
                return []
            part = structs.replace(part, id=self._called(part.id))
        elif self._is_foreign(part) or (isinstance(part, Text) and part.unread):
            return []
        place = self._places[event.index] = len(self._places)
        told = self._fitted(self._paragraphs.told(PartStarted(place, part)))
        if isinstance(part, ToolCall) and self._hides_call and self._client.issuer == SKIP_SIGNATURE.issuer:
            # The first call of a step is the one that is signed, and the client does not hear of that.
            told += self._fitted(PartSigned(place, SKIP_SIGNATURE))
        return told

    def _is_foreign(self, part: AnyPart) -> bool:
        return isinstance(part, Opaque) and part.dialect != self._client.name and self._fitter is None

    def _called(self, call_id: str) -> str:
        """Return what the client calls a call, and remember it."""
        told_id = call_id if len(call_id) >= _SHORT else generate_id(self._client.call_prefix, self._run, call_id)
        self.ids[call_id] = plain_id(told_id) if self._client.holds.plain_ids else told_id
        return self.ids[call_id]

    def _inner(self, event: _Inner) -> list[Event]:
        place = self._places.get(event.index)
        return [] if place is None else self._fitted(self._paragraphs.told(structs.replace(event, index=place)))

    def _fitted(self, event: Event) -> list[Event]:
        """Fit an event of this turn, and put it in its place in the whole reply."""
        told: list[Event] = []
        for fitted in self._fitter.feed(event) if self._fitter is not None else [event]:
            match fitted:
                case PartStarted(index, part):
                    self._told = max(self._told, index + 1)
                    self._open.add(self._offset + index)
                    told.append(PartStarted(self._offset + index, part))
                case PartEnded(index, complete):
                    self._open.discard(self._offset + index)
                    told.append(PartEnded(self._offset + index, complete))
                case PartDelta() | PartSigned() | PartCited() | PartNative():
                    told.append(structs.replace(fitted, index=self._offset + fitted.index))
                case Started() | UsageSeen() | Native() | Finished() | Failed():
                    told.append(fitted)
                case _:
                    assert_never(fitted)
        return told

    def _turned(self, turn: TurnEnded) -> list[Event]:
        self._added += turn.messages
        # A turn that was paused goes on where it was.
        self._paragraphs.turn(goes_on=turn.response.finish.reason == "paused")
        told = self._own_calls(turn)
        self._offset, self._told = self._offset + self._told, 0
        self._places.clear()
        self._before, self._usage = add_usage(self._before, self._usage), Usage()
        return told

    def _own_calls(self, turn: TurnEnded) -> list[Event]:
        """Tell of our own calls where the client asked for their server."""
        remote = self._client.remote
        if remote is None or not self._crew.servers:
            return []
        parts = [part for message in turn.messages for part in message.parts]
        results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
        told: list[Event] = []
        for call in parts:
            origin = self._crew.servers.get(call.name) if isinstance(call, ToolCall) else None
            if origin is None or not isinstance(call, ToolCall):
                continue
            is_asked = call.id not in results
            prefix = _ASKED if is_asked else remote.prefix
            told_id = self.ids[call.id] = generate_id(prefix, self._run, call.id)
            named = structs.replace(call, id=told_id, name=origin.tool)
            blocks = (
                remote.approval(origin.server, named)
                if is_asked
                else remote.told(origin.server, named, results[call.id], "")
            )
            told += self._blocks(blocks)
        return told

    def _approved(self) -> list[Event]:
        """Tell of the calls that the client has allowed with this request."""
        remote, told = self._client.remote, list[Event]()
        for call, result in self.approved if remote is not None else ():
            origin = self._crew.servers.get(call.name)
            if origin is not None and remote is not None:
                named = structs.replace(call, id=generate_id(remote.prefix, self._run, call.id), name=origin.tool)
                told += self._blocks(remote.told(origin.server, named, result, call.id))
        return told

    def _blocks(self, blocks: Iterable[bytes]) -> list[Event]:
        told: list[Event] = []
        for raw in blocks:
            index, self._told = self._offset + self._told, self._told + 1
            told += replay_part(index, Opaque(dialect=self._client.name, raw=raw))
        return told

    def _ended(self, run: RunEnded) -> list[Event]:
        if run.problem is not None:
            return self._fitted(Failed(run.problem))
        told: list[Event] = []
        if self._started is None:
            told += self._turn(Started("", self._crew.request.model))
        told += [PartEnded(index, complete=False) for index in sorted(self._open)]
        return [*told, *self._native, *self._fitted(Finished(run.finish))]


_GAP = "\n\n"


class Paragraphs:
    """Events of a run's turns in, the same with blank lines out."""

    def __init__(self) -> None:
        self._end = ""
        """How the text that was said so far ends."""
        self._is_new = False
        """A turn has begun since."""
        self._waiting: set[int] = set()
        """Texts of this turn that have said nothing yet."""
        self._moved: dict[int, int] = {}
        """By how much the words of a text stand behind where the model put them."""

    def turn(self, *, goes_on: bool = False) -> None:
        """A turn is over; the next one may be the rest of it."""
        self._waiting.clear()
        self._moved.clear()
        self._is_new = bool(self._end) and not goes_on

    def told(self, event: Event) -> Event:
        """Return an event of this turn as it is told."""
        match event:
            case PartStarted(index, Text()):
                self._waiting.add(index)
            case PartDelta(index, text) if index in self._waiting and text:
                self._waiting.discard(index)
                if self._is_new:
                    event = self._apart(event)
                self._end = text[-len(_GAP) :]
                self._moved.setdefault(index, 0)
            case PartDelta(index, text) if index in self._moved and text:
                self._end = (self._end + text)[-len(_GAP) :]
            case PartCited(index, citation) if self._moved.get(index):
                return PartCited(index, _moved(citation, self._moved[index]))
            case _:
                pass
        return event

    def _apart(self, event: PartDelta) -> PartDelta:
        """Begin a paragraph, unless the words do so themselves."""
        self._is_new = False
        breaks = len(self._end) - len(self._end.rstrip("\n")) + len(event.text) - len(event.text.lstrip("\n"))
        gap = _GAP[breaks:]
        self._moved[event.index] = len(gap)
        return structs.replace(event, text=gap + event.text)


def _moved(citation: Citation, by: int) -> Citation:
    """Return a citation of words that stand further behind."""
    if citation.start is None or citation.end is None or not citation.url:
        return citation
    moved = structs.replace(citation, start=citation.start + by, end=citation.end + by)
    # Its own form has the old places.
    return structs.replace(moved, dialect="", raw=b"") if citation.raw else moved


async def last_words(steps: AsyncIterator[Step]) -> AsyncIterator[Step]:
    """Iterate steps of a run without the texts that stand before calls of ours."""
    held: list[Step] = []
    async for step in steps:
        match step:
            case PartStarted(part=Text()):
                held.append(step)
                continue
            case TurnEnded() if _goes_on(step):
                told = _without_texts(held)
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


def _goes_on(turn: TurnEnded) -> bool:
    """Tell whether the model is asked again after a turn: all of its calls were ours, or one could not be read."""
    results = [part for message in turn.messages for part in message.parts if isinstance(part, ToolResult)]
    calls = calls_of(turn.response.parts)
    return turn.response.finish.reason == "malformed_call" or bool(calls and len(results) >= len(calls))


def _without_texts(steps: Iterable[Step]) -> Iterator[Step]:
    texts: set[int] = set()
    for step in steps:
        match step:
            case PartStarted(index, Text()):
                texts.add(index)
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() if step.index in texts:
                pass
            case _:
                yield step
