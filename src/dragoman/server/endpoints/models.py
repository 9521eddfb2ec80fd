"""Model lists in the format and with the pagination of each vendor.

A model of the client's own vendor is listed with all fields of the upstream, under its name in the gateway. Models of
other vendors are listed with the fields that are known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.catalogue import Catalogue, ModelEntry
from dragoman.upstreams.model_list import Row
from dragoman.wire import json

_CREATED = 1767225600
"""Each model needs a creation date; the true one is not known."""
_CREATED_TEXT = "2026-01-01T00:00:00Z"
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]
_MAX_DIGITS = 9
Query = Mapping[str, str]


async def list_models(
    catalogue: Catalogue, model: str, allows: Callable[[str], bool], dialect: str, query: Query
) -> bytes:
    """Render one model, or the list of all allowed models if `model` is empty."""
    model = model.removeprefix("models/")
    if not model:
        shown = [entry for name, entry in (await catalogue.list_entries()).items() if allows(name)]
        return render_page(dialect, shown, query)
    if not allows(model):
        raise Problem("not_found", f"model {model!r} does not exist", code="model_not_found")
    return json.encode(_render_row(dialect, await catalogue.find_entry(model)))


def render_page(dialect: str, entries: Sequence[ModelEntry], query: Query) -> bytes:
    """Render one page of models."""
    build_page = _PAGE_BUILDERS.get(dialect_named(dialect).issuer, _openai_page)
    return json.encode(build_page([_render_row(dialect, entry) for entry in entries], query))


def _render_row(dialect: str, entry: ModelEntry) -> Row:
    issuer = dialect_named(dialect).issuer
    build_name, build_row = _ROW_BUILDERS.get(issuer, _ROW_BUILDERS[_DEFAULT_ISSUER])
    own = entry.listed.row if entry.listed is not None and entry.issuer == issuer else {}
    return {**build_row(entry), **own, **build_name(entry.name)}


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
    del query  # OpenAI's list has no pages
    return {"object": "list", "data": rows}


def _anthropic_page(rows: list[Row], query: Query) -> Row:
    limit = _parse_size(query, "limit", 20, 1000)
    names = [row["id"] for row in rows]
    if "before_id" in query:
        end = _find_index(names, query, "before_id")
        start = max(0, end - limit)
        more = start > 0
    else:
        start = _find_index(names, query, "after_id") + 1 if "after_id" in query else 0
        end = start + limit
        more = end < len(rows)
    shown = rows[start:end]
    edges = [row["id"] for row in shown] or [None]
    return {"data": shown, "has_more": more, "first_id": edges[0], "last_id": edges[-1]}


def _google_page(rows: list[Row], query: Query) -> Row:
    size = _parse_size(query, "pageSize", 50, 1000)
    start = _find_index([row["name"] for row in rows], query, "pageToken") if query.get("pageToken") else 0
    listed: Row = {"models": rows[start : start + size]}
    if start + size < len(rows):
        listed["nextPageToken"] = rows[start + size]["name"]
    return listed


def _parse_size(query: Query, name: str, default: int, maximum: int) -> int:
    size = query.get(name) or str(default)
    # Python does not parse numbers of thousands of digits.
    if not size.isdecimal() or len(size) > _MAX_DIGITS or int(size) == 0:
        raise Problem("invalid_request", f"{name} must be a number from 1 to {maximum}", where=f"/{name}")
    return min(int(size), maximum)


def _find_index(names: list[Any], query: Query, parameter: str) -> int:
    name = query[parameter]
    if name not in names:
        message = f"{parameter} must be a value of an earlier page of the list; no model is named {name!r}"
        raise Problem("invalid_request", message)
    return names.index(name)


_ROW_BUILDERS: dict[str, tuple[Callable[[str], Row], Callable[[ModelEntry], Row]]] = {
    "openai": (lambda name: {"id": name}, _openai_row),
    "anthropic": (lambda name: {"id": name}, _anthropic_row),
    "google": (lambda name: {"name": f"models/{name}"}, _google_row),
}
_DEFAULT_ISSUER = "openai"
"""The vendor whose list format is used for vendors without their own, as most servers do."""
_PAGE_BUILDERS: dict[str, Callable[[list[Row], Query], Row]] = {
    "openai": _openai_page,
    "anthropic": _anthropic_page,
    "google": _google_page,
}
