"""Translate a request, a reply, a stream or an error from one dialect to another.

The same dialect on both sides means the same bytes. Otherwise: parse, fit (losses are booked there), write.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs

from dragoman.core.events import Event, Failed, Finished, PartDelta, Started, UsageSeen
from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import Sequencer
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect, ErrorReply
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.cleaned import cleaned
from dragoman.interpreter.context import NO_CONTEXT, Context, is_wrapped_otherwise
from dragoman.interpreter.faults import as_fault, is_envelope, losses_of
from dragoman.interpreter.frames import Frames, translated_in_frame
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.links import Links
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.reply import ReplyFitter
from dragoman.interpreter.reply_plain import PlainReplies, shape_of, told_parts
from dragoman.interpreter.reply_whole import WholeFitter
from dragoman.interpreter.signing import CallWatch, Signer
from dragoman.interpreter.text_calls.hearing import heard
from dragoman.interpreter.text_calls.translation import translated_in_words
from dragoman.interpreter.translation import NO_UNDO, Asked, Translation, translated
from dragoman.interpreter.undo import Restorer
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced
from dragoman.wire.sse import MAX_EVENT_BYTES, whole_frames

_FIRST_NAME = re.compile(rb'"[^"]*"|\n\r?\n')
"""From here on an envelope can be told from what it holds."""
_LONGEST_HEAD = 4096
RECALL = Recall()
"""What this process remembers of the long conversations that went through it."""
FRAMES = Frames()
"""What it remembers of what stands around the others."""
PLAIN = PlainReplies()
"""What it remembers of what plain replies lose."""


class Rendered(Struct, frozen=True):
    """A translated reply and what it could not say."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    response: Response | None = None
    """The reply in the core; None when its bytes were passed on unread."""


def translate_request(  # noqa: PLR0913  a call, two dialects, and three independent wishes
    call: Call,
    source: str,
    target: str,
    *,
    model: str = "",
    strict: bool = False,
    form: str = "",
    signer: Signer | None = None,
    links: Links | None = None,
    text_calls: TextCalls = "",
) -> Translation:
    """Say a request of `source` in `target`, for `model` there (the caller's own name for it when empty).

    `form` names a variant of the target's envelope, such as Gemini's "code_assist". Strict refuses any loss. `signer`
    is asked for signatures that the target demands and the caller did not bring; `Missing` if it must look them up.
    With `links` media that the target does not fetch is replaced by what was fetched for it; `Unfetched` if it must be.
    With `text_calls` the target has no tools of its own: they are told to it in words, and it calls them in its text.
    """
    here, there = dialect_named(source), dialect_named(target)
    if text_calls:
        told = translated_in_words(Asked(call, here, there, model, form, strict, None, links, text_calls))
        if told is not None:
            return told
    if here is there and not form:
        return _passed(call, here, model, strict=strict)
    asked = Asked(call, here, there, model, form, strict, signer, links)
    if here is there or form or len(call.body) >= 2 * RECALL.least:
        return translated(asked, RECALL)
    return translated_in_frame(asked, FRAMES, RECALL)


def _passed(call: Call, dialect: Dialect, model: str, *, strict: bool) -> Translation:
    """Pass a request on in its own dialect: the same bytes, but for another vendor's signatures and an envelope."""
    ledger = Ledger(dialect.pointers, call.body)
    passed, request = cleaned(call, dialect, model, ledger), None
    unwrapped = dialect.unwrap(passed) if dialect.unwrap is not None else None
    if unwrapped is not None:
        request = dialect.parse_request(call)
        passed, left = unwrapped
        for where in left:
            ledger.dropped(where, "only the envelope has a place for it")
    losses = ledger.losses() if len(ledger) else ()
    if strict:
        refuse(losses)
    return Translation(call=_with_model(passed, model, dialect) if model else passed, losses=losses, request=request)


