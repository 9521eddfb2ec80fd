"""Histories in which every call has its result, and histories made shorter before they are too long for the model.

Parts stay as they are, with their signatures; what is added is marked as added. Results are in the user's message after
the calls, in their order. Compaction keeps instructions and the end of the conversation; what is between becomes one
text. The cut is never between a call and its result. The text is marked if it summarises something untrusted.
"""

import inspect
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from itertools import chain, groupby, takewhile
from typing import assert_never

from msgspec import Struct, structs

from dragoman.agent.model import Model, closing, wrap_errors
from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.core.response import Response
from dragoman.core.stream import Collector

NO_RESULT = "this call was interrupted, and its result is not known. Look before you try again."
SUMMARY = "[Summary of the conversation so far]"
UNTRUSTED_SUMMARY = "[Summary of the conversation so far, in which something untrusted was read]"
_BYTES_PER_TOKEN = 4
_SUMMARY_PROMPT = (
    "Sum up this conversation for yourself, so that you can go on without it: what was asked, what was found out with "
    "which tools, names and numbers as they are, and what is left to do. Answer with the summary alone."
)


def calls_of(parts: Iterable[AnyPart]) -> tuple[ToolCall, ...]:
    """Return the calls among parts that whoever asked has to answer."""
    return tuple(part for part in parts if isinstance(part, ToolCall) and part.executor == "client")


def build_assistant_message(parts: Sequence[AnyPart]) -> tuple[Message, ...]:
    """Return what a model said as a message; nothing if it said nothing."""
    return (Message(role="assistant", parts=tuple(parts)),) if parts else ()


