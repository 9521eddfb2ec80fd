"""Vendors' own tools and their counterparts at other vendors; each dialect has its own in `compat.py`."""

from dragoman.core.request import AnyTool, NativeTool, Tool, ToolChoice
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.adaptation import Adaptation
from dragoman.wire import json
from dragoman.wire.pointer import escape


def adapt_native(tool: NativeTool, adaptation: Adaptation) -> NativeTool | None:
    """Return the target's counterpart of a vendor's own tool, and report what it does not have."""
    found = counterpart(tool, adaptation.traits.dialect)
    if found is None:
        adaptation.ledger.dropped(tool.where, "a tool only its own vendor runs")
    elif json.peek(found.raw) != json.peek(tool.raw):
        adaptation.ledger.approximated(tool.where, "the target's own tool of that kind stands in")
        for place in settings_of(tool):
            adaptation.ledger.dropped(tool.where + place, "the target's own tool of that kind has no such setting")
    return found


def without_conflicts(tools: list[AnyTool], adaptation: Adaptation) -> list[AnyTool]:
    """Leave out vendors' own tools that a model does not take beside functions."""
    if adaptation.traits.native_tools or not any(isinstance(tool, Tool) for tool in tools):
        return tools
    kept: list[AnyTool] = []
    for tool in tools:
        if isinstance(tool, NativeTool) and b"codeExecution" not in tool.raw:
            adaptation.ledger.dropped(tool.where, "the model takes search tools or functions, not both")
        else:
            kept.append(tool)
    return kept


def counterpart(tool: NativeTool, dialect: str) -> NativeTool | None:
    """Return the tool of `dialect` that does what `tool` does, or None."""
    there = DIALECTS.get(dialect)
    found = there.vendor_tools.get(_purpose(tool.raw)) if there is not None else None
    return NativeTool(dialect=dialect, raw=found.raw, where=tool.where) if found is not None else None


def settings_of(tool: NativeTool) -> list[str]:
    """Return where a tool says more than which it is, as pointers relative to it."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return [f"/{escape(name)}" for name in members if name != "type"]
    known = _purposes()
    inside = [(name, raw) for name, raw in members.items() if name in known and json.is_object(raw)]
    others = [f"/{escape(name)}" for name in members if name not in known]
    return [*(f"/{name}/{escape(inner)}" for name, raw in inside for inner in json.decode_object(raw)), *others]


def choice_of(tool: NativeTool) -> ToolChoice | None:
    """Return how a vendor is made to use its own tool, or None."""
    dialect = DIALECTS.get(tool.dialect)
    found = dialect.vendor_tools.get(_purpose(tool.raw)) if dialect is not None else None
    return found.choice if found is not None else None


def is_called(tool: NativeTool, name: str) -> bool:
    """Tell whether callers know the tool by `name`."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    return "name" in members and json.peek(members["name"]) == name


def _purpose(raw: bytes) -> str:
    """Return what a vendor's tool is for; "" if no other vendor has its like."""
    members = json.decode_object(raw) if json.is_object(raw) else {}
    kind = json.peek(members["type"]) if "type" in members else ""
    names = [kind, kind.rsplit("_", 1)[0]] if isinstance(kind, str) and kind else list(members)
    known = _purposes()
    return next((known[name] for name in names if name in known), "")


def _purposes() -> dict[str, str]:
    """Return what each vendor's tool is for, by its name."""
    return {
        name: purpose
        for dialect in DIALECTS.values()
        for purpose, tool in dialect.vendor_tools.items()
        for name in tool.names
    }
