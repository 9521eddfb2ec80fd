"""What the Responses API remembers: replies by their id, each with the conversation that led to it, and their items.

What runs in the background is told as queued first, at the first look as in progress, and then as done: no clock is
needed, and every step can be seen.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.http.message import JSON, Request
from dragoman.simulator.api import Refusal, Told
from dragoman.simulator.apis.responses.conversations import (
    Conversations,
    Kept,
    input_items,
    item_not_found,
    item_page,
    kept,
    not_found,
)
from dragoman.simulator.apis.responses.write import unfinished
from dragoman.simulator.routes import Route
from dragoman.simulator.rule import Json

_MOST = 1000
_TERMINAL = (b"response.completed", b"response.incomplete", b"response.failed")
_LOOKS = 2
"""At which look a reply that is made in the background is done."""
_SSE = {"content-type": "text/event-stream", "cache-control": "no-cache"}


class _Entry(Struct):
    reply: Json
    items: list[Json]
    """The whole conversation before the reply, and what it said."""
    asked: list[Kept]
    frames: tuple[bytes, ...] = ()
    """The events of a reply that is made in the background and streamed."""
    looks: int = _LOOKS

    def told(self) -> Json:
        """Return the reply as far as it has come."""
        if self.looks >= _LOOKS:
            return self.reply
        return unfinished(self.reply, "in_progress" if self.looks else "queued")


class Store:
    """Replies by id; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._items: dict[str, Json] = {}
        self._conversations = Conversations()

    def joined(self, body: bytes, *, recorded: bool = False) -> bytes | Refusal:
        """Return a request with what it goes on from and the items it refers to, or why there are none.

        Of a recording only the vendor knows what went before: it is let through as it is.
        """
        document = _document(body)
        previous, conversation = previous_id(document), conversation_id(document)
        references = referenced_ids(document)
        entry, talk = self._entries.get(previous), self._conversations.get(conversation)
        # Two states, or ids that are none, are for the rules to refuse.
        if (previous and conversation) or not (previous or conversation or references):
            return body
        known = self._items if talk is None else {**self._items, **{one.id: one.item for one in talk.items}}
        unknown = next((name for name in references if name not in known), None)
        lost = (
            (previous.startswith("resp") and entry is None, previous_not_found(previous)),
            (conversation.startswith("conv") and talk is None, not_found("Conversation", conversation)),
            (unknown is not None, item_not_found(unknown or "")),
        )
        for is_lost, refusal in lost:
            if is_lost:
                return body if recorded else refusal
        return msgspec.json.encode(joined(document, self._before(previous, conversation), known))

    def keep(self, body: bytes, reply: bytes) -> bytes:
        """Remember a reply, unless its caller does not want that, and return what the caller is told now."""
        told = self._kept(_document(body), msgspec.json.decode(reply))
        return reply if told is None or told.looks >= _LOOKS else msgspec.json.encode(told.told())

    def watch(self, body: bytes, frames: Iterable[bytes], _whole: Callable[[], bytes]) -> Iterator[bytes]:
        """Pass frames on, and remember the reply that the last one holds; one in the background needs no listener."""
        document = _document(body)
        if document.get("background"):
            frames = tuple(frames)
            entry = self._kept(document, _response_in(frames[-1]))
            if entry is not None:
                entry.frames, entry.looks = frames, _LOOKS
            yield from frames
            return
        for frame in frames:
            if frame.startswith(b"event: ") and frame[7 : frame.find(b"\n")].strip() in _TERMINAL:
                self._kept(document, _response_in(frame))
            yield frame

    def told(self, request: Request, route: Route) -> Told | Refusal:
        """Answer a request about what is kept."""
        if route.operation == "conversations":
            answer = self._conversations.answered(route.action, route.id, route.item, request.body, request.query)
        else:
            answer = self._looked_up(route.id, route.action, request.query)
        if isinstance(answer, Refusal):
            return answer if answer.rule else structs.replace(answer, rule="stored")
        return answer if isinstance(answer, Told) else Told(200, JSON, msgspec.json.encode(answer))

    def _looked_up(self, name: str, action: str, query: Mapping[str, str]) -> Json | Told | Refusal:
        entry = self._entries.get(name)
        if entry is None:
            return not_found("Response", name)
        match action:
            case "delete":
                self._forget(self._entries.pop(name))
                return {"id": name, "object": "response", "deleted": True}
            case "input_items":
                return item_page(entry.asked, query)
            case "cancel":
                return _cancelled(entry)
            case _ if query.get("stream") == "true":
                return _streamed(entry, query.get("starting_after", ""))
            case _:
                entry.looks += 1
                return entry.told()

    def _before(self, previous: str, conversation: str) -> list[Json]:
        """Return all items of the reply or the conversation that a request goes on from."""
        entry, talk = self._entries.get(previous), self._conversations.get(conversation)
        if entry is not None:
            return entry.items
        return [one.item for one in talk.items] if talk is not None else []

    def _kept(self, document: Json, told: Json) -> _Entry | None:
        given, said = input_items(document.get("input")), list[Json](told["output"])
        conversation = conversation_id(document)
        earlier = self._before(previous_id(document), conversation)
        if (talk := self._conversations.get(conversation)) is not None:
            talk.add([*given, *said])
        if document.get("store") is False:
            return None
        looks = 0 if document.get("background") else _LOOKS
        entry = _Entry(told, [*earlier, *given, *said], kept(given, told["id"]), looks=looks)
        self._entries[told["id"]] = entry
        self._items.update({one.id: one.item for one in entry.asked})
        self._items.update({item["id"]: item for item in said})
        while len(self._entries) > _MOST:
            _, oldest = self._entries.popitem(last=False)
            self._forget(oldest)
        return entry

    def _forget(self, entry: _Entry) -> None:
        for name in (*(item["id"] for item in entry.reply["output"]), *(one.id for one in entry.asked)):
            self._items.pop(name, None)


