"""Lists of items that the vendor keeps: every item under an id, told page by page."""

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from dragoman.simulator.api import Refusal
from dragoman.simulator.apis.openai import paging
from dragoman.simulator.apis.responses.ids import Issued, issue
from dragoman.simulator.apis.responses.rules_items import PREFIXES
from dragoman.simulator.rule import Json

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
    prefix = PREFIXES.get("message:input" if kind == "message" else kind, "item")
    return issue(Issued(prefix=prefix, reply=digits, index=number, stored=True, after_thought=False))


def _kind(item: Json) -> str:
    return str(item.get("type") or "message")


def page(items: list[Kept], query: Mapping[str, str]) -> Json | Refusal:
    """Return one page, the newest first unless `order` says otherwise."""
    return paging.page([(one.id, one.told()) for one in items], query, order="desc")
