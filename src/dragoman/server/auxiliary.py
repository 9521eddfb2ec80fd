"""What is answered without asking an upstream: health and lists of models."""

from collections.abc import Sequence
from typing import Any

from dragoman.core.problems import Problem
from dragoman.wire import json

Told = tuple[int, dict[str, str], bytes]
_JSON = {"content-type": "application/json"}
_SINCE = 1767225600
"""A list needs a date for each model; nobody here knows the true one."""
_SINCE_WORDS = "2026-01-01T00:00:00Z"


def health() -> Told:
    """Say that we are here."""
    return 200, _JSON, b'{"status":"ok"}'


def models(dialect: str, names: Sequence[str], wanted: str) -> Told:
    """List the models, or show one, as the client's vendor does."""
    wanted = wanted.removeprefix("models/")
    if wanted and wanted not in names:
        raise Problem("not_found", f"there is no model {wanted!r}", code="model_not_found")
    row, whole = _LISTS[dialect]
    return 200, _JSON, json.encode(row(wanted) if wanted else whole([row(name) for name in names]))


def _openai(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _SINCE, "owned_by": "dragoman"}


def _messages(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": _SINCE_WORDS}


def _gemini(name: str) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


def _openai_list(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": rows}


def _messages_list(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ids = [row["id"] for row in rows] or [None]
    return {"data": rows, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}


def _gemini_list(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"models": rows}


_LISTS = {
    "chat": (_openai, _openai_list),
    "responses": (_openai, _openai_list),
    "messages": (_messages, _messages_list),
    "gemini": (_gemini, _gemini_list),
}
