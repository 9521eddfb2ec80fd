"""Vendors' own tools that have a counterpart elsewhere. Data: how each is recognised and how each vendor writes it."""

from dragoman.core.request import NativeTool
from dragoman.wire import json

_CONCEPTS: dict[str, str] = {
    "web_search": "search",
    "web_search_preview": "search",
    "googleSearch": "search",
    "google_search": "search",
    "googleSearchRetrieval": "search",
    "code_execution": "code",
    "code_interpreter": "code",
    "codeExecution": "code",
    "web_fetch": "fetch",
    "urlContext": "fetch",
    "url_context": "fetch",
}
_FORMS: dict[tuple[str, str], bytes] = {
    ("responses", "search"): b'{"type":"web_search"}',
    ("messages", "search"): b'{"type":"web_search_20250305","name":"web_search"}',
    ("gemini", "search"): b'{"googleSearch":{}}',
    ("responses", "code"): b'{"type":"code_interpreter","container":{"type":"auto"}}',
    ("messages", "code"): b'{"type":"code_execution_20250825","name":"code_execution"}',
    ("gemini", "code"): b'{"codeExecution":{}}',
    ("messages", "fetch"): b'{"type":"web_fetch_20250910","name":"web_fetch"}',
    ("gemini", "fetch"): b'{"urlContext":{}}',
}


def counterpart(tool: NativeTool, dialect: str) -> NativeTool | None:
    """Return the tool of `dialect` that does what `tool` does, or None."""
    form = _FORMS.get((dialect, _concept(tool.raw)))
    return NativeTool(dialect=dialect, raw=form, where=tool.where) if form is not None else None


def _concept(raw: bytes) -> str:
    members = json.decode_object(raw) if json.is_object(raw) else {}
    kind = json.decode(members["type"]) if "type" in members else ""
    words = [kind, kind.rsplit("_", 1)[0]] if isinstance(kind, str) and kind else list(members)
    return next((_CONCEPTS[word] for word in words if word in _CONCEPTS), "")
