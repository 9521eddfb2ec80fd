"""Adapt the events of a streamed reply to the client's dialect."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from msgspec import structs

from dragoman.core import events
from dragoman.core.parts import AnyPart, FoundTools, Reasoning, Refusal, Search, Signature, Text, ToolCall, ToolSearch
from dragoman.core.problems import Problem
from dragoman.core.response import Usage
from dragoman.core.stream import replay_part
from dragoman.dialects.record import Dialect
from dragoman.interpreter.deferred_replies import adapt_search_reply
from dragoman.interpreter.errors import adapt_problem
from dragoman.interpreter.history_parts import wrap_free_text
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import (
    CUT_OFF,
    NOT_AN_OBJECT,
    ONE_CALL,
    REFUSAL_AS_TEXT,
    ReplyAdapter,
    ReplyOptions,
)
from dragoman.interpreter.reply_fields import can_cite, drop_reply_fields, list_part_leaves
from dragoman.interpreter.searches import ReplySearches, drop_search_fields
from dragoman.wire import json

_NO_OPTIONS = ReplyOptions()


class _OpenPart:
    """A part of the stream: its index at the client and, while a call is buffered, its events so far."""

    held_events: list[events.Event] | None = None
    """The buffered events of a call until they are released."""
    first_character: str | None = None
    """The first character of a buffered call's arguments."""
    is_signed = False
    signature: Signature | None = None
    """The signature of a part that is dropped."""
    held_signature: Signature | None = None
    """The signature that is sent to the client, as it is or in an envelope."""
    fields: dict[str, bytes] | None = None
    """Fields that only the source dialect has, until it is known whether the signature holds one of them."""
    citation_count = 0
    drop_reason = ""
    """Why the part is dropped, if that is reported at its end."""
    native = ""
    """The type of the vendor's own tool that is called."""
    texts: list[str] | None = None
    """The arguments sent so far, for a client that parses them; the text so far, for a part that is dropped."""

    def __init__(self, index: int | None, part: AnyPart) -> None:
        self.index = index
        self.part = part
        self.kind = part.__class__
        if isinstance(part, ToolCall):
            self.native = part.native

    @property
    def arguments(self) -> str:
        """The arguments of a buffered call."""
        return "".join(event.text for event in self.held_events or () if isinstance(event, events.PartDelta))

    def set_arguments(self, arguments: str) -> None:
        """Replace the arguments of a buffered call."""
        self.held_events = [event for event in self.held_events or () if not isinstance(event, events.PartDelta)]
        self.held_events.append(events.PartDelta(-1, arguments))

    def build(self) -> AnyPart:
        """Return a dropped part as the upstream sent it so far."""
        signatures = (event.signature for event in self.held_events or () if isinstance(event, events.PartSigned))
        signature = next(signatures, self.signature)
        text = self.arguments if self.texts is None else "".join(self.texts)
        match self.part:
            case ToolCall():
                return structs.replace(self.part, arguments=text or "{}", signature=signature)
            case Reasoning() if text:
                return structs.replace(self.part, texts=(text,), signature=signature)
            case _:
                return structs.replace(self.part, signature=signature)


