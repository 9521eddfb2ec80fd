"""Rules about the request: remove the client's tools, add the caller's, change the instructions and the model."""

from collections.abc import Collection

from dragoman.intercept.document import GeminiDocument, ObjectFields, items_of, listed
from dragoman.intercept.plan import Plan
from dragoman.wire import json

_FUNCTIONS = "functionDeclarations"
_NAME = "systemInstruction"
_PREFIX = "models/"
"""Google's clients write it before a model's name, or do not."""


def stripped(document: GeminiDocument, plan: Plan) -> bool:
    """Take tools out."""
    raw = document.get("tools")
    if not plan.tools.objects:
        return False
    if plan.strip == "all":
        unchosen = _unchosen(document)
        document.remove("tools")
        return raw is not None or unchosen
    if raw is None:
        return False
    before = items_of(raw)
    named = frozenset(() if plan.strip == "none" else plan.strip)
    kept = [tool for item in before if (tool := _without(item, named | plan.tools.names, named)) is not None]
    if kept == before:
        return False
    document.set("tools", listed(kept))
    return True


def _without(tool: bytes, functions: Collection[str], natives: Collection[str]) -> bytes | None:
    """Return a tool object without what is named; None if nothing is left of it."""
    fields = ObjectFields(tool)
    raw = fields.get(_FUNCTIONS)
    if raw is not None:
        before = items_of(raw)
        kept = [item for item in before if json.decode(item).get("name") not in functions]
        if not kept:
            fields.remove(_FUNCTIONS)
        elif kept != before:
            fields.set(_FUNCTIONS, listed(kept))
    for name in natives:
        fields.remove(name)
    return fields.raw if fields.names else None


def _unchosen(document: GeminiDocument) -> bool:
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


def injected(document: GeminiDocument, plan: Plan) -> bool:
    """Put tools in."""
    if not plan.tools.objects:
        return False
    raw = document.get("tools")
    theirs = items_of(raw) if raw is not None else []
    document.set("tools", listed(_joined(theirs, plan.tools.objects)))
    _choose(document, plan)
    return True


def _joined(theirs: list[bytes], ours: tuple[bytes, ...]) -> list[bytes]:
    at = next((at for at, tool in enumerate(theirs) if ObjectFields(tool).get(_FUNCTIONS) is not None), None)
    joined = list(theirs)
    for tool in ours:
        functions = ObjectFields(tool).get(_FUNCTIONS)
        if at is None or functions is None:
            at = len(joined) if at is None and functions is not None else at
            joined.append(tool)
            continue
        home = ObjectFields(joined[at])
        home.set(_FUNCTIONS, listed([*items_of(home.get(_FUNCTIONS) or b"[]"), *items_of(functions)]))
        joined[at] = home.raw
    return joined


def _choose(document: GeminiDocument, plan: Plan) -> None:
    raw = document.get(_CONFIG)
    config = ObjectFields(raw if raw is not None else b"{}")
    calling = plan.tools.config or config.get(_CALLING)
    if calling is None:
        return
    chosen = ObjectFields(calling)
    chosen.remove(_PIECES)
    config.set(_CALLING, chosen.raw)
    document.set(_CONFIG, config.raw)


def instructed(document: GeminiDocument, plan: Plan) -> bool:
    """Set or add to the instructions."""
    if not plan.system:
        return False
    part = json.encode({"text": plan.system})
    raw = document.get(_NAME)
    if raw is None or plan.system_mode == "replace":
        document.set(_NAME, _content([part]))
    elif json.first_byte(raw) == b'"':
        document.set(_NAME, _content([json.encode({"text": json.decode(raw)}), part]))
    else:
        content = ObjectFields(raw)
        content.set("parts", listed([*items_of(content.get("parts") or b"[]"), part]))
        document.set(_NAME, content.raw)
    return True


def _content(parts: list[bytes]) -> bytes:
    return b'{"parts":' + listed(parts) + b"}"


def remodelled(document: GeminiDocument, plan: Plan) -> bool:
    """Name another model."""
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
