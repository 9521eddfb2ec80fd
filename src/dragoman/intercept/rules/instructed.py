"""Tell the model something beside the client's own instructions, or instead of them."""

from dragoman.intercept.document import Document, Fields, items_of, listed
from dragoman.intercept.plan import Plan
from dragoman.wire import json

_NAME = "systemInstruction"


def instructed(document: Document, plan: Plan) -> bool:
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
        content = Fields(raw)
        content.set("parts", listed([*items_of(content.get("parts") or b"[]"), part]))
        document.set(_NAME, content.raw)
    return True


def _content(parts: list[bytes]) -> bytes:
    return b'{"parts":' + listed(parts) + b"}"
