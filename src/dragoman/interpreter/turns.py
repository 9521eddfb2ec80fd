"""Arrange the messages of a history as the target requires: merge, split, reorder and complete turns.

Parts are not changed here, except for the signature that Gemini requires on the first call of a step.
"""

from itertools import groupby, takewhile
from operator import attrgetter
from typing import assert_never

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Role, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.interpreter.ledger import Ledger

SKIP_SIGNATURE = Signature("google", "skip_thought_signature_validator")


SKIP_SIGNATURE_USED = "a call without a signature is sent with Google's documented placeholder"


CONTINUED = "(continued)"


CONTINUE = "(continue)"


EMPTY = "(empty)"


def to_turns(messages: list[Message], traits: Traits, ledger: Ledger, *, is_start: bool) -> list[Message]:
    """Merge and split messages into the target's turns."""
    match traits.turns:
        case "alternating":
            messages = _fill_empty(_merge_messages(messages, traits, ledger, {"user", "assistant", "system"}), ledger)
            return _split_results(messages, together=True) if traits.results_apart else messages
        case "single_results":
            messages = _add_first_user(messages, ledger) if is_start else messages
            return _split_results(_drop_empty(_merge_messages(messages, traits, ledger, {"assistant"})))
        case "items":
            messages = _add_first_user(messages, ledger) if is_start else messages
            return _split_items(_join_instructions(_drop_empty(messages)))
        case _:
            assert_never(traits.turns)


def place_system(messages: list[Message], traits: Traits, ledger: Ledger) -> list[Message]:
    """Turn later system messages into user text if the target does not take them there."""
    if traits.later_system and not traits.system_before_answer:
        return messages
    leading = end = count_leading_systems(messages)
    if "system" not in [message.role for message in messages[leading:]]:
        return messages
    placed = messages[:leading]
    for is_system, run in groupby(messages[leading:], key=lambda message: message.role == "system"):
        group = list(run)
        end += len(group)
        if not is_system or (traits.later_system and _is_before_answer(group, messages, end)):
            placed.extend(group)
        else:
            placed.extend(_to_user_message(message, ledger) for message in group)
    return placed


def _is_before_answer(group: list[Message], messages: list[Message], end: int) -> bool:
    """Return whether system messages of text only are between a user message and the assistant's answer."""
    before = messages[end - len(group) - 1].role
    after = messages[end].role if end < len(messages) else "assistant"
    return before == "user" and after == "assistant" and all(isinstance(p, Text) for m in group for p in m.parts)


def _to_user_message(message: Message, ledger: Ledger) -> Message:
    if message.parts:
        ledger.report_approximated(message.where, "a later system message is sent as user text")
    return structs.replace(message, role="user", parts=tuple(_tag_system_text(part) for part in message.parts))


def _tag_system_text(part: AnyPart) -> AnyPart:
    return structs.replace(part, text=f"<system>\n{part.text}\n</system>") if isinstance(part, Text) else part


def _add_first_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Add a first user message if nothing is left of the messages before the first answer.

    Messages after the first answer do not matter, so that a longer conversation starts like a shorter one.
    """
    leading = count_leading_systems(messages)
    first = messages[leading] if leading < len(messages) else None
    if first is None or first.parts:
        return messages
    turn = takewhile(lambda message: message.role == "user", messages[leading:])
    if any(message.parts for message in turn):
        return messages
    ledger.report_approximated(first.where, f"nothing of the first turn can be sent: {CONTINUED!r} is sent instead")
    first_user = Message(role="user", parts=(Text(text=CONTINUED),))
    return [*messages[:leading], first_user, *messages[leading:]]


def _drop_empty(messages: list[Message]) -> list[Message]:
    """Drop messages without parts."""
    return [message for message in messages if message.parts]


def _fill_empty(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Fill an empty turn between two others with a placeholder, so that these stay separate turns."""
    if all(map(attrgetter("parts"), messages)):
        return messages
    filled: list[Message] = []
    for index, message in enumerate(messages):
        inside = index < len(messages) - 1 and message.role != "system"
        if message.parts:
            filled.append(message)
        elif inside or message.role == "user":
            ledger.report_approximated(message.where, f"nothing of this turn can be sent: {EMPTY!r} is sent instead")
            filled.append(Message(role=message.role, parts=(Text(text=EMPTY),), where=message.where))
    return filled


def begin_with_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Add a user message before a history that starts with the assistant."""
    at = count_leading_systems(messages)
    first = messages[at].where if at < len(messages) else ""
    ledger.report_approximated(first, f"the history must start with the user: {CONTINUED!r} is added")
    return [*messages[:at], Message(role="user", parts=(Text(text=CONTINUED),)), *messages[at:]]


def end_turns(messages: list[Message], traits: Traits, ledger: Ledger) -> list[Message]:
    """End with the user if the target requires it; else strip trailing white space if the target rejects it."""
    if not traits.prefill:
        return end_with_user(messages, ledger)
    last = messages[-1] if messages else None
    if traits.prefill_spaced or last is None or last.role != "assistant":
        return messages
    *before, text = last.parts
    if not isinstance(text, Text) or text.text == text.text.rstrip():
        return messages
    ledger.report_approximated(
        text.where or last.where, "the target takes no white space at the end of the last assistant message"
    )
    trimmed = structs.replace(text, text=text.text.rstrip())
    return [*messages[:-1], _replace_parts(last, (*before, trimmed))]


def end_with_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Add a user message to a history that ends with the assistant."""
    if not messages or messages[-1].role != "assistant":
        return messages
    ledger.report_approximated(messages[-1].where, f"the history must end with the user: {CONTINUE!r} is added")
    return [*messages, Message(role="user", parts=(Text(text=CONTINUE),))]


