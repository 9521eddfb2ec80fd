"""What the Responses API remembers: replies by their id, each with the conversation that led to it, and their items."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.simulator.api import Refusal
from dragoman.simulator.apis.responses.errors import item_not_found, response_not_found
from dragoman.simulator.apis.responses.read import joined, needed, referred

_MOST = 1000
_TERMINAL = (b"response.completed", b"response.incomplete")


class _Asked(Struct):
    previous_response_id: str | None = None
    input: Any = None
    store: bool | None = None


class _Entry(Struct, frozen=True):
    reply: bytes
    items: list[Any]
    """The whole conversation before the reply, and what it said."""
    asked: list[Any]


class Store:
    """Replies by id; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._items: dict[str, Any] = {}

    def joined(self, body: bytes) -> bytes | Refusal:
        """Return a request with the conversation it goes on from and the items it refers to, or why there are none."""
        previous, references = needed(body), referred(body)
        if not previous and not references:
            return body
        entry = self._entries.get(previous)
        if previous and entry is None:
            return response_not_found(previous)
        unknown = next((name for name in references if name not in self._items), None)
        if unknown is not None:
            return item_not_found(unknown)
        before = entry.items if entry is not None else []
        known = {item.get("id") for item in before}
        return joined(body, [*before, *(self._items[name] for name in references if name not in known)])

    def keep(self, body: bytes, reply: bytes) -> None:
        """Remember a reply, unless its caller does not want that."""
        asked = msgspec.json.decode(body, type=_Asked)
        told = msgspec.json.decode(reply)
        if asked.store is False:
            return
        before = self._entries.get(asked.previous_response_id or "")
        items = [*(before.items if before is not None else ()), *_items(asked.input), *told["output"]]
        self._entries[told["id"]] = _Entry(reply, items, _items(asked.input))
        self._items.update({item["id"]: item for item in told["output"]})
        while len(self._entries) > _MOST:
            _, oldest = self._entries.popitem(last=False)
            self._forget(oldest)

    def watch(self, body: bytes, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Pass frames on, and remember the reply that the last one holds."""
        for frame in frames:
            if frame.startswith(b"event: ") and frame[7 : frame.find(b"\n")].strip() in _TERMINAL:
                data = frame[frame.find(b"data: ") + 6 :]
                self.keep(body, msgspec.json.encode(msgspec.json.decode(data)["response"]))
            yield frame

    def asked(self, name: str, action: str) -> bytes | None:
        """Return what is told of a reply: itself, what led to it, or that it is gone."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        match action:
            case "delete":
                self._forget(self._entries.pop(name))
                return msgspec.json.encode({"id": name, "object": "response", "deleted": True})
            case "input_items":
                return msgspec.json.encode(_listed(name, entry.asked))
            case _:
                return entry.reply

    def _forget(self, entry: _Entry) -> None:
        for item in msgspec.json.decode(entry.reply)["output"]:
            self._items.pop(item["id"], None)


def _items(given: Any) -> list[Any]:
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        return [{"type": "message", "role": "user", "content": content}]
    return list(given) if isinstance(given, list) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _listed(name: str, items: list[Any]) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        kind = item.get("type", "message")
        prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs"}.get(kind, "item")
        data.append({"id": f"{prefix}_{name.removeprefix('resp_')}{number}", "type": kind, **item})
    ids = [item["id"] for item in data]
    return {
        "object": "list",
        "data": data,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": False,
    }
