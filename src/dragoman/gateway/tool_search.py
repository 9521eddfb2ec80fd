"""Runs the search for deferred tools in the gateway: for a target without one, and for a client with too many tools.

The tools that the model can search are left out of each request to it until a search has named them, or until they have
been called. Then they are appended, in this order, so that the tools of each request start with those of the one before
and prompt caches stay valid. All of this is read from the history: a client whose dialect has blocks for such searches
sends them back, and gets the same requests again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, FoundTools, Text, ToolCall, ToolResult, ToolSearch
from dragoman.core.request import AnyTool, Message, Request, Tool, ToolChoice
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.turn_functions import PreparedRequest, TurnFunction, choose_name
from dragoman.interpreter.deferred_tools import (
    DEFER_LOADING,
    declare,
    describe_found,
    is_deferred,
    is_tool_search,
    list_loaded,
    name_tool,
    searches_by_pattern,
)
from dragoman.interpreter.tool_index import ToolIndex
from dragoman.tools import Execution, Handler
from dragoman.tools.handler import ToolFailure
from dragoman.wire import json

MAX_FOUND = 5
"""How many tools a search finds at most, as Anthropic's search does."""
_MAX_NAMES = 8_000
"""The most characters of the names of tools in the description of the search."""
_ROOM = 32
"""How many of the tools that a target takes are reserved for those that are found later, at most a quarter."""
_RUN_HERE = "the gateway runs the search, because the target has none"
_FOUND_LATER = "a deferred tool: the model gets it when a search of the gateway finds it"
_OVER_LIMIT = "the target takes fewer tools: the model gets this one when a search of the gateway finds it"
_NOT_FOUND = "No tool was found. Try other words."


class ToolSearchProvider:
    """Prepares requests whose deferred tools the gateway searches."""

    def __init__(self, find_limit: Callable[[str], int]) -> None:
        self._find_limit = find_limit
        """Returns how many tools the targets of a model take."""

    def prepare(self, request: Request, client_request: ClientRequest) -> PreparedRequest:
        """Return the request with a function that searches the tools which are left out."""
        limit = self._find_limit(client_request.call.model)
        search = GatewaySearch(request, dialect_named(client_request.dialect), limit)
        return PreparedRequest(
            request=search.prepare_request(),
            functions=(search.build_function(),),
            losses=tuple(search.list_losses()),
            shape_request=search.shape_request,
        )


