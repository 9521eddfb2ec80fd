"""Stored items by id, and the conversations of `/v1/conversations` with their item lists."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.declarations import find_first_mismatch
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.errors import NOT_JSON
from dragoman.simulator.apis.openai.replies import build_list, build_page
from dragoman.simulator.apis.responses.body import BODY, normalise
from dragoman.simulator.apis.responses.ids import ItemId, encode_conversation_id, encode_item_id
from dragoman.simulator.apis.responses.rules_items import PREFIXES
from dragoman.simulator.apis.responses.words import build_violation
from dragoman.simulator.apis.rule import Json

_MAX_CONVERSATIONS = 1000
_MAX_ITEMS = 20
_TYPES_WITH_STATUS = {"message", "function_call", "function_call_output", "custom_tool_call_output"}
"""Items that the vendor lists with a status even if the client sent none."""


class StoredItem(Struct, frozen=True):
    """An item of an input or output, and the id it is stored under."""

    id: str
    item: Json

    def render(self) -> Json:
        """Return the item as the vendor lists it."""
        kind = _read_type(self.item)
        stated: Json = {"status": "completed"} if kind in _TYPES_WITH_STATUS else {}
        rendered: Json = {**stated, **self.item, "id": self.id, "type": kind}
        if kind == "message" and isinstance(rendered["content"], str):
            is_output = rendered["role"] == "assistant"
            part: Json = {"type": "output_text", "annotations": []} if is_output else {"type": "input_text"}
            rendered["content"] = [{**part, "text": rendered["content"]}]
        return rendered


def assign_item_ids(items: list[Json], seed: str) -> list[StoredItem]:
    """Assign ids to the items that have none; `seed` makes the ids unique."""
    digits = hashlib.sha256(f"kept {seed}".encode()).hexdigest()[:24]
    return [
        StoredItem(str(item.get("id") or _build_item_id(item, digits, number)), item)
        for number, item in enumerate(items)
    ]


def _build_item_id(item: Json, digits: str, number: int) -> str:
    kind = _read_type(item)
    prefix = PREFIXES.get(kind, "item")
    return encode_item_id(ItemId(prefix=prefix, reply=digits, index=number, stored=True, after_thought=False))


def _read_type(item: Json) -> str:
    return str(item.get("type") or "message")


def build_item_page(items: list[StoredItem], query: Mapping[str, str]) -> Json | ApiRejection:
    """Return one page of items, the newest first unless `order` says otherwise."""
    return build_page([(one.id, one.render()) for one in items], query, order="desc")


def normalise_input(given: Any) -> list[Any]:
    """Return the input as items, even if it is only a text."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return cast("list[Any]", given) if isinstance(given, list) else []


def build_not_found(what: str, name: str) -> ApiRejection:
    """Return the rejection of a request for a response or a conversation that is not stored."""
    return ApiRejection(status=404, message=f"{what} with id '{name}' not found.", kind="not_found")


def build_item_not_found(item_id: str) -> ApiRejection:
    """Return the rejection of a reference to an item that is not stored."""
    return ApiRejection(status=404, message=f"Item with id '{item_id}' not found.", where="/input")


class StoredConversation(Struct):
    """A stored conversation."""

    id: str
    created_at: int
    metadata: Json
    items: list[StoredItem]
    add_count: int = 0
    """How often items were added."""

    def add(self, items: list[Json]) -> list[StoredItem]:
        """Add items, and return them as they are stored."""
        self.add_count += 1
        new = assign_item_ids(items, f"{self.id} {self.add_count}")
        self.items += new
        return new

    def render(self) -> Json:
        """Return the conversation in the vendor's format."""
        return {"id": self.id, "object": "conversation", "created_at": self.created_at, "metadata": self.metadata}


class ConversationStore:
    """Conversations by id; the oldest are evicted first."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[str, StoredConversation] = OrderedDict()
        self._created_count = 0

    def get(self, name: str) -> StoredConversation | None:
        """Return a conversation, or None."""
        return self._conversations.get(name)

    def handle_request(
        self, action: str, name: str, item: str, body: bytes, query: Mapping[str, str]
    ) -> Json | ApiRejection:
        """Answer a request about conversations; `name` is a conversation's id, `item` the id of an item in it."""
        if action == "create":
            return self._create(body)
        found = self._conversations.get(name)
        if found is None:
            return build_not_found("Conversation", name)
        match action:
            case "update":
                return _update_metadata(found, body)
            case "delete":
                del self._conversations[name]
                return {"id": name, "object": "conversation.deleted", "deleted": True}
            case "items":
                return build_item_page(found.items, query)
            case "add":
                return _add_items(found, body)
            case "item" | "remove":
                return _read_or_remove_item(found, item, remove=action == "remove")
            case _:
                return found.render()

    def _create(self, body: bytes) -> Json | ApiRejection:
        given = _parse_body(body or b"{}", ("items", "metadata"))
        if isinstance(given, ApiRejection):
            return given
        self._created_count += 1
        name = encode_conversation_id(hashlib.sha256(f"conversation {self._created_count}".encode()).hexdigest()[:24])
        made = StoredConversation(name, int(time.time()), given.get("metadata") or {}, [])
        made.add(given.get("items") or [])
        self._conversations[name] = made
        while len(self._conversations) > _MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)
        return made.render()


def _update_metadata(conversation: StoredConversation, body: bytes) -> Json | ApiRejection:
    given = _parse_body(body, ("metadata",))
    if isinstance(given, ApiRejection):
        return given
    conversation.metadata = given.get("metadata") or {}
    return conversation.render()


def _add_items(conversation: StoredConversation, body: bytes) -> Json | ApiRejection:
    given = _parse_body(body, ("items",))
    if isinstance(given, ApiRejection):
        return given
    if not given.get("items"):
        return ApiRejection(status=400, message=words.describe_missing("/items"), where="/items")
    return build_list([one.render() for one in conversation.add(given["items"])])


def _read_or_remove_item(conversation: StoredConversation, name: str, *, remove: bool) -> Json | ApiRejection:
    one = next((one for one in conversation.items if one.id == name), None)
    if one is None:
        return build_item_not_found(name)
    if not remove:
        return one.render()
    conversation.items.remove(one)
    return conversation.render()


def _parse_body(body: bytes, members: tuple[str, ...]) -> Json | ApiRejection:
    """Parse and validate a body; items are validated like those of a request's input."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return ApiRejection(status=400, message=f"{NOT_JSON})", rule="responses.json")
    given = cast("Json", document)
    unknown = next((name for name in given if name not in members), None)
    if unknown is not None:
        where = f"/{unknown}"
        return ApiRejection(
            status=400, message=words.describe_unknown(where), where=where, rule="responses.unknown-field"
        )
    items: Any = given.get("items") or []
    if isinstance(items, str):
        message = "Invalid type for 'items': expected an array of objects, but got a string instead."
        return ApiRejection(status=400, message=message, where="/items", rule="responses.type")
    request = normalise({"input": items, "metadata": given.get("metadata")})
    if (found := find_first_mismatch(BODY, request)) is not None:
        wrong = build_violation(found, request)
        message, where = wrong.message.replace("'input", "'items"), wrong.where.replace("/input", "/items")
        return ApiRejection(status=wrong.status, message=message, where=where, rule=wrong.rule)
    if len(items) > _MAX_ITEMS:
        message = words.describe_long_array("/items", _MAX_ITEMS, len(items))
        return ApiRejection(status=400, message=message, where="/items", rule="responses.bounds")
    return given
