"""A conversation that goes on: only what is new in it is read, fitted and written.

A history is cut where the user has spoken and the model answers. What stands before such a cut, with a result for every
call, is translated alike whatever follows it. So it is translated by itself and remembered; the rest is the open turn.
Anything unusual (ids that are missing, or used on both sides of the cut) is translated whole.
"""

from collections.abc import Iterable, Sequence

from msgspec import Raw, structs

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, leading_systems
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adapt import fitted_turns
from dragoman.interpreter.cache_marks import marks_agree
from dragoman.interpreter.carry import restored
from dragoman.interpreter.fitting import Arguments, Fitting
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.links import Links
from dragoman.interpreter.recall import NOTHING, Beginning, Recall
from dragoman.interpreter.signing import Signer, signed_again
from dragoman.wire import array, json

_MARKS = (b"prompt_cache_breakpoint", b"cache_control")
"""What a body holds that has cache marks, in anybody's words."""


class Conversation:
    """One request on its way from one dialect to another, and what is known of its history."""

    _known = NOTHING
    _start = 0
    """Where the items of the history begin in the body."""
    _new: Sequence[Raw] = ()
    """The items behind what is known; none if nothing shall be remembered."""
    _tail = 0
    """How many bytes the body has from the end of the history on."""

    def __init__(  # noqa: PLR0913, PLR0917  a call on its way, and who remembers what of it
        self,
        call: Call,
        here: Dialect,
        there: Dialect,
        model: str,
        recall: Recall,
        signer: Signer | None = None,
        links: Links | None = None,
    ) -> None:
        self._call = call
        self._here = here
        self._there = there
        self._recall = recall
        self._links = links
        # What was given back to one owner is not what another brings; where links are fetched, other things are made.
        known = [model, *([signer.scope] if signer is not None else ()), *(["with links"] if links is not None else ())]
        self._scope = (here.name, there.name, " ".join(known))
        self.request = self._read()
        if signer is not None:
            self._sign(signer)

    def _sign(self, signer: Signer) -> None:
        """Give new calls the signatures they came without; what is known has got them already."""
        messages = self.request.messages
        known = self._known.end_in(messages) if self._known is not NOTHING else 0
        changed = signed_again(messages[known:], signer)
        if changed:
            new = [changed.get(at, message) for at, message in enumerate(messages[known:])]
            self.request = structs.replace(self.request, messages=(*messages[:known], *new))

    def _read(self) -> Request:
        body, parse, recall = self._call.body, self._here.parse_request, self._recall
        start = array.opening(body, self._here.history) if len(body) >= 2 * recall.least else None
        if start is None:
            return parse(self._call)
        self._start = start
        known = recall.find(self._scope, body, start)
        request = self._read_on(known) if known is not None and known is not NOTHING else None
        if request is None:
            request = parse(self._call)
            if known is not None:
                self._new, self._tail = array.items(body, self._here.history, start) or ([], 0)
        return request

    def _read_on(self, known: Beginning) -> Request | None:
        """Parse the request without what is known of it and put that back; None if it must be parsed whole."""
        call, here, start = self._call, self._here, self._start
        following = array.after(call.body, start + len(known.items))
        if following is None:
            return None
        shorter = call.body[:start] + call.body[following:]
        try:
            found = array.items(shorter, here.history, start)
            request = here.parse_request(Call(shorter, call.model, call.stream, len(known.messages)))
        except (Problem, json.Malformed):
            return None  # what is wrong is told of the whole document, with the places the caller knows
        new, tail = found or ([], 0)
        outer = len(request.messages) - len(new)
        answer = restored(request.messages[outer : outer + 1])
        if not answer or answer[0].role != "assistant":
            return None
        self._known, self._new, self._tail = known, new, tail
        messages = (*request.messages[:outer], *known.messages, *request.messages[outer:])
        return structs.replace(request, messages=messages)

    def beginning(self, traits: Traits, retold: Arguments) -> Beginning:
        """Return all but the open turn, translated, and remember it; `NOTHING` if all must be translated as one.

        `retold` tells how the arguments of calls are said in another way, to fit the tools that there are now.
        """
        known, messages = self._known, self.request.messages
        is_alike = known.traits is traits and known.retold == retold
        if not self._new or (known is not NOTHING and not is_alike):
            return NOTHING
        first = len(messages) - len(self._new)
        begin = max(first, leading_systems(messages))
        cut = next((at for at in range(len(messages) - 1, begin, -1) if _is_cut(messages, at)), begin)
        segment = messages[begin:cut]
        ids = _answered(segment, known.ids)
        if ids is None or not _is_apart(messages[cut:], ids) or not self._marks_agree(traits):
            return NOTHING
        if not segment:
            return known
        body, start = self._call.body, self._start
        end = array.end_before(body, len(body) - self._tail, self._new[cut - first :])
        read = messages[first - len(known.messages) : cut]
        longer = structs.replace(known, items=body[start:end], messages=read, traits=traits, retold=retold, ids=ids)
        try:
            told = self._told(segment, longer, traits)
        except Problem:
            return NOTHING  # what is refused is told of the whole request, in the order of all there is
        if self._links is not None and self._links.missing:
            return NOTHING
        self._recall.keep(self._scope, told, known)
        return told

    def _marks_agree(self, traits: Traits) -> bool:
        """Tell whether no cache mark of one side of a cut has a say in those of the other."""
        if traits.cache_marks_max is None:
            return True
        body = self._call.body
        return not any(word in body for word in _MARKS) or marks_agree(self.request.messages, traits.cache_marks_max)

    def _told(self, segment: tuple[Message, ...], longer: Beginning, traits: Traits) -> Beginning:
        """Translate the messages by which a beginning is longer than what was known."""
        ledger = Ledger(self._here.pointers, self._call.body, longer.once)
        fitting = Fitting(traits, ledger, self._here.issuer, arguments=longer.retold, links=self._links)
        turns = fitted_turns(segment, fitting, begins=self._known is NOTHING)
        body = self._there.render_request(Request(model="", messages=turns), traits).body
        # A request of nothing but messages ends with its history.
        history = body[array.opening(body, self._there.history) : -len(b"]}")]
        written = [items for items in (longer.written, history) if items]
        return structs.replace(
            longer,
            written=b",".join(written),
            names={**longer.names, **fitting.names},
            losses=(*longer.losses, *ledger.losses()),
            once=ledger.once,
        )


def _is_cut(messages: tuple[Message, ...], at: int) -> bool:
    return messages[at].role == "assistant" and messages[at - 1].role == "user"


def _answered(messages: tuple[Message, ...], known: frozenset[str]) -> frozenset[str] | None:
    """Add the ids of calls to those known; None unless each is new and every result has its call here."""
    calls: list[str] = []
    results: set[str] = set()
    for part in _calls_and_results(messages):
        if isinstance(part, ToolCall):
            calls.append(part.id)
        else:
            results.add(part.call_id)
    ids = set(calls)
    is_whole = len(ids) == len(calls) and ids == results and "" not in ids and ids.isdisjoint(known)
    return known | ids if is_whole else None


def _is_apart(messages: tuple[Message, ...], known: frozenset[str]) -> bool:
    """Tell whether an open turn has nothing to do with the calls before it."""
    ids = [part.id if isinstance(part, ToolCall) else part.call_id for part in _calls_and_results(messages)]
    return "" not in ids and known.isdisjoint(ids)


def _calls_and_results(messages: tuple[Message, ...]) -> Iterable[ToolCall | ToolResult]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall | ToolResult)]
