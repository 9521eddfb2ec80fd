"""Calls and results, written short."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.core.parts import Data, Text, ToolCall, ToolResult
from dragoman.core.request import Tool
from dragoman.tools import Executor, Handler, Registry

ANY_OBJECT = b'{"type":"object"}'


def call(name: str, arguments: Any = None, identity: str = "call_1", **more: Any) -> ToolCall:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return ToolCall(id=identity, name=name, arguments=text, **more)


def handler(
    run: Callable[[Any], Any], name: str = "work", parameters: bytes | None = ANY_OBJECT, **flags: Any
) -> Handler:
    return Handler(definition=Tool(name=name, description="Works.", parameters=parameters), run=run, **flags)


def executor(*tools: Any, **settings: Any) -> Executor:
    return Executor(Registry(*tools), **settings)


def run(tool: Any, arguments: Any = None, **settings: Any) -> ToolResult:
    """What one call of one tool gives."""
    runner = executor(tool, **settings)
    return asyncio.run(runner.execute(call(runner.registry.names[0], arguments)))


def text_of(result: ToolResult) -> str:
    """All text and JSON of a result."""
    parts = [
        part.text if isinstance(part, Text) else part.json.decode()
        for part in result.content
        if isinstance(part, Text | Data)
    ]
    return "\n".join(parts)
