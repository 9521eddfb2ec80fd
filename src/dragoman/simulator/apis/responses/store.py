"""The store of the Responses API: responses by id, each with the conversation that led to it, and their items.

A background response is reported as queued first, as in progress at the first poll, and then as completed: that needs
no clock, and a client sees every state.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.http.message import JSON_HEADERS, Request
from dragoman.simulator.apis.api import ApiRejection, HttpReply
from dragoman.simulator.apis.responses.conversations import (
    ConversationStore,
    StoredItem,
    assign_item_ids,
    build_item_not_found,
    build_item_page,
    build_not_found,
    normalise_input,
)
from dragoman.simulator.apis.responses.write import build_unfinished
from dragoman.simulator.apis.routes import Route
from dragoman.simulator.apis.rule import Json

_MAX_RESPONSES = 1000
_TERMINAL = (b"response.completed", b"response.incomplete", b"response.failed")
_POLLS_UNTIL_DONE = 2
"""The number of polls after which a background response is completed."""
_SSE = {"content-type": "text/event-stream", "cache-control": "no-cache"}


class _StoredResponse(Struct):
    reply: Json
    items: list[Json]
    """The whole conversation before the response, and its output."""
    input_items: list[StoredItem]
    frames: tuple[bytes, ...] = ()
    """The events of a background response with `stream`."""
    polls: int = _POLLS_UNTIL_DONE

    def render(self) -> Json:
        """Return the response in its current state."""
        if self.polls >= _POLLS_UNTIL_DONE:
            return self.reply
        return build_unfinished(self.reply, "in_progress" if self.polls else "queued")


class ResponseStore:
    """Responses by id; the oldest are evicted first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _StoredResponse] = OrderedDict()
        self._items: dict[str, Json] = {}
        self._conversations = ConversationStore()

    def expand_request(self, body: bytes, *, recorded: bool = False) -> bytes | ApiRejection:
        """Return a request with its history and referenced items added, or a rejection if they are unknown.

        The history of a recorded request is known to the vendor only, so it is accepted unchanged.
        """
        document = _parse_document(body)
        previous, conversation = read_previous_id(document), read_conversation_id(document)
        references = find_referenced_ids(document)
        entry, talk = self._entries.get(previous), self._conversations.get(conversation)
        # The rules reject two states and malformed ids.
        if (previous and conversation) or not (previous or conversation or references):
            return body
        known = self._items if talk is None else {**self._items, **{one.id: one.item for one in talk.items}}
        unknown = next((name for name in references if name not in known), None)
        lost = (
            (previous.startswith("resp") and entry is None, build_previous_not_found(previous)),
            (conversation.startswith("conv") and talk is None, build_not_found("Conversation", conversation)),
            (unknown is not None, build_item_not_found(unknown or "")),
        )
        for is_lost, refusal in lost:
            if is_lost:
                return body if recorded else refusal
        return msgspec.json.encode(expand_input(document, self._find_history(previous, conversation), known))

    def save_reply(self, body: bytes, reply: bytes) -> bytes:
        """Store a response, unless the request has `store: false`, and return the reply to send now."""
        entry = self._save_response(_parse_document(body), msgspec.json.decode(reply))
        return reply if entry is None or entry.polls >= _POLLS_UNTIL_DONE else msgspec.json.encode(entry.render())

    def save_stream(self, body: bytes, frames: Iterable[bytes], _whole: Callable[[], bytes]) -> Iterator[bytes]:
        """Yield the frames and store the response in the last one; in the background even if the client disconnects."""
        document = _parse_document(body)
        if document.get("background"):
            frames = tuple(frames)
            entry = self._save_response(document, _read_response(frames[-1]))
            if entry is not None:
                entry.frames, entry.polls = frames, _POLLS_UNTIL_DONE
            yield from frames
            return
        for frame in frames:
            if frame.startswith(b"event: ") and frame[7 : frame.find(b"\n")].strip() in _TERMINAL:
                self._save_response(document, _read_response(frame))
            yield frame

    def handle_request(self, request: Request, route: Route) -> HttpReply | ApiRejection:
        """Answer a request about stored responses and conversations."""
        if route.operation == "conversations":
            answer = self._conversations.handle_request(route.action, route.id, route.item, request.body, request.query)
        else:
            answer = self._handle_response_request(route.id, route.action, request.query)
        if isinstance(answer, ApiRejection):
            return answer if answer.rule else structs.replace(answer, rule="stored")
        return answer if isinstance(answer, HttpReply) else HttpReply(200, JSON_HEADERS, msgspec.json.encode(answer))

    def _handle_response_request(
        self, name: str, action: str, query: Mapping[str, str]
    ) -> Json | HttpReply | ApiRejection:
        entry = self._entries.get(name)
        if entry is None:
            return build_not_found("Response", name)
        match action:
            case "delete":
                self._forget_items(self._entries.pop(name))
                return {"id": name, "object": "response", "deleted": True}
            case "input_items":
                return build_item_page(entry.input_items, query)
            case "cancel":
                return _cancel_response(entry)
            case _ if query.get("stream") == "true":
                return _replay_stream(entry, query.get("starting_after", ""))
            case _:
                entry.polls += 1
                return entry.render()

    def _find_history(self, previous: str, conversation: str) -> list[Json]:
        """Return all items of the response or the conversation that a request continues."""
        entry, talk = self._entries.get(previous), self._conversations.get(conversation)
        if entry is not None:
            return entry.items
        return [one.item for one in talk.items] if talk is not None else []

    def _save_response(self, document: Json, response: Json) -> _StoredResponse | None:
        given, output = normalise_input(document.get("input")), list[Json](response["output"])
        conversation = read_conversation_id(document)
        earlier = self._find_history(read_previous_id(document), conversation)
        if (talk := self._conversations.get(conversation)) is not None:
            talk.add([*given, *output])
        if document.get("store") is False:
            return None
        looks = 0 if document.get("background") else _POLLS_UNTIL_DONE
        entry = _StoredResponse(
            response, [*earlier, *given, *output], assign_item_ids(given, response["id"]), polls=looks
        )
        self._entries[response["id"]] = entry
        self._items.update({one.id: one.item for one in entry.input_items})
        self._items.update({item["id"]: item for item in output})
        while len(self._entries) > _MAX_RESPONSES:
            _, oldest = self._entries.popitem(last=False)
            self._forget_items(oldest)
        return entry

    def _forget_items(self, entry: _StoredResponse) -> None:
        for name in (*(item["id"] for item in entry.reply["output"]), *(one.id for one in entry.input_items)):
            self._items.pop(name, None)


