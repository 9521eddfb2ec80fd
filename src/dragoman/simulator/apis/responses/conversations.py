"""Conversations the vendor keeps: `/v1/conversations`, made, asked for, added to and deleted."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.api import Refusal
from dragoman.simulator.apis.openai.paging import whole
from dragoman.simulator.apis.responses.errors import conversation_not_found, item_not_found
from dragoman.simulator.apis.responses.ids import conversation_id
from dragoman.simulator.apis.responses.listing import Kept, kept, page
from dragoman.simulator.apis.responses.shape import read_body
from dragoman.simulator.apis.responses.words import NOT_JSON
from dragoman.simulator.rule import Json, Violation

_MOST = 1000
_MOST_ITEMS = 20


class Conversation(Struct):
    """A conversation."""

    id: str
    created_at: int
    metadata: Json
    items: list[Kept]
    added: int = 0
    """How often items were added."""

    def add(self, items: list[Json]) -> list[Kept]:
        """Add items, and return them as they are kept."""
        self.added += 1
        new = kept(items, f"{self.id} {self.added}")
        self.items += new
        return new

    def told(self) -> Json:
        """Return the conversation as the vendor tells it."""
        return {"id": self.id, "object": "conversation", "created_at": self.created_at, "metadata": self.metadata}


class Conversations:
    """Conversations by id; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._made = 0

    def get(self, name: str) -> Conversation | None:
        """Return a conversation."""
        return self._known.get(name)

    def answered(self, action: str, name: str, item: str, body: bytes, query: Mapping[str, str]) -> Json | Refusal:
        """Answer a request about conversations; `name` is a conversation's id, `item` one of an item in it."""
        if action == "create":
            return self._create(body)
        found = self._known.get(name)
        if found is None:
            return conversation_not_found(name)
        match action:
            case "update":
                return _update(found, body)
            case "delete":
                del self._known[name]
                return {"id": name, "object": "conversation.deleted", "deleted": True}
            case "items":
                return page(found.items, query)
            case "add":
                return _add(found, body)
            case "item" | "remove":
                return _item(found, item, removed=action == "remove")
            case _:
                return found.told()

    def _create(self, body: bytes) -> Json | Refusal:
        given = _read(body or b"{}", ("items", "metadata"))
        if isinstance(given, Refusal):
            return given
        self._made += 1
        name = conversation_id(hashlib.sha256(f"conversation {self._made}".encode()).hexdigest()[:24])
        made = Conversation(name, int(time.time()), given.get("metadata") or {}, [])
        made.add(given.get("items") or [])
        self._known[name] = made
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return made.told()


def _update(found: Conversation, body: bytes) -> Json | Refusal:
    given = _read(body, ("metadata",))
    if isinstance(given, Refusal):
        return given
    found.metadata = given.get("metadata") or {}
    return found.told()


def _add(found: Conversation, body: bytes) -> Json | Refusal:
    given = _read(body, ("items",))
    if isinstance(given, Refusal):
        return given
    if not given.get("items"):
        message = "Missing required parameter: 'items'."
        return Refusal(status=400, message=message, kind="missing_required_parameter", where="/items")
    return whole([one.told() for one in found.add(given["items"])])


def _item(found: Conversation, name: str, *, removed: bool) -> Json | Refusal:
    one = next((one for one in found.items if one.id == name), None)
    if one is None:
        return item_not_found(name)
    if not removed:
        return one.told()
    found.items.remove(one)
    return found.told()


def _read(body: bytes, members: tuple[str, ...]) -> Json | Refusal:
    """Hold a body to its members; items are held to the shape they have in a request."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return Refusal(status=400, message=NOT_JSON, rule="responses.json")
    given = cast("Json", document)
    unknown = next((name for name in given if name not in members), None)
    if unknown is not None:
        message = f"Unknown parameter: '{unknown}'."
        return Refusal(status=400, message=message, where=f"/{unknown}", rule="responses.unknown-field")
    read = read_body(msgspec.json.encode({"input": given.get("items"), "metadata": given.get("metadata")}))
    if isinstance(read, Violation):
        message, where = read.message.replace("'input", "'items"), read.where.replace("/input", "/items")
        return Refusal(status=read.status, message=message, where=where, rule=read.rule)
    items: Any = given.get("items") or []
    if isinstance(items, str):
        message = "Invalid type for 'items': expected an array of objects, but got a string instead."
        return Refusal(status=400, message=message, where="/items", rule="responses.type")
    if len(items) > _MOST_ITEMS:
        message = (
            f"Invalid 'items': array too long. Expected an array with maximum length {_MOST_ITEMS}, but got an array "
            f"with length {len(items)} instead."
        )
        return Refusal(status=400, message=message, where="/items", rule="responses.bounds")
    return given