class GatewaySearch:
    """The search of one request: the tools that it searches, and those that it has found."""

    def __init__(self, request: Request, client: Dialect, limit: int) -> None:
        self._request = request
        self._client = client
        self._limit = limit
        self._searches = [tool for tool in request.tools if is_tool_search(tool)]
        self._by_pattern = searches_by_pattern(self._searches)
        self._name = choose_name("tool_search", request)
        deferred = [tool for tool in request.tools if is_deferred(tool)] if self._searches else []
        self._surplus = self._list_surplus(deferred)
        late = {id(tool) for tool in (*deferred, *self._surplus)}
        self._late = {name_tool(tool): tool for tool in request.tools if id(tool) in late and isinstance(tool, Tool)}
        """The tools that are left out at first, by name, in the order in which the client declares them."""
        self._found: dict[str, tuple[str, ...]] = {}
        """What searches of the history found, by the id of the call."""

    def _list_surplus(self, deferred: Sequence[AnyTool]) -> list[Tool]:
        """Return the tools beyond the number that the target takes, less the room for those that are found later."""
        others = [tool for tool in self._request.tools if tool not in deferred and tool not in self._searches]
        if len(others) < self._limit:
            return []
        kept = self._limit - 1 - min(_ROOM, self._limit // 4)
        functions = [tool for tool in others if isinstance(tool, Tool)]
        return functions[max(kept - (len(others) - len(functions)), 0) :]

    @cached_property
    def _index(self) -> ToolIndex:
        return ToolIndex(list(self._late.values()))

    def list_losses(self) -> Iterator[Loss]:
        """Yield what is reported: every tool stays reachable, so it is informational."""
        for tool in self._searches:
            yield Loss(tool.where, _RUN_HERE, "approximated", "informational")
        for tool in self._late.values():
            where, reason = (
                (tool.where + DEFER_LOADING, _FOUND_LATER) if is_deferred(tool) else (tool.where, _OVER_LIMIT)
            )
            yield Loss(where, reason, "approximated", "informational")

    # The request

    def prepare_request(self) -> Request:
        """Return the request with all tools of the client, and the searches of its history as calls."""
        request = self._request
        tools = tuple(declare(tool) if self._searches else tool for tool in request.tools if tool not in self._searches)
        self._late = {
            name: tool for tool in tools if isinstance(tool, Tool) and (name := name_tool(tool)) in self._late
        }
        messages = tuple(self._rewrite_history(request.messages))
        return structs.replace(request, tools=tools, messages=messages, tool_choice=self._adapt_choice())

    def _adapt_choice(self) -> ToolChoice | None:
        """Return the tool choice with the name of the function instead of that of the client's search."""
        choice = self._request.tool_choice
        if choice is None or not choice.names:
            return choice
        own = {json.get_text(json.as_object(json.peek(getattr(tool, "raw", b""))), "name") for tool in self._searches}
        return structs.replace(choice, names=tuple(self._name if name in own else name for name in choice.names))

    def _rewrite_history(self, messages: Sequence[Message]) -> Iterator[Message]:
        search: ToolSearch | None = None
        for message in messages:
            if not any(isinstance(part, ToolSearch | FoundTools) for part in message.parts):
                yield message
                continue
            parts: list[AnyPart] = []
            for part in message.parts:
                if isinstance(part, ToolSearch):
                    search = part
                elif isinstance(part, FoundTools) and search is not None:
                    yield structs.replace(message, parts=(*parts, self._build_call(search, part)))
                    yield Message(role="user", parts=(self._build_result(search, part),), where=part.where)
                    parts, search = [], None
                elif not isinstance(part, FoundTools):
                    parts.append(part)
            if parts:
                yield structs.replace(message, parts=tuple(parts))

    def _build_call(self, search: ToolSearch, found: FoundTools) -> ToolCall:
        self._found[search.id] = tuple(name for name in found.names if name in self._late)
        return ToolCall(where=search.where, id=search.id, name=self._name, arguments=self._write_query(search.query))

    def _build_result(self, search: ToolSearch, found: FoundTools) -> ToolResult:
        text = Text(text=found.error or self._describe(self._found[search.id]), where=found.where)
        return ToolResult(where=found.where, call_id=search.id, content=(text,), failed=bool(found.error))

    def shape_request(self, request: Request) -> Request:
        """Return a request to the model with the tools that it gets now."""
        messages = tuple(map(self._normalise_calls, request.messages))
        chosen = request.tool_choice.names if request.tool_choice is not None else ()
        found = [name for name in dict.fromkeys((*self._list_found(messages), *chosen)) if name in self._late]
        late = {id(tool) for tool in self._late.values()}
        early = [tool for tool in request.tools if id(tool) not in late]
        room = max(self._limit - len(early), 0)
        tools = (*early, *(self._late[name] for name in found[max(len(found) - room, 0) :]))
        return structs.replace(request, messages=messages, tools=tools)

    def _normalise_calls(self, message: Message) -> Message:
        """Return a message with the arguments of searches in the form in which the history returns them."""
        parts = tuple(
            structs.replace(part, arguments=self._write_query(self._read_query(part)))
            if isinstance(part, ToolCall) and part.name == self._name
            else part
            for part in message.parts
        )
        return message if parts == message.parts else structs.replace(message, parts=parts)

    def _list_found(self, messages: Sequence[Message]) -> Iterator[str]:
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolCall) and part.name == self._name:
                    yield from self._found[part.id] if part.id in self._found else self._search(part)
                else:
                    yield from list_loaded((structs.replace(message, parts=(part,)),))

    # The function

    def build_function(self) -> TurnFunction:
        """Return the function that the model calls."""
        what = "A regular expression" if self._by_pattern else "Words, or exact names of tools separated by commas"
        schema = {
            "type": "object",
            "properties": {self._argument: {"type": "string", "description": f"{what}."}},
            "required": [self._argument],
        }
        definition = Tool(name=self._name, description=self._build_description(), parameters=json.encode(schema))
        run = partial(self._run, self._argument)
        return TurnFunction(handler=Handler(definition=definition, run=run), render_result=self._render)

    @property
    def _argument(self) -> str:
        return "pattern" if self._by_pattern else "query"

    def _build_description(self) -> str:
        names, listed = ", ".join(self._late), ""
        if len(names) <= _MAX_NAMES:
            listed = f" Their names: {names}."
        return (
            f"Search {len(self._late)} more tools by their names, descriptions and arguments. They cannot be called "
            f"before a search has found them. The result has up to {MAX_FOUND} tools, which can be called then.{listed}"
        )

    async def _run(self, argument: str, arguments: dict[str, str]) -> str:
        return self._describe(self._find(arguments[argument]))

    def _find(self, query: str) -> tuple[str, ...]:
        if not self._by_pattern:
            return self._index.search(query, MAX_FOUND)
        try:
            return self._index.match(query, MAX_FOUND)
        except ValueError as error:
            raise ToolFailure(f"the pattern cannot be used: {error}") from None

    def _search(self, call: ToolCall) -> tuple[str, ...]:
        """Return what a call has found; a search always finds the same."""
        try:
            found = self._find(self._read_query(call))
        except ToolFailure:
            found = ()
        self._found[call.id] = found
        return found

    def _read_query(self, call: ToolCall) -> str:
        return json.get_text(json.as_object(json.peek(call.arguments.encode())), self._argument)

    def _write_query(self, query: str) -> str:
        return json.encode({self._argument: query}).decode()

    def _describe(self, names: Sequence[str]) -> str:
        return "\n".join(describe_found(name, self._late[name].description) for name in names) or _NOT_FOUND

    def _render(self, call: ToolCall, execution: Execution) -> Sequence[AnyPart]:
        """Return the search and its result as the client's dialect has them."""
        if not self._client.capabilities.tool_search:
            return ()
        search = ToolSearch(id=call.id, query=self._read_query(call), pattern=self._by_pattern)
        if execution.result.failed:
            return search, FoundTools(id=call.id, error="invalid_tool_input")
        names = self._search(call)
        by_name = {name_tool(tool): tool for tool in self._request.tools if isinstance(tool, Tool)}
        tools = self._client.write_tools(tuple(by_name[name] for name in names))
        return search, FoundTools(id=call.id, names=names, tools=json.encode(tools))
