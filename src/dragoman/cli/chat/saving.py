"""A conversation as a file: Markdown for people, or JSON in the words of Chat Completions for programs."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.cli.chat.calls import readable, whole
from dragoman.core.parts import AnyPart, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Tool
from dragoman.interpreter.vocabulary import messages_to, tools_to
from dragoman.wire import json

_TITLES = {"system": "Instructions", "user": "You", "assistant": "Model"}
_FENCES = re.compile(r"`{3,}")


def save(path: Path, history: Sequence[Message], tools: Sequence[Tool], model: str, *, anew: bool) -> int:
    """Write a conversation, to a file that must not be there unless `anew`; return what could not be said in it."""
    text, losses = _json(history, tools, model) if path.suffix == ".json" else (_markdown(history, model), 0)
    with path.open("w" if anew else "x", encoding="utf-8") as file:
        file.write(text)
    return losses


def _json(history: Sequence[Message], tools: Sequence[Tool], model: str) -> tuple[str, int]:
    messages, losses = messages_to("chat", history)
    told, more = tools_to("chat", tools)
    members = [b'"model":' + json.encode(model), b'"messages":' + messages]
    members += [b'"tools":' + told] if tools else []
    body = (b"{" + b",".join(members) + b"}").decode()
    return readable(body) + "\n", len(losses) + len(more)


def _markdown(history: Sequence[Message], model: str) -> str:
    blocks = [f"# A conversation with {model}"]
    title = ""
    for message in history:
        results = all(isinstance(part, ToolResult) for part in message.parts)
        if not results and title != _TITLES[message.role]:
            title = _TITLES[message.role]
            blocks.append(f"## {title}")
        blocks += [block for part in message.parts for block in _told(part)]
    return "\n\n".join(blocks) + "\n"


def _told(part: AnyPart) -> Iterator[str]:
    match part:
        case Text(unread=True, text=text):
            yield "A call that nobody could read:"
            yield _fenced(text.strip())
        case Text(text=text) | Refusal(text=text):
            yield text
        case Reasoning(texts=texts):
            yield from (f"> {text}".replace("\n", "\n> ") for text in texts if text)
        case ToolCall(name=name, arguments=arguments):
            yield f"Call of `{name}`:"
            yield _fenced(readable(arguments), "json")
        case ToolResult(name=name, content=content, failed=failed):
            yield f"{'Failed result' if failed else 'Result'} of `{name}`:"
            yield _fenced(whole(content))
        case Data() | Media() | Opaque():
            yield whole((part,))


def _fenced(text: str, language: str = "") -> str:
    """Return a block that what stands in it cannot end."""
    fence = "`" * (max((len(found) for found in _FENCES.findall(text)), default=2) + 1)
    return f"{fence}{language}\n{text}\n{fence}"
