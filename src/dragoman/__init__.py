"""Dragoman translates tool calling between LLM APIs.

The names below are the public Python API; the module of each is imported when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.agent import (
        Agent,
        AgentConversation,
        ApprovalRequest,
        Approvals,
        Hooks,
        Limits,
        ModelEndpoint,
        RunResult,
    )
    from dragoman.async_chunks import decode_stream
    from dragoman.core.losses import Loss
    from dragoman.core.parts import Data, Media, Reasoning, Text, ToolCall, ToolResult
    from dragoman.core.problems import Problem
    from dragoman.core.request import Message, Request, Tool, ToolChoice
    from dragoman.core.response import Response
    from dragoman.dialects.record import Call
    from dragoman.interpreter.chunks import Chunk, ChunkReader, read_chunks
    from dragoman.interpreter.core_request import (
        choice_from,
        choice_to,
        messages_from,
        messages_to,
        request_from,
        response_from,
        tools_from,
        tools_to,
    )
    from dragoman.interpreter.errors import translate_error
    from dragoman.interpreter.reply_adapter import Context
    from dragoman.interpreter.response import translate_response
    from dragoman.interpreter.schema.validation import check_arguments, check_definition
    from dragoman.interpreter.stream import StreamTranslator
    from dragoman.interpreter.translate import translate_request
    from dragoman.interpreter.translation import Translation
    from dragoman.library import McpServer
    from dragoman.tools import RunContext, ToolFailure, tool

__version__ = "0.1.0"

_MODULES = {
    "Agent": "agent",
    "ApprovalRequest": "agent",
    "Approvals": "agent",
    "Call": "dialects.record",
    "Chunk": "interpreter.chunks",
    "ChunkReader": "interpreter.chunks",
    "Context": "interpreter.reply_adapter",
    "AgentConversation": "agent",
    "Data": "core.parts",
    "Hooks": "agent",
    "Limits": "agent",
    "Loss": "core.losses",
    "McpServer": "library",
    "Media": "core.parts",
    "Message": "core.request",
    "ModelEndpoint": "agent",
    "Problem": "core.problems",
    "Reasoning": "core.parts",
    "Request": "core.request",
    "Response": "core.response",
    "RunContext": "tools",
    "RunResult": "agent",
    "StreamTranslator": "interpreter.stream",
    "Text": "core.parts",
    "Tool": "core.request",
    "ToolCall": "core.parts",
    "ToolChoice": "core.request",
    "ToolFailure": "tools",
    "ToolResult": "core.parts",
    "Translation": "interpreter.translation",
    "check_arguments": "interpreter.schema.validation",
    "check_definition": "interpreter.schema.validation",
    "choice_from": "interpreter.core_request",
    "choice_to": "interpreter.core_request",
    "decode_stream": "async_chunks",
    "messages_from": "interpreter.core_request",
    "messages_to": "interpreter.core_request",
    "read_chunks": "interpreter.chunks",
    "request_from": "interpreter.core_request",
    "response_from": "interpreter.core_request",
    "tool": "tools",
    "tools_from": "interpreter.core_request",
    "tools_to": "interpreter.core_request",
    "translate_error": "interpreter.errors",
    "translate_request": "interpreter.translate",
    "translate_response": "interpreter.response",
}

__all__ = [  # noqa: RUF022  grouped by what they are for
    "Agent",
    "tool",
    "RunResult",
    "AgentConversation",
    "RunContext",
    "ModelEndpoint",
    "McpServer",
    "Hooks",
    "Limits",
    "Approvals",
    "ApprovalRequest",
    "ToolFailure",
    "translate_request",
    "translate_response",
    "translate_error",
    "StreamTranslator",
    "Translation",
    "Context",
    "Call",
    "Loss",
    "Problem",
    "Request",
    "Response",
    "Message",
    "Text",
    "Reasoning",
    "Media",
    "Data",
    "Tool",
    "ToolChoice",
    "ToolCall",
    "ToolResult",
    "tools_from",
    "tools_to",
    "choice_from",
    "choice_to",
    "messages_from",
    "messages_to",
    "check_definition",
    "check_arguments",
    "Chunk",
    "ChunkReader",
    "read_chunks",
    "decode_stream",
    "request_from",
    "response_from",
]


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name and return that name (PEP 562)."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.{module}"), name)
