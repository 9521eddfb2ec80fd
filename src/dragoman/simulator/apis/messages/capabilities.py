"""What the vendor's list of models says of each: its line, its limits and what it can do."""

from dragoman.simulator.apis.messages.models import Model
from dragoman.simulator.rule import Json

_LINES = ("haiku", "sonnet", "opus", "fable", "mythos")
_THINKING = ("adaptive", "between_tools", "disabled", "enabled")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_EDITS = {"clear_tool_uses_20250919": (4, 0), "clear_thinking_20251015": (4, 0), "compact_20260112": (4, 6)}
"""The first version that has each strategy."""
_PICTURES, _DOCUMENTS, _RUNS_CODE, _CALLS_FROM_CODE = (3, 0), (3, 5), (3, 7), (4, 5)


def told_of(model: Model) -> Json:
    """Return what a model's entry says beside its names."""
    return {
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": model.family if model.family in _LINES else None,
        "max_input_tokens": model.most_input,
        "max_tokens": model.most_output,
        "capabilities": _capabilities(model),
    }


def _capabilities(model: Model) -> Json:
    version = model.version
    thinking = {kind: _supports(kind in model.thinking) for kind in _THINKING}
    edits = {name: _supports(version >= first) for name, first in _EDITS.items()}
    server = {"web_search": _supports(version >= _DOCUMENTS), "code_execution": _supports(version >= _RUNS_CODE)}
    efforts = {level: _supports(level in model.efforts) for level in _EFFORTS}
    return {
        "batch": {"supported": True},
        "citations": _supports(version >= _DOCUMENTS),
        "code_execution": _supports(version >= _CALLS_FROM_CODE),
        "context_management": {**_supports(version >= min(_EDITS.values())), **edits},
        "effort": {**_supports(bool(model.efforts)), **efforts},
        "image_input": _supports(version >= _PICTURES),
        "pdf_input": _supports(version >= _DOCUMENTS),
        "server_tools": {**_supports(version >= _DOCUMENTS), **server},
        "structured_outputs": _supports(model.compiles_schemas),
        "thinking": {**_supports(model.thinking != ("disabled",)), "types": thinking},
    }


def _supports(supported: bool) -> Json:
    return {"supported": supported}
