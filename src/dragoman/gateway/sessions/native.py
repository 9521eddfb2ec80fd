"""`/v1/gemini`: Gemini's own form with a conversation in it.

`input` is what is new: a string, parts of one turn, or whole contents. All else stands as Gemini has it.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import malformed_body, read_call
from dragoman.gateway.sessions.naming import fresh_conversation
from dragoman.gateway.sessions.wanted import Wanted, named_conversation
from dragoman.wire import json
from dragoman.wire.splice import removed, spliced

_THEIRS = "contents"
_OURS = ("model", "stream", "conversation", "input")


def native_call(body: bytes) -> tuple[Call, Wanted]:
    """Return the request that Gemini would be sent, and the conversation it belongs to."""
    named = read_call(body)
    try:
        members = json.decode_object(body)
        contents = _contents(members)
        wanted = Wanted(
            conversation=named_conversation(members.get("conversation")) or fresh_conversation(), is_told=True
        )
        for name in _OURS:
            if name in members:
                body = removed(body, name)
        return Call(spliced(body, "contents", contents), named.model, named.stream), wanted
    except json.Malformed as error:
        raise malformed_body(error) from None


def _contents(members: dict[str, Raw]) -> bytes:
    if _THEIRS in members:
        raise Problem("invalid_request", "what is new stands in input here, not in contents", where="/contents")
    if "input" not in members:
        raise Problem("invalid_request", "input is missing: a string, parts or contents", where="/input")
    said = members["input"]
    match json.first_byte(said):
        case b'"':
            return json.encode([_turn([{"text": said}])])
        case b"{":
            items = [said]
        case b"[":
            items = json.decode_array(said)
        case _:
            raise Problem("invalid_request", "input must be a string, parts or contents", where="/input")
    whole = [_is_content(item, at) for at, item in enumerate(items)]
    if all(whole):
        return json.encode(items)
    if any(whole):
        raise Problem("invalid_request", "input is either parts or contents, not both", where="/input")
    return json.encode([_turn(items)])


def _turn(parts: list[Any]) -> dict[str, Any]:
    return {"role": "user", "parts": parts}


def _is_content(item: Raw, at: int) -> bool:
    if json.first_byte(item) != b"{":
        raise Problem("invalid_request", "a part or a content is an object", where=f"/input/{at}")
    return "parts" in json.decode_object(item)
