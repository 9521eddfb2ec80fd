"""What a request needs of the conversations the vendor keeps, and the request made whole with it.

`needed` names the earlier response a request continues, `conversed` the conversation it is part of, `referred` the
items it only refers to; `joined` puts what is kept of those into the input, so that the request is judged and answered
like any other.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.simulator.rule import Json


def needed(body: bytes) -> str:
    """Return the id of the response a request continues; "" if it continues none."""
    given = _document(body).get("previous_response_id")
    return given if isinstance(given, str) else ""


def conversed(body: bytes) -> str:
    """Return the id of the conversation a request is part of; "" if it is part of none."""
    given: Any = _document(body).get("conversation")
    if isinstance(given, dict):
        given = cast("Json", given).get("id")
    return given if isinstance(given, str) else ""


def referred(body: bytes) -> list[str]:
    """Return the ids of the items a request only refers to."""
    items = input_items(_document(body).get("input"))
    return [str(cast("Json", item)["id"]) for item in items if _is_reference(item)]


def joined(body: bytes, before: list[Json], known: Mapping[str, Json]) -> bytes:
    """Put what went before in front of a request's own input, and fill in the items it only refers to."""
    document = _document(body)
    given = input_items(document.get("input"))
    filled = [known.get(str(item["id"]), item) if _is_reference(item) else item for item in given]
    # An item that is referred to stands where it is referred to, not also where it was.
    kept = [item for item in before if not any(item is one for one in filled)]
    return msgspec.json.encode({**document, "input": [*kept, *filled]})


def input_items(given: Any) -> list[Any]:
    """Return the input as items, also where it is only a text."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return cast("list[Any]", given) if isinstance(given, list) else []


def _document(body: bytes) -> Json:
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
