"""Complete the history of a request for another vendor's model of the same dialect, in its bytes.

Calls and results without an id get one, and tool results come first in their turn where the dialect demands it. The
vendor of the dialect judges histories for its own models, so those stay as they are. Every change is reported.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, TypedDict

from msgspec import structs
from msgspec.json import Decoder

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, CallPlace, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.pairing import Pairing, find_alias
from dragoman.interpreter.same_dialect import WRAPPED, Edits, is_own_model
from dragoman.wire import json
from dragoman.wire.lookup import Document, to_snake_case
from dragoman.wire.pointer import split
from dragoman.wire.splice import edit

_ANSWERING = ("assistant", "model")
_ID_ADDED, _MOVED = "a call id was added: there was none", "sent after the tool results of its turn"


def complete_history(call: Call, dialect: Dialect, model: str, ledger: Ledger, server: str = "") -> Call:
    """Return the request with an id on every call and its result, and with tool results first in their turn.

    A model of the dialect's own vendor gets the history as it is, and so does any model if it cannot be parsed.
    """
    if is_own_model(dialect.name, model):
        return call
    try:
        found = _find_history(Document(call.body), dialect)
        items = [] if found is None else json.decode_with(_build_decoder(dialect.name), found[1])
    except json.Malformed:
        return call  # the vendor reports what is wrong with it
    if found is None:
        return call
    body, where = call.body, found[0]
    traits = traits_for(dialect.name, model, "", server)
    if traits.sends_ids and _has_missing_id(items, dialect):
        body = _add_ids(body, _read_calls(items, where, dialect), dialect, traits, ledger)
    if dialect.results_first and dialect.result_place is not None:
        body = _put_results_first(body, items, where, dialect.result_place, ledger)
    return call if body is call.body else structs.replace(call, body=body)


def _find_history(document: Document, dialect: Dialect) -> tuple[str, bytes] | None:
    """Return the pointer of the history, which may be in an envelope, and its raw value."""
    return document.find(f"/{dialect.history}") or document.find(f"{WRAPPED}{dialect.history}")


@cache
def _build_decoder(name: str) -> Decoder[list[dict[str, Any]]]:
    """Return a decoder of a history that skips what has nothing to do with calls and results."""
    dialect, members = dialect_named(name), {"role"}
    for place, field in ((dialect.call_place, "call.id"), (dialect.result_place, "result.call_id")):
        if place is not None:
            inside = (place.parts,) if place.parts else (place.member, dialect.pointers[field][0][1:], *place.name)
            members.update(member.removeprefix("/") for member in inside)
    # A dynamic type: msgspec skips the members that it does not name.
    item: Any = TypedDict("item", dict.fromkeys(sorted(members), Any), total=False)  # pyright: ignore[reportArgumentType]
    return Decoder(list[item])


def _has_missing_id(items: list[dict[str, Any]], dialect: Dialect) -> bool:
    """Return whether some call or result has no id."""
    for place, field in ((dialect.call_place, "call.id"), (dialect.result_place, "result.call_id")):
        if place is None:
            continue
        pointer = dialect.pointers[field][0]
        for item in items:
            if place.parts and place.parts not in item:
                continue
            for part in json.as_list(item[place.parts]) if place.parts else (item,):
                if _is_at(json.as_object(part), place) and not _get_text(part, pointer):
                    return True
    return False


def _read_calls(items: list[dict[str, Any]], where: str, dialect: Dialect) -> list[Message]:
    """Return the items of a history as messages with only their calls and results."""
    messages: list[Message] = []
    calls_in, results_in = dialect.call_place, dialect.result_place
    call_id, result_id = dialect.pointers["call.id"][0], dialect.pointers["result.call_id"][0]
    for index, item in enumerate(items):
        calls = [
            ToolCall(where=at, id=_get_text(value, call_id), name=_get_name(value, calls_in), arguments="")
            for at, value in _find_parts(item, f"{where}/{index}", calls_in)
        ]
        results = [
            ToolResult(where=at, call_id=_get_text(value, result_id), name=_get_name(value, results_in), content=())
            for at, value in _find_parts(item, f"{where}/{index}", results_in)
        ]
        # An item of neither, such as reasoning, belongs to the turn that it is in.
        role = _get_text(item, "/role")
        if calls or results or role:
            is_answer = bool(calls) or role in _ANSWERING
            messages.append(Message(role="assistant" if is_answer else "user", parts=(*calls, *results)))
    return messages


def _find_parts(item: Any, where: str, place: CallPlace | None) -> Iterator[tuple[str, Any]]:
    """Yield the calls or results of an item, each with its pointer."""
    if place is None:
        return
    members = json.as_object(item)
    if not place.parts:
        if _is_at(members, place):
            yield where, item
        return
    for index, part in enumerate(json.as_list(members.get(place.parts))):
        if _is_at(json.as_object(part), place):
            yield f"{where}/{place.parts}/{index}", part


def _is_at(part: dict[str, Any], place: CallPlace) -> bool:
    if not place.member:
        return bool(part)
    if not place.values:
        return place.member in part or to_snake_case(place.member) in part
    kind = part.get(place.member)
    return isinstance(kind, str) and kind in place.values


def _get_name(part: Any, place: CallPlace | None) -> str:
    return next((name for pointer in place.name if (name := _get_text(part, pointer))), "") if place else ""


def _get_text(value: Any, pointer: str) -> str:
    """Return the value at a pointer as text; "" if there is none."""
    for name in split(pointer):
        members = json.as_object(value)
        value = members[name] if name in members else members.get(to_snake_case(name))
    return "" if value is None else str(value)


def _find_missing_ids(messages: Sequence[Message], traits: Traits) -> Iterator[tuple[ToolCall | ToolResult, str]]:
    """Yield each call and result without an id, and the id for it: that of its counterpart, else a generated one."""
    pairing = Pairing(traits, Ledger({}))
    pairing.index(messages)
    for number, slot in enumerate(pairing.slots):
        given = next((result.call_id for result in slot.results if result.call_id), "")
        call_id = slot.own_id or given or find_alias(slot.call, traits, number)
        if not slot.own_id:
            yield slot.call, call_id
        for result in slot.results:
            if not result.call_id:
                yield result, call_id


def _add_ids(body: bytes, messages: list[Message], dialect: Dialect, traits: Traits, ledger: Ledger) -> bytes:
    document, edits = Document(body), Edits()
    for part, found in _find_missing_ids(messages, traits):
        field = "call.id" if isinstance(part, ToolCall) else "result.call_id"
        pointer = part.where + dialect.pointers[field][0]
        place = document.find(pointer)
        where = place[0] if place is not None else document.spell(pointer)
        edits[where] = json.encode(found)
        ledger.report_approximated(where, _ID_ADDED, "informational")
    return edit(body, edits) if edits else body


def _find_raw(document: Document, where: str) -> bytes:
    found = document.find(where)
    return found[1] if found is not None else b"null"


def _put_results_first(body: bytes, items: list[dict[str, Any]], where: str, place: CallPlace, ledger: Ledger) -> bytes:
    """Return the body with the results in each turn, which may be several items, before all else in it."""
    document, edits = Document(body), Edits()
    for role, group in groupby(enumerate(items), key=lambda found: str(found[1].get("role"))):
        if role in _ANSWERING:
            continue
        turn = {f"{where}/{index}": item for index, item in group}
        found = {item: [at for at, _ in _find_parts(turn[item], item, place)] for item in turn}
        holders = [item for item in turn if found[item]]
        if not holders:
            continue
        parts = [f"{item}/{place.parts}/{number}" for item in holders for number in range(len(turn[item][place.parts]))]
        results = [at for item in holders for at in found[item]]
        is_result = frozenset(results)
        earlier = parts[: parts.index(results[-1])]
        before = [at for at in earlier if at not in is_result]
        span = [*turn][: [*turn].index(holders[-1]) + 1]
        others = [item for item in span if not found[item]]
        if not others and not before:
            continue
        changes: dict[str, dict[str, bytes | None]] = {item: {} for item in span}
        for at, new in zip(parts, [*results, *before], strict=False):
            item = at.rsplit("/", 2)[0]
            changes[item][at.removeprefix(item)] = _find_raw(document, new)
        for at in (*others, *before):
            ledger.report_approximated(at, _MOVED, "informational")
        for target, item in zip(span, [*holders, *others], strict=True):
            edits[target] = edit(_find_raw(document, item), changes[item])
    return edit(body, edits) if edits else body
