"""The shape a target wants its history in: messages merged, split and completed to turns.

Nothing in a part changes here, except the signature that Gemini demands on the first call of a step.
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


SKIP_SIGNATURE_USED = "unsigned calls carry Google's documented skip value"


CONTINUED = "(continued)"


CONTINUE = "(continue)"


EMPTY = "(empty)"


def to_turns(messages: list[Message], traits: Traits, ledger: Ledger, *, is_start: bool) -> list[Message]:
    """Merge and split messages into the turns of the target."""
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
    """Turn later system messages into user text where the target does not take them."""
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
    """Tell whether words of the system stand between the user's and the answer to them."""
    before = messages[end - len(group) - 1].role
    after = messages[end].role if end < len(messages) else "assistant"
    return before == "user" and after == "assistant" and all(isinstance(p, Text) for m in group for p in m.parts)


def _to_user_message(message: Message, ledger: Ledger) -> Message:
    if message.parts:
        ledger.report_approximated(message.where, "a later system message is told by the user")
    return structs.replace(message, role="user", parts=tuple(_tag_system_text(part) for part in message.parts))


def _tag_system_text(part: AnyPart) -> AnyPart:
    return structs.replace(part, text=f"<system>\n{part.text}\n</system>") if isinstance(part, Text) else part


def _add_first_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Let the user begin where nothing can be said of what stands first, which may be all there is.

    What follows an answer changes nothing of that, so that a longer conversation begins as the shorter one did.
    """
    leading = count_leading_systems(messages)
    first = messages[leading] if leading < len(messages) else None
    if first is None or first.parts:
        return messages
    turn = takewhile(lambda message: message.role == "user", messages[leading:])
    if any(message.parts for message in turn):
        return messages
    ledger.report_approximated(first.where, f"nothing of this can be said: the user begins, with {CONTINUED!r}")
    begun = Message(role="user", parts=(Text(text=CONTINUED),))
    return [*messages[:leading], begun, *messages[leading:]]


def _drop_empty(messages: list[Message]) -> list[Message]:
    """Leave out messages of which nothing could be said."""
    return [message for message in messages if message.parts]


def _fill_empty(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Keep an empty turn between two others, so that these stay turns of their own."""
    if all(map(attrgetter("parts"), messages)):
        return messages
    filled: list[Message] = []
    for index, message in enumerate(messages):
        inside = index < len(messages) - 1 and message.role != "system"
        if message.parts:
            filled.append(message)
        elif inside or message.role == "user":
            ledger.report_approximated(message.where, f"nothing of this turn can be said: {EMPTY!r} stands for it")
            filled.append(Message(role=message.role, parts=(Text(text=EMPTY),), where=message.where))
    return filled


def begin_with_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Put words of the user before a history that the model begins."""
    at = count_leading_systems(messages)
    first = messages[at].where if at < len(messages) else ""
    ledger.report_approximated(first, f"the user begins, with {CONTINUED!r}")
    return [*messages[:at], Message(role="user", parts=(Text(text=CONTINUED),)), *messages[at:]]


def end_turns(messages: list[Message], traits: Traits, ledger: Ledger) -> list[Message]:
    """End with the user where the target demands it, and else not in white space where that is refused."""
    if not traits.prefill:
        return end_with_user(messages, ledger)
    last = messages[-1] if messages else None
    if traits.prefill_spaced or last is None or last.role != "assistant":
        return messages
    *before, text = last.parts
    if not isinstance(text, Text) or text.text == text.text.rstrip():
        return messages
    ledger.report_approximated(
        text.where or last.where, "the target takes no white space at the end of what the model said"
    )
    trimmed = structs.replace(text, text=text.text.rstrip())
    return [*messages[:-1], _replace_parts(last, (*before, trimmed))]


def end_with_user(messages: list[Message], ledger: Ledger) -> list[Message]:
    """Let the user have the last word."""
    if not messages or messages[-1].role != "assistant":
        return messages
    ledger.report_approximated(messages[-1].where, f"the user has the last word: {CONTINUE!r}")
    return [*messages, Message(role="user", parts=(Text(text=CONTINUE),))]


def _merge_messages(messages: list[Message], traits: Traits, ledger: Ledger, roles: set[Role]) -> list[Message]:
    """Merge neighbours of the same role; put results first and, where the target wants it, calls last."""
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
        ledger.report_approximated(first.where, "parts stand in the order the target wants")
    elif parts is first.parts:
        return first
    return Message(role=first.role, parts=ordered, name=first.name, where=first.where)


def _drop_blanks(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Leave out empty text beside other parts: it says nothing."""
    if len(parts) == 1 or not any(isinstance(part, Text) and not part.text for part in parts):
        return parts
    return tuple(part for part in parts if not isinstance(part, Text) or part.text)


def _order_parts(parts: tuple[AnyPart, ...], role: Role, traits: Traits) -> tuple[AnyPart, ...]:
    if role == "user":
        wanted = ToolResult
        leads = True
    elif role == "assistant" and traits.calls_last:
        wanted = ToolCall
        leads = False
    else:
        return parts
    flags = [part.__class__ is wanted for part in parts]
    if flags == sorted(flags, reverse=leads):
        return parts
    if not leads:
        return _move_texts_first(parts)
    return (*(p for p in parts if p.__class__ is wanted), *(p for p in parts if p.__class__ is not wanted))


def _move_texts_first(parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Move text before the first call; thinking between calls stays where it is, for its signature's sake."""
    first_call = next(index for index, part in enumerate(parts) if part.__class__ is ToolCall)
    head, tail = parts[:first_call], parts[first_call:]
    texts = tuple(part for part in tail if not isinstance(part, ToolCall | Reasoning))
    if not texts:
        return parts
    return (*head, *texts, *(part for part in tail if isinstance(part, ToolCall | Reasoning)))


def _split_results(messages: list[Message], *, together: bool = False) -> list[Message]:
    """Give each result, or all of a turn, a message of its own, and what the user says beside them another."""
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
    """Give each call, result, thought and foreign block an item of its own; text and media stay together.

    What a model said does not: several texts of it in one item need an id of the target's making.
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
    """Give the first call of each step that has no signature the value the target demands in its place."""
    if not traits.signed_calls:
        return messages
    finished: list[Message] = []
    begun = False
    for message in messages:
        begun = begun and message.role == "assistant"
        first = next((part for part in message.parts if isinstance(part, ToolCall)), None)
        if message.role != "assistant" or begun or first is None or first.signature is not None:
            finished.append(message)
        else:
            ledger.report_approximated_once(first.where, SKIP_SIGNATURE_USED)
            signed = structs.replace(first, signature=SKIP_SIGNATURE)
            parts = tuple(signed if part is first else part for part in message.parts)
            finished.append(structs.replace(message, parts=parts))
        begun = begun or first is not None
    return tuple(finished)


def _replace_parts(message: Message, parts: tuple[AnyPart, ...]) -> Message:
    return Message(role=message.role, parts=parts, name=message.name, where=message.where)
