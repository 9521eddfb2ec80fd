"""Whether a body over HTTP is a message at all, said in our own words.

The SDK takes a request whose id is none for a notification, which nobody answers, and tells of other faults in the
words of its validator. What is no JSON it tells well.
"""

import re

import msgspec
from mcp.types import INVALID_REQUEST
from msgspec import Raw, Struct

NOTIFICATIONS = "notifications/"
"""How the names of notifications begin: every other method is that of a request."""
NO_ID = "a request needs an id that is a text or a whole number"
_NO_MESSAGE = "this is no message of JSON-RPC 2.0"
_ID = re.compile(rb'".*"|-?[0-9]+', re.DOTALL)


class _Message(Struct):
    jsonrpc: str = ""
    method: str = ""
    id: Raw = Raw(b"")
    params: dict[str, Raw] | None = None


def refusal(body: bytes) -> bytes:
    """Return the error that a body is answered with; nothing for what the SDK understands, or tells well itself."""
    words = _fault(body)
    error = {"code": INVALID_REQUEST, "message": words}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}) if words else b""


def _fault(body: bytes) -> str:
    try:
        message = msgspec.json.decode(body, type=_Message)
    except msgspec.ValidationError as error:
        return f"{_NO_MESSAGE}: {error}"
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    if message.jsonrpc != "2.0":
        return f'{_NO_MESSAGE}: "jsonrpc" must be "2.0"'
    if message.method and not message.method.startswith(NOTIFICATIONS) and not _ID.fullmatch(bytes(message.id)):
        return NO_ID
    return ""
