"""The web search of a client as a function that the gateway answers with its search backend.

The model gets the pages as text between random markers, and the client gets a search as if a vendor had run it. What
the pages say stays data: it is never parsed, and nothing in it can end the text around it.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Search, ToolCall
from dragoman.core.request import NativeTool, Request, Tool, ToolChoice
from dragoman.core.response import Usage
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.search_backends import SearchBackend, SearchFailure, SearchQuery, SearchResults, clean_text
from dragoman.gateway.search_settings import SearchTable
from dragoman.gateway.turn_functions import PreparedRequest, TurnFunction, choose_name
from dragoman.interpreter.search_limits import take_call_limit
from dragoman.interpreter.search_settings import grade_setting
from dragoman.interpreter.searches import generate_search_id
from dragoman.interpreter.tool_choice import is_listed
from dragoman.interpreter.tool_kinds import find_purpose, has_name
from dragoman.tools import Execution, Handler
from dragoman.tools.handler import ToolFailure, invocation
from dragoman.tools.web.fetch import wrap_untrusted
from dragoman.wire import json

PURPOSE = "search"
_NAME = "web_search"
_MAX_QUERY = 1000
_EXTRA_SECONDS = 10.0
"""The backend has its own timeout; that of the function is only for what hangs apart from it."""
_PARAMETERS = (
    b'{"type":"object","properties":{"query":{"type":"string","description":"What to search for."}},'
    b'"required":["query"],"additionalProperties":false}'
)
_DESCRIPTION = (
    "Search the web. The result is a list of pages with titles, addresses and excerpts. Use it for what is recent or "
    "what you are not sure of, and cite the pages that you use as Markdown links: [title](address)."
)
_NO_USES_LEFT = "not run: all {limit} searches of this reply are made. Answer with what you have."
_RUN_HERE = "the target cannot search: the gateway runs the searches with its search backend"
_NO_SETTING = "the search backend has no such setting"
_ERRORS = {"invalid": "invalid_tool_input", "skipped": "max_uses_exceeded"}
"""The error codes of calls that did not reach the backend, by the outcome of the call."""


class WebSearch:
    """Prepares requests that declare a web search."""

    def __init__(self, backend: SearchBackend, settings: SearchTable) -> None:
        self._backend = backend
        self._settings = settings

    def prepare(self, request: Request, client_request: ClientRequest) -> PreparedRequest:
        """Return the request with a function in the place of its web search."""
        request = take_call_limit(request)
        natives = [tool for tool in request.tools if isinstance(tool, NativeTool) and _is_search(tool)]
        name = choose_name(_NAME, request)
        declared = _DeclaredSettings(natives, self._settings.max_uses)
        searches = _Searches(self._backend, declared, client_request.owner)
        handler = Handler(
            definition=Tool(name=name, description=_describe(declared), parameters=_PARAMETERS),
            run=searches.run,
            timeout=self._settings.seconds + _EXTRA_SECONDS,
            untrusted=True,
        )
        function = TurnFunction(handler=handler, render_result=searches.render_result, count_usage=_count_usage)
        choice = _rename_choice(request.tool_choice, natives, name)
        others = tuple(tool for tool in request.tools if not (isinstance(tool, NativeTool) and _is_search(tool)))
        prepared = structs.replace(request, tools=others, tool_choice=choice)
        return PreparedRequest(request=prepared, functions=(function,), losses=tuple(declared.losses))


def _is_search(tool: NativeTool) -> bool:
    return find_purpose(tool.raw) == PURPOSE


class _DeclaredSettings:
    """The settings of a request's web searches, and the losses of those that the backend does not have."""

    def __init__(self, natives: Iterable[NativeTool], max_uses: int) -> None:
        self.max_uses = max_uses
        self.allowed_domains: tuple[str, ...] = ()
        self.blocked_domains: tuple[str, ...] = ()
        self.losses: list[Loss] = []
        for tool in natives:
            self.losses.append(Loss(tool.where, _RUN_HERE, "approximated", "informational"))
            for pointer, value in _list_members(tool):
                self._take(tool.where + pointer, pointer.rpartition("/")[2], value)

    def _take(self, where: str, member: str, value: Any) -> None:
        match member, value:
            case "max_uses", int() if value > 0:
                self.max_uses = value
            case "allowed_domains", [*domains]:
                self.allowed_domains = _list_domains(domains)
            case "blocked_domains" | "excludeDomains" | "exclude_domains", [*domains]:
                self.blocked_domains = _list_domains(domains)
            case _:
                grade = grade_setting(member, value) if value is not None else None
                if grade is not None:
                    self.losses.append(Loss(where, _NO_SETTING, "dropped", grade))


