"""Repair histories so that every call has a result, and shorten them before they exceed the model's context.

Parts are kept unchanged, with their signatures; what is added is marked as added. Results are in the user message after
the calls, in the order of the calls. Compaction keeps the instructions and the end of the conversation, and replaces
what is between with one text. It never cuts between a call and its result. The text is marked if it summarises
untrusted content.
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
    """Return the calls among parts that the client of the model has to run, not the vendor."""
    return tuple(part for part in parts if isinstance(part, ToolCall) and part.executor == "client")


def build_assistant_message(parts: Sequence[AnyPart]) -> tuple[Message, ...]:
    """Return a model's parts as a message; an empty tuple if there are none."""
    return (Message(role="assistant", parts=tuple(parts)),) if parts else ()


def build_result_message(results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Return results as the message that answers the calls."""
    return (Message(role="user", parts=tuple(results)),) if results else ()


def drop_incomplete_parts(parts: Iterable[AnyPart], unfinished: Container[int]) -> tuple[AnyPart, ...]:
    """Return the parts of an interrupted turn that are valid in a history; `unfinished` are indexes of growing parts.

    Incomplete reasoning has no signature, and vendors that check signatures reject it; an incomplete call cannot be
    answered.
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


def closed(messages: Sequence[Message], words: str = NO_RESULT) -> tuple[Message, ...]:
    """Return a history in which every call has a result; calls without one get a failed result with these words.

    Results that were recorded one by one are merged into one message, in the order of the calls.
    """
    repaired: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        following = tuple(takewhile(lambda later: later.role != "assistant", messages[at + 1 :]))
        repaired.append(message)
        repaired += _pair_results(message, following, words) if message.role == "assistant" else following
        at += 1 + len(following)
    return tuple(repaired)


def answer_own_calls(messages: tuple[Message, ...], is_own: Callable[[ToolCall], bool]) -> tuple[Message, ...]:
    """Return a history in which every call to our own tools has a result; unchanged if none is missing."""
    parts = [part for message in messages for part in message.parts]
    known = {part.call_id for part in parts if isinstance(part, ToolResult)}
    is_open = any(call.id not in known and is_own(call) for call in calls_of(parts))
    return closed(messages) if is_open else messages


def _pair_results(message: Message, following: Sequence[Message], text: str) -> Sequence[Message]:
    """Return the messages after a message's calls, starting with a result for each call."""
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
    """Split assistant messages that contain results: a client stores all turns of an earlier run as one message."""
    unfolded: list[Message] = []
    for message in messages:
        if message.role != "assistant" or not any(isinstance(part, ToolResult) for part in message.parts):
            unfolded.append(message)
            continue
        for is_result, parts in groupby(message.parts, lambda part: isinstance(part, ToolResult)):
            converted = tuple(_set_client_executor(part) for part in parts)
            unfolded.append(
                Message(role="user", parts=converted) if is_result else structs.replace(message, parts=converted)
            )
    return tuple(unfolded)


def _set_client_executor(part: AnyPart) -> AnyPart:
    return structs.replace(part, executor="client") if isinstance(part, ToolCall | ToolResult) else part


def build_missing_result(call: ToolCall, text: str) -> ToolResult:
    """Return a failed result for a call that has none."""
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=text),), failed=True, form=call.form)


Summarise = Callable[[tuple[Message, ...]], str | Awaitable[str]]


class Compaction(Struct, frozen=True, kw_only=True):
    """When and how a history is shortened."""

    summarise: Summarise
    context: int
    """The context window of the model, in tokens."""
    share: float = 0.8
    """The share of the context window at which compaction starts."""
    keep: int = 4
    """The minimum number of messages to keep at the end."""

    def is_due(self, response: Response, history: Sequence[Message]) -> bool:
        """Check whether the next request would be too long, judging by the usage of the last one."""
        usage = response.usage
        reported = (usage.input or 0) + (usage.output or 0) if usage is not None else 0
        return (reported or _estimate_tokens(history)) >= self.share * self.context


def _estimate_tokens(history: Sequence[Message]) -> int:
    return sum(len(repr(message.parts)) for message in history) // _BYTES_PER_TOKEN


def find_cut(history: Sequence[Message], keep: int) -> tuple[int, int]:
    """Return the index range of the messages to summarise; every call in it has its result in it too."""
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


async def summarise_messages(middle: tuple[Message, ...], summarise: Summarise) -> str | Response:
    """Return a summary of the middle of a history; if a model writes it, its whole reply, which has the usage."""
    with wrap_errors("the summary"):
        summary = summarise.write(middle) if isinstance(summarise, ModelSummary) else summarise(middle)
        return await summary if inspect.isawaitable(summary) else summary


def replace_with_summary(
    history: Sequence[Message], middle: tuple[int, int], summary: str, *, untrusted: bool
) -> tuple[Message, ...]:
    """Return a history with the messages of the index range `middle` replaced by a summary."""
    begin, end = middle
    text = f"{UNTRUSTED_SUMMARY if untrusted else SUMMARY}\n{summary}"
    return (*history[:begin], Message(role="user", parts=(Text(text=text),)), *history[end:])


class ModelSummary:
    """Summarises with a model."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name

    async def __call__(self, messages: tuple[Message, ...]) -> str:
        """Return a summary of messages."""
        return read_summary(await self.write(messages))

    async def write(self, messages: tuple[Message, ...]) -> Response:
        """Return the model's reply, whose text is the summary."""
        question = Message(role="user", parts=(Text(text=_SUMMARY_PROMPT),))
        collector = Collector()
        # The history is sent as one text: calls in it would need their tools, and a model with tools uses them.
        transcript = Message(role="user", parts=(Text(text=_render_transcript(messages)),))
        request = Request(model=self._name, messages=(transcript, question), stream=True)
        async with closing(self._model(request)) as events:
            async for event in events:
                collector.feed(event)
        return collector.response()


def summary_by(model: Model, name: str = "") -> Summarise:
    """Return a function that summarises with a model; `name` is the model name of the request."""
    return ModelSummary(model, name)


def read_summary(summary: str | Response) -> str:
    """Return the text of a summary."""
    if isinstance(summary, str):
        return summary
    return "".join(part.text for part in summary.parts if isinstance(part, Text))


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
