"""Adapt the messages of a history to the target: parts, ids and names of calls, turns.

A part that needs no change is returned as the same object, since most of a long history needs none.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter, is_
from typing import Any

from msgspec import structs

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    FoundTools,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Search,
    Text,
    ToolCall,
    ToolReference,
    ToolResult,
    ToolSearch,
)
from dragoman.core.request import Message
from dragoman.interpreter.adaptation import EMPTY_TEXT_REJECTED, Adaptation
from dragoman.interpreter.deferred_tools import adapt_found_tools, adapt_reference, adapt_search
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.history_parts import (
    Adapted,
    adapt_call,
    adapt_opaque,
    adapt_reasoning,
    adapt_refusal,
    add_mark,
    is_placeholder,
    keep_data,
    open_native_result,
    prefix_error,
    remove_foreign_fields,
    replace_fields,
)
from dragoman.interpreter.media import adapt_media, fits_result
from dragoman.interpreter.pairing import name_calls
from dragoman.interpreter.search_history import adapt_search_part
from dragoman.interpreter.turns import SKIP_SIGNATURE_USED, begin_with_user, end_turns, place_system, to_turns

_EMPTY_TEXT = Text(text="")
_get_marks = attrgetter("extras", "signature", "cache", "citations")
_NO_MARKS = _get_marks(_EMPTY_TEXT)
_get_result_marks = attrgetter("extras", "cache", "failed", "name", "form", "native")
_NO_RESULT_MARKS = _get_result_marks(ToolResult(call_id=""))


def adapt_messages(messages: Iterable[Message], adaptation: Adaptation) -> list[Message]:
    """Adapt every message; a message may end up without parts."""
    adapted: list[Message] = []
    for message in messages:
        parts = message.parts
        if len(parts) == 1:
            part = parts[0]
            now = _PART_ADAPTERS[part.__class__](part, message, adaptation)
            is_same = now is part
        else:
            now = tuple(_flatten([_PART_ADAPTERS[part.__class__](part, message, adaptation) for part in parts]))
            is_same = len(now) == len(parts) and all(map(is_, now, parts))
        if is_same and message.extras is None and not message.name:
            adapted.append(message)
        else:
            adapted.append(_rebuild_message(message, now, adaptation))
    return adapted


def _rebuild_message(message: Message, parts: Adapted, adaptation: Adaptation) -> Message:
    drop_extras(message, adaptation)
    name = message.name
    if name and not adaptation.traits.speaker_names:
        adaptation.ledger.report_dropped_field("message.name", "the target has no names on messages", message)
        name = ""
    return Message(role=message.role, parts=tuple(_flatten([parts])), name=name, where=message.where)


def _flatten(adapted: Iterable[Adapted]) -> Iterator[AnyPart]:
    """Yield the adapted parts: each part became one part, several, or none."""
    for now in adapted:
        if isinstance(now, tuple):
            yield from now
        elif now is not None:
            yield now


def _adapt_text(part: Text, message: Message, adaptation: Adaptation) -> Adapted:
    text = part.text
    if adaptation.rejects_text(text):
        if text or part != _EMPTY_TEXT:
            adaptation.ledger.report_dropped(part.where, EMPTY_TEXT_REJECTED)
        return None
    if _get_marks(part) == _NO_MARKS:
        return part
    changes = remove_foreign_fields(part, message.role, adaptation)
    if part.citations:
        # The answer is sent, and so is the search with its pages.
        grade = "informational" if all(citation.url for citation in part.citations) else None
        adaptation.ledger.report_dropped_field(
            "part.citations", "citations of an earlier answer are not sent back", part, grade
        )
        changes["citations"] = ()
    if part.signature is not None and not adaptation.traits.text_signatures:
        if not is_placeholder(part.signature):
            adaptation.ledger.report_dropped_signature(part, "the target takes no signature on text")
        changes["signature"] = None
    return replace_fields(part, changes)


def _adapt_result(part: ToolResult, message: Message, adaptation: Adaptation) -> Adapted:
    if len(part.content) == 1 and _get_result_marks(part) == _NO_RESULT_MARKS:
        # Most results are one text without other fields: every target takes that, even if it is empty.
        text = part.content[0]
        if isinstance(text, Text) and _get_marks(text) == _NO_MARKS and not text.text.isspace():
            return part
    if part.native:
        part = open_native_result(part)
    traits = adaptation.traits
    changes = remove_foreign_fields(part, message.role, adaptation)
    content: list[Content] = []
    moved: list[AnyPart] = []
    for item in part.content:
        now = _PART_ADAPTERS[item.__class__](item, message, adaptation) if not isinstance(item, Data) else item
        for one in now if isinstance(now, tuple) else (now,):
            if isinstance(one, Media) and not fits_result(one, traits, failed=part.failed):
                adaptation.ledger.report_approximated(one.where, "moved out of the tool result, to a part after it")
                content.append(Text(text=f"[{one.kind} follows]"))
                moved.append(one)
            elif one is not None:
                content.append(one)  # pyright: ignore[reportArgumentType]
    if part.failed and not traits.failed_results:
        adaptation.ledger.report_approximated_field("result.failed", 'sent as text: "Error: …"', part)
        changes["failed"] = False
        content = prefix_error(content)
    if not traits.marks_anywhere and (mark := changes.get("cache", part.cache)) is not None:
        changes["cache"] = None
        content = add_mark(content, mark, part, adaptation)
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
    if part.name and (name := adaptation.alias_tool(part.name)) != part.name:
        changes["name"] = name
    if not _are_same(content, part.content):
        changes["content"] = tuple(content)
    adapted = structs.replace(part, **changes) if changes else part
    return (adapted, *moved) if moved else adapted


def _are_same(left: list[Content], right: tuple[Content, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _adapt_opaque(part: Opaque, message: Message, adaptation: Adaptation) -> Adapted:
    """Send the texts and media of a block that only its own dialect has; keep or drop a block without any."""
    if not part.content or part.dialect == adaptation.traits.dialect:
        return adapt_opaque(part, message, adaptation)
    adaptation.ledger.report_approximated(part.where, "the target has no such block: its content is sent as parts")
    drop_extras(part, adaptation)
    adapted = (_PART_ADAPTERS[one.__class__](one, message, adaptation) for one in part.content)
    return tuple(_flatten(adapted))


_PART_ADAPTERS: dict[type, Callable[[Any, Message, Adaptation], Adapted]] = {
    Text: _adapt_text,
    Reasoning: adapt_reasoning,
    ToolCall: adapt_call,
    ToolResult: _adapt_result,
    Media: adapt_media,
    Refusal: adapt_refusal,
    Opaque: _adapt_opaque,
    Search: adapt_search_part,
    ToolSearch: adapt_search,
    FoundTools: adapt_found_tools,
    ToolReference: adapt_reference,
    Data: keep_data,
}


_get_parts = attrgetter("parts")
_CALLS = {ToolCall, ToolResult}


def arrange_turns(messages: list[Message], adaptation: Adaptation, *, is_start: bool = True) -> tuple[Message, ...]:
    """Return the history in the target's turns; `is_start` means that these messages are its first."""
    traits, ledger, notes = adaptation.traits, adaptation.ledger, None
    if not _CALLS.isdisjoint(map(type, chain.from_iterable(map(_get_parts, messages)))):
        named, notes = name_calls(messages, traits, adaptation.calls)
        if not notes.in_pairs:
            named, notes = name_calls(adaptation.pair(messages), traits, adaptation.calls)
        messages = named
    if not _are_turns(messages):
        messages = to_turns(place_system(messages, traits, ledger), traits, ledger, is_start=is_start)
    if is_start and traits.starts_with_user and not _starts_with_user(messages):
        messages = begin_with_user(messages, ledger)
    if messages and messages[-1].role == "assistant":
        messages = end_turns(messages, traits, ledger)
    if notes is not None:
        for result in notes.renamed:
            ledger.report_dropped_field("result.name", "the name of the call is used", result)
        for call in notes.unsigned:
            ledger.report_placeholder_once(call.where, SKIP_SIGNATURE_USED)
    return tuple(messages)


def _are_turns(messages: list[Message]) -> bool:
    """Return whether all messages have one part and the roles alternate after at most one system message.

    Every target takes such a history.
    """
    before = ""
    for message in messages:
        role = message.role
        if role == before or len(message.parts) != 1 or (role == "system" and before):
            return False
        before = role
    return bool(messages)


def _starts_with_user(messages: list[Message]) -> bool:
    for message in messages:
        if message.role != "system":
            return message.role == "user"
    return False
