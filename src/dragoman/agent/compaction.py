"""Making a history shorter before it is too long for the model.

Rules: instructions stay, and so does the end of the conversation; what is between becomes one text. The cut is never
between a call and its result. The text says so if it sums up something untrusted, for the rule of `egress` holds on.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain

from msgspec import Struct

from dragoman.agent.history import calls_of
from dragoman.agent.mistakes import mistakes_of
from dragoman.agent.model import Model, closing
from dragoman.core.parts import AnyPart, Data, Media, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Request, leading_systems
from dragoman.core.response import Response
from dragoman.core.stream import Collector

Summarise = Callable[[tuple[Message, ...]], str | Awaitable[str]]
SUMMARY = "[Summary of the conversation so far]"
UNTRUSTED_SUMMARY = "[Summary of the conversation so far, in which something untrusted was read]"
_BYTES_A_TOKEN = 4
_QUESTION = (
    "Sum up this conversation for yourself, so that you can go on without it: what was asked, what was found out with "
    "which tools, names and numbers as they are, and what is left to do. Answer with the summary alone."
)


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
        return (reported or _guessed(history)) >= self.share * self.context


def _guessed(history: Sequence[Message]) -> int:
    return sum(len(repr(message.parts)) for message in history) // _BYTES_A_TOKEN


def cut(history: Sequence[Message], keep: int) -> tuple[int, int]:
    """Return where the middle of a history begins and ends; every call in it has its result there too."""
    begin = leading_systems(history)
    for end in range(len(history) - keep, begin, -1):
        if _is_seam(history[begin:end], history[end:]):
            return begin, end
    return begin, begin


def _is_seam(before: Sequence[Message], after: Sequence[Message]) -> bool:
    calls = calls_of(chain.from_iterable(message.parts for message in before))
    return not _results(after[:1]) and {call.id for call in calls} <= _results(before)


def _results(messages: Sequence[Message]) -> set[str]:
    return {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}


async def summed_up(middle: tuple[Message, ...], summarise: Summarise) -> str:
    """Return the middle of a history as a text."""
    with mistakes_of("the summary"):
        told = summarise(middle)
        return await told if inspect.isawaitable(told) else told


def compacted(
    history: Sequence[Message], middle: tuple[int, int], summary: str, *, untrusted: bool
) -> tuple[Message, ...]:
    """Return a history with a summary in the place of its middle."""
    begin, end = middle
    text = f"{UNTRUSTED_SUMMARY if untrusted else SUMMARY}\n{summary}"
    return (*history[:begin], Message(role="user", parts=(Text(text=text),)), *history[end:])


def summary_by(model: Model, name: str = "") -> Summarise:
    """Return a function that lets a model sum up; `name` is what the request calls it."""

    async def summarise(messages: tuple[Message, ...]) -> str:
        question = Message(role="user", parts=(Text(text=_QUESTION),))
        collector = Collector()
        # As one text: a history with calls in it would need their tools, and a model that is offered tools uses them.
        told = Message(role="user", parts=(Text(text=_told(messages)),))
        asked = Request(model=name, messages=(told, question), stream=True)
        async with closing(model(asked)) as events:
            async for event in events:
                collector.feed(event)
        parts = collector.response().parts
        return "".join(part.text for part in parts if isinstance(part, Text))

    return summarise


def _told(messages: Sequence[Message]) -> str:
    return "\n\n".join(line for message in messages for part in message.parts if (line := _line(message.role, part)))


def _line(role: str, part: AnyPart) -> str:
    match part:
        case Text(text=text):
            return f"{role}: {text}"
        case ToolCall(name=name, arguments=arguments):
            return f"{role} called {name} with {arguments}"
        case ToolResult(content=content, failed=failed):
            texts = (each.text if isinstance(each, Text) else _line("", each) for each in content)
            return f"{'it failed' if failed else 'it returned'}: {' '.join(texts)}"
        case Data(json=raw):
            return raw.decode("utf-8", "replace")
        case Media(kind=kind):
            return f"({kind})"
        case _:
            return ""
