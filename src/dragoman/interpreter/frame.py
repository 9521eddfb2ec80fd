"""What stands around a history in a request, and all that comes of translating it.

A conversation sends the same tools and settings with every turn. What comes of them is made once, without a look at any
history: whatever would need one is not remembered. The history itself is read, fitted and written as ever, with what
is settled of the frame before it.
"""

from collections.abc import Iterator
from typing import Any, SupportsIndex, overload

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adapt import Settled, frame_fitted, history_fitted, settle, thinking_in
from dragoman.interpreter.fitting import Fitting, Undo
from dragoman.interpreter.knobs import most_tokens
from dragoman.interpreter.ledger import Booked, Ledger, refuse
from dragoman.interpreter.signing import signed_again
from dragoman.interpreter.talk import NUMBERS, Talk, joined
from dragoman.interpreter.traits import traits_for
from dragoman.interpreter.translation import Asked, Translation
from dragoman.wire.outline import Outline


class _Seen(Exception):  # noqa: N818  it says what happened
    """Somebody looked at the history."""


class _Unseen(tuple[Message, ...]):
    """A history that nobody may look at."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Message]:
        raise _Seen

    def __len__(self) -> int:
        raise _Seen

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Message: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Message, ...]: ...
    def __getitem__(self, key: Any, /) -> Any:
        raise _Seen


class Frame(Struct, frozen=True, eq=False):
    """A frame for one target, and what was made of it."""

    outer: tuple[Message, ...]
    """Messages that the frame itself holds, before the history."""
    request: Request
    """What was asked, without the history."""
    traits: Traits
    fitting: Fitting
    """As it is when the history comes."""
    settled: Settled
    adapted: Request
    """What the target is asked, without the history."""
    undo: Undo
    before: Booked
    after: Booked
    """What was booked before the history and after it."""
    losses: tuple[Loss, ...] | None
    """All that is lost where the history loses nothing; None if that depends on the history."""
    opening: bytes
    """What stands before the first turn at the target, if its history is written by itself."""
    rest: bytes | None
    """What the target is told behind the history; None where it does not stand there by itself."""
    takes_talk: bool
    """Nothing of the frame changes texts, or adds to them, or depends on them."""
    number: int
    """What the talk in it is known by."""

    def say(self, asked: Asked, outline: Outline, talk: Talk) -> Translation | None:
        """Translate a request of this frame; None if it must be translated whole."""
        if self.takes_talk and (told := self._talked(asked, outline, talk)) is not None:
            return told
        here = asked.here
        history = here.read_history(outline.array(asked.call.body), 0) if here.read_history is not None else None
        if not history or (here.declared is not None and here.declared(history)):
            return None
        messages = (*self.outer, *history) if self.outer else history
        if asked.signer is not None and (changed := signed_again(messages, asked.signer)):
            messages = tuple([changed.get(at, message) for at, message in enumerate(messages)])
        request = structs.replace(self.request, messages=messages)
        fitting = self._begun(asked)
        ledger = fitting.ledger
        try:
            turns = history_fitted(messages, self.settled, fitting, begins=True)
        except Problem:
            return None  # what is refused is told of the whole request, in the order of all there is
        thinking = self.settled.thinking
        if thinking is not None and thinking_in(turns, thinking, request, ledger) is not thinking:
            return None
        losses = self.losses
        if len(ledger) or losses is None:
            ledger.put_amid(self.before, self.after)
            losses = ledger.losses()
        if asked.strict:
            refuse(losses)
        undo = self.undo
        if fitting.names != undo.names:
            undo = structs.replace(undo, names=fitting.names)
        return Translation(call=self._written(turns, asked.there), losses=losses, undo=undo, request=request)

    def _talked(self, asked: Asked, outline: Outline, talk: Talk) -> Translation | None:
        """Translate a history that is plain talk, of which only what is new is read; None for any other."""
        read, write = asked.here.read_history, asked.there.write_history
        if read is None or write is None or self.rest is None or self.losses is None:
            return None
        turns = talk.told(self.number, outline.items, read, write)
        if not turns or turns[-1].message.role != "user":
            return None
        if asked.strict:
            refuse(self.losses)
        request = structs.replace(self.request, messages=tuple([turn.message for turn in turns]))
        call = Call(joined(turns, self.opening) + self.rest, self.adapted.model, self.adapted.stream)
        return Translation(call=call, losses=self.losses, undo=self.undo, request=request)

    def _begun(self, asked: Asked) -> Fitting:
        known = self.fitting
        return Fitting(
            known.traits,
            Ledger(asked.here.pointers, asked.call.body, known.ledger.once),
            known.source_issuer,
            known.max_tokens,
            known.validated,
            known.forced,
            known.names.copy(),
            known.custom,
            known.arguments,
            known.single,
            known.marked,
            asked.links,
            known.instructions,
        )

    def _written(self, turns: tuple[Message, ...], there: Dialect) -> Call:
        if self.rest is None or there.write_history is None:
            return there.render_request(structs.replace(self.adapted, messages=turns), self.traits)
        return Call(there.write_history(turns)[:-1] + self.rest, self.adapted.model, self.adapted.stream)


def framed(asked: Asked, told: Translation, outline: Outline) -> Frame | None:
    """Make of one request what all that have its frame share; None if there is no such thing."""
    here, there, request = asked.here, asked.there, told.request
    history = here.read_history(outline.array(asked.call.body), 0) if here.read_history is not None else None
    if not history or request is None:
        return None
    outer = request.messages[: -len(history)]
    wanted = asked.model or request.model
    traits = traits_for(there.name, wanted)
    unseen = structs.replace(request, messages=_Unseen())
    fitting = Fitting(
        traits, Ledger(here.pointers, asked.call.body), here.issuer, most_tokens(request.sampling, traits)
    )
    try:
        settled = settle(unseen, fitting)
        once, before, undo = fitting.ledger.once, fitting.ledger.booked(), fitting.undo()
        ledger = fitting.ledger
        adapted = frame_fitted(unseen, settled, settled.thinking, fitting)
    except _Seen:
        return None
    if ledger.once != once or fitting.undo() != undo:
        return None
    adapted = structs.replace(adapted, model=wanted, messages=())
    frame = Frame(
        outer=outer,
        request=structs.replace(request, messages=()),
        traits=traits,
        fitting=structs.replace(fitting, ledger=Ledger({}, once=once)),
        settled=settled,
        adapted=adapted,
        undo=undo,
        before=before,
        after={entry: None for entry in ledger.booked() if entry not in before},
        losses=None if ledger.looks_into(here.history) else ledger.losses(),
        opening=there.write_history(())[:-2] if there.write_history is not None else b"",
        rest=_rest(adapted, there, traits),
        takes_talk=not (fitting.instructions or fitting.marked or outer)
        and here.declared is None
        and settled.output is None
        and traits.turns == "alternating",
        number=next(NUMBERS),
    )
    return frame if _is_same(frame.say(asked, outline, Talk()), told) else None


def _rest(adapted: Request, there: Dialect, traits: Traits) -> bytes | None:
    """Return what a request says behind its history, which must stand first."""
    if there.write_history is None:
        return None
    nothing = there.write_history(())[:-1]
    body = there.render_request(adapted, traits).body
    return body.removeprefix(nothing) if body.startswith(nothing) else None


def _is_same(again: Translation | None, told: Translation) -> bool:
    return again is not None and (again.call, again.losses, again.undo, again.request) == (
        told.call,
        told.losses,
        told.undo,
        told.request,
    )
