"""Fit a reply to the client's dialect: what it cannot hold is left out and booked, never bent.

The path of streams, and of whole replies with parts that change or are left out (`reply_whole`).
"""

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
from dragoman.core.parts import AnyPart, Media, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish
from dragoman.dialects.record import Dialect
from dragoman.interpreter.aliases import minted_id
from dragoman.interpreter.carry import carried_item, sealed
from dragoman.interpreter.faults import retold
from dragoman.interpreter.history import wrap_free_text
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_fields import (
    UNKNOWN,
    book_field,
    book_source,
    book_usage,
    part_leaves,
)
from dragoman.interpreter.reply_part import ReplyPart
from dragoman.interpreter.reply_steps import (
    CallIds,
    adapt_finish,
    drop_signature,
    held_signature,
    is_carried,
    report_order,
    unsigned_mark,
)
from dragoman.wire import json

_NO_SOURCE = "the client's dialect cannot name this source"
_NOTHING: frozenset[str] = frozenset()


class ReplyFitter:
    """Events in, events the client can be told out. Parts left out do not count: indexes close up."""

    _reply_id = ""
    _unnamed: list[Event] | None = None
    """The events of a reply that has no id yet."""
    _next = _calls = 0
    _ids: CallIds | None = None
    _lost_call = _sequence_field = False
    _blocked = b""

    def __init__(  # noqa: PLR0913  a client, a ledger, and what is known of the reply, by name
        self,
        client: Dialect,
        ledger: Ledger,
        *,
        whole: bool,
        salt: str = "",
        source_issuer: str = "",
        single: bool = False,
        source: Dialect | None = None,
    ) -> None:
        self._source = source
        self._source_issuer = source_issuer or (source.issuer if source is not None else "")
        self._whole = whole
        self._client = client
        self._holds = client.holds
        self._ledger = ledger
        self._salt = salt
        self._single = single
        self._parts: list[ReplyPart] = []
        self._said: dict[str, set[str]] = {}
        self._whole_calls = client.holds.object_arguments and (whole or not client.holds.partial_calls)

    def _field_place(self, where: str, field: str) -> str:
        """Return where a field stands that the part at `where` carries."""
        place = self._source.field_place if self._source is not None else None
        return where + field if place is None else place(where, field)

    def place_of(self, index: int) -> int | None:
        """Return the client's index of a part whose text passes as it is, None for one that needs more."""
        if self._unnamed is not None:
            return None
        part = self._parts[index]
        return part.index if part.held is None and part.texts is None else None

    def feed(self, event: Event) -> list[Event]:
        """Take the next event."""
        if self._unnamed is not None:
            return self._named(event, self._unnamed)
        match event:
            case PartDelta(index, text, piece):
                return self._grown(self._parts[index], text, piece)
            case PartStarted(_, part):
                return self._started(part)
            case PartEnded(index, complete):
                return self._ended(self._parts[index], complete)
            case PartSigned(index, signature):
                return self._signed(self._parts[index], signature)
            case PartCited(index):
                return self._cited(event, self._parts[index])
            case PartNative(index, _, field, raw):
                self._ledger.value_dropped(self._field_place(self._parts[index].where, field), raw, UNKNOWN)
                return []
            case Native(_, field, raw):
                self._native(field, raw)
                return []
            case UsageSeen(usage):
                book_usage(usage, self._holds, self._ledger)
                return [UsageSeen(structs.replace(usage, extras=None)) if usage.extras is not None else event]
            case Started(reply_id):
                self._reply_id = reply_id
                if reply_id:
                    return [event]
                self._unnamed = [event]
                return []
            case Finished(finish):
                return [self._finished(finish)]
            case Failed(problem):
                for part in self._parts:
                    self._book_fields(part)
                    self._book_lost(part)
                return [Failed(retold(problem, self._source_issuer, self._client.issuer))]

    def _named(self, event: Event, waiting: list[Event]) -> list[Event]:
        """Hold a reply without an id until it says something: its id is made of that, so that no two are alike.

        A whole reply has said all there is, so its id is made of all.
        """
        waiting.append(event)
        if isinstance(event, PartStarted | PartEnded) or (self._whole and not isinstance(event, Finished | Failed)):
            return []
        self._unnamed = None
        reply_id = minted_id(self._client.reply_prefix, self._salt, *map(repr, waiting))
        named = [structs.replace(one, id=reply_id) if isinstance(one, Started) else one for one in waiting]
        return [told for one in named for told in self.feed(one)]

    def _open(self, part: AnyPart) -> ReplyPart:
        opened = ReplyPart(self._next, part)
        self._parts.append(opened)
        self._next += 1
        return opened

    def _left_out(self, part: AnyPart, why: str, signature: Signature | None) -> list[Event]:
        left_out = ReplyPart(None, part)
        left_out.signature, left_out.lost, left_out.texts = signature, why, []
        self._parts.append(left_out)
        return []

    def _book_lost(self, opened: ReplyPart) -> None:
        """Book a part that is left out. Of a stream there is nothing to look into, so what it said is said again."""
        why, opened.lost = opened.lost, ""
        if why and self._ledger.is_blind and self._source is not None:
            for leaf in part_leaves(opened.whole(), self._source):
                self._ledger.dropped(leaf, why)
        elif why:
            self._ledger.dropped(opened.where, why)

    def _started(self, part: AnyPart) -> list[Event]:
        signature, fields, part = self._without_foreign(part)
        match part:
            case Opaque(dialect=dialect) if dialect != self._client.name:
                return self._left_out(part, "a block only its own dialect understands", signature)
            case Reasoning() if not self._holds.reasoning:
                return self._left_out(part, "the client's dialect has no place for reasoning", signature)
            case Media() if not self._holds.media:
                return self._left_out(part, f"the client's dialect cannot hold {part.kind} in a reply", signature)
            case Refusal() if not self._holds.refusal:
                self._ledger.approximated(part.where, "a refusal is told as text")
                part = Text(text=part.text, where=part.where)
            case ToolCall():
                return self._call_started(part, signature)
            case _:
                pass
        if self._calls:
            report_order(part, self._holds, self._ledger)
        opened = self._open(part)
        opened.fields = fields
        events: list[Event] = [PartStarted(self._index(opened), part)]
        return events if signature is None else [*events, *self._signed(opened, signature)]

    def _without_foreign(self, part: AnyPart) -> tuple[Signature | None, dict[str, bytes], AnyPart]:
        """Take extras and signature off a part; the signature goes its own way, and may take a field of a thought."""
        signature, extras = part.signature, part.extras
        if extras is None and signature is None:
            return None, {}, part
        bare = structs.replace(part, extras=None, signature=None)
        if extras is None:
            return signature, {}, bare
        if isinstance(part, Reasoning) and self._holds.reasoning:
            return signature, extras.fields, bare
        for field, raw in extras.fields.items():
            self._ledger.value_dropped(self._field_place(part.where, field), raw, UNKNOWN)
        return signature, {}, bare

    def _book_fields(self, opened: ReplyPart) -> None:
        """Book the fields of a thought that do not travel with its signature."""
        carried = json.encode(opened.item) if opened.item else b""
        for field, raw in opened.fields.items():
            if raw != carried:
                self._ledger.value_dropped(self._field_place(opened.where, field), raw, UNKNOWN)
        opened.fields = {}

    def _index(self, opened: ReplyPart) -> int:
        assert opened.index is not None  # noqa: S101  a part that is told has its place
        return opened.index

    def _call_started(self, call: ToolCall, signature: Signature | None) -> list[Event]:
        self._calls += 1
        if self._single and self._calls > 1:
            return self._left_out(call, "the client wants one call at a time: only the first is told", signature)
        if self._ids is None:
            self._ids = CallIds(self._client, self._reply_id, self._salt, self._ledger)
        call_id = self._ids.of(call, self._calls)
        form = call.form if self._holds.custom_calls else "json"
        opened = ReplyPart(None, call)
        self._parts.append(opened)
        # Held until its first argument: a signature that must stand before the call comes right after its start.
        opened.held = [PartStarted(-1, structs.replace(call, id=call_id, form=form))]
        if call.form == "text" and form == "json":
            opened.where = call.where or "/"
            opened.kind = Text
        return self._signed(opened, signature) if signature is not None else []

    def _release(self, opened: ReplyPart) -> list[Event]:
        """Tell the events of a held call, which now takes its place."""
        held, opened.held = opened.held, None
        if held is None:
            return []
        opened.index = self._next
        self._next += 1
        if self._holds.object_arguments:
            opened.texts = [event.text for event in held if isinstance(event, PartDelta)]
        return [structs.replace(event, index=opened.index) for event in held]  # pyright: ignore[reportCallIssue]

    def _grown(self, opened: ReplyPart, text: str, piece: int) -> list[Event]:
        if opened.held is not None:
            opened.held.append(PartDelta(-1, text, piece))
            return [] if opened.kind is Text or self._held_whole(opened, text) else self._release(opened)
        if opened.texts is not None:
            opened.texts.append(text)
        return [] if opened.index is None else [PartDelta(opened.index, text, piece)]

    def _ended(self, opened: ReplyPart, complete: bool) -> list[Event]:
        if opened.fields:
            self._book_fields(opened)
        if opened.lost:
            self._book_lost(opened)
            return []
        if opened.held is not None:
            if opened.kind is Text:
                self._wrap_held(opened)
            elif self._holds.object_arguments and not self._sayable(opened, complete):
                opened.held = None
                return []
            return [*self._release(opened), PartEnded(self._index(opened), complete)]
        if opened.kind is Reasoning and not opened.signed and opened.index is not None:
            mark = unsigned_mark(self._source_issuer, self._client)
            if mark is not None:
                return [PartSigned(opened.index, mark), PartEnded(opened.index, complete)]
        if opened.texts is not None and complete and not json.is_object("".join(opened.texts)):
            # Some hosts say "tool_calls" of a call they cut off; the client must not run what it guesses from it.
            self._lost_call = True
        return [] if opened.index is None else [PartEnded(opened.index, complete)]

    def _wrap_held(self, opened: ReplyPart) -> None:
        """Say a free-form call as a function's, for a client that has no free-form tools."""
        assert opened.held is not None  # noqa: S101  only held calls come here
        text = opened.arguments
        kept = [event for event in opened.held if not isinstance(event, PartDelta)]
        opened.held = [*kept, PartDelta(-1, wrap_free_text(text))]

    def _held_whole(self, opened: ReplyPart, text: str) -> bool:
        """A call that cannot be taken back once told is told only when it begins as an object does."""
        if self._whole_calls or not self._holds.object_arguments:
            return self._whole_calls
        if opened.begins is None:
            opened.begins = text.lstrip()[:1] or None
        return opened.begins != "{"

    def _sayable(self, opened: ReplyPart, complete: bool) -> bool:
        arguments = opened.arguments
        if complete and (not arguments or json.is_object(arguments)):
            return True
        if complete and arguments.strip() == "null":
            # Groq's word for no arguments.
            self._ledger.approximated(opened.where, "null arguments are told as none")
            opened.held = [event for event in opened.held or () if not isinstance(event, PartDelta)]
            opened.held.append(PartDelta(-1, "{}"))
            return True
        why = "the call's arguments are not a JSON object" if complete else "the call was cut off inside its arguments"
        opened.lost = why
        self._book_lost(opened)
        self._lost_call = self._lost_call or complete
        return False

    def _signed(self, opened: ReplyPart, signature: Signature) -> list[Event]:
        opened.signed = True
        if opened.index is None and opened.held is None:
            opened.signature = signature
            return []
        redacted = isinstance(opened.part, Reasoning) and opened.part.redacted
        held = held_signature(signature, opened.kind, self._client, redacted=redacted)
        if held is not None:
            opened.item = "" if held is signature else carried_item(signature)
            if opened.held is None:
                return [PartSigned(self._index(opened), held)]
            opened.held.append(PartSigned(-1, held))
            return []
        if opened.kind is not ToolCall or opened.held is None or not is_carried(self._holds):
            drop_signature(signature, opened.part, self._ledger, redacted=redacted)
            return []
        index = self._next
        self._next += 1
        carrier = sealed(signature, "call", self._client.issuer)
        return [PartStarted(index, Reasoning()), PartSigned(index, carrier), PartEnded(index)]

    def _cited(self, event: PartCited, opened: ReplyPart) -> list[Event]:
        citation = event.citation
        number, opened.citations = opened.citations, opened.citations + 1
        if opened.index is None:
            return []
        foreign = citation.dialect != self._client.name
        listed = self._ledger.place("part.citations", opened.part)
        places = citation.places or (f"{listed}/{number}" if listed != opened.where else listed,)
        if not self._holds.citations or (foreign and not citation.url):
            for place in places:
                # Without JSON of its own it is told by its leaves.
                self._ledger.value_dropped(place, citation.raw or b"0", _NO_SOURCE)
            return []
        if foreign:
            book_source(citation, places[0], self._holds, self._ledger)
        for place in citation.places:
            self._note_cited(place)
        return [PartCited(opened.index, citation)]

    def _note_cited(self, place: str) -> None:
        """Note under each pointer above a place that a citation has said what stands there."""
        above = place
        while above := above.rpartition("/")[0]:
            self._said.setdefault(above, set()).add(place)

    def _native(self, field: str, raw: bytes) -> None:
        """Leave out what only the source understands."""
        pointers = self._ledger.pointers
        if field in pointers.get("finish.sequence", _NOTHING):
            self._sequence_field = True
        else:
            if field in pointers.get("finish.blocked", _NOTHING):
                self._blocked = raw
            repeated = self._source.repeated if self._source is not None else _NOTHING
            book_field(field, raw, repeated, self._said.get(field, _NOTHING), self._ledger)

    def _finished(self, finish: Finish) -> Finished | Failed:
        try:
            adapted = adapt_finish(
                finish,
                self._source,
                self._client,
                self._ledger,
                lost_call=self._lost_call,
                sequence=self._sequence_field,
                blocked=self._blocked,
            )
        except Problem as problem:
            return Failed(problem)
        return Finished(adapted)
