"""Vendors' own tools that have a counterpart elsewhere. Data: how each is recognised and how each vendor writes it."""

from dragoman.core.request import NativeTool, ToolChoice
from dragoman.core.value import Extras
from dragoman.wire import json
from dragoman.wire.pointer import escape

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
_CHOICES: dict[tuple[str, str], ToolChoice] = {
    ("responses", "search"): ToolChoice(extras=Extras("responses", {"": b'{"type":"web_search"}'})),
    ("responses", "code"): ToolChoice(extras=Extras("responses", {"": b'{"type":"code_interpreter"}'})),
    ("messages", "search"): ToolChoice(mode="required", names=("web_search",)),
    ("messages", "code"): ToolChoice(mode="required", names=("code_execution",)),
    ("messages", "fetch"): ToolChoice(mode="required", names=("web_fetch",)),
}


def counterpart(tool: NativeTool, dialect: str) -> NativeTool | None:
    """Return the tool of `dialect` that does what `tool` does, or None."""
    form = _FORMS.get((dialect, _concept(tool.raw)))
    return NativeTool(dialect=dialect, raw=form, where=tool.where) if form is not None else None


def settings_of(tool: NativeTool) -> list[str]:
    """Return where a tool says more than which it is, as pointers relative to it."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return [f"/{escape(name)}" for name in members if name != "type"]
    inside = [(name, raw) for name, raw in members.items() if name in _CONCEPTS and json.is_object(raw)]
    others = [f"/{escape(name)}" for name in members if name not in _CONCEPTS]
    return [*(f"/{name}/{escape(inner)}" for name, raw in inside for inner in json.decode_object(raw)), *others]


def choice_of(tool: NativeTool) -> ToolChoice | None:
    """Return how a vendor is made to use its own tool, or None."""
    return _CHOICES.get((tool.dialect, _concept(tool.raw)))


def is_called(tool: NativeTool, name: str) -> bool:
    """Tell whether callers know the tool by `name`."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    return "name" in members and json.peek(members["name"]) == name


def _concept(raw: bytes) -> str:
    members = json.decode_object(raw) if json.is_object(raw) else {}
    kind = json.peek(members["type"]) if "type" in members else ""
    words = [kind, kind.rsplit("_", 1)[0]] if isinstance(kind, str) and kind else list(members)
    return next((_CONCEPTS[word] for word in words if word in _CONCEPTS), "")