def _list_members(tool: NativeTool) -> Iterable[tuple[str, Any]]:
    """Yield the settings of a declaration: the pointer, relative to the tool, and the value of each."""
    members = json.as_object(json.peek(tool.raw))
    for name, value in members.items():
        if name in {"type", "name"}:
            continue
        inner = json.as_object(value)
        if inner and ("type" not in members or name == "filters"):
            yield from ((f"/{name}/{member}", content) for member, content in inner.items())
        elif inner != {} or "type" in members:
            yield f"/{name}", value


def _list_domains(value: Iterable[Any]) -> tuple[str, ...]:
    return tuple(domain for domain in value if isinstance(domain, str) and domain.strip())


def _describe(declared: _DeclaredSettings) -> str:
    allowed = f" It finds only pages of {', '.join(declared.allowed_domains)}." if declared.allowed_domains else ""
    return _DESCRIPTION + allowed


def _rename_choice(choice: ToolChoice | None, natives: list[NativeTool], name: str) -> ToolChoice | None:
    """Return the tool choice with the name of the function for a search that it names or lists."""
    if choice is None:
        return None
    forced = choice.extras.fields.get("") if choice.extras is not None else None
    if forced is not None and find_purpose(forced) == PURPOSE:
        # A dialect can force its own search by type.
        return structs.replace(choice, mode="required", names=(name,), extras=None)
    names = [name if any(has_name(tool, chosen) for tool in natives) else chosen for chosen in choice.names]
    if choice.listed and name not in names and any(is_listed(tool, choice) for tool in natives):
        names.append(name)
    return structs.replace(choice, names=tuple(names)) if tuple(names) != choice.names else choice


class _Searches:
    """The searches of one reply."""

    def __init__(self, backend: SearchBackend, declared: _DeclaredSettings, owner: str) -> None:
        self._backend = backend
        self._declared = declared
        self._owner = owner
        self._count = 0
        self._outcomes: dict[str, SearchResults | SearchFailure] = {}
        """What each call returned, by its id."""

    async def run(self, arguments: dict[str, Any]) -> str:
        """Search and return the results for the model; raise `ToolFailure`."""
        current = invocation()
        call_id = current.call.id if current is not None else ""
        query = clean_text(arguments["query"], _MAX_QUERY + 1)
        try:
            results = self._outcomes[call_id] = await self._search(query)
        except SearchFailure as failure:
            self._outcomes[call_id] = failure
            raise ToolFailure(str(failure)) from None
        return _render_results(query, results)

    async def _search(self, query: str) -> SearchResults:
        if self._count >= self._declared.max_uses:
            raise SearchFailure(_NO_USES_LEFT.format(limit=self._declared.max_uses), "max_uses_exceeded")
        if not query:
            raise SearchFailure("the query is empty", "invalid_tool_input")
        if len(query) > _MAX_QUERY:
            raise SearchFailure(f"the query is longer than {_MAX_QUERY} characters", "query_too_long")
        self._count += 1
        declared = self._declared
        return await self._backend.search(
            SearchQuery(
                text=query,
                allowed_domains=declared.allowed_domains,
                blocked_domains=declared.blocked_domains,
                owner=self._owner,
            )
        )

    def render_result(self, call: ToolCall, execution: Execution) -> Iterable[AnyPart]:
        """Return the search for the client."""
        outcome = self._outcomes.pop(call.id, None)
        search = Search(id=generate_search_id(call.id, self._count), queries=_read_queries(call))
        if isinstance(outcome, SearchResults):
            return [structs.replace(search, pages=outcome.pages)]
        code = _ERRORS.get(execution.outcome, "unavailable") if outcome is None else outcome.code
        return [structs.replace(search, error=code)]


def _count_usage(execution: Execution) -> Usage:
    return Usage() if execution.result.failed else Usage(searches=1)


def _read_queries(call: ToolCall) -> tuple[str, ...]:
    """Return the query of a call; none if its arguments are not valid."""
    try:
        arguments = json.as_object(msgspec.json.decode(call.arguments))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    query = clean_text(arguments.get("query"), _MAX_QUERY)
    return (query,) if query else ()


def _render_results(query: str, results: SearchResults) -> str:
    """Return the results as text for the model."""
    if not results.pages and not results.answer:
        return "The search found no pages."
    lines: list[str] = [f"Search: {query}"]
    for number, page in enumerate(results.pages, 1):
        lines += ["", f"{number}. {page.title}", page.url, *filter(None, (page.age, page.excerpt))]
    if results.answer:
        lines += ["", "Summary:", results.answer]
    count = "1 page" if len(results.pages) == 1 else f"{len(results.pages)} pages"
    return "\n".join([f"The search found {count}.", *wrap_untrusted(lines)])
