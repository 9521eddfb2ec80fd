"""Adapt a search for deferred tools in a reply to the client's form: the search, and the tools that it found."""

import re

from msgspec import structs

from dragoman.core.parts import FoundTools, ToolSearch
from dragoman.core.request import Tool
from dragoman.interpreter.deferred_tools import is_tool_search, name_tool, searches_by_pattern
from dragoman.interpreter.ids import hash_text
from dragoman.interpreter.reply_adapter import ReplyAdapter
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json

_NO_PARAMETERS = b'{"type":"object","properties":{}}'
"""The parameters of a tool that the vendor found and the client did not declare."""
_IN_CLIENT_FORM = "a search for deferred tools: sent in the form of the client's dialect"


def adapt_search_reply(part: ToolSearch | FoundTools, adapter: ReplyAdapter) -> ToolSearch | FoundTools:
    """Return a search, or its result, in the client's form."""
    if part.dialect == adapter.client.name:
        return part
    if part.dialect:
        adapter.ledger.report_approximated(part.where, _IN_CLIENT_FORM, "informational")
    if part.id or not adapter.search_id:
        adapter.search_id = part.id or hash_text(f"{adapter.reply_id}{part.where}", 24)
    part = structs.replace(part, dialect="", raw=b"", id=adapter.search_id)
    if isinstance(part, ToolSearch):
        return _adapt_query(part, adapter)
    by_name = {name_tool(tool): tool for tool in adapter.options.tools if isinstance(tool, Tool)}
    restored = [_restore(name, adapter) for name in part.names]
    names = [qualify_name(name, namespace) for namespace, name in restored]
    found = tuple(
        by_name.get(whole) or Tool(name=name, namespace=namespace, parameters=_NO_PARAMETERS)
        for whole, (namespace, name) in zip(names, restored, strict=True)
    )
    return structs.replace(part, names=tuple(names), tools=json.encode(adapter.client.write_tools(found)))


def _adapt_query(search: ToolSearch, adapter: ReplyAdapter) -> ToolSearch:
    """Return the search as a regular expression if the client declared only the search by those."""
    searches = [tool for tool in adapter.options.tools if is_tool_search(tool)]
    if search.pattern or not searches_by_pattern(searches):
        return search
    return structs.replace(search, query="|".join(map(re.escape, search.query.split())), pattern=True)


def _restore(name: str, adapter: ReplyAdapter) -> tuple[str, str]:
    return adapter.options.names.get(name, ("", name))
