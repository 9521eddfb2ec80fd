"""Translate a streamed reply from one dialect to another, chunk by chunk."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from msgspec import structs

from dragoman.core.events import Event, Failed, Finished, PartDelta, PartStarted, Started, UsageSeen
from dragoman.core.losses import Loss
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.call_wrapper import WRAPPER_NAMES, CallExpander
from dragoman.interpreter.ledger import open_reply_ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import NO_CONTEXT, Context, has_other_envelope
from dragoman.interpreter.searches import SearchArranger, build_arranger
from dragoman.interpreter.signature_recorder import SignatureRecorder
from dragoman.interpreter.undo import ReplyPipeline
from dragoman.wire.sse import MAX_EVENT_BYTES, split_frames

if TYPE_CHECKING:
    from dragoman.core.response import Finish, Usage

_FIRST_NAME = re.compile(rb'"[^"]*"|\n\r?\n')
"""The first JSON key, or the end of the first event: enough to see whether the reply is in an envelope."""
_COMMENT = re.compile(rb"^:[^\r\n]*\r?\n", re.MULTILINE)
"""A line that google-genai takes for a broken event; the empty line after it keeps the connection alive."""
_MAX_HEAD = 4096
_STATES = (Started, UsageSeen, Finished, Failed)
"""Events about the whole reply, without content of the answer."""


def _may_be_wrapper(event: Event) -> bool:
    return type(event) is PartStarted and type(event.part) is ToolCall and event.part.name in WRAPPER_NAMES


class StreamTranslator:
    """Turns upstream bytes into bytes for the client, chunk by chunk.

    With the same dialect on both sides the bytes are forwarded; they are decoded only to notice a stream that is cut
    off or malformed, so that the client gets an error at its end. `watch` records what is signed.
    """

    def __init__(
        self, source: str, target: str, context: Context = NO_CONTEXT, watch: SignatureRecorder | None = None
    ) -> None:
        source_dialect, target_dialect = dialect_named(source), dialect_named(target)
        self._dialect = source_dialect
        self._recorder = watch
        self._context = context
        self._same: bool | None = None if source_dialect is target_dialect and context.passes else False
        self._decoder = source_dialect.decoder()
        self._ledger = open_reply_ledger(source_dialect, by_leaf=context.by_leaf)
        self._adapter: EventAdapter | None = None
        if source_dialect is not target_dialect:
            self._adapter = EventAdapter(source_dialect, target_dialect, self._ledger, context.reply_options())
        adapter = self._adapter
        self._arranger: SearchArranger | None = None
        if adapter is not None and (adapter.options.searches or adapter.joins_texts):
            self._arranger = build_arranger(adapter)
        self._pipeline = ReplyPipeline(context.undo) if adapter is None else ReplyPipeline(context.undo, adapter.feed)
        self._detector = context.call_detector(target_dialect, self._ledger)
        self._expander: CallExpander | None = None
        self._encoder = target_dialect.encoder(context.client_request())
        self._open = -1
        """The index of the part whose deltas need no change, until an event of another kind comes."""
        self._open_index = -1
        """The index of that part at the client."""
        self._open_deltas: list[PartDelta] | None = None
        """The recorder's list of the deltas of that part."""
        self._partial_frame = bytearray()
        """The bytes so far of an incomplete SSE frame."""
        self._is_framed = True
        self.over = False
        """The client has received the end of the reply; later bytes of the upstream are ignored."""
        self.begun = False
        """The reply has had content, not only a start event."""
        self.usage: Usage | None = None
        self.finish: Finish | None = None
        self.problem: Problem | None = None

    def feed(self, chunk: bytes) -> bytes:
        """Return the client's bytes for the next bytes of the upstream."""
        if self.over:
            return b""
        if self._same is False:
            if self._recorder is not None and not self._recorder.add_bytes(len(chunk)):
                self._recorder, self._open = None, -1
            return self._render(self._decoder.feed(chunk))
        if self._same is None:
            self._partial_frame += chunk
            if len(self._partial_frame) < _MAX_HEAD and _FIRST_NAME.search(self._partial_frame) is None:
                return b""
            chunk = bytes(self._partial_frame)
            self._partial_frame.clear()
            first = chunk.lstrip()[:1]
            # A whole reply is rendered as the stream that the client asked for.
            self._same = first != b"{" and not has_other_envelope(self._dialect, chunk, self._context)
            self._is_framed = first != b"["
        return self._pass_frames(chunk) if self._same else self._render(self._decoder.feed(chunk))

    def close(self) -> bytes:
        """Return the last bytes for the client: the end of the reply, or an error if the upstream sent no end."""
        if self.over:
            return b""
        if self._same is False:
            last = self._render(self._decoder.close())
            self.over = True
            return last
        self.over = True
        held = bytes(self._partial_frame)
        events = [*(self._decoder.feed(held) if held else ()), *self._decoder.close()]
        self._record_events(events)
        return self._render_broken(events) or held

    def fail(self, problem: Problem) -> bytes:
        """End the stream with an error that the upstream did not send, such as a timeout or a lost connection."""
        if self.over:
            return b""
        events: list[Event] = [Failed(problem)]
        if self._same is False:
            return self._render(events)
        self._record_events(events)
        return self._encoder.feed(events[0])

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses so far."""
        return self._ledger.losses()

    def _pass_frames(self, chunk: bytes) -> bytes:
        """Return complete frames unchanged, up to the end of the reply or to a frame that is malformed."""
        forwarded: list[bytes] = []
        # Forward whole frames only: an error after half of a malformed frame would become part of that frame.
        for frame in split_frames(self._partial_frame, chunk) if self._is_framed else (chunk,):
            if self.over:
                break
            events = self._decoder.feed(frame)
            self._record_events(events)
            # Only server-sent events have comments: in a JSON array a line may start with the colon of a member.
            has_comment = self._is_framed and (frame[:1] == b":" or b"\n:" in frame)
            if has_comment and not self._dialect.ignores_comments:
                frame = _COMMENT.sub(b"", frame)  # noqa: PLW2901  all that is left of it is forwarded
            forwarded.append(self._render_broken(events) or frame)
        if len(self._partial_frame) > MAX_EVENT_BYTES and not self.over:
            forwarded.append(self.fail(Problem("malformed_reply", f"an event is larger than {MAX_EVENT_BYTES} bytes")))
        if self.over:
            self._partial_frame.clear()
        return b"".join(forwarded)

    def _render_broken(self, events: list[Event]) -> bytes:
        """Return an error to send if the stream is malformed or cut off; the client would not notice that itself."""
        for event in events:
            if isinstance(event, Failed) and event.problem.kind == "malformed_reply":
                return self._encoder.feed(event)
        return b""

    def _render(self, events: list[Event]) -> bytes:
        if self._expander is None and any(map(_may_be_wrapper, events)):
            self._expander = CallExpander(self._ledger)
        if self._expander is not None:
            events = self._expander.feed(events)
        if self._detector is not None:
            events = self._detector.feed(events)
        if self._arranger is not None:
            events = self._arranger.feed(events)
        adapted: list[Event] = []
        for event in events:
            # Most events are a delta of the open part, which needs no change.
            if type(event) is PartDelta and (event.index == self._open or self._find_open(event.index)):
                if self._open_deltas is not None:
                    self._open_deltas.append(event)
                same_index = event.index == self._open_index
                adapted.append(event if same_index else PartDelta(self._open_index, event.text, event.piece))
            else:
                adapted += self._adapt(event)
        return b"".join(map(self._encoder.feed, adapted))

    def _find_open(self, index: int) -> bool:
        """Return whether the deltas of a part need no change; if so, remember it until another kind of event comes."""
        if not self._pipeline.can_pass(index):
            return False
        client_index = index if self._adapter is None else self._adapter.find_passing_index(index)
        if client_index is None:
            return False
        self._open, self._open_index = index, client_index
        self._open_deltas = self._recorder.find_deltas(client_index) if self._recorder is not None else None
        return True

    def _adapt(self, event: Event) -> list[Event]:
        self._open = -1
        if type(event) is Started and event.created is None:
            event = structs.replace(event, created=self._context.now)
        adapted = self._pipeline.feed(event)
        self._record_events(adapted, self._recorder)
        return adapted

    def _record_events(self, events: Iterable[Event], recorder: SignatureRecorder | None = None) -> None:
        """Record whether the reply has begun, how it ended and, with `recorder`, what is signed in it."""
        for event in events:
            if isinstance(event, _STATES):
                self._record_state(event)
            else:
                self.begun = True
            if recorder is not None:
                recorder.record_event(event)

    def _record_state(self, event: Started | UsageSeen | Finished | Failed) -> None:
        match event:
            case Started():
                pass
            case UsageSeen(usage):
                self.usage = usage
            case Finished(finish):
                self.begun = self.over = True
                self.finish = finish
            case Failed(problem):
                self.over = True
                self.problem = problem
            case _:
                assert_never(event)
