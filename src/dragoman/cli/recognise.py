"""Tell which dialect a request is in, where its sender did not say.

Only marks that one dialect has and the others do not count; a request without any is nobody's, and the caller decides.
"""

from typing import Any, cast

from dragoman.wire import json

_CHAT_FIELDS = {"max_completion_tokens", "response_format", "stream_options", "functions", "reasoning_effort", "n"}
_MESSAGES_FIELDS = {"system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking", "output_config"}
_MESSAGES_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}


def dialect_of(body: bytes) -> str | None:
    """Return the name of the dialect `body` is surely in, or None."""
    document: Any = json.peek(body)
    match document:
        case {"contents": _} | {"request": {"contents": _}}:
            return "gemini"
        case {"input": _}:
            return "responses"
        case {"messages": list()}:
            return _chat_or_messages(document)
        case _:
            return None


def _chat_or_messages(document: dict[str, Any]) -> str | None:
    in_tools = _members(document.get("tools"))
    if document.keys() & _CHAT_FIELDS or "function" in in_tools:
        return "chat"
    if document.keys() & _MESSAGES_FIELDS or "input_schema" in in_tools:
        return "messages"
    for message in document["messages"]:
        match message:
            case {"role": "tool" | "developer" | "function"} | {"tool_calls": _}:
                return "chat"
            case {"content": [{"type": str(kind)}, *_]} if kind in _MESSAGES_BLOCKS:
                return "messages"
            case _:
                pass
    return None


def _members(tools: Any) -> set[str]:
    """Return the names of the members that any of the tools has."""
    listed = cast("list[Any]", tools) if isinstance(tools, list) else []
    return {name for tool in listed if isinstance(tool, dict) for name in cast("dict[str, Any]", tool)}
