"""Rules about the request: remove the client's tools, add the caller's, change the instructions and the model."""

from collections.abc import Collection

from dragoman.intercept.document import GeminiDocument, ObjectFields, items_of, join_items
from dragoman.intercept.plan import RewritePlan
from dragoman.wire import json

_FUNCTIONS = "functionDeclarations"
_NAME = "systemInstruction"
_PREFIX = "models/"
"""An optional prefix of model names in Google's API."""


def strip_tools(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Remove the client's tools, as far as `strip` says."""
    raw = document.get("tools")
    if not plan.tools.objects:
        return False
    if plan.strip == "all":
        unchosen = _remove_tool_choice(document)
        document.remove("tools")
        return raw is not None or unchosen
    if raw is None:
        return False
    before = items_of(raw)
    named = frozenset(() if plan.strip == "none" else plan.strip)
    kept = [tool for item in before if (tool := _drop_named(item, named | plan.tools.names, named)) is not None]
    if kept == before:
        return False
    document.set("tools", join_items(kept))
    return True


def _drop_named(tool: bytes, functions: Collection[str], natives: Collection[str]) -> bytes | None:
    """Return a tool object without the named functions and native tools; None if nothing is left."""
    fields = ObjectFields(tool)
    raw = fields.get(_FUNCTIONS)
    if raw is not None:
        before = items_of(raw)
        kept = [item for item in before if json.decode(item).get("name") not in functions]
        if not kept:
            fields.remove(_FUNCTIONS)
        elif kept != before:
            fields.set(_FUNCTIONS, join_items(kept))
    for name in natives:
        fields.remove(name)
    return fields.raw if fields.names else None


def _remove_tool_choice(document: GeminiDocument) -> bool:
    raw = document.get("toolConfig")
    if raw is None:
        return False
    config = ObjectFields(raw)
    if config.get("functionCallingConfig") is None:
        return False
    config.remove("functionCallingConfig")
    document.set("toolConfig", config.raw)
    return True


_CONFIG, _CALLING, _PIECES = "toolConfig", "functionCallingConfig", "streamFunctionCallArguments"


def inject_tools(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Add the caller's tools."""
    if not plan.tools.objects:
        return False
    raw = document.get("tools")
    client_tools = items_of(raw) if raw is not None else []
    document.set("tools", join_items(_merge_tools(client_tools, plan.tools.objects)))
    _set_tool_choice(document, plan)
    return True


def _merge_tools(client_tools: list[bytes], caller_tools: tuple[bytes, ...]) -> list[bytes]:
    at = next((at for at, tool in enumerate(client_tools) if ObjectFields(tool).get(_FUNCTIONS) is not None), None)
    joined = list(client_tools)
    for tool in caller_tools:
        functions = ObjectFields(tool).get(_FUNCTIONS)
        if at is None or functions is None:
            at = len(joined) if at is None and functions is not None else at
            joined.append(tool)
            continue
        merged = ObjectFields(joined[at])
        merged.set(_FUNCTIONS, join_items([*items_of(merged.get(_FUNCTIONS) or b"[]"), *items_of(functions)]))
        joined[at] = merged.raw
    return joined


def _set_tool_choice(document: GeminiDocument, plan: RewritePlan) -> None:
    raw = document.get(_CONFIG)
    config = ObjectFields(raw if raw is not None else b"{}")
    calling = plan.tools.config or config.get(_CALLING)
    if calling is None:
        return
    chosen = ObjectFields(calling)
    chosen.remove(_PIECES)
    config.set(_CALLING, chosen.raw)
    document.set(_CONFIG, config.raw)


def set_instructions(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Replace the system instruction, or append to it."""
    if not plan.system:
        return False
    part = json.encode({"text": plan.system})
    raw = document.get(_NAME)
    if raw is None or plan.system_mode == "replace":
        document.set(_NAME, _build_content([part]))
    elif json.first_byte(raw) == b'"':
        document.set(_NAME, _build_content([json.encode({"text": json.decode(raw)}), part]))
    else:
        content = ObjectFields(raw)
        content.set("parts", join_items([*items_of(content.get("parts") or b"[]"), part]))
        document.set(_NAME, content.raw)
    return True


def _build_content(parts: list[bytes]) -> bytes:
    return b'{"parts":' + join_items(parts) + b"}"


def set_model(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Change the model in the body."""
    if not plan.model:
        return False
    changed = False
    for fields in (document, document.envelope):
        raw = fields.get("model") if fields is not None else None
        if fields is None or raw is None:
            continue
        named = json.decode(raw)
        prefix = _PREFIX if isinstance(named, str) and named.startswith(_PREFIX) else ""
        if named != prefix + plan.model:
            fields.set("model", json.encode(prefix + plan.model))
            changed = True
    return changed
