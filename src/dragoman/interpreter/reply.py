"""Adapt the events of a streamed reply to the client's dialect."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from msgspec import structs

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
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.record import Dialect
from dragoman.interpreter.errors import adapt_problem
from dragoman.interpreter.history_parts import wrap_free_text
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import (
    CUT_OFF,
    NO_OBJECT,
    ONE_CALL,
    REFUSAL_AS_TEXT,
    ReplyAdapter,
    ReplyOptions,
)
from dragoman.interpreter.reply_fields import can_cite, drop_reply_fields, part_leaves
from dragoman.interpreter.undo import generate_id
from dragoman.wire import json

_NO_OPTIONS = ReplyOptions()


class _Part:
    """A part on its way: its index at the client, and for a call that must be seen whole, its events so far."""

    held: list[Event] | None = None
    """The events of a call until it is released."""
    begins: str | None = None
    """The first character of a held call's arguments."""
    signed = False
    signature: Signature | None = None
    """The signature of a part that is left out."""
    carried: Signature | None = None
    """The signature that travels in an envelope."""
    fields: dict[str, bytes] | None = None
    """What only its own dialect understands, until it is known what travels with the signature."""
    citations = 0
    lost = ""
    """Why it is left out, if that is reported when it is whole."""
    texts: list[str] | None = None
    """For a client that parses arguments, those it has received; of a part that is left out, its text."""

    def __init__(self, index: int | None, part: AnyPart) -> None:
        self.index = index
        self.part = part
        self.kind = part.__class__

    @property
    def arguments(self) -> str:
        """The arguments of a held call."""
        return "".join(event.text for event in self.held or () if isinstance(event, PartDelta))

    def set_arguments(self, arguments: str) -> None:
        """Change the arguments of a held call."""
        self.held = [event for event in self.held or () if not isinstance(event, PartDelta)]
        self.held.append(PartDelta(-1, arguments))

    def whole(self) -> AnyPart:
        """Return a part that is left out as it has been told."""
        signed = (event.signature for event in self.held or () if isinstance(event, PartSigned))
        signature = next(signed, self.signature)
        text = self.arguments if self.texts is None else "".join(self.texts)
        match self.part:
            case ToolCall():
                return structs.replace(self.part, arguments=text or "{}", signature=signature)
            case Reasoning() if text:
                return structs.replace(self.part, texts=(text,), signature=signature)
            case _:
                return structs.replace(self.part, signature=signature)


