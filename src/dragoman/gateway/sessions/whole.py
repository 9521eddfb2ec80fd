"""Write a request with its whole history, and what its answer says of the conversation."""

from collections.abc import Mapping, Sequence

from msgspec import Raw, structs

from dragoman.dialects.record import Dialect
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.sessions.naming import fresh_response
from dragoman.gateway.sessions.settings import member
from dragoman.gateway.sessions.wanted import Wanted
from dragoman.wire import json
from dragoman.wire.splice import removed, spliced

_STATE = ("conversation", "previous_response_id", "store", "background")
_ENCRYPTED = "reasoning.encrypted_content"


def made_whole(
    ask: ClientRequest, members: Mapping[str, Raw], items: Sequence[bytes], held: Mapping[str, Raw], dialect: Dialect
) -> ClientRequest:
    """Write the request with all items and the settings that hold, and without what is about the state."""
    body = spliced(ask.call.body, dialect.history, b"[" + b",".join(items) + b"]")
    for name, raw in held.items():
        if member(members, name) is None:
            body = spliced(body, name, bytes(raw))
    for name in _STATE:
        if name in members:
            body = removed(body, name)
    call = structs.replace(ask.call, body=body)
    native = structs.replace(call, body=_unstored(body, members)) if dialect.turns.keeps else None
    return structs.replace(ask, call=call, native=native, is_kept=True)


def _unstored(body: bytes, members: Mapping[str, Raw]) -> bytes:
    """ClientRequest an upstream of the same dialect to keep nothing, and to give us its thoughts to keep."""
    include: list[str] = (json.decode(members["include"]) if "include" in members else None) or []
    if _ENCRYPTED not in include:
        body = spliced(body, "include", json.encode([*include, _ENCRYPTED]))
    return spliced(body, "store", b"false")


def echoed(wanted: Wanted, dialect: Dialect) -> dict[str, bytes]:
    """Return what the answer says of its conversation, where the dialect or the path has a place for that."""
    if not dialect.turns.keeps:
        return {"conversation": json.encode(wanted.conversation)} if wanted.is_told else {}
    told = {"id": json.encode(fresh_response())} if wanted.is_named else {}
    told["store"] = json.encode(wanted.is_named)
    if wanted.is_background:
        told["background"] = b"true"
    if wanted.previous:
        told["previous_response_id"] = json.encode(wanted.previous)
    if wanted.conversation:
        told["conversation"] = json.encode({"id": wanted.conversation})
    return told
