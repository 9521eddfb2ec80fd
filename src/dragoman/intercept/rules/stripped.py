"""Take the client's own tools out while a caller has brought others: all, none, or those that are named.

A tool of the client's that is called like one of the caller's goes too: a model could not tell them apart. So does what
the client says of which tools are to be called, where all of its own are gone.
"""

from collections.abc import Collection

from dragoman.intercept.document import Document, Fields, items_of, listed
from dragoman.intercept.plan import Plan
from dragoman.wire import json

_FUNCTIONS = "functionDeclarations"


def stripped(document: Document, plan: Plan) -> bool:
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
    fields = Fields(tool)
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


def _unchosen(document: Document) -> bool:
    raw = document.get("toolConfig")
    if raw is None:
        return False
    config = Fields(raw)
    if config.get("functionCallingConfig") is None:
        return False
    config.remove("functionCallingConfig")
    document.set("toolConfig", config.raw)
    return True
