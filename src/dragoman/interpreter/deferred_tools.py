"""Deferred tools: which of them are declared at the target, and what searches for them become.

A tool with `defer_loading` is not in the model's prompt until a search names it. Two vendors have such tools. Any other
target gets a tool when the conversation has loaded it: a result names it, or the model has called it. Loaded tools are
appended in the order in which the conversation names them, so that the tools of each request start with those of the
one before, and prompt caches stay valid.
"""

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import structs

from dragoman.core.parts import AnyPart, FoundTools, Text, ToolCall, ToolReference, ToolResult, ToolSearch
from dragoman.core.request import AnyTool, Message, NativeTool, Request, Tool
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.foreign_fields import UNKNOWN, drop_extras
from dragoman.interpreter.ids import hash_text
from dragoman.interpreter.tool_kinds import find_purpose
from dragoman.interpreter.translation import TurnFunctionsNeeded
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json

DEFER_LOADING = "/defer_loading"
"""The pointer of the field in a tool, in every dialect that has it."""
FEWEST_TOOLS = 100
"""No target is known that takes fewer tools."""
PURPOSE = "tool_search"
"""What a caller of the translation may run itself, if the target has no tool search or takes fewer tools."""
_CALLERS = "/allowed_callers"
_CALLED_DIRECTLY = "a tool for programs: the model calls it directly"
_NOT_LOADED = "a deferred tool: it is declared when the conversation loads it"
_LOADED_AT_ONCE = "a deferred tool: it is declared at once, because the target has no tool search"
_NO_SEARCH = "the target has no tool search: every deferred tool is declared at once"
_SENT_AS_OWN = "sent as the target's own tool search"
_REPEATED = "it repeats declarations of the request"
_SEARCH_OVER = "a search for deferred tools: what it found is declared"


def is_deferred(tool: AnyTool) -> bool:
    """Return whether a tool of the client is deferred."""
    return isinstance(tool, Tool) and tool.extras is not None and tool.extras.fields.get(DEFER_LOADING) == b"true"


def is_tool_search(tool: AnyTool) -> bool:
    """Return whether a tool is a tool search that its vendor runs."""
    return isinstance(tool, NativeTool) and not tool.calls and find_purpose(tool.raw) == PURPOSE


def has_deferred(tools: Iterable[AnyTool]) -> bool:
    """Return whether some tool is deferred, or is a search for such tools."""
    return any(is_deferred(tool) or is_tool_search(tool) for tool in tools)


def load_tools(request: Request, adaptation: Adaptation) -> Request:
    """Return the request with the tools that the target gets now.

    For a target with a tool search of its own these are all of them, if the client's vendor was to run the search.
    """
    adaptation.declared = request.tools
    searches = [tool for tool in request.tools if is_tool_search(tool)]
    if searches and adaptation.traits.tool_search:
        adaptation.has_tool_search = True
        if len(searches) == 1:
            return request
        return structs.replace(request, tools=_drop_searches(request.tools, searches[1:], adaptation))
    if searches:
        require_search(request, searches[0].where, adaptation.turn_functions)
        return structs.replace(request, tools=_declare_all(request.tools, searches, adaptation))
    tools, hidden = split_tools(request, adaptation.ledger.find_pointer("tools"))
    for tool in hidden:
        adaptation.ledger.report_dropped(tool.where, _NOT_LOADED, "informational")
    return structs.replace(request, tools=tools)


def require_search(request: Request, where: str, turn_functions: Container[str]) -> None:
    """Raise `TurnFunctionsNeeded` if the caller of the translation can run the search, and the model may call tools."""
    choice = request.tool_choice
    if PURPOSE in turn_functions and (choice is None or choice.mode != "none"):
        raise TurnFunctionsNeeded(frozenset({PURPOSE}), where)


def has_too_many(tools: Sequence[AnyTool], traits: Traits) -> bool:
    """Return whether the target takes fewer tools."""
    if len(tools) <= traits.tools_max or not traits.namespaces:
        return len(tools) > traits.tools_max
    groups = {tool.namespace for tool in tools if isinstance(tool, Tool)} - {""}
    single = sum(not isinstance(tool, Tool) or not tool.namespace for tool in tools)
    return single + len(groups) > traits.tools_max


