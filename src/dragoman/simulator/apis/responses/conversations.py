"""What the vendor keeps of conversations: items under their ids, and `/v1/conversations` with its lists of them."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.api import Refusal
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.errors import NOT_JSON
from dragoman.simulator.apis.openai.replies import page, whole
from dragoman.simulator.apis.responses.body import BODY, normalise
from dragoman.simulator.apis.responses.ids import Issued, conversation_id, issue
from dragoman.simulator.apis.responses.rules_items import PREFIXES
from dragoman.simulator.apis.responses.words import violation_of
from dragoman.simulator.members import first_mismatch
from dragoman.simulator.rule import Json

_MOST = 1000
_MOST_ITEMS = 20
_STATED = {"message", "function_call", "function_call_output", "custom_tool_call_output"}
"""Items whose status the vendor tells also where the client did not."""


class Kept(Struct, frozen=True):
    """An item as it was given or said, and the id it is kept under."""

    id: str
    item: Json

    def told(self) -> Json:
        """Return the item as the vendor lists it."""
        kind = _kind(self.item)
        stated: Json = {"status": "completed"} if kind in _STATED else {}
        told: Json = {**stated, **self.item, "id": self.id, "type": kind}
        if kind == "message" and isinstance(told["content"], str):
            is_said = told["role"] == "assistant"
            part: Json = {"type": "output_text", "annotations": []} if is_said else {"type": "input_text"}
            told["content"] = [{**part, "text": told["content"]}]
        return told


def kept(items: list[Json], occasion: str) -> list[Kept]:
    """Give ids to the items that have none; `occasion` makes them the only ones of their kind."""
    digits = hashlib.sha256(f"kept {occasion}".encode()).hexdigest()[:24]
    return [Kept(str(item.get("id") or _id(item, digits, number)), item) for number, item in enumerate(items)]


def _id(item: Json, digits: str, number: int) -> str:
    kind = _kind(item)
    prefix = PREFIXES.get(kind, "item")
    return issue(Issued(prefix=prefix, reply=digits, index=number, stored=True, after_thought=False))


def _kind(item: Json) -> str:
    return str(item.get("type") or "message")


def item_page(items: list[Kept], query: Mapping[str, str]) -> Json | Refusal:
    """Return one page of items, the newest first unless `order` says otherwise."""
    return page([(one.id, one.told()) for one in items], query, order="desc")


def input_items(given: Any) -> list[Any]:
    """Return the input as items, also where it is only a text."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return cast("list[Any]", given) if isinstance(given, list) else []


def not_found(what: str, name: str) -> Refusal:
    """Refuse to tell of a response or a conversation that is not kept."""
    return Refusal(status=404, message=f"{what} with id '{name}' not found.", kind="not_found")


def item_not_found(item_id: str) -> Refusal:
    """Refuse to look up an item that is not kept."""
    return Refusal(status=404, message=f"Item with id '{item_id}' not found.", where="/input")


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
            return not_found("Conversation", name)
        match action:
            case "update":
                return _update(found, body)
            case "delete":
                del self._known[name]
                return {"id": name, "object": "conversation.deleted", "deleted": True}
            case "items":
                return item_page(found.items, query)
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
        return Refusal(status=400, message=words.missing("/items"), where="/items")
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
    """Hold a body to its members; items are held to what is declared of them in a request."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return Refusal(status=400, message=f"{NOT_JSON})", rule="responses.json")
    given = cast("Json", document)
    unknown = next((name for name in given if name not in members), None)
    if unknown is not None:
        where = f"/{unknown}"
        return Refusal(status=400, message=words.unknown(where), where=where, rule="responses.unknown-field")
    items: Any = given.get("items") or []
    if isinstance(items, str):
        message = "Invalid type for 'items': expected an array of objects, but got a string instead."
        return Refusal(status=400, message=message, where="/items", rule="responses.type")
    request = normalise({"input": items, "metadata": given.get("metadata")})
    if (found := first_mismatch(BODY, request)) is not None:
        wrong = violation_of(found, request)
        message, where = wrong.message.replace("'input", "'items"), wrong.where.replace("/input", "/items")
        return Refusal(status=wrong.status, message=message, where=where, rule=wrong.rule)
    if len(items) > _MOST_ITEMS:
        message = words.long_array("/items", _MOST_ITEMS, len(items))
        return Refusal(status=400, message=message, where="/items", rule="responses.bounds")
    return given
