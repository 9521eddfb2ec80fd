"""Lists of models in each vendor's shape, with the pages its clients ask for.

A row of the client's own vendor is shown as the upstream gave it, under the name by which it is asked for here. Of
others' models the same is told as far as it is known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.catalogue import Catalogue, Entry
from dragoman.upstreams.model_list import Row
from dragoman.wire import json

_SINCE = 1767225600
"""A list needs a date for each model; nobody here knows the true one."""
_SINCE_WORDS = "2026-01-01T00:00:00Z"
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]
_MOST_DIGITS = 9
Query = Mapping[str, str]


async def told(catalogue: Catalogue, wanted: str, allows: Callable[[str], bool], dialect: str, query: Query) -> bytes:
    """Show a model, or list all of those that are allowed."""
    wanted = wanted.removeprefix("models/")
    if not wanted:
        shown = [entry for name, entry in (await catalogue.entries()).items() if allows(name)]
        return page(dialect, shown, query)
    if not allows(wanted):
        raise Problem("not_found", f"there is no model {wanted!r}", code="model_not_found")
    return one(dialect, await catalogue.entry(wanted))


def one(dialect: str, entry: Entry) -> bytes:
    """Show one model."""
    return json.encode(_row(dialect, entry))


def page(dialect: str, entries: Sequence[Entry], query: Query) -> bytes:
    """List models, as many as the client wants to see at once."""
    make_page = _PAGES.get(dialect_named(dialect).issuer, _openai_page)
    return json.encode(make_page([_row(dialect, entry) for entry in entries], query))


def _row(dialect: str, entry: Entry) -> Row:
    issuer = dialect_named(dialect).issuer
    named, made = _ROWS.get(issuer, _ROWS[_USUAL])
    own = entry.listed.row if entry.listed is not None and entry.issuer == issuer else {}
    return {**made(entry), **own, **named(entry.name)}


def _openai(entry: Entry) -> Row:
    row: Row = {"id": entry.name, "object": "model", "created": _SINCE, "owned_by": entry.issuer or "dragoman"}
    listed = entry.listed
    if listed is not None and listed.input_limit is not None:
        row["context_length"] = listed.input_limit
    if listed is not None and listed.output_limit is not None:
        row["max_output_tokens"] = listed.output_limit
    return row


def _anthropic(entry: Entry) -> Row:
    listed = entry.listed
    return {
        "type": "model",
        "id": entry.name,
        "display_name": (listed.shown if listed is not None else "") or entry.name,
        "created_at": _SINCE_WORDS,
        "max_input_tokens": listed.input_limit if listed is not None else None,
        "max_tokens": listed.output_limit if listed is not None else None,
    }


def _google(entry: Entry) -> Row:
    listed = entry.listed
    row: Row = {
        "name": f"models/{entry.name}",
        "baseModelId": entry.name,
        "version": "001",
        "displayName": (listed.shown if listed is not None else "") or entry.name,
        "supportedGenerationMethods": _METHODS,
    }
    if listed is not None and listed.input_limit is not None:
        row["inputTokenLimit"] = listed.input_limit
    if listed is not None and listed.output_limit is not None:
        row["outputTokenLimit"] = listed.output_limit
    return row


def _openai_page(rows: list[Row], query: Query) -> Row:
    del query  # its clients take the whole list
    return {"object": "list", "data": rows}


def _anthropic_page(rows: list[Row], query: Query) -> Row:
    limit = _size(query, "limit", 20, 1000)
    names = [row["id"] for row in rows]
    if "before_id" in query:
        end = _place(names, query["before_id"])
        start = max(0, end - limit)
        more = start > 0
    else:
        start = _place(names, query["after_id"]) + 1 if "after_id" in query else 0
        end = start + limit
        more = end < len(rows)
    shown = rows[start:end]
    edges = [row["id"] for row in shown] or [None]
    return {"data": shown, "has_more": more, "first_id": edges[0], "last_id": edges[-1]}


def _google_page(rows: list[Row], query: Query) -> Row:
    size = _size(query, "pageSize", 50, 1000)
    token = query.get("pageToken", "")
    start = _place([row["name"] for row in rows], token) if token else 0
    listed: Row = {"models": rows[start : start + size]}
    if start + size < len(rows):
        listed["nextPageToken"] = rows[start + size]["name"]
    return listed


def _size(query: Query, name: str, usual: int, most: int) -> int:
    said = query.get(name) or str(usual)
    # Python refuses to count with some thousand digits.
    if not said.isdecimal() or len(said) > _MOST_DIGITS or int(said) == 0:
        raise Problem("invalid_request", f"{name} must be a number from 1 to {most}", where=f"/{name}")
    return min(int(said), most)


def _place(names: list[Any], wanted: str) -> int:
    if wanted not in names:
        raise Problem("invalid_request", f"there is no page that begins at {wanted!r}")
    return names.index(wanted)


_ROWS: dict[str, tuple[Callable[[str], Row], Callable[[Entry], Row]]] = {
    "openai": (lambda name: {"id": name}, _openai),
    "anthropic": (lambda name: {"id": name}, _anthropic),
    "google": (lambda name: {"name": f"models/{name}"}, _google),
}
_USUAL = "openai"
"""The vendor whose form of a list is used for vendors without one of their own, as most servers do."""
_PAGES: dict[str, Callable[[list[Row], Query], Row]] = {
    "openai": _openai_page,
    "anthropic": _anthropic_page,
    "google": _google_page,
}
