"""Histories in which every call has its result.

Rules: parts stay as they are, signatures and all; what is added is said to have been added. Results stand in the user's
message after the calls, in their order.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import chain, groupby, takewhile

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Message

NO_RESULT = "this call was interrupted, and its result is not known. Look before you try again."


def calls_of(parts: Iterable[AnyPart]) -> tuple[ToolCall, ...]:
    """Return the calls among parts that whoever asked has to answer."""
    return tuple(part for part in parts if isinstance(part, ToolCall) and part.executor == "client")


def said(parts: Sequence[AnyPart]) -> tuple[Message, ...]:
    """Return what a model said as a message; nothing if it said nothing."""
    return (Message(role="assistant", parts=tuple(parts)),) if parts else ()


def answers(results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Return results as the message that answers the calls."""
    return (Message(role="user", parts=tuple(results)),) if results else ()


def salvaged(parts: Iterable[AnyPart], unended: Container[int]) -> tuple[AnyPart, ...]:
    """Return what can stand in a history of a turn that was cut off, while the parts at these places grew.

    A thought that is not whole has no signature and is refused by who checks them; half a call cannot be answered.
    """
    return tuple(part for at, part in enumerate(parts) if _can_stand(part, ended=at not in unended))


def _can_stand(part: AnyPart, *, ended: bool) -> bool:
    match part:
        case Text(text=text) | Refusal(text=text):
            return bool(text)
        case Reasoning(signature=signature):
            return signature is not None
        case ToolCall(complete=complete):
            return complete and ended
        case _:
            return True


def closed(messages: Sequence[Message], words: str = NO_RESULT) -> tuple[Message, ...]:
    """Return a history in which every call is answered: those that are not get a failed result with these words.

    Results that came one by one stand in one message then, in the order of their calls.
    """
    told: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        following = tuple(takewhile(lambda later: later.role != "assistant", messages[at + 1 :]))
        told.append(message)
        told += _answered(message, following, words) if message.role == "assistant" else following
        at += 1 + len(following)
    return tuple(told)


def answered(messages: tuple[Message, ...], is_own: Callable[[ToolCall], bool]) -> tuple[Message, ...]:
    """Return a history in which no call of ours is open; as it is, if none was."""
    parts = [part for message in messages for part in message.parts]
    known = {part.call_id for part in parts if isinstance(part, ToolResult)}
    is_open = any(call.id not in known and is_own(call) for call in calls_of(parts))
    return closed(messages) if is_open else messages


def _answered(message: Message, following: Sequence[Message], words: str) -> Sequence[Message]:
    """Return what follows the calls of a message, with a result for each of them first."""
    alone = [each for each in following if each.parts and all(isinstance(part, ToolResult) for part in each.parts)]
    others = [each for each in following if each not in alone]
    elsewhere = {part.call_id for each in (message, *others) for part in each.parts if isinstance(part, ToolResult)}
    given: dict[str, list[ToolResult]] = {}
    for part in chain.from_iterable(each.parts for each in alone):
        if isinstance(part, ToolResult):
            given.setdefault(part.call_id, []).append(part)
    results = [
        given[call.id].pop(0) if given.get(call.id) else unanswered(call, words)
        for call in calls_of(message.parts)
        if call.id in given or call.id not in elsewhere
    ]
    results += chain.from_iterable(given.values())
    if len(alone) == 1 and alone[0].parts == tuple(results):
        return following
    return (*answers(results), *others)


def unfolded(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a history with the turns of earlier runs: a client has them as one message, calls and results in it."""
    told: list[Message] = []
    for message in messages:
        if message.role != "assistant" or not any(isinstance(part, ToolResult) for part in message.parts):
            told.append(message)
            continue
        for is_result, parts in groupby(message.parts, lambda part: isinstance(part, ToolResult)):
            ours = tuple(_as_clients(part) for part in parts)
            told.append(Message(role="user", parts=ours) if is_result else structs.replace(message, parts=ours))
    return tuple(told)


def _as_clients(part: AnyPart) -> AnyPart:
    return structs.replace(part, executor="client") if isinstance(part, ToolCall | ToolResult) else part


def unanswered(call: ToolCall, words: str) -> ToolResult:
    """Return the result of a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=words),), failed=True, form=call.form)