def _read_response(frame: bytes) -> Json:
    return msgspec.json.decode(frame[frame.find(b"data: ") + 6 :])["response"]


def _cancel_response(entry: _StoredResponse) -> Json | ApiRejection:
    """Cancel a response that is not complete; a complete or cancelled one is returned unchanged."""
    if not entry.reply["background"]:
        message = "Cannot cancel a synchronous response."
        return ApiRejection(status=400, message=message, where="/response_id")
    if entry.polls < _POLLS_UNTIL_DONE:
        entry.items = entry.items[: len(entry.items) - len(entry.reply["output"])]
        entry.reply, entry.polls = build_unfinished(entry.reply, "cancelled"), _POLLS_UNTIL_DONE
    return entry.reply


def _replay_stream(entry: _StoredResponse, starting_after: str) -> HttpReply | ApiRejection:
    if not entry.frames:
        name = entry.reply["id"]
        message = f"Response with id '{name}' cannot be streamed: it was not created with background and stream."
        return ApiRejection(status=400, message=message, where="/stream")
    start = int(starting_after) + 1 if starting_after.isdecimal() else 0
    return HttpReply(200, _SSE, b"".join(entry.frames[start:]))


def build_previous_not_found(name: str) -> ApiRejection:
    """Return the rejection of a request that continues an unknown response (public measurement: status 400)."""
    message = f"Previous response with id '{name}' not found."
    return ApiRejection(status=400, message=message, kind="previous_response_not_found", where="/previous_response_id")


def read_previous_id(document: Json) -> str:
    """Return the id of the response a request continues; "" if it continues none."""
    given = document.get("previous_response_id")
    return given if isinstance(given, str) else ""


def read_conversation_id(document: Json) -> str:
    """Return the id of the conversation a request is part of; "" if it is part of none."""
    given: Any = document.get("conversation")
    if isinstance(given, dict):
        given = cast("Json", given).get("id")
    return given if isinstance(given, str) else ""


def find_referenced_ids(document: Json) -> list[str]:
    """Return the ids of the items that a request references."""
    return [str(item["id"]) for item in normalise_input(document.get("input")) if _is_reference(item)]


def expand_input(document: Json, before: list[Json], known: Mapping[str, Json]) -> Json:
    """Return a request with the history in front of its input, and references replaced by the items."""
    given = normalise_input(document.get("input"))
    filled = [known.get(str(item["id"]), item) if _is_reference(item) else item for item in given]
    # A referenced item appears where it is referenced, not also at its old position.
    kept = [item for item in before if not any(item is one for one in filled)]
    return {**document, "input": [*kept, *filled]}


def _parse_document(body: bytes) -> Json:
    """Parse a body; return {} if it is not a JSON object, which the rules reject."""
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