def require_room(tools: Sequence[AnyTool], traits: Traits, turn_functions: Container[str]) -> None:
    """Raise `TurnFunctionsNeeded` if a target of the client's dialect takes fewer tools and the caller can search them.

    A client that defers tools in its own dialect has its vendor search them.
    """
    if PURPOSE in turn_functions and has_too_many(tools, traits) and not has_deferred(tools):
        raise TurnFunctionsNeeded(frozenset({PURPOSE}), tools[0].where.rpartition("/")[0])


def searches_by_pattern(searches: Sequence[AnyTool]) -> bool:
    """Return whether a client declares only a search by regular expressions."""
    return bool(searches) and all(isinstance(one, NativeTool) and b"_regex" in one.raw for one in searches)


def _drop_searches(
    tools: Sequence[AnyTool], searches: Sequence[AnyTool], adaptation: Adaptation
) -> tuple[AnyTool, ...]:
    """Return the tools without further searches: the target has one kind."""
    for tool in searches:
        adaptation.ledger.report_dropped(tool.where, "the target has one kind of tool search", "informational")
    return tuple(tool for tool in tools if tool not in searches)


def _declare_all(tools: Sequence[AnyTool], searches: Sequence[AnyTool], adaptation: Adaptation) -> tuple[AnyTool, ...]:
    for tool in searches:
        adaptation.ledger.report_dropped(tool.where, _NO_SEARCH, "informational")
    for tool in filter(is_deferred, tools):
        adaptation.ledger.report_approximated(tool.where + DEFER_LOADING, _LOADED_AT_ONCE, "informational")
    return tuple(declare(tool) for tool in tools if tool not in searches)


def declare(tool: AnyTool) -> AnyTool:
    """Return a tool that is not deferred any more."""
    if not is_deferred(tool) or tool.extras is None:
        return tool
    fields = {pointer: raw for pointer, raw in tool.extras.fields.items() if pointer != DEFER_LOADING}
    return structs.replace(tool, extras=Extras(tool.extras.dialect, fields) if fields else None)


def split_tools(request: Request, place: str) -> tuple[tuple[AnyTool, ...], tuple[Tool, ...]]:
    """Return the tools that are declared now, and the deferred ones that the conversation has not loaded.

    `place` is the pointer of the request's own tools; others come from the history. First come the tools that are not
    deferred, then those that were loaded, in the order in which the history names them; last those that the tool choice
    names.
    """
    found = dict.fromkeys(list_loaded(request.messages))
    late: dict[str, Tool] = {}
    early: list[AnyTool] = []
    for tool in request.tools:
        name = name_tool(tool) if isinstance(tool, Tool) else ""
        is_loaded_later = name in found and not tool.where.startswith(f"{place}/")
        if isinstance(tool, Tool) and (is_deferred(tool) or is_loaded_later):
            late[name] = tool
        else:
            early.append(tool)
    chosen = request.tool_choice.names if request.tool_choice is not None else ()
    names = [name for name in dict.fromkeys((*found, *chosen)) if name in late]
    declared = (*early, *(declare(late[name]) for name in names))
    return declared, tuple(tool for name, tool in late.items() if name not in names)


