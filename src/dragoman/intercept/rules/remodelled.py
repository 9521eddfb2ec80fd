"""Ask another model where the body names one; the path is renamed by who addresses the request."""

from dragoman.intercept.document import Document
from dragoman.intercept.plan import Plan
from dragoman.wire import json

_PREFIX = "models/"
"""Google's clients write it before a model's name, or do not."""


def remodelled(document: Document, plan: Plan) -> bool:
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