def build_result_message(results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Return results as the message that answers the calls."""
    return (Message(role="user", parts=tuple(results)),) if results else ()


def drop_incomplete_parts(parts: Iterable[AnyPart], unfinished: Container[int]) -> tuple[AnyPart, ...]:
    """Return what can stand in a history of a turn that was cut off, while the parts at these places grew.

    A thought that is not whole has no signature and is refused by who checks them; half a call cannot be answered.
    """
    return tuple(part for at, part in enumerate(parts) if _is_valid_part(part, is_complete=at not in unfinished))


def _is_valid_part(part: AnyPart, *, is_complete: bool) -> bool:
    match part:
        case Text(text=text) | Refusal(text=text):
            return bool(text)
        case Reasoning(signature=signature):
            return signature is not None
        case ToolCall(complete=complete):
            return complete and is_complete
        case ToolResult() | Data() | Media() | Opaque():
            return True
        case _:
            assert_never(part)


def closed(messages: Sequence[Message], text: str = NO_RESULT) -> tuple[Message, ...]:
    """Return a history in which every call is answered: those that are not get a failed result with these words.

    Results that came one by one stand in one message then, in the order of their calls.
    """
    told: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        following = tuple(takewhile(lambda later: later.role != "assistant", messages[at + 1 :]))
        told.append(message)
        told += _pair_results(message, following, text) if message.role == "assistant" else following
        at += 1 + len(following)
    return tuple(told)


def answer_own_calls(messages: tuple[Message, ...], is_own: Callable[[ToolCall], bool]) -> tuple[Message, ...]:
    """Return a history in which no call of ours is open; as it is, if none was."""
    parts = [part for message in messages for part in message.parts]
    known = {part.call_id for part in parts if isinstance(part, ToolResult)}
    is_open = any(call.id not in known and is_own(call) for call in calls_of(parts))
    return closed(messages) if is_open else messages


def _pair_results(message: Message, following: Sequence[Message], text: str) -> Sequence[Message]:
    """Return what follows the calls of a message, with a result for each of them first."""
    alone = [each for each in following if each.parts and all(isinstance(part, ToolResult) for part in each.parts)]
    others = [each for each in following if each not in alone]
    elsewhere = {part.call_id for each in (message, *others) for part in each.parts if isinstance(part, ToolResult)}
    given: dict[str, list[ToolResult]] = {}
    for part in chain.from_iterable(each.parts for each in alone):
        if isinstance(part, ToolResult):
            given.setdefault(part.call_id, []).append(part)
    results = [
        given[call.id].pop(0) if given.get(call.id) else build_missing_result(call, text)
        for call in calls_of(message.parts)
        if call.id in given or call.id not in elsewhere
    ]
    results += chain.from_iterable(given.values())
    if len(alone) == 1 and alone[0].parts == tuple(results):
        return following
    return (*build_result_message(results), *others)


def unfold_turns(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a history with the turns of earlier runs: a client has them as one message, calls and results in it."""
    told: list[Message] = []
    for message in messages:
        if message.role != "assistant" or not any(isinstance(part, ToolResult) for part in message.parts):
            told.append(message)
            continue
        for is_result, parts in groupby(message.parts, lambda part: isinstance(part, ToolResult)):
            ours = tuple(_set_client_executor(part) for part in parts)
            told.append(Message(role="user", parts=ours) if is_result else structs.replace(message, parts=ours))
    return tuple(told)


def _set_client_executor(part: AnyPart) -> AnyPart:
    return structs.replace(part, executor="client") if isinstance(part, ToolCall | ToolResult) else part


def build_missing_result(call: ToolCall, text: str) -> ToolResult:
    """Return the result of a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=text),), failed=True, form=call.form)


Summarise = Callable[[tuple[Message, ...]], str | Awaitable[str]]


class Compaction(Struct, frozen=True, kw_only=True):
    """When and how a history is made shorter."""

    summarise: Summarise
    context: int
    """Tokens that the model can take."""
    share: float = 0.8
    """How full it may be."""
    keep: int = 4
    """Messages at the end that are kept at least."""

    def is_due(self, response: Response, history: Sequence[Message]) -> bool:
        """Tell whether the next question would be too long, going by the last one and its answer."""
        usage = response.usage
        reported = (usage.input or 0) + (usage.output or 0) if usage is not None else 0
        return (reported or _estimate_tokens(history)) >= self.share * self.context


def _estimate_tokens(history: Sequence[Message]) -> int:
    return sum(len(repr(message.parts)) for message in history) // _BYTES_PER_TOKEN


def find_cut(history: Sequence[Message], keep: int) -> tuple[int, int]:
    """Return where the middle of a history begins and ends; every call in it has its result there too."""
    begin = count_leading_systems(history)
    for end in range(len(history) - keep, begin, -1):
        if _is_valid_cut(history[begin:end], history[end:]):
            return begin, end
    return begin, begin


def _is_valid_cut(before: Sequence[Message], after: Sequence[Message]) -> bool:
    calls = calls_of(chain.from_iterable(message.parts for message in before))
    return not _find_result_ids(after[:1]) and {call.id for call in calls} <= _find_result_ids(before)


def _find_result_ids(messages: Sequence[Message]) -> set[str]:
    return {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}


async def summarise_messages(middle: tuple[Message, ...], summarise: Summarise) -> str:
    """Return the middle of a history as a text."""
    with wrap_errors("the summary"):
        told = summarise(middle)
        return await told if inspect.isawaitable(told) else told


def replace_with_summary(
    history: Sequence[Message], middle: tuple[int, int], summary: str, *, untrusted: bool
) -> tuple[Message, ...]:
    """Return a history with a summary in the place of its middle."""
    begin, end = middle
    text = f"{UNTRUSTED_SUMMARY if untrusted else SUMMARY}\n{summary}"
    return (*history[:begin], Message(role="user", parts=(Text(text=text),)), *history[end:])


def summary_by(model: Model, name: str = "") -> Summarise:
    """Return a function that lets a model sum up; `name` is what the request calls it."""

    async def summarise(messages: tuple[Message, ...]) -> str:
        question = Message(role="user", parts=(Text(text=_SUMMARY_PROMPT),))
        collector = Collector()
        # As one text: a history with calls in it would need their tools, and a model that is offered tools uses them.
        told = Message(role="user", parts=(Text(text=_render_transcript(messages)),))
        asked = Request(model=name, messages=(told, question), stream=True)
        async with closing(model(asked)) as events:
            async for event in events:
                collector.feed(event)
        parts = collector.response().parts
        return "".join(part.text for part in parts if isinstance(part, Text))

    return summarise


def _render_transcript(messages: Sequence[Message]) -> str:
    return "\n\n".join(
        line for message in messages for part in message.parts if (line := _render_part(message.role, part))
    )


def _render_part(role: str, part: AnyPart) -> str:
    match part:
        case Text(text=text):
            return f"{role}: {text}"
        case ToolCall(name=name, arguments=arguments):
            return f"{role} called {name} with {arguments}"
        case ToolResult(content=content, failed=failed):
            texts = (each.text if isinstance(each, Text) else _render_part("", each) for each in content)
            return f"{'it failed' if failed else 'it returned'}: {' '.join(texts)}"
        case Data(json=raw):
            return raw.decode("utf-8", "replace")
        case Media(kind=kind):
            return f"({kind})"
        case Refusal() | Reasoning() | Opaque():
            return ""
        case _:
            assert_never(part)
