"""Completions that are kept for who asks for that: `/v1/chat/completions/{id}`, told, listed, marked and deleted."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.http.message import JSON, Request
from dragoman.simulator.api import Refusal, Told
from dragoman.simulator.apis.openai.paging import page
from dragoman.simulator.routes import Route
from dragoman.simulator.rule import Json

_MOST = 1000
_TOLD = ("role", "name", "refusal", "tool_calls", "tool_call_id")


class _Asked(Struct):
    messages: list[Json]
    store: bool | None = None
    metadata: dict[str, str] | None = None


class _Marks(Struct, forbid_unknown_fields=True):
    metadata: dict[str, str] | None


class _Entry(Struct):
    completion: Json
    messages: list[Json]
    metadata: dict[str, str]


class Completions:
    """Completions by id; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def joined(self, body: bytes, *, recorded: bool = False) -> bytes | Refusal:  # noqa: ARG002  nothing is let through
        """Return a request as it is: every one holds its whole conversation."""
        return body

    def keep(self, body: bytes, reply: bytes) -> bytes:
        """Remember a reply if its caller wants that; it is told as it is."""
        asked = msgspec.json.decode(body, type=_Asked)
        if asked.store:
            completion: Json = msgspec.json.decode(reply)
            self._entries[completion["id"]] = _Entry(completion, asked.messages, asked.metadata or {})
            while len(self._entries) > _MOST:
                self._entries.popitem(last=False)
        return reply

    def watch(self, body: bytes, frames: Iterable[bytes], whole: Callable[[], bytes]) -> Iterator[bytes]:
        """Pass frames on, and remember what they tell before the last one is out."""
        last = b""
        for frame in frames:
            if last:
                yield last
            last = frame
        self.keep(body, whole())
        yield last

    def told(self, request: Request, route: Route) -> Told | Refusal:
        """Answer a request about what is kept."""
        answer = self._listed(request.query) if route.action == "list" else self._looked_up(request, route)
        if isinstance(answer, Refusal):
            return structs.replace(answer, rule="stored")
        return Told(200, JSON, msgspec.json.encode(answer))

    def _listed(self, query: Mapping[str, str]) -> Json | Refusal:
        marks = {name[9:-1]: value for name, value in query.items() if name.startswith("metadata[")}
        rows = [
            (name, entry.completion)
            for name, entry in self._entries.items()
            if query.get("model", entry.completion["model"]) == entry.completion["model"]
            and marks.items() <= entry.metadata.items()
        ]
        return page(rows, query, order="asc")

    def _looked_up(self, request: Request, route: Route) -> Json | Refusal:
        entry = self._entries.get(route.id)
        if entry is None:
            message = f"Chat completion with id '{route.id}' not found."
            return Refusal(status=404, message=message, kind="not_found")
        match route.action:
            case "delete":
                del self._entries[route.id]
                return {"id": route.id, "object": "chat.completion.deleted", "deleted": True}
            case "update":
                return _marked(entry, request.body)
            case "messages":
                rows = [_message(message, f"{route.id}-{number}") for number, message in enumerate(entry.messages)]
                return page([(str(row["id"]), row) for row in rows], request.query, order="asc")
            case _:
                return entry.completion


def _marked(entry: _Entry, body: bytes) -> Json | Refusal:
    try:
        entry.metadata = msgspec.json.decode(body, type=_Marks).metadata or {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = "Invalid type for 'metadata': expected a metadata object."
        return Refusal(status=400, message=message, where="/metadata")
    return entry.completion


def _message(message: Json, name: str) -> Json:
    """Return a message as it is listed: a text is its content, parts stand beside it."""
    content: Any = message.get("content")
    told: Json = {"id": name, **{member: message[member] for member in _TOLD if member in message}}
    if isinstance(content, list):
        shown = [part for part in cast("list[Json]", content) if part.get("type") in {"text", "image_url"}]
        return {**told, "content": None, "content_parts": shown}
    return {**told, "content": content, "content_parts": None}
