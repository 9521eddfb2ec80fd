"""The model that a request names which is passed on untouched, and another name put in its place.

It stands in a JSON object, or in a form with a file. Whoever decides by it and whoever reads it later must see the
same one, so a body in which two readers could see two is refused.
"""

import re

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.gateway.client_request import malformed_body
from dragoman.gateway.distinct import require_distinct
from dragoman.wire import json
from dragoman.wire.splice import spliced

_BOUNDARY = re.compile(r"boundary=\"?([^\";,]+)\"?", re.IGNORECASE)
_NAME = re.compile(rb"content-disposition:[^\r\n]*?;\s*name=\"?model\"?\s*(?:;|\r|$)", re.IGNORECASE)
_BREAK = b"\r\n"
_REQUESTS = "requests"


class Form(Struct, frozen=True):
    """A body that may name a model."""

    body: bytes
    model: str = ""
    span: tuple[int, int] | None = None
    """Where the name stands in a form with files; None in JSON."""

    def renamed(self, model: str) -> bytes:
        """Return the body with another model named in it, and nothing else changed."""
        if not self.model or model == self.model:
            return self.body
        if self.span is not None:
            start, end = self.span
            return self.body[:start] + model.encode() + self.body[end:]
        return spliced(self.body, "model", json.encode(model))


def form_of(body: bytes, kind: str) -> Form:
    """Read what a body names; `kind` is its content type."""
    said = kind.partition(";")[0].strip().lower()
    if said == "multipart/form-data":
        return _with_files(body, kind)
    if said == "application/json" or said.endswith("+json"):
        return _json(body)
    return Form(body)


def renamed_within(body: bytes, before: str, after: str) -> bytes:
    """Rename the model that a request of Google's names once more, or that each of several in it does."""
    if not body:
        return body
    try:
        members = json.decode_object(body)
        raw = members.get(_REQUESTS)
        if raw is not None:
            items = [_renamed_one(bytes(item), before, after) for item in json.decode_array(raw)]
            body = spliced(body, _REQUESTS, b"[" + b",".join(items) + b"]")
        return _renamed_one(body, before, after) if "model" in members else body
    except json.Malformed as error:
        raise malformed_body(error) from None


def _renamed_one(body: bytes, before: str, after: str) -> bytes:
    members = json.decode_object(body)
    named = json.peek(members["model"]) if "model" in members else None
    return spliced(body, "model", json.encode(f"models/{after}")) if named in {before, f"models/{before}"} else body


def _json(body: bytes) -> Form:
    try:
        members = json.decode_object(body)
    except json.Malformed:
        return Form(body)  # Google's clients call the pieces of a file JSON, too
    named = [name for name in members if name.lower() == "model"]
    if not named:
        return Form(body)
    model = json.peek(members[named[0]])
    if named != ["model"] or not isinstance(model, str):
        raise Problem("invalid_request", "the model must be named once, as text", where="/model")
    require_distinct(body)
    return Form(body, model)


def _with_files(body: bytes, kind: str) -> Form:
    found = _BOUNDARY.search(kind)
    if found is None:
        raise Problem("invalid_request", "the form names no boundary")
    mark = b"--" + found[1].strip().encode("latin-1", "replace")
    spans = [span for span in _parts(body, mark) if _NAME.search(body[span[0] : span[1]])]
    if not spans:
        return Form(body)
    if len(spans) > 1:
        raise Problem("invalid_request", "the model must be named once", where="/model")
    _, start, end = spans[0]
    return Form(body, body[start:end].decode("utf-8", "replace"), (start, end))


def _parts(body: bytes, mark: bytes) -> list[tuple[int, int, int]]:
    """Return where the head of each part begins, where its content begins and where it ends."""
    parts: list[tuple[int, int, int]] = []
    at = 0 if body.startswith(mark) else body.find(_BREAK + mark) + len(_BREAK)
    while at >= len(_BREAK) or body.startswith(mark, at):
        head = at + len(mark)
        following = body.find(_BREAK + mark, head)
        content = body.find(_BREAK * 2, head, following)
        if following < 0 or content < 0:
            break
        parts.append((head, content + 2 * len(_BREAK), following))
        at = following + len(_BREAK)
    return parts