class EventAdapter(ReplyAdapter):
    """Turns events of the upstream into events for the client. Dropped parts do not count in the client's indexes."""

    _unnamed_events: list[events.Event] | None = None
    """The events of a reply that has no id yet."""
    _next_index = 0
    _usage: Usage | None = None
    _searches: ReplySearches | None = None

    def __init__(self, source: Dialect, client: Dialect, ledger: Ledger, options: ReplyOptions = _NO_OPTIONS) -> None:
        super().__init__(source, client, ledger, options)
        self._parts: list[_OpenPart] = []
        self._whole_calls = client.capabilities.object_arguments and (
            options.is_whole or not client.capabilities.partial_calls
        )

    def find_passing_index(self, index: int) -> int | None:
        """Return the client's index of a part whose deltas need no change; None for any other part."""
        if self._unnamed_events is not None:
            return None
        part = self._parts[index]
        return part.index if part.held_events is None and part.texts is None else None

    def feed(self, event: events.Event) -> list[events.Event]:
        """Return the client's events for the next event."""
        if self._unnamed_events is not None:
            return self._buffer_unnamed(event, self._unnamed_events)
        return self._HANDLERS[type(event)](self, event)

    def _start_reply(self, event: events.Started) -> list[events.Event]:
        self.reply_id = event.id
        if event.id:
            return [event]
        self._unnamed_events = [event]
        return []

    def _drop_part_field(self, event: events.PartNative) -> list[events.Event]:
        self.drop_fields(self._parts[event.index].part.where, {event.field: event.raw})
        return []

    def _drop_reply_field(self, event: events.Native) -> list[events.Event]:
        drop_reply_fields(self, {event.field: event.raw})
        return []

    def _adapt_usage_event(self, event: events.UsageSeen) -> list[events.Event]:
        adapted = self._usage = self.adapt_usage(event.usage)
        return [event if adapted is event.usage else events.UsageSeen(adapted)]

    def _adapt_failure(self, event: events.Failed) -> list[events.Event]:
        for part in self._parts:
            self._drop_part_fields(part)
            self._report_dropped_part(part)
        return [events.Failed(adapt_problem(event.problem, self.source.issuer, self.client.issuer))]

    def _buffer_unnamed(self, event: events.Event, waiting: list[events.Event]) -> list[events.Event]:
        """Buffer a reply without an id up to its first content, and hash its id from that, so that ids differ.

        The id of a whole reply is hashed from all of its events.
        """
        waiting.append(event)
        if isinstance(event, events.PartStarted | events.PartEnded):
            return []
        if self.options.is_whole and not isinstance(event, events.Finished | events.Failed):
            return []
        self._unnamed_events = None
        reply_id = generate_id(self.client.reply_prefix, self.options.salt, *map(repr, waiting))
        named = [structs.replace(one, id=reply_id) if isinstance(one, events.Started) else one for one in waiting]
        return [adapted for one in named for adapted in self.feed(one)]

    def _drop_part(self, part: AnyPart, reason: str, signature: Signature | None) -> list[events.Event]:
        dropped = _OpenPart(None, part)
        dropped.signature, dropped.drop_reason, dropped.texts = signature, reason, []
        self._parts.append(dropped)
        return []

    def _skip_part(self, part: AnyPart) -> list[events.Event]:
        """Send nothing for a part that is no loss."""
        self._parts.append(_OpenPart(None, part))
        return []

    def _report_dropped_part(self, open_part: _OpenPart) -> None:
        """Report a dropped part. A stream has no document for pointers, so the part is rendered again to find them."""
        reason, open_part.drop_reason = open_part.drop_reason, ""
        where = open_part.part.where
        if reason and self.ledger.has_no_document:
            self.ledger.report_dropped_leaves(where, list_part_leaves(open_part.build(), self.source), reason)
        elif reason:
            self.ledger.report_dropped(where, reason)

    def _start_part(self, event: events.PartStarted) -> list[events.Event]:
        part = event.part
        signature, extras = part.signature, part.extras
        if extras is not None or signature is not None:
            part = structs.replace(part, extras=None, signature=None)
        fields = extras.fields if extras is not None else None
        if fields and not (isinstance(part, Reasoning) and self.capabilities.reasoning):
            if isinstance(part, Search):
                if self.capabilities.searches:  # else the whole search is reported
                    drop_search_fields(self, part, fields)
            elif self.capabilities.tool_search or not isinstance(part, ToolSearch | FoundTools):
                self.drop_fields(part.where, fields)
            fields = None
        if isinstance(part, ToolCall):
            return self._start_call(part, signature)
        if reason := self.find_drop_reason(part):
            # The leaves of the metadata that a search was read from are reported with the metadata.
            is_metadata = isinstance(part, Search) and part.places
            return self._skip_part(part) if is_metadata else self._drop_part(part, reason, signature)
        if isinstance(part, Search):
            return self._start_search(part)
        if isinstance(part, Refusal) and not self.capabilities.refusal:
            self.ledger.report_approximated(part.where, REFUSAL_AS_TEXT)
            part = Text(text=part.text, where=part.where)
        if isinstance(part, ToolSearch | FoundTools):
            part = adapt_search_reply(part, self)
        self.report_order(part)
        index, self._next_index = self._next_index, self._next_index + 1
        opened = _OpenPart(index, part)
        opened.fields = fields
        self._parts.append(opened)
        started = events.PartStarted(index, part)
        return [started] if signature is None else [started, *self._hold_signature(opened, signature)]

    def _start_search(self, part: Search) -> list[events.Event]:
        if part.places and self._searches is not None:
            # Metadata repeats the queries of searches that were sent when they came, with pages that came too late.
            self.mark_sent(place for place in part.places if not place.endswith(("/uri", "/title")))
            return self._skip_part(part)
        if self._searches is None:
            self._searches = ReplySearches(self)
        whole = self._searches.add(part)
        if whole is None:
            return self._skip_part(part)
        self.report_order(whole)
        index, self._next_index = self._next_index, self._next_index + 1
        self._parts.append(_OpenPart(index, whole))
        return [events.PartStarted(index, whole)]

    def _end_searches(self) -> list[events.Event]:
        """Return the searches that are known only at the end of the reply, and their number."""
        if self._searches is None and not self.cited_pages:
            return []
        searches = self._searches or ReplySearches(self)
        last = [one for at, part in enumerate(searches.finish(), self._next_index) for one in replay_part(at, part)]
        counted = searches.count(self._usage)
        return last if counted is None or counted is self._usage else [*last, events.UsageSeen(counted)]

    def _drop_part_fields(self, open_part: _OpenPart) -> None:
        """Report the fields of a reasoning part, except the item id that its signature holds."""
        self.drop_fields(open_part.part.where, open_part.fields or {}, open_part.held_signature)
        open_part.fields = None

    def _start_call(self, call: ToolCall, signature: Signature | None) -> list[events.Event]:
        self.call_count += 1
        if self.options.single_call and self.call_count > 1:
            return self._drop_part(call, ONE_CALL, signature)
        form = call.form if self.capabilities.custom_calls else "json"
        opened = _OpenPart(None, call)
        self._parts.append(opened)
        # Buffered until its first argument: a signature that must be sent before the call comes right after its start.
        opened.held_events = [events.PartStarted(-1, structs.replace(call, id=self.assign_call_id(call), form=form))]
        if form != call.form:
            opened.kind = Text
        return self._hold_signature(opened, signature) if signature is not None else []

    def _release(self, open_part: _OpenPart) -> list[events.Event]:
        """Return the events of a buffered call, with the next index at the client."""
        held, open_part.held_events = open_part.held_events, None
        if held is None:
            return []
        open_part.index = self._next_index
        self._next_index += 1
        if self.capabilities.object_arguments:
            open_part.texts = [event.text for event in held if isinstance(event, events.PartDelta)]
        return [structs.replace(event, index=open_part.index) for event in held]  # pyright: ignore[reportCallIssue]

    def _append(self, event: events.PartDelta) -> list[events.Event]:
        opened, text, piece = self._parts[event.index], event.text, event.piece
        if opened.held_events is not None:
            opened.held_events.append(events.PartDelta(-1, text, piece))
            return (
                [] if opened.native or opened.kind is Text or self._must_hold(opened, text) else self._release(opened)
            )
        if opened.texts is not None:
            opened.texts.append(text)
        return [] if opened.index is None else [events.PartDelta(opened.index, text, piece)]

    def _end_part(self, event: events.PartEnded) -> list[events.Event]:
        opened, complete = self._parts[event.index], event.complete
        if opened.fields:
            self._drop_part_fields(opened)
        if opened.drop_reason:
            self._report_dropped_part(opened)
            return []
        if opened.held_events is not None:
            if opened.native:
                whole = structs.replace(opened.part, arguments=opened.arguments, complete=complete)
                opened.set_arguments(self.fit_native_arguments(whole))  # pyright: ignore[reportArgumentType]
            elif opened.kind is Text:
                opened.set_arguments(wrap_free_text(opened.arguments))
            elif self.capabilities.object_arguments and not self._can_send_call(opened, complete):
                opened.held_events = None
                return []
            return [*self._release(opened), events.PartEnded(self._next_index - 1, complete)]
        if opened.kind is Reasoning and not opened.is_signed and opened.index is not None:
            envelope = self.seal_unsigned(opened.part)
            if envelope is not None:
                return [events.PartSigned(opened.index, envelope), events.PartEnded(opened.index, complete)]
        if opened.texts is not None and complete and not json.is_object("".join(opened.texts)):
            # Some hosts send "tool_calls" for a call they cut off; the client must not run what it guesses from it.
            self.has_lost_call = True
        return [] if opened.index is None else [events.PartEnded(opened.index, complete)]

    def _must_hold(self, open_part: _OpenPart, text: str) -> bool:
        """Return whether to buffer a call: it cannot be revoked once sent, so its arguments must start with `{`."""
        if self._whole_calls or not self.capabilities.object_arguments:
            return self._whole_calls
        if open_part.first_character is None:
            open_part.first_character = text.lstrip()[:1] or None
        return open_part.first_character != "{"

    def _can_send_call(self, open_part: _OpenPart, complete: bool) -> bool:
        received = open_part.arguments
        arguments = self.ensure_object_arguments(received, open_part.part.where, complete)
        if arguments is None:
            open_part.drop_reason = NOT_AN_OBJECT if complete else CUT_OFF
            self._report_dropped_part(open_part)
            return False
        if arguments is not received:
            open_part.set_arguments(arguments)
        return True

    def _sign(self, event: events.PartSigned) -> list[events.Event]:
        return self._hold_signature(self._parts[event.index], event.signature)

    def _hold_signature(self, open_part: _OpenPart, signature: Signature) -> list[events.Event]:
        open_part.is_signed = True
        if open_part.index is None and open_part.held_events is None:
            open_part.signature = signature
            return []
        held = self.adapt_signature(signature, open_part.kind, open_part.part)
        if held is not None:
            open_part.held_signature = signature
            if open_part.held_events is not None:
                open_part.held_events.append(events.PartSigned(-1, held))
            return [] if open_part.index is None else [events.PartSigned(open_part.index, held)]
        is_call = open_part.kind is ToolCall and open_part.held_events is not None
        job_runner = self.seal_for_call(signature, open_part.part, is_call=is_call)
        if job_runner is None:
            return []
        index = self._next_index
        self._next_index += 1
        return [events.PartStarted(index, Reasoning()), events.PartSigned(index, job_runner), events.PartEnded(index)]

    def _cite(self, event: events.PartCited) -> list[events.Event]:
        opened = self._parts[event.index]
        number, opened.citation_count = opened.citation_count, opened.citation_count + 1
        if opened.index is None or not can_cite(self, event.citation, opened.part, number):
            return []
        return [events.PartCited(opened.index, event.citation)]

    def _finish(self, event: events.Finished) -> list[events.Event]:
        try:
            return [*self._end_searches(), events.Finished(self.adapt_finish(event.finish))]
        except Problem as problem:
            return [events.Failed(problem)]

    _HANDLERS: ClassVar[Mapping[type[events.Event], Callable[..., list[events.Event]]]] = {
        events.Started: _start_reply,
        events.PartStarted: _start_part,
        events.PartDelta: _append,
        events.PartSigned: _sign,
        events.PartCited: _cite,
        events.PartNative: _drop_part_field,
        events.PartEnded: _end_part,
        events.Native: _drop_reply_field,
        events.UsageSeen: _adapt_usage_event,
        events.Finished: _finish,
        events.Failed: _adapt_failure,
    }
