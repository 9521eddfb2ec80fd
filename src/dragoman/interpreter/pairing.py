"""Pair every call with exactly one result right after it, and give both the ids and names that the target takes.

No vendor accepts a call without its result, a result without its call, or two results for one call. A result belongs to
the nearest call with its id before it (clients reuse ids); without an id, to the first unanswered call with its name. A
history whose calls and results are paired already is returned unchanged.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import (
    AnyPart,
    Data,
    Media,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message, Request
from dragoman.core.response import Response
from dragoman.core.traits import Traits
from dragoman.interpreter.ids import alias_id, generate_id, is_given_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.turns import SKIP_SIGNATURE


class CallNotes(Struct):
    """What `name_calls` found in the calls and results of a history."""

    in_pairs: bool = True
    """Each run of assistant messages is immediately followed by its results, in order, and ids are unique."""
    renamed: list[ToolResult] = []
    """Results whose name differed from that of their call."""
    unsigned: list[ToolCall] = []
    """First calls of a step that had no signature and got Google's placeholder."""


def name_calls(messages: list[Message], traits: Traits, call_count: int = 0) -> tuple[list[Message], CallNotes]:
    """Set the ids that the target takes, the names of results, and the signature each step's first call must have.

    `call_count` is the number of calls before these messages.
    """
    calls: dict[str, ToolCall] = {}
    aliases: dict[str, str] = {}
    waiting: list[str] = []
    """Ids of calls that have no result yet."""
    named, notes = [*messages], CallNotes()
    starts_signed = not traits.signed_calls
    before, is_signed = "", starts_signed
    for at, message in enumerate(messages):
        role = message.role
        if role != before:
            before, is_signed = role, starts_signed
            if waiting and role == "assistant":
                notes.in_pairs = False
        for part in message.parts:
            if isinstance(part, ToolCall):
                call_id = part.id
                if not call_id or call_id in calls or role != "assistant":
                    notes.in_pairs = False
                calls[call_id] = part
                waiting.append(call_id)
                alias = aliases[call_id] = find_alias(part, traits, call_count)
                call_count += 1
                now = _alias_call(part, alias, None if is_signed else notes.unsigned)
                is_signed = True
            elif isinstance(part, ToolResult):
                if not waiting or waiting.pop(0) != part.call_id or role == "assistant":
                    notes.in_pairs = False
                alias = aliases.get(part.call_id)
                if alias is None:
                    alias = alias_id(part.call_id, traits) if traits.sends_ids else ""
                now = _alias_result(part, alias, calls.get(part.call_id), traits, notes.renamed)
            else:
                if waiting and role != "assistant":
                    notes.in_pairs = False
                continue
            if now is not part:
                parts = named[at].parts
                parts = (now,) if len(parts) == 1 else tuple([now if one is part else one for one in parts])
                named[at] = Message(role=role, parts=parts, name=message.name, where=message.where)
    notes.in_pairs = notes.in_pairs and not waiting
    return named, notes


def find_alias(call: ToolCall, traits: Traits, number: int) -> str:
    """Return the id that the target takes for a call with that number in the conversation."""
    if traits.id_template:
        return traits.id_template.format(name=call.name, number=number)
    return alias_id(call.id, traits) if traits.sends_ids or is_given_id(call, traits) else ""


def _alias_call(call: ToolCall, call_id: str, unsigned: list[ToolCall] | None) -> ToolCall:
    """Return a call with that id; with `unsigned`, also add a missing signature and list the call."""
    if unsigned is not None and call.signature is None:
        unsigned.append(call)
        return structs.replace(call, id=call_id, signature=SKIP_SIGNATURE)
    return structs.replace(call, id=call_id) if call_id != call.id else call


def _alias_result(
    result: ToolResult, call_id: str, call: ToolCall | None, traits: Traits, renamed: list[ToolResult]
) -> ToolResult:
    """Return a result with that id, and with the name and form of its call, as the target takes them."""
    name, form = result.name, result.form
    if call is not None:
        if name and name != call.name:
            renamed.append(result)
        name, form = call.name, call.form
    if not traits.result_names:
        name = ""
    if call_id == result.call_id and name == result.name and form == result.form:
        return result
    return structs.replace(result, call_id=call_id, name=name, form=form)


CALL_PREFIX = "call_"
NO_LOSSES: tuple[Loss, ...] = ()
MISSING_RESULT = "no result: the call was interrupted"


def pair_calls(
    messages: list[Message], traits: Traits, ledger: Ledger, *, runs: int = 0, unnamed: int = 0
) -> list[Message]:
    """Return the history with calls and results in pairs; report every change.

    `runs` and `unnamed` count the runs of assistant messages, and the calls without an id, before these messages:
    generated ids are numbered from there.
    """
    return messages if _is_paired(messages) else Pairing(traits, ledger, runs, unnamed).pair(messages)


