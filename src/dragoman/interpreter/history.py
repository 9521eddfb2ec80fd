"""Adapt the messages of a history to the target: parts, ids and names of calls, turns.

A part that needs nothing is returned as it is, the same object: most of a long history is like that.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter, eq, is_
from typing import Any

from msgspec import Struct, field, structs

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.history_parts import (
    Adapted,
    adapt_opaque,
    adapt_reasoning,
    adapt_refusal,
    as_error,
    drop_signature,
    keep_data,
    remove_foreign_fields,
    says_nothing,
    with_changes,
    with_mark,
)
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.media import adapt_media, stands_in_result
from dragoman.interpreter.schema.conversion import retell
from dragoman.interpreter.turns import SKIP_SIGNATURE, SKIPPED, begin_with_user, end_turns, in_turns, place_system
from dragoman.interpreter.undo import full_name, id_alias
from dragoman.wire import json

_NOTHING_SAID = Text(text="")
_get_marks = attrgetter("extras", "signature", "cache", "citations")
_NO_MARKS = _get_marks(_NOTHING_SAID)
_get_result_marks = attrgetter("extras", "cache", "failed", "name", "form")
_NO_RESULT_MARKS = _get_result_marks(ToolResult(call_id=""))


def adapt_messages(messages: Iterable[Message], adaptation: Adaptation) -> list[Message]:
    """Adapt every message; one may be left without parts."""
    fitted: list[Message] = []
    for message in messages:
        parts = message.parts
        if len(parts) == 1:
            part = parts[0]
            now = _STEPS[part.__class__](part, message, adaptation)
            is_same = now is part
        else:
            now = tuple(_flat([_STEPS[part.__class__](part, message, adaptation) for part in parts]))
            is_same = len(now) == len(parts) and all(map(is_, now, parts))
        if is_same and message.extras is None and not message.name:
            fitted.append(message)
        else:
            fitted.append(_rebuilt(message, now, adaptation))
    return fitted


def _rebuilt(message: Message, parts: Adapted, adaptation: Adaptation) -> Message:
    drop_extras(message, adaptation)
    name = message.name
    if name and not adaptation.traits.speaker_names:
        adaptation.ledger.field_dropped("message.name", "the target has no speaker names", message)
        name = ""
    return Message(role=message.role, parts=tuple(_flat([parts])), name=name, where=message.where)


def _flat(fitted: Iterable[Adapted]) -> Iterator[AnyPart]:
    """Iterate what became of parts: one part each, several, or none."""
    for now in fitted:
        if isinstance(now, tuple):
            yield from now
        elif now is not None:
            yield now


def _adapt_text(part: Text, message: Message, adaptation: Adaptation) -> Adapted:
    text = part.text
    if (not text or text.isspace()) and not adaptation.traits.empty_text:
        if text or part != _NOTHING_SAID:
            adaptation.ledger.dropped(part.where, "the target refuses empty text")
        return None
    if _get_marks(part) == _NO_MARKS:
        return part
    changes = remove_foreign_fields(part, message.role, adaptation)
    if part.citations:
        adaptation.ledger.field_dropped("part.citations", "citations of an earlier answer are not sent back", part)
        changes["citations"] = ()
    if part.signature is not None and not adaptation.traits.text_signatures:
        if not says_nothing(part.signature):
            adaptation.ledger.field_dropped("part.signature", "the target has no place for a signature on text", part)
        changes["signature"] = None
    return with_changes(part, changes)


def _adapt_call(part: ToolCall, message: Message, adaptation: Adaptation) -> Adapted:
    traits = adaptation.traits
    changes: dict[str, Any] = {}
    if part.extras is not None or part.cache is not None:
        changes = remove_foreign_fields(part, message.role, adaptation)
    signature = part.signature
    if signature is not None and not (traits.call_signatures and signature.issuer == traits.issuer):
        drop_signature(part, signature, adaptation)
        changes["signature"] = None
    name = adaptation.name(part.name, part.namespace)
    if name != part.name:
        changes["name"] = name
    if part.namespace and not traits.namespaces:
        changes["namespace"] = ""
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
        changes["arguments"] = wrap_free_text(part.arguments)
    elif part.form == "json":
        arguments = retell_arguments(part, adaptation) if adaptation.retold else part.arguments
        arguments = _object_text(arguments, part, adaptation) if traits.object_arguments else arguments or "{}"
        if arguments is not part.arguments:
            changes["arguments"] = arguments
    return structs.replace(part, **changes) if changes else part


def wrap_free_text(text: str) -> str:
    """Say a free-form tool's input as a function's arguments."""
    return json.encode({"input": text}).decode()


def retell_arguments(call: ToolCall, adaptation: Adaptation) -> str:
    """Return the arguments as the model says them under the schema that it is given, which the tool has reported."""
    arguments = call.arguments
    for step in adaptation.retold.get(full_name(call.name, call.namespace), ()):
        if step.retold:
            arguments = retell(arguments, step)
    return arguments


def _object_text(arguments: str, call: ToolCall, adaptation: Adaptation) -> str:
    if json.is_object(arguments):
        return arguments
    if not arguments.strip():
        return "{}"
    if arguments.strip() == "null":
        # Groq's word for no arguments.
        adaptation.ledger.field_approximated("call.arguments", "null arguments are told as none", call)
        return "{}"
    adaptation.ledger.field_approximated("call.arguments", "not a JSON object: sent as text under INVALID_JSON", call)
    return json.encode({"INVALID_JSON": arguments}).decode()


def _adapt_result(part: ToolResult, message: Message, adaptation: Adaptation) -> Adapted:
    if len(part.content) == 1 and _get_result_marks(part) == _NO_RESULT_MARKS:
        # One text without marks, as most results are: every target takes that, be it empty.
        text = part.content[0]
        if isinstance(text, Text) and _get_marks(text) == _NO_MARKS and not text.text.isspace():
            return part
    traits = adaptation.traits
    changes = remove_foreign_fields(part, message.role, adaptation)
    content: list[Content] = []
    moved: list[AnyPart] = []
    for item in part.content:
        now = _STEPS[item.__class__](item, message, adaptation) if not isinstance(item, Data) else item
        for one in now if isinstance(now, tuple) else (now,):
            if isinstance(one, Media) and not stands_in_result(one, traits, failed=part.failed):
                adaptation.ledger.approximated(one.where, "moved out of the tool result, behind it")
                content.append(Text(text=f"[{one.kind} follows]"))
                moved.append(one)
            elif one is not None:
                content.append(one)  # pyright: ignore[reportArgumentType]
    if part.failed and not traits.failed_results:
        adaptation.ledger.field_approximated("result.failed", 'said as text: "Error: …"', part)
        changes["failed"] = False
        content = as_error(content)
    if not traits.marks_anywhere and (mark := changes.get("cache", part.cache)) is not None:
        changes["cache"] = None
        content = with_mark(content, mark, part, adaptation)
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
    if part.name and (name := adaptation.name(part.name)) != part.name:
        changes["name"] = name
    if not _same(content, part.content):
        changes["content"] = tuple(content)
    fitted = structs.replace(part, **changes) if changes else part
    return (fitted, *moved) if moved else fitted


def _same(left: list[Content], right: tuple[Content, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


_STEPS: dict[type, Callable[[Any, Message, Adaptation], Adapted]] = {
    Text: _adapt_text,
    Reasoning: adapt_reasoning,
    ToolCall: _adapt_call,
    ToolResult: _adapt_result,
    Media: adapt_media,
    Refusal: adapt_refusal,
    Opaque: adapt_opaque,
    Data: keep_data,
}


_get_role, _get_parts = attrgetter("role"), attrgetter("parts")
_CALLS = {ToolCall, ToolResult}


def arrange_turns(
    messages: list[Message],
    traits: Traits,
    ledger: Ledger,
    *,
    begins: bool = True,
    repair: Callable[[list[Message]], list[Message]] | None = None,
) -> tuple[Message, ...]:
    """Return the history in the target's turns; `begins` tells whether these messages are its first.

    `repair` pairs calls and results where they are not in pairs.
    """
    notes = None
    if not _CALLS.isdisjoint(map(type, chain.from_iterable(map(_get_parts, messages)))):
        named, notes = _name_calls(messages, traits)
        if not notes.in_pairs and repair is not None:
            named, notes = _name_calls(repair(messages), traits)
        messages = named
    if not _are_turns(messages):
        messages = in_turns(place_system(messages, traits, ledger), traits, ledger, begins=begins)
    if begins and traits.starts_with_user and not _user_begins(messages):
        messages = begin_with_user(messages, ledger)
    if messages and messages[-1].role == "assistant":
        messages = end_turns(messages, traits, ledger)
    if notes is not None:
        for result in notes.renamed:
            ledger.field_dropped("result.name", "the name of the call stands", result)
        for call in notes.unsigned:
            ledger.approximated_once(call.where, SKIPPED)
    return tuple(messages)


def _are_turns(messages: list[Message]) -> bool:
    """Tell whether messages of one part each take turns, after at most one of the system: that suits every target."""
    roles = [*map(_get_role, messages)]
    later = roles[1:]
    return "system" not in later and not any(map(eq, roles, later)) and {*map(len, map(_get_parts, messages))} == {1}


def _user_begins(messages: list[Message]) -> bool:
    for message in messages:
        if message.role != "system":
            return message.role == "user"
    return False


class _Notes(Struct):
    """What a walk over the calls and results of a history found out."""

    in_pairs: bool = True
    """Each run of assistant messages is followed at once by its results, in order, and ids are unique."""
    renamed: list[ToolResult] = field(default_factory=list[ToolResult])
    """Results that had another name than their calls."""
    unsigned: list[ToolCall] = field(default_factory=list[ToolCall])
    """Calls that got the signature which the first of each step must have."""


def _name_calls(messages: list[Message], traits: Traits) -> tuple[list[Message], _Notes]:
    """Write ids the target takes, names on results, and the signature each step's first call must have."""
    calls: dict[str, ToolCall] = {}
    waiting: list[str] = []
    """Ids of calls that no result has end_with_user yet."""
    named, notes = [*messages], _Notes()
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
                now = _named_call(part, traits, None if is_signed else notes.unsigned)
                is_signed = True
            elif isinstance(part, ToolResult):
                if not waiting or waiting.pop(0) != part.call_id or role == "assistant":
                    notes.in_pairs = False
                now = _named_result(part, calls.get(part.call_id), traits, notes.renamed)
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


def _named_call(call: ToolCall, traits: Traits, unsigned: list[ToolCall] | None) -> ToolCall:
    """Write a call with the id the target takes, and with a signature if `unsigned` lists those that have none."""
    call_id = id_alias(call.id, traits) if traits.sends_ids else ""
    if unsigned is not None and call.signature is None:
        unsigned.append(call)
        return structs.replace(call, id=call_id, signature=SKIP_SIGNATURE)
    return structs.replace(call, id=call_id) if call_id != call.id else call


def _named_result(result: ToolResult, call: ToolCall | None, traits: Traits, renamed: list[ToolResult]) -> ToolResult:
    """Write a result as its call demands: the same id, name and form."""
    call_id = id_alias(result.call_id, traits) if traits.sends_ids else ""
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
