"""The tools and the tool choice of the requests of a run."""

from collections.abc import Collection

from msgspec import structs

from dragoman.core.request import NativeTool, Request, Tool, ToolChoice
from dragoman.tools import Registry
from dragoman.tools.handler import list_client_tools, qualify_name


def find_client_tools(request: Request, registry: Registry) -> frozenset[str]:
    """Return the names of the tools that the client runs; a tool that is also in the registry is run here."""
    return frozenset(name for name in list_client_tools(request) if not registry.has(name))


def add_tools(request: Request, registry: Registry) -> Request:
    """Return the request with the tools of the registry after the client's."""
    client_tools = tuple(
        tool
        for tool in request.tools
        if not isinstance(tool, Tool) or not registry.has(qualify_name(tool.namespace, tool.name))
    )
    return structs.replace(request, tools=(*client_tools, *registry.definitions))


def refresh_tools(request: Request, registry: Registry, client_tools: Collection[str]) -> Request:
    """Return the request with tools that were added or changed since it was built.

    Tools offered before keep their position: the history may contain calls of them, and the model's prompt cache starts
    with them.
    """
    now = {qualify_name(tool.namespace, tool.name): tool for tool in registry.definitions}
    tools: list[Tool | NativeTool] = []
    for tool in request.tools:
        name = qualify_name(tool.namespace, tool.name) if isinstance(tool, Tool) else ""
        tools.append(now.pop(name, tool) if name not in client_tools else tool)
    tools += [tool for name, tool in now.items() if name not in client_tools]
    return structs.replace(request, tools=tuple(tools))


def relax_tool_choice(request: Request) -> Request:
    """Return the request with a free tool choice: a call forced after every result would loop forever."""
    choice = request.tool_choice
    if choice is None or choice.mode != "required":
        return request
    # Naming one tool is how a client forces it; from now on the model may use all tools, not only that one.
    names = choice.names if len(choice.names) > 1 else ()
    return structs.replace(request, tool_choice=structs.replace(choice, mode="auto", names=names))


def forbid_tools(request: Request) -> Request:
    """Return the request with tool choice "none"; tools stay declared, because the history has calls of them."""
    parallel = request.tool_choice.parallel if request.tool_choice is not None else None
    return structs.replace(request, tool_choice=ToolChoice(mode="none", parallel=parallel))
