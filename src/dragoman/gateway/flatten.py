"""Take tools that are written Chat's way in a Responses request: one level too deep, but nobody could mean else."""

import re
from typing import Any, cast

from dragoman.dialects.record import Call
from dragoman.gateway.client_request import malformed_body
from dragoman.wire import json
from dragoman.wire.splice import spliced

_NESTED = re.compile(rb'"function"\s*:\s*\{')
_MEMBERS = ("tools", "tool_choice")


def flattened(call: Call) -> Call:
    """Return a request whose tools and choice stand as Responses has them; the same one if they do."""
    if _NESTED.search(call.body) is None:
        return call
    try:
        members = json.decode_object(call.body)
        body = call.body
        for name in _MEMBERS:
            raw = members.get(name)
            value = json.decode(raw) if raw is not None and _NESTED.search(bytes(raw)) is not None else None
            flat = _flat(value)
            if flat != value:
                body = spliced(body, name, json.encode(flat))
    except json.Malformed as error:
        raise malformed_body(error) from None
    return call if body == call.body else Call(body, call.model, call.stream)


def _flat(value: Any) -> Any:
    match value:
        case list():
            return [_flat(item) for item in cast("list[Any]", value)]
        case {"type": "function", "function": {**function}, **rest}:
            return {"type": "function", **rest, **function}
        case _:
            return value