def add_ids(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Give each call without an id a generated one, and its result the same id; change nothing else."""
    if all(_find_id(part) for message in messages for part in message.parts):
        return messages
    pairing = Pairing(Traits(dialect=""), Ledger({}))
    pairing.index(messages)
    slots = iter(pairing.slots)
    answered = {id(result): slot.call.id for slot in pairing.slots for result in slot.results}
    named: list[Message] = []
    for message in messages:
        parts: list[AnyPart] = []
        for part in message.parts:
            call_id = ""
            if isinstance(part, ToolCall) and message.role == "assistant":
                call_id = next(slots).call.id
            elif isinstance(part, ToolResult):
                call_id = answered.get(id(part), "")
            parts.append(part if _find_id(part) or not call_id else _set_id(part, call_id))
        named.append(structs.replace(message, parts=tuple(parts)))
    return tuple(named)


def identify_request(request: Request) -> Request:
    """Return the request with an id on every call of its history, and the same id on the call's result."""
    messages = add_ids(request.messages)
    return request if messages is request.messages else structs.replace(request, messages=messages)


def find_call_id(call: ToolCall, reply_id: str, number: int) -> str:
    """Return the id of the call with that number in its reply: its own, or a generated one.

    The same reply gives the same ids, streamed or whole: the id is hashed from the reply's id, the call's number and
    its name; if the reply has no id, the call's arguments take its place.
    """
    return call.id or generate_id(CALL_PREFIX, reply_id or call.arguments, number, call.name)


def identify_parts(parts: tuple[AnyPart, ...], reply_id: str) -> tuple[AnyPart, ...]:
    """Return the parts of a reply with an id on every call."""
    named: list[AnyPart] = []
    calls = 0
    for part in parts:
        if isinstance(part, ToolCall):
            calls += 1
            named.append(part if part.id else structs.replace(part, id=find_call_id(part, reply_id, calls)))
        else:
            named.append(part)
    return tuple(named)


def identify_reply(response: Response) -> Response:
    """Return a whole reply with an id on every call."""
    return structs.replace(response, parts=identify_parts(response.parts, response.id))


def _find_id(part: AnyPart) -> str:
    """Return the id of a call or result; "none" for a part that needs no id."""
    match part:
        case ToolCall(id=call_id) | ToolResult(call_id=call_id):
            return call_id
        case _:
            return "none"


def _set_id(part: AnyPart, call_id: str) -> AnyPart:
    return structs.replace(part, **{"id" if isinstance(part, ToolCall) else "call_id": call_id})


def _is_paired(messages: list[Message]) -> bool:
    """Return whether each run of assistant messages is immediately followed by its results, in order, ids unique."""
    seen: set[str] = set()
    waiting: list[str] = []
    answered = 0
    after_assistant = False
    for message in messages:
        is_assistant = message.role == "assistant"
        if is_assistant and not after_assistant:
            if answered != len(waiting):
                return False
            waiting = []
            answered = 0
        after_assistant = is_assistant
        parts = message.parts
        if len(parts) == 1 and parts[0].__class__ is Text:
            if not is_assistant and answered != len(waiting):
                return False
            continue
        for part in parts:
            if isinstance(part, ToolCall):
                if not part.id or part.id in seen or not is_assistant:
                    return False
                seen.add(part.id)
                waiting.append(part.id)
            elif isinstance(part, ToolResult):
                if answered >= len(waiting) or is_assistant or waiting[answered] != part.call_id:
                    return False
                answered += 1
            elif not is_assistant and answered != len(waiting):
                return False
    return answered == len(waiting)


class _PendingCall(Struct):
    """A call and its results so far."""

    call: ToolCall
    run: int
    own_id: str
    results: list[ToolResult] = []


class Pairing:
    """The calls of a history, each with its results, and the history in which every call has one."""

    def __init__(self, traits: Traits, ledger: Ledger, runs: int = 0, unnamed: int = 0) -> None:
        self._runs = runs
        self._can_fail = traits.failed_results
        self._ledger = ledger
        self.slots: list[_PendingCall] = []
        self._by_run: dict[int, list[_PendingCall]] = {}
        self._by_id: dict[str, list[_PendingCall]] = {}
        self._id_uses: dict[str, int] = {"": unnamed}
        self._orphans: set[int] = set()

    def pair(self, messages: list[Message]) -> list[Message]:
        runs = self.index(messages)
        paired: list[Message] = []
        slots = iter(self.slots)
        for position, message in enumerate(messages):
            if message.role == "assistant":
                paired.append(self._set_call_ids(message, slots))
                is_last_of_run = position + 1 == len(messages) or messages[position + 1].role != "assistant"
                if is_last_of_run:
                    self._append_results(paired, runs[position])
            else:
                self._append_rest(paired, message)
        return paired

    def index(self, messages: Sequence[Message]) -> list[int]:
        """Collect the calls and their results; return the number of the assistant run for each message."""
        run = self._runs
        before = ""
        runs: list[int] = []
        for message in messages:
            if message.role == "assistant" and before != "assistant":
                run += 1
            before = message.role
            runs.append(run)
            for part in message.parts:
                if isinstance(part, ToolCall) and message.role == "assistant":
                    self._add_call(part, run)
                elif isinstance(part, ToolResult):
                    self._add_result(part)
        return runs

    def _add_call(self, call: ToolCall, run: int) -> None:
        own_id = call.id
        uses = self._id_uses[own_id] = self._id_uses.get(own_id, 0) + 1
        if not own_id:
            call = structs.replace(call, id=generate_id(CALL_PREFIX, run, uses, call.name))
        elif uses > 1:
            call = structs.replace(call, id=generate_id(CALL_PREFIX, own_id, uses))
            self._ledger.report_approximated_field("call.id", f"the id {own_id!r} was used before", call)
        slot = _PendingCall(call, run, own_id)
        self.slots.append(slot)
        self._by_run.setdefault(run, []).append(slot)
        if own_id:
            self._by_id.setdefault(own_id, []).append(slot)

    def _add_result(self, result: ToolResult) -> None:
        slot = self._find_by_id(result.call_id)
        if slot is None:
            slot = self._find_unanswered(result)
        if slot is None:
            self._orphans.add(id(result))
        else:
            slot.results.append(result)

    def _find_by_id(self, call_id: str) -> _PendingCall | None:
        """Return the nearest call with that id; of several in one turn, the first without a result."""
        slots = self._by_id.get(call_id, [])
        if not call_id or not slots:
            return None
        last = slots[-1]
        turn = [slot for slot in slots[-256:] if slot.run == last.run]
        return next((slot for slot in turn if not slot.results), last)

    def _find_unanswered(self, result: ToolResult) -> _PendingCall | None:
        """Return the call for a result without a usable id: by name, then by order."""
        open_slots = [slot for slot in self.slots[-256:] if not slot.results]
        if result.call_id:
            open_slots = [slot for slot in open_slots if not slot.own_id]
        named = [slot for slot in open_slots if slot.call.name == result.name]
        if named:
            return named[0]
        return open_slots[0] if open_slots and not result.name else None

    def _set_call_ids(self, message: Message, slots: Iterator[_PendingCall]) -> Message:
        parts: list[AnyPart] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                parts.append(next(slots).call)
            elif isinstance(part, ToolResult):
                parts.extend(self._take_orphan(part))
            else:
                parts.append(part)
        return Message(role="assistant", parts=tuple(parts), name=message.name, where=message.where)

    def _append_results(self, messages: list[Message], run: int) -> None:
        results: list[AnyPart] = [self._build_result(slot) for slot in self._by_run.get(run, [])]
        if results:
            messages.append(Message(role="user", parts=tuple(results), where=results[0].where))

    def _build_result(self, slot: _PendingCall) -> ToolResult:
        call = slot.call
        if not slot.results:
            self._ledger.report_approximated(call.where, f"call {call.id!r} has no result: an error result was added")
            text = Text(text=MISSING_RESULT if self._can_fail else f"Error: {MISSING_RESULT}")
            return ToolResult(call_id=call.id, name=call.name, content=(text,), failed=self._can_fail, form=call.form)
        *earlier, last = slot.results
        for duplicate in earlier:
            self._ledger.report_dropped(duplicate.where, f"call {call.id!r} has a later result")
        if last.name and last.name != call.name:
            self._ledger.report_dropped_field("result.name", "the name of the call is used", last)
        return structs.replace(last, call_id=call.id, name=call.name, form=call.form)

    def _append_rest(self, messages: list[Message], message: Message) -> None:
        rest: list[AnyPart] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                rest.extend(self._take_orphan(part))
            elif isinstance(part, ToolCall):
                self._ledger.report_approximated(part.where, "a call outside an assistant message is sent as text")
                rest.append(Text(text=f"[tool call {part.name} {part.arguments}]"))
            else:
                rest.append(part)
        # A message that was empty before still separates the turns around it.
        if rest or not message.parts:
            messages.append(structs.replace(message, parts=tuple(rest)))

    def _take_orphan(self, result: ToolResult) -> list[AnyPart]:
        """Return a result without a call as text; nothing for one with a call, which is placed after the call."""
        if id(result) not in self._orphans:
            return []
        self._ledger.report_approximated(result.where, "a result without its call is sent as text")
        return _orphan_to_text(result)


def _orphan_to_text(result: ToolResult) -> list[AnyPart]:
    label = result.call_id or result.name
    texts: list[str] = [f"[{'error' if result.failed else 'result'} of tool call {label}]"]
    others: list[AnyPart] = []
    for item in result.content:
        match item:
            case Text(text=text):
                texts.append(text)
            case Data(json=value):
                texts.append(value.decode())
            case Media() | Opaque():
                others.append(item)
            case _:
                assert_never(item)
    return [Text(text="\n".join(texts)), *others]