def _merge_messages(messages: list[Message], traits: Traits, ledger: Ledger, roles: set[Role]) -> list[Message]:
    """Merge consecutive messages of the same role; put results first and, if the target requires it, calls last."""
    merged: list[Message] = []
    for role, run in groupby(messages, key=attrgetter("role")):
        group = list(run)
        if len(group) > 1 and role in roles:
            merged.append(_merge_group(group, traits, ledger))
        else:
            merged.extend(
                [_merge_group([message], traits, ledger) if len(message.parts) > 1 else message for message in group]
            )
    return merged


def _merge_group(group: list[Message], traits: Traits, ledger: Ledger) -> Message:
    first = group[0]
    parts = first.parts if len(group) == 1 else tuple([part for message in group for part in message.parts])
    if first.role == "assistant":
        parts = _drop_blanks(parts)
    ordered = _order_parts(parts, first.role, traits)
    if ordered is not parts:
        ledger.report_approximated(first.where, "parts are reordered as the target requires")
    elif parts is first.parts:
        return first
    return Message(role=first.role, parts=ordered, name=first.name, where=first.where)


def _drop_blanks(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Drop empty texts from a message that has other parts."""
    if len(parts) == 1 or not any(isinstance(part, Text) and not part.text for part in parts):
        return parts
    return tuple(part for part in parts if not isinstance(part, Text) or part.text)


def _order_parts(parts: tuple[AnyPart, ...], role: Role, traits: Traits) -> tuple[AnyPart, ...]:
    if role == "user":
        moved = ToolResult
        is_first = True
    elif role == "assistant" and traits.calls_last:
        moved = ToolCall
        is_first = False
    else:
        return parts
    flags = [part.__class__ is moved for part in parts]
    if flags == sorted(flags, reverse=is_first):
        return parts
    if not is_first:
        return _move_texts_first(parts)
    return (*(p for p in parts if p.__class__ is moved), *(p for p in parts if p.__class__ is not moved))


def _move_texts_first(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Move text before the first call; reasoning between calls is not moved, because of its signature."""
    first_call = next(index for index, part in enumerate(parts) if part.__class__ is ToolCall)
    head, tail = parts[:first_call], parts[first_call:]
    texts = tuple(part for part in tail if not isinstance(part, ToolCall | Reasoning))
    if not texts:
        return parts
    return (*head, *texts, *(part for part in tail if isinstance(part, ToolCall | Reasoning)))


def _split_results(messages: list[Message], *, together: bool = False) -> list[Message]:
    """Give each result a message of its own, or all results of a turn one (`together`), and the other parts another."""
    split: list[Message] = []
    for message in messages:
        parts = message.parts
        if len(parts) == 1 or message.role != "user" or not any(p.__class__ is ToolResult for p in parts):
            split.append(message)
            continue
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        others = tuple(part for part in parts if not isinstance(part, ToolResult))
        groups = [results] if together else [(result,) for result in results]
        split.extend(Message(role="user", parts=group, where=group[0].where) for group in groups)
        if others:
            split.append(Message(role="user", parts=others, name=message.name, where=message.where))
    return split


def _join_instructions(messages: list[Message]) -> list[Message]:
    """Join the text of the first system message: it is sent as one string."""
    first = messages[0] if messages else None
    if first is None or first.role != "system" or len(first.parts) == 1:
        return messages
    texts = [part.text for part in first.parts if isinstance(part, Text) and part.cache is None]
    if len(texts) != len(first.parts):
        return messages
    joined = Text(text="\n\n".join(texts), where=first.parts[0].where)
    return [_replace_parts(first, (joined,)), *messages[1:]]


def _split_items(messages: list[Message]) -> list[Message]:
    """Give each call, result and reasoning part an item of its own; text and media of a message stay together.

    In assistant messages every part gets its own item: several texts in one item need an id that the target generated.
    """
    split: list[Message] = []
    for message in messages:
        if len(message.parts) == 1:
            split.append(message)
            continue
        group: list[AnyPart] = []
        for part in message.parts:
            is_item = part.__class__ in _ITEM_PARTS
            if group and (is_item or message.role == "assistant"):
                split.append(Message(role=message.role, parts=tuple(group), where=message.where))
                group = []
            if is_item:
                split.append(Message(role=message.role, parts=(part,), where=part.where))
            else:
                group.append(part)
        if group:
            split.append(Message(role=message.role, parts=tuple(group), where=message.where))
    return split


_ITEM_PARTS = {ToolCall, ToolResult, Reasoning}


def sign_steps(messages: tuple[Message, ...], traits: Traits, ledger: Ledger) -> tuple[Message, ...]:
    """Give the first call of each step, if it has no signature, the placeholder signature that the target accepts."""
    if not traits.signed_calls:
        return messages
    finished: list[Message] = []
    has_call = False
    """The current step has had its first call."""
    for message in messages:
        has_call = has_call and message.role == "assistant"
        first = next((part for part in message.parts if isinstance(part, ToolCall)), None)
        if message.role != "assistant" or has_call or first is None or first.signature is not None:
            finished.append(message)
        else:
            ledger.report_placeholder_once(first.where, SKIP_SIGNATURE_USED)
            signed = structs.replace(first, signature=SKIP_SIGNATURE)
            parts = tuple(signed if part is first else part for part in message.parts)
            finished.append(structs.replace(message, parts=parts))
        has_call = has_call or first is not None
    return tuple(finished)


def _replace_parts(message: Message, parts: tuple[AnyPart, ...]) -> Message:
    return Message(role=message.role, parts=parts, name=message.name, where=message.where)
