"""Lists of models in each vendor's shape, with the pages its clients ask for.

A row of the client's own vendor is shown as the upstream gave it, under the name by which it is asked for here. Of
others' models the same is told as far as it is known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.catalogue import Catalogue, ModelEntry
from dragoman.upstreams.model_list import Row
from dragoman.wire import json

_CREATED = 1767225600
"""A list needs a date for each model; nobody here knows the true one."""
_CREATED_TEXT = "2026-01-01T00:00:00Z"
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]
_MAX_DIGITS = 9
Query = Mapping[str, str]


async def list_models(
    catalogue: Catalogue, model: str, allows: Callable[[str], bool], dialect: str, query: Query
) -> bytes:
    """Show a model, or list all of those that are allowed."""
    model = model.removeprefix("models/")
    if not model:
        shown = [entry for name, entry in (await catalogue.list_entries()).items() if allows(name)]
        return render_page(dialect, shown, query)
    if not allows(model):
        raise Problem("not_found", f"there is no model {model!r}", code="model_not_found")
    return render_model(dialect, await catalogue.find_entry(model))


def render_model(dialect: str, entry: ModelEntry) -> bytes:
    """Show one model."""
    return json.encode(_render_row(dialect, entry))


def render_page(dialect: str, entries: Sequence[ModelEntry], query: Query) -> bytes:
    """List models, as many as the client wants to see at once."""
    make_page = _PAGE_BUILDERS.get(dialect_named(dialect).issuer, _openai_page)
    return json.encode(make_page([_render_row(dialect, entry) for entry in entries], query))


def _render_row(dialect: str, entry: ModelEntry) -> Row:
    issuer = dialect_named(dialect).issuer
    named, made = _ROW_BUILDERS.get(issuer, _ROW_BUILDERS[_DEFAULT_ISSUER])
    own = entry.listed.row if entry.listed is not None and entry.issuer == issuer else {}
    return {**made(entry), **own, **named(entry.name)}


def _openai_row(entry: ModelEntry) -> Row:
    row: Row = {"id": entry.name, "object": "model", "created": _CREATED, "owned_by": entry.issuer or "dragoman"}
    listed = entry.listed
    if listed is not None and listed.input_limit is not None:
        row["context_length"] = listed.input_limit
    if listed is not None and listed.output_limit is not None:
        row["max_output_tokens"] = listed.output_limit
    return row


def _anthropic_row(entry: ModelEntry) -> Row:
    listed = entry.listed
    return {
        "type": "model",
        "id": entry.name,
        "display_name": (listed.display_name if listed is not None else "") or entry.name,
        "created_at": _CREATED_TEXT,
        "max_input_tokens": listed.input_limit if listed is not None else None,
        "max_tokens": listed.output_limit if listed is not None else None,
    }


def _google_row(entry: ModelEntry) -> Row:
    listed = entry.listed
    row: Row = {
        "name": f"models/{entry.name}",
        "baseModelId": entry.name,
        "version": "001",
        "displayName": (listed.display_name if listed is not None else "") or entry.name,
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
    limit = _parse_size(query, "limit", 20, 1000)
    names = [row["id"] for row in rows]
    if "before_id" in query:
        end = _find_index(names, query["before_id"])
        start = max(0, end - limit)
        more = start > 0
    else:
        start = _find_index(names, query["after_id"]) + 1 if "after_id" in query else 0
        end = start + limit
        more = end < len(rows)
    shown = rows[start:end]
    edges = [row["id"] for row in shown] or [None]
    return {"data": shown, "has_more": more, "first_id": edges[0], "last_id": edges[-1]}


def _google_page(rows: list[Row], query: Query) -> Row:
    size = _parse_size(query, "pageSize", 50, 1000)
    token = query.get("pageToken", "")
    start = _find_index([row["name"] for row in rows], token) if token else 0
    listed: Row = {"models": rows[start : start + size]}
    if start + size < len(rows):
        listed["nextPageToken"] = rows[start + size]["name"]
    return listed


def _parse_size(query: Query, name: str, default: int, maximum: int) -> int:
    said = query.get(name) or str(default)
    # Python refuses to count with some thousand digits.
    if not said.isdecimal() or len(said) > _MAX_DIGITS or int(said) == 0:
        raise Problem("invalid_request", f"{name} must be a number from 1 to {maximum}", where=f"/{name}")
    return min(int(said), maximum)


def _find_index(names: list[Any], name: str) -> int:
    if name not in names:
        raise Problem("invalid_request", f"there is no page that begins at {name!r}")
    return names.index(name)


_ROW_BUILDERS: dict[str, tuple[Callable[[str], Row], Callable[[ModelEntry], Row]]] = {
    "openai": (lambda name: {"id": name}, _openai_row),
    "anthropic": (lambda name: {"id": name}, _anthropic_row),
    "google": (lambda name: {"name": f"models/{name}"}, _google_row),
}
_DEFAULT_ISSUER = "openai"
"""The vendor whose form of a list is used for vendors without one of their own, as most servers do."""
_PAGE_BUILDERS: dict[str, Callable[[list[Row], Query], Row]] = {
    "openai": _openai_page,
    "anthropic": _anthropic_page,
    "google": _google_page,
}
