"""What notebooks show of conversations and runs."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from dragoman.core.losses import Loss
from dragoman.core.notebook import render_table
from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Message


def render_history(history: Iterable[Message]) -> str:
    """Return a conversation as a table with a row for each part."""
    rows = (
        (label or message.role, text)
        for message in history
        for part in message.parts
        for label, text in _render_part(part)
        if text
    )
    return render_table(("from", "content"), rows)


def render_losses(losses: Iterable[Loss]) -> str:
    """Return losses as a table; "" if there are none."""
    rows = [(loss.where, loss.kind, loss.grade, loss.what) for loss in losses]
    return render_table(("where", "loss", "grade", "what"), rows) if rows else ""


def _render_part(part: AnyPart) -> Iterator[tuple[str, str]]:
    match part:
        case Text(text=text) | Refusal(text=text):
            yield "", text
        case Reasoning(texts=texts):
            yield "reasoning", "\n".join(texts)
        case ToolCall(name=name, arguments=arguments):
            yield "call", f"{name}({arguments})"
        case ToolResult(content=content, failed=failed):
            label = "failed result" if failed else "result"
            yield label, "\n".join(text for each in content for _, text in _render_part(each))
        case Data(json=raw):
            yield "", raw.decode("utf-8", "replace")
        case Media(kind=kind, media_type=media_type):
            yield "", f"({media_type or kind})"
        case Opaque():
            yield "", "(data in a vendor's own format)"
        case _:
            assert_never(part)
