"""Put the caller's tools beside what the client has left, and what the caller says of which are to be called.

Functions of both stand in one list: Vertex takes no second one. Calls come whole: pieces of arguments are nothing that
could be taken out of a stream.
"""

from dragoman.intercept.document import Document, Fields, items_of, listed
from dragoman.intercept.plan import Plan

_FUNCTIONS = "functionDeclarations"
_CONFIG, _CALLING, _PIECES = "toolConfig", "functionCallingConfig", "streamFunctionCallArguments"


def injected(document: Document, plan: Plan) -> bool:
    """Put tools in."""
    if not plan.tools.objects:
        return False
    raw = document.get("tools")
    theirs = items_of(raw) if raw is not None else []
    document.set("tools", listed(_joined(theirs, plan.tools.objects)))
    _choose(document, plan)
    return True


def _joined(theirs: list[bytes], ours: tuple[bytes, ...]) -> list[bytes]:
    at = next((at for at, tool in enumerate(theirs) if Fields(tool).get(_FUNCTIONS) is not None), None)
    joined = list(theirs)
    for tool in ours:
        functions = Fields(tool).get(_FUNCTIONS)
        if at is None or functions is None:
            at = len(joined) if at is None and functions is not None else at
            joined.append(tool)
            continue
        home = Fields(joined[at])
        home.set(_FUNCTIONS, listed([*items_of(home.get(_FUNCTIONS) or b"[]"), *items_of(functions)]))
        joined[at] = home.raw
    return joined


def _choose(document: Document, plan: Plan) -> None:
    raw = document.get(_CONFIG)
    config = Fields(raw if raw is not None else b"{}")
    calling = plan.tools.config or config.get(_CALLING)
    if calling is None:
        return
    chosen = Fields(calling)
    chosen.remove(_PIECES)
    config.set(_CALLING, chosen.raw)
    document.set(_CONFIG, config.raw)