def _response_in(frame: bytes) -> Json:
    return msgspec.json.decode(frame[frame.find(b"data: ") + 6 :])["response"]


def _cancelled(entry: _Entry) -> Json | Refusal:
    """Cancel what is not done yet; what is done stays as it is, also if that is asked twice."""
    if not entry.reply["background"]:
        message = "Cannot cancel a synchronous response."
        return Refusal(status=400, message=message, where="/response_id")
    if entry.looks < _LOOKS:
        entry.items = entry.items[: len(entry.items) - len(entry.reply["output"])]
        entry.reply, entry.looks = unfinished(entry.reply, "cancelled"), _LOOKS
    return entry.reply


def _streamed(entry: _Entry, starting_after: str) -> Told | Refusal:
    if not entry.frames:
        name = entry.reply["id"]
        message = f"Response with id '{name}' cannot be streamed: it was not created with background and stream."
        return Refusal(status=400, message=message, where="/stream")
    start = int(starting_after) + 1 if starting_after.isdecimal() else 0
    return Told(200, _SSE, b"".join(entry.frames[start:]))


def previous_not_found(name: str) -> Refusal:
    """Refuse to continue a response that is not stored (public measurement: status 400)."""
    message = f"Previous response with id '{name}' not found."
    return Refusal(status=400, message=message, kind="previous_response_not_found", where="/previous_response_id")


def previous_id(document: Json) -> str:
    """Return the id of the response a request continues; "" if it continues none."""
    given = document.get("previous_response_id")
    return given if isinstance(given, str) else ""


def conversation_id(document: Json) -> str:
    """Return the id of the conversation a request is part of; "" if it is part of none."""
    given: Any = document.get("conversation")
    if isinstance(given, dict):
        given = cast("Json", given).get("id")
    return given if isinstance(given, str) else ""


def referenced_ids(document: Json) -> list[str]:
    """Return the ids of the items a request only refers to."""
    return [str(item["id"]) for item in input_items(document.get("input")) if _is_reference(item)]


def joined(document: Json, before: list[Json], known: Mapping[str, Json]) -> Json:
    """Put what went before in front of a request's own input, and fill in the items it only refers to."""
    given = input_items(document.get("input"))
    filled = [known.get(str(item["id"]), item) if _is_reference(item) else item for item in given]
    # An item that is referred to stands where it is referred to, not also where it was.
    kept = [item for item in before if not any(item is one for one in filled)]
    return {**document, "input": [*kept, *filled]}


def _document(body: bytes) -> Json:
    """Read a body; what is no JSON object is for the rules to refuse."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return cast("Json", document) if isinstance(document, dict) else {}


def _is_reference(item: Any) -> bool:
    if not isinstance(item, dict) or "id" not in item:
        return False
    known = cast("Json", item)
    return known.get("type") == "item_reference" or (known.get("type") is None and "role" not in known)
