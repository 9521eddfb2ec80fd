"""What the model is asked in each turn: the caller's request with the loop's own tools beside the client's."""

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import structs

from dragoman.core.parts import AnyPart, Text
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice, leading_systems
from dragoman.tools import Registry
from dragoman.tools.handler import joined

FirstCall = Literal["auto", "required"]
"""Whether the model must begin with a call. After the first result it is free in any case."""


def question(prompt: str | Sequence[AnyPart], history: Sequence[Message], system: str, model: str) -> Request:
    """Return the request that asks something after a history; a new system text stands in place of the old one."""
    parts = (Text(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
    before = tuple(history[leading_systems(history) :] if system else history)
    told = (Message(role="system", parts=(Text(text=system),)),) if system else ()
    return Request(model=model, messages=(*told, *before, Message(role="user", parts=parts)))


def client_names(request: Request, registry: Registry) -> frozenset[str]:
    """Return the names of the tools that whoever asked runs; a name that is ours too is ours."""
    declared = (joined(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool))
    return frozenset(name for name in declared if not registry.has(name))


def offering(request: Request, registry: Registry) -> Request:
    """Return the request with the tools of the registry after the client's."""
    theirs = tuple(
        tool
        for tool in request.tools
        if not isinstance(tool, Tool) or not registry.has(joined(tool.namespace, tool.name))
    )
    return structs.replace(request, tools=(*theirs, *registry.definitions))


def renewed(request: Request, registry: Registry, theirs: Collection[str]) -> Request:
    """Return the request with tools that have come, or are described otherwise, since it was made.

    What was offered before stays, in its place: the history may have calls of it, and a model's cache begins with it.
    """
    now = {joined(tool.namespace, tool.name): tool for tool in registry.definitions}
    tools: list[Tool | NativeTool] = []
    for tool in request.tools:
        name = joined(tool.namespace, tool.name) if isinstance(tool, Tool) else ""
        tools.append(now.pop(name, tool) if name not in theirs else tool)
    tools += [tool for name, tool in now.items() if name not in theirs]
    return structs.replace(request, tools=tuple(tools))


def relaxed(request: Request) -> Request:
    """Return the request with a free choice of tools: a call that is forced after every result would never end."""
    choice = request.tool_choice
    if choice is None or choice.mode != "required":
        return request
    # A choice of one tool is how it is forced; to allow only that one from now on is not what was meant.
    names = choice.names if len(choice.names) > 1 else ()
    return structs.replace(request, tool_choice=structs.replace(choice, mode="auto", names=names))


def without_tools(request: Request) -> Request:
    """Return the request with tools that are declared, for the history has calls of them, but may not be called."""
    parallel = request.tool_choice.parallel if request.tool_choice is not None else None
    return structs.replace(request, tool_choice=ToolChoice(mode="none", parallel=parallel))
