"""Turns of a history, opened as far as the rules look into them."""

from typing import Any

from msgspec import Struct

from dragoman.intercept.document import Document, Fields, items_of, listed
from dragoman.wire import json

MODEL = "model"
_CALL, _RESULT = ("functionCall", "function_call"), ("functionResponse", "function_response")


class Content(Struct, frozen=True, kw_only=True):
    """One turn: its role and its parts, each as it stands there."""

    raw: bytes
    role: str
    parts: tuple[bytes, ...]

    @property
    def is_said(self) -> bool:
        """Whether the model said it."""
        return self.role == MODEL

    def having(self, parts: list[bytes]) -> "Content":
        """Return the turn with other parts."""
        fields = Fields(self.raw)
        fields.set("parts", listed(parts))
        return Content(raw=fields.raw, role=self.role, parts=tuple(parts))


def contents_of(document: Document) -> list[Content]:
    """Return the history of a request."""
    raw = document.get("contents")
    return [read(item) for item in items_of(raw)] if raw is not None else []


def read(raw: bytes) -> Content:
    """Open one turn."""
    fields = Fields(raw)
    role, parts = fields.get("role"), fields.get("parts")
    return Content(
        raw=raw,
        role=json.decode(role) if role is not None else "user",
        parts=tuple(items_of(parts)) if parts is not None else (),
    )


def turn(role: str, parts: list[bytes]) -> Content:
    """Make a turn."""
    raw = b'{"role":' + json.encode(role) + b',"parts":' + listed(parts) + b"}"
    return Content(raw=raw, role=role, parts=tuple(parts))


def put(document: Document, contents: list[Content]) -> None:
    """Set the history of a request."""
    document.set("contents", listed([content.raw for content in contents]))


def text_of(part: bytes) -> str | None:
    """Return the text of a part that the model said or was told; None for any other, thoughts among them."""
    if b'"text"' not in part:
        return None
    said = json.decode(part)
    text = said.get("text")
    return text if isinstance(text, str) and not said.get("thought") else None


def call_of(part: bytes) -> dict[str, Any] | None:
    """Return the call that a part is."""
    return _inner(part, _CALL)


def result_of(part: bytes) -> dict[str, Any] | None:
    """Return the result that a part is."""
    return _inner(part, _RESULT)


def _inner(part: bytes, names: tuple[str, str]) -> dict[str, Any] | None:
    if not any(name.encode() in part for name in names):
        return None
    said = json.decode(part)
    return next((said[name] for name in names if isinstance(said.get(name), dict)), None)