def _with_model(call: Call, model: str, dialect: Dialect) -> Call:
    """Change the model and nothing else: every other byte of the body stays."""
    try:
        place = next((place for place in dialect.pointers["model"] if lookup(call.body, place) is not None), None)
        body = spliced(call.body, place.removeprefix("/"), json.encode(model)) if place is not None else call.body
        return Call(body, model, call.stream)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def translate_response(body: bytes, source: str, target: str, context: Context = NO_CONTEXT) -> Rendered:
    """Say a whole reply of `source` in `target`, the client's dialect."""
    here, there = dialect_named(source), dialect_named(target)
    if here is there and context.passes and not is_wrapped_otherwise(here, body, context):
        return Rendered(body)
    plain = here.read_plain(body)
    parts = shape = None
    if plain is not None and here is not there:
        parts = told_parts(plain, there, context.undo, context.salt)
        if parts is not None:
            shape = shape_of(plain, here, there)
            known = PLAIN.losses_of(shape)
            if known is not None:
                response = _as_told(plain, parts, context)
                return Rendered(there.build_response(response, context.client_request()), known, response)
    ledger = Ledger(here.reply_pointers, body, exact=plain is not None)
    response = plain or here.parse_response(body)
    if response.created is None:
        response = structs.replace(response, created=context.now)
    hearing = context.hearing(there, ledger)
    if hearing is not None:
        response = heard(response, hearing)
    if here is not there or context.undo is not NO_UNDO:
        response = _fitted(response, here, there, context, ledger)
    losses = ledger.losses()
    if shape is not None:
        PLAIN.keep(shape, losses)
    return Rendered(there.build_response(response, context.client_request()), losses, response)


def _as_told(plain: Response, parts: tuple[AnyPart, ...], context: Context) -> Response:
    """Return a plain reply with what the client is told of it, and nothing else."""
    usage, created = plain.usage, plain.created
    return Response(
        id=plain.id,
        model=plain.model,
        parts=parts,
        finish=plain.finish,
        usage=structs.replace(usage, extras=None) if usage is not None and usage.extras is not None else usage,
        created=context.now if created is None else created,
    )


def _fitted(response: Response, here: Dialect, there: Dialect, context: Context, ledger: Ledger) -> Response:
    """Return a whole reply in the caller's terms, with only what its dialect can hold."""
    restored = structs.replace(response, parts=tuple(map(Restorer(context.undo).whole, response.parts)))
    if here is there:
        return restored
    return context.fitter(WholeFitter, here, there, ledger).fit(restored)