class EventAdapter(ReplyAdapter):
    """Events in, events the client can be told out. Parts left out do not count: indexes close up."""

    _unnamed: list[Event] | None = None
    """The events of a reply that has no id yet."""
    _next = 0

    def __init__(self, source: Dialect, client: Dialect, ledger: Ledger, options: ReplyOptions = _NO_OPTIONS) -> None:
        super().__init__(source, client, ledger, options)
        self._parts: list[_Part] = []
        self._whole_calls = client.holds.object_arguments and (options.whole or not client.holds.partial_calls)

    def index_of(self, index: int) -> int | None:
        """Return the client's index of a part whose deltas pass as they are, None for one that needs more."""
        if self._unnamed is not None:
            return None
        part = self._parts[index]
        return part.index if part.held is None and part.texts is None else None

    def feed(self, event: Event) -> list[Event]:
        """Take the next event."""
        if self._unnamed is not None:
            return self._named(event, self._unnamed)
        return self._STEPS[type(event)](self, event)

    def _start_reply(self, event: Started) -> list[Event]:
        self.reply_id = event.id
        if event.id:
            return [event]
        self._unnamed = [event]
        return []

    def _part_field(self, event: PartNative) -> list[Event]:
        self.drop_fields(self._parts[event.index].part.where, {event.field: event.raw})
        return []

    def _reply_field(self, event: Native) -> list[Event]:
        drop_reply_fields(self, {event.field: event.raw})
        return []

    def _usage(self, event: UsageSeen) -> list[Event]:
        adapted = self.adapt_usage(event.usage)
        return [event if adapted is event.usage else UsageSeen(adapted)]

    def _failed(self, event: Failed) -> list[Event]:
        for part in self._parts:
            self._drop_part_fields(part)
            self._report_lost(part)
        return [Failed(adapt_problem(event.problem, self.source.issuer, self.client.issuer))]

    def _named(self, event: Event, waiting: list[Event]) -> list[Event]:
        """Hold a reply without an id until it says something: its id is made of that, so that no two are alike.

        A whole reply has said all there is, so its id is made of all.
        """
        waiting.append(event)
        if isinstance(event, PartStarted | PartEnded):
            return []
        if self.options.whole and not isinstance(event, Finished | Failed):
            return []
        self._unnamed = None
        reply_id = generate_id(self.client.reply_prefix, self.options.salt, *map(repr, waiting))
        named = [structs.replace(one, id=reply_id) if isinstance(one, Started) else one for one in waiting]
        return [told for one in named for told in self.feed(one)]

    def _left_out(self, part: AnyPart, why: str, signature: Signature | None) -> list[Event]:
        left_out = _Part(None, part)
        left_out.signature, left_out.lost, left_out.texts = signature, why, []
        self._parts.append(left_out)
        return []

    def _report_lost(self, opened: _Part) -> None:
        """Report a part that is left out. A stream cannot be looked into, so what it said is written again."""
        why, opened.lost = opened.lost, ""
        if why:
            for leaf in part_leaves(opened.whole(), self.source) if self.ledger.is_blind else (opened.part.where,):
                self.ledger.dropped(leaf, why)

    def _start_part(self, event: PartStarted) -> list[Event]:
        part = event.part
        signature, extras = part.signature, part.extras
        if extras is not None or signature is not None:
            part = structs.replace(part, extras=None, signature=None)
        fields = extras.fields if extras is not None else None
        if fields and not (isinstance(part, Reasoning) and self.holds.reasoning):
            self.drop_fields(part.where, fields)
            fields = None
        if isinstance(part, ToolCall):
            return self._start_call(part, signature)
        if why := self.reason_to_leave_out(part):
            return self._left_out(part, why, signature)
        if isinstance(part, Refusal) and not self.holds.refusal:
            self.ledger.approximated(part.where, REFUSAL_AS_TEXT)
            part = Text(text=part.text, where=part.where)
        self.report_order(part)
        index, self._next = self._next, self._next + 1
        opened = _Part(index, part)
        opened.fields = fields
        self._parts.append(opened)
        events: list[Event] = [PartStarted(index, part)]
        return events if signature is None else [*events, *self._hold(opened, signature)]

    def _drop_part_fields(self, opened: _Part) -> None:
        """Report the fields of a thought that do not travel with its signature."""
        self.drop_fields(opened.part.where, opened.fields or {}, opened.carried)
        opened.fields = None

    def _start_call(self, call: ToolCall, signature: Signature | None) -> list[Event]:
        self.calls += 1
        if self.options.single and self.calls > 1:
            return self._left_out(call, ONE_CALL, signature)
        form = call.form if self.holds.custom_calls else "json"
        opened = _Part(None, call)
        self._parts.append(opened)
        # Held until its first argument: a signature that must stand before the call comes right after its start.
        opened.held = [PartStarted(-1, structs.replace(call, id=self.call_id(call), form=form))]
        if form != call.form:
            opened.kind = Text
        return self._hold(opened, signature) if signature is not None else []

    def _release(self, opened: _Part) -> list[Event]:
        """Tell the events of a held call, which now takes its place."""
        held, opened.held = opened.held, None
        if held is None:
            return []
        opened.index = self._next
        self._next += 1
        if self.holds.object_arguments:
            opened.texts = [event.text for event in held if isinstance(event, PartDelta)]
        return [structs.replace(event, index=opened.index) for event in held]  # pyright: ignore[reportCallIssue]

    def _append(self, event: PartDelta) -> list[Event]:
        opened, text, piece = self._parts[event.index], event.text, event.piece
        if opened.held is not None:
            opened.held.append(PartDelta(-1, text, piece))
            return [] if opened.kind is Text or self._held_whole(opened, text) else self._release(opened)
        if opened.texts is not None:
            opened.texts.append(text)
        return [] if opened.index is None else [PartDelta(opened.index, text, piece)]

    def _end_part(self, event: PartEnded) -> list[Event]:
        opened, complete = self._parts[event.index], event.complete
        if opened.fields:
            self._drop_part_fields(opened)
        if opened.lost:
            self._report_lost(opened)
            return []
        if opened.held is not None:
            if opened.kind is Text:
                opened.set_arguments(wrap_free_text(opened.arguments))
            elif self.holds.object_arguments and not self._is_sayable(opened, complete):
                opened.held = None
                return []
            return [*self._release(opened), PartEnded(self._next - 1, complete)]
        if opened.kind is Reasoning and not opened.signed and opened.index is not None:
            mark = self.mark_unsigned()
            if mark is not None:
                return [PartSigned(opened.index, mark), PartEnded(opened.index, complete)]
        if opened.texts is not None and complete and not json.is_object("".join(opened.texts)):
            # Some hosts say "tool_calls" of a call they cut off; the client must not run what it guesses from it.
            self.lost_call = True
        return [] if opened.index is None else [PartEnded(opened.index, complete)]

    def _held_whole(self, opened: _Part, text: str) -> bool:
        """A call that cannot be taken back once told is told only when it begins as an object does."""
        if self._whole_calls or not self.holds.object_arguments:
            return self._whole_calls
        if opened.begins is None:
            opened.begins = text.lstrip()[:1] or None
        return opened.begins != "{"

    def _is_sayable(self, opened: _Part, complete: bool) -> bool:
        told = opened.arguments
        arguments = self.object_arguments(told, opened.part.where, complete)
        if arguments is None:
            opened.lost = NO_OBJECT if complete else CUT_OFF
            self._report_lost(opened)
            return False
        if arguments is not told:
            opened.set_arguments(arguments)
        return True

    def _sign(self, event: PartSigned) -> list[Event]:
        return self._hold(self._parts[event.index], event.signature)

    def _hold(self, opened: _Part, signature: Signature) -> list[Event]:
        opened.signed = True
        if opened.index is None and opened.held is None:
            opened.signature = signature
            return []
        held = self.hold_signature(signature, opened.kind, opened.part)
        if held is not None:
            opened.carried = None if held is signature else signature
            if opened.held is not None:
                opened.held.append(PartSigned(-1, held))
            return [] if opened.index is None else [PartSigned(opened.index, held)]
        is_call = opened.kind is ToolCall and opened.held is not None
        carrier = self.carry_signature(signature, opened.part, is_call=is_call)
        if carrier is None:
            return []
        index = self._next
        self._next += 1
        return [PartStarted(index, Reasoning()), PartSigned(index, carrier), PartEnded(index)]

    def _cite(self, event: PartCited) -> list[Event]:
        opened = self._parts[event.index]
        number, opened.citations = opened.citations, opened.citations + 1
        if opened.index is None or not can_cite(self, event.citation, opened.part, number):
            return []
        return [PartCited(opened.index, event.citation)]

    def _finish(self, event: Finished) -> list[Event]:
        try:
            return [Finished(self.adapt_finish(event.finish))]
        except Problem as problem:
            return [Failed(problem)]

    _STEPS: ClassVar[Mapping[type[Event], Callable[..., list[Event]]]] = {
        Started: _start_reply,
        PartStarted: _start_part,
        PartDelta: _append,
        PartSigned: _sign,
        PartCited: _cite,
        PartNative: _part_field,
        PartEnded: _end_part,
        Native: _reply_field,
        UsageSeen: _usage,
        Finished: _finish,
        Failed: _failed,
    }
