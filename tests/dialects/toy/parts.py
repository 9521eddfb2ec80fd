"""Read and write one line."""

from typing import Any

from dialects.toy.wire import NAME, Line, ToyCall, ToyResult, ToySay, extras_of
from dragoman.core.parts import AnyPart, Content, Data, Opaque, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Role
from dragoman.wire.unread import Unread

ROLES: dict[str, Role] = {"rule": "system", "human": "user", "model": "assistant"}
_SPEAKERS = {role: speaker for speaker, role in ROLES.items()}


def read_line(line: Line, where: str, unread: Unread | None) -> tuple[Role, AnyPart]:
    """Return who is speaking, and what; an unknown line is kept whole."""
    extras = extras_of(unread.take(where)) if unread is not None else None
    match line:
        case ToySay(by, text):
            return ROLES[by], Text(where=where, extras=extras, text=text)
        case ToyCall(call_id, tool, given):
            return "assistant", ToolCall(where=where, extras=extras, id=call_id, name=tool, arguments=given)
        case ToyResult(call_id, text, failed):
            content = (Text(where=f"{where}/text", text=text),)
            return "user", ToolResult(where=where, extras=extras, call_id=call_id, content=content, failed=failed)
        case _:
            return "assistant", Opaque(where=where, dialect=NAME, raw=bytes(line.raw))


def write_part(part: AnyPart, role: Role) -> Any:
    """Return the line for a part; None for one that Toy cannot say."""
    match part:
        case Text(text=text) | Refusal(text=text):
            return ToySay(_SPEAKERS[role], text)
        case ToolCall():
            return ToyCall(part.id, part.name, part.arguments)
        case ToolResult():
            return ToyResult(part.call_id, "\n".join(filter(None, map(_text_of, part.content))), part.failed)
        case Opaque(dialect=dialect, raw=raw) if dialect == NAME:
            return raw
        case _:
            return None


def _text_of(item: Content) -> str:
    match item:
        case Text(text=text):
            return text
        case Data(json=value):
            return value.decode()
        case _:
            return ""