def list_loaded(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the names of the tools that a conversation has loaded or called, each after its namespace and `__`."""
    for message in messages:
        for part in message.parts:
            yield from _list_names(part)


def _list_names(part: AnyPart) -> Iterator[str]:
    match part:
        case ToolCall(name=name, namespace=namespace):
            # A deferred function of OpenAI's has its own name as namespace.
            yield name if namespace == name else qualify_name(name, namespace)
        case FoundTools(names=names):
            yield from names
        case ToolReference(name=name):
            yield name
        case ToolResult(content=content):
            for one in content:
                yield from _list_names(one)
        case _:
            pass


def adapt_tool_fields(tool: Tool, adaptation: Adaptation) -> Extras | None:
    """Return the extra fields of a tool for the target: whether it is deferred. Report the others.

    No two vendors run each other's programs that call tools, so a tool for programs is called by the model.
    """
    extras = tool.extras
    if extras is not None and json.peek(extras.fields.get(_CALLERS, b"null")) not in (None, ["direct"]):
        adaptation.ledger.report_dropped(tool.where + _CALLERS, _CALLED_DIRECTLY, "informational")
        fields = {pointer: raw for pointer, raw in extras.fields.items() if pointer != _CALLERS}
        extras = Extras(extras.dialect, fields)
    drop_extras(tool if extras is tool.extras else structs.replace(tool, extras=extras), adaptation)
    if adaptation.has_tool_search and is_deferred(tool):
        return Extras(adaptation.traits.dialect, {DEFER_LOADING: b"true"})
    return None


# The history


def adapt_search(part: ToolSearch, _message: Message, adaptation: Adaptation) -> ToolSearch | None:
    """Keep a search until its result comes: a target with such blocks needs both."""
    if part.dialect == adaptation.traits.dialect:
        return part
    adaptation.last_search = part
    if not adaptation.has_tool_search:
        report_search(part, adaptation)
    return None


def report_search(part: ToolSearch | FoundTools, adaptation: Adaptation) -> None:
    """Report a search of the history that a target without such blocks does not get."""
    adaptation.ledger.report_dropped(part.where, _SEARCH_OVER, "informational")


def adapt_found_tools(part: FoundTools, _message: Message, adaptation: Adaptation) -> tuple[AnyPart, ...]:
    """Return a search and its result in the target's form; nothing if the target has no such blocks."""
    if part.dialect == adaptation.traits.dialect:
        return (part,)
    search, adaptation.last_search = adaptation.last_search, None
    if not adaptation.has_tool_search or search is None:
        report_search(part, adaptation)
        return ()
    for one in (search, part):
        adaptation.ledger.report_approximated(one.where, _SENT_AS_OWN, "informational")
    for pointer in search.extras.fields if search.extras is not None else ():
        adaptation.ledger.report_dropped(search.where + pointer, UNKNOWN, "informational")
    drop_extras(part, adaptation)
    if part.repeated:
        adaptation.ledger.report_dropped(part.where + part.repeated, _REPEATED, "informational")
    search_id = search.id or hash_text(part.where, 24)
    tools = _find_tools(part.names, adaptation)
    written = dialect_named(adaptation.traits.dialect).write_tools(tools)
    found = structs.replace(
        part,
        dialect="",
        raw=b"",
        extras=None,
        repeated="",
        id=search_id,
        names=tuple(tool.name for tool in tools),
        tools=json.encode(written),
    )
    return structs.replace(search, dialect="", raw=b"", extras=None, id=search_id), found


def _find_tools(names: Iterable[str], adaptation: Adaptation) -> tuple[Tool, ...]:
    """Return the adapted tools with these names of the client's."""
    places = {name_tool(tool): tool.where for tool in adaptation.declared if isinstance(tool, Tool)}
    sent = {tool.where: tool for tool in adaptation.sent if isinstance(tool, Tool)}
    return tuple(sent[places[name]] for name in names if places.get(name) in sent)


def name_tool(tool: Tool) -> str:
    """Return the name of a tool after its namespace and `__`, as searches name it."""
    return qualify_name(tool.name, tool.namespace)


def adapt_reference(part: ToolReference, _message: Message, adaptation: Adaptation) -> AnyPart:
    """Return a tool that the client found as text: its name at the target, and its description."""
    if part.dialect == adaptation.traits.dialect:
        return part
    return Text(text=describe_reference(part, adaptation), where=part.where)


def describe_reference(part: ToolReference, adaptation: Adaptation) -> str:
    """Return the text about a tool that the client found, and report that it is sent as text."""
    adaptation.ledger.report_approximated(part.where, "sent as text: the target declares the tool", "informational")
    tool = next((one for one in adaptation.declared if isinstance(one, Tool) and name_tool(one) == part.name), None)
    if tool is None:
        return describe_found(part.name, "")
    return describe_found(adaptation.alias_tool(tool.name, tool.namespace), tool.description)


def describe_found(name: str, description: str) -> str:
    """Return the line of a result about a tool that a search found."""
    return f"The tool {name} can be called now." + (f" Its description: {description}" if description else "")
