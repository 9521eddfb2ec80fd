"""Ids for calls that came without one, for a reader who has no dialect of its own.

The same reply gives the same ids, streamed or whole. A call is told apart by its reply's id and its place among the
calls; in a reply that has no id either, by what it says.
"""

from msgspec import structs

from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.request import Request
from dragoman.core.response import Response
from dragoman.interpreter.aliases import minted_id
from dragoman.interpreter.repair import with_ids

PREFIX = "call_"


def id_of(call: ToolCall, reply_id: str, number: int) -> str:
    """Return the id of the call with that number in its reply: its own, or one made for it."""
    return call.id or minted_id(PREFIX, reply_id or call.arguments, number, call.name)


def named_parts(parts: tuple[AnyPart, ...], reply_id: str) -> tuple[AnyPart, ...]:
    """Give every call of a reply an id."""
    named: list[AnyPart] = []
    calls = 0
    for part in parts:
        if isinstance(part, ToolCall):
            calls += 1
            named.append(part if part.id else structs.replace(part, id=id_of(part, reply_id, calls)))
        else:
            named.append(part)
    return tuple(named)


def named_reply(response: Response) -> Response:
    """Return a whole reply in which every call has an id."""
    return structs.replace(response, parts=named_parts(response.parts, response.id))


def named_request(request: Request) -> Request:
    """Return a request in whose history every call has an id, and every result the id of its call."""
    messages = with_ids(request.messages)
    return request if messages is request.messages else structs.replace(request, messages=messages)