class StreamTranslator:
    """Upstream bytes in, bytes for the client out, as they come.

    The same dialect on both sides means the same bytes; the decoder only watches, so that a stream that is cut or
    broken still ends in an error the client sees.
    """

    def __init__(self, source: str, target: str, context: Context = NO_CONTEXT, watch: CallWatch | None = None) -> None:
        here, there = dialect_named(source), dialect_named(target)
        self._dialect = here
        self._watch = watch
        self._context = context
        self._same: bool | None = None if here is there and context.passes else False
        self._decoder = here.decoder()
        self._restorer = Restorer(context.undo)
        self._sequencer = Sequencer()
        self._ledger = Ledger(here.reply_pointers)
        self._fitter = None if here is there else context.fitter(ReplyFitter, here, there, self._ledger)
        self._hearing = context.hearing(there, self._ledger)
        self._encoder = there.encoder(context.client_request())
        self._flowing = -1
        """The part that text came for last, with nothing else told since, and its place at the client, if it passes."""
        self._place: int | None = None
        self._grow: Callable[[str], bytes] | None = None
        """Writes what that text goes on with, if nobody else has to know of it."""
        self._begun = bytearray()
        """What has come of a frame that is not whole."""
        self._framed = True
        self.over = False
        """The client has heard the end; nothing of what still comes is told."""
        self.begun = False
        """The reply has said something, not only that it begins."""
        self.usage: Usage | None = None
        self.finish: Finish | None = None
        self.problem: Problem | None = None

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the upstream."""
        if self.over:
            return b""
        if self._same is False:
            return self._told(self._decoder.feed(chunk))
        if self._same is None:
            self._begun += chunk
            if len(self._begun) < _LONGEST_HEAD and _FIRST_NAME.search(self._begun) is None:
                return b""
            chunk = bytes(self._begun)
            self._begun.clear()
            self._same = not is_wrapped_otherwise(self._dialect, chunk, self._context)
            self._framed = not chunk.lstrip().startswith((b"[", b"{"))
        return self._passed(chunk) if self._same else self._told(self._decoder.feed(chunk))

    def flow(self, chunk: bytes) -> bytes | None:
        """Take bytes in which nothing is said but that the last text goes on; None, and nothing taken, for any others.

        Most of a stream is that, and it costs half of what `feed` does.
        """
        grow = self._grow
        if grow is None:
            return None
        text = self._decoder.more(chunk)
        return None if text is None else grow(text)

    def close(self) -> bytes:
        """The upstream is done: tell the end, or that it never came."""
        if self.over:
            return b""
        self._grow = None
        if self._same is False:
            last = self._told(self._decoder.close())
            self.over = True
            return last
        self.over = True
        held = bytes(self._begun)
        events = [*(self._decoder.feed(held) if held else ()), *self._decoder.close()]
        self._note(events)
        return self._broken(events) or held

    def fail(self, problem: Problem) -> bytes:
        """End the stream with an error that the upstream did not tell: it fell silent, or cannot be heard any more."""
        if self.over:
            return b""
        events: list[Event] = [Failed(problem)]
        if self._same is False:
            return self._told(events)
        self._note(events)
        return self._encoder.feed(events[0])

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be said so far."""
        return self._ledger.losses()

    def _passed(self, chunk: bytes) -> bytes:
        """Pass whole frames on as they are, up to the end of the reply or to what breaks it."""
        passed: list[bytes] = []
        # A frame that breaks must not have been begun: the error would be glued to what there was of it.
        for frame in whole_frames(self._begun, chunk) if self._framed else (chunk,):
            if self.over:
                break
            events = self._decoder.feed(frame)
            self._note(events)
            passed.append(self._broken(events) or frame)
        if len(self._begun) > MAX_EVENT_BYTES and not self.over:
            passed.append(self.fail(Problem("malformed_reply", f"an event is larger than {MAX_EVENT_BYTES} bytes")))
        if self.over:
            self._begun.clear()
        return b"".join(passed)

    def _broken(self, events: list[Event]) -> bytes:
        """Return the error to send where a stream ends in nothing the client would take for one."""
        for event in events:
            if isinstance(event, Failed) and event.problem.kind == "malformed_reply":
                return self._encoder.feed(event)
        return b""

    def _told(self, events: list[Event]) -> bytes:
        if self._hearing is not None:
            events = self._hearing.feed(events)
        # Most events are text that goes on in an open part: those take the straight way.
        if len(events) == 1 and type(event := events[0]) is PartDelta:
            place = self._place if event.index == self._flowing else self._flow(event.index)
            if place is not None:
                return self._grown(event, place)
        return self._told_all(events)

    def _grown(self, event: PartDelta, place: int) -> bytes:
        if self._watch is not None:
            self._watch.grow(place, event.text)
        return self._encoder.feed(event if place == event.index else PartDelta(place, event.text, event.piece))

    def _told_all(self, events: list[Event]) -> bytes:
        told: list[bytes] = []
        encode = self._encoder.feed
        fitter = self._fitter
        for event in events:
            if type(event) is PartDelta:
                place = self._place if event.index == self._flowing else self._flow(event.index)
                if place is not None:
                    told.append(self._grown(event, place))
                    continue
            self._flowing, self._grow = -1, None
            if type(event) is Started and event.created is None:
                event = structs.replace(event, created=self._context.now)  # noqa: PLW2901  the same, made at a time
            for restored in self._restorer.feed(event):
                for ordered in self._sequencer.feed(restored):
                    fitted = fitter.feed(ordered) if fitter is not None else (ordered,)
                    self._note(fitted)
                    if self._watch is not None:
                        self._watch.note(fitted)
                    told.extend(map(encode, fitted))
        return told[0] if len(told) == 1 else b"".join(told)

    def _flow(self, index: int) -> int | None:
        """Return the client's index of a part whose text passes as it is, until any other event is told."""
        passes = self._fitter is not None and self._restorer.passes(index) and self._sequencer.passes(index)
        self._place = self._fitter.place_of(index) if passes and self._fitter is not None else None
        self._flowing = index
        is_heard = self._hearing is not None or (self._watch is not None and self._watch.minds(self._place))
        self._grow = None if self._place is None or is_heard else self._encoder.grower(self._place)
        return self._place

    def _note(self, events: Iterable[Event]) -> None:
        """Remember what is asked of a stream later: whether it has begun and how it ended."""
        for event in events:
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
                    self.begun = True


def translate_error(status: int, headers: Mapping[str, str], body: bytes, source: str, target: str) -> ErrorReply:
    """Say an upstream's error in the client's dialect; an error in its own dialect keeps its body."""
    here, there = dialect_named(source), dialect_named(target)
    problem = here.parse_error(status, headers, body)
    if here is there:
        reply = there.build_error(problem)
        return structs.replace(reply, body=body) if is_envelope(body) else reply
    reply = there.build_error(as_fault(problem, here.issuer, there.issuer))
    return structs.replace(reply, losses=losses_of(problem, body, here, reply))
