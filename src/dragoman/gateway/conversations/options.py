"""What a request says about its conversation: in its headers, in its body, or in the form of `/v1/gemini`.

`/v1/gemini` is Gemini's own form with a conversation in it: `input` is what is new, a string, parts of one turn, or
whole contents. All else is as in Gemini.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import CONVERSATION_HEADERS, read_call
from dragoman.gateway.conversations.recorder import generate_conversation_id
from dragoman.gateway.errors import build_body_error
from dragoman.wire import json
from dragoman.wire.splice import remove_member, set_member

_MAX_NAME = 256


class ConversationOptions(Struct, frozen=True, kw_only=True):
    """Which conversation a request belongs to."""

    owner: str = ""
    conversation: str = ""
    previous: str = ""
    """The answer it goes on from."""
    is_named: bool = False
    """The answer can be asked for by its id."""
    may_resend_history: bool = False
    """The client may send the whole history again."""
    attempt: str = ""
    """What the client calls this attempt, the same for each time it sends it."""
    is_retry: bool = False
    """The client says that it has sent the same before."""
    is_background: bool = False
    """Nobody waits for the answer: it is asked for later."""
    echoes_conversation: bool = False
    """The answer says which conversation it belongs to."""

    @property
    def is_saved(self) -> bool:
        """Whether the answer is to be kept."""
        return self.is_named or bool(self.conversation)


_NO_OPTIONS = ConversationOptions()


def read_header_options(headers: Mapping[str, str]) -> ConversationOptions:
    """Read what the headers ask for."""
    if CONVERSATION_HEADERS.isdisjoint(headers):
        return _NO_OPTIONS
    count = headers.get("x-stainless-retry-count", "0")
    return ConversationOptions(
        conversation=check_name(headers.get("x-dragoman-conversation", ""), "x-dragoman-conversation"),
        may_resend_history=True,
        attempt=headers.get("idempotency-key", ""),
        is_retry=bool(count.strip("0")),
    )


def read_body_options(members: Mapping[str, Raw], headers: ConversationOptions) -> ConversationOptions:
    """Read what a Responses request asks for; what its body names goes before the header."""
    conversation = read_conversation_id(members.get("conversation"))
    previous = _read_text(members, "previous_response_id")
    if previous and (conversation or headers.conversation):
        words = "'conversation' and 'previous_response_id' cannot be used together"
        raise Problem("invalid_request", words, where="/previous_response_id", code="mutually_exclusive_parameters")
    is_named, is_background = (
        _read_flag(members, "store", default=True),
        _read_flag(members, "background", default=False),
    )
    if is_background and not is_named:
        raise Problem("invalid_request", "a background response must be stored", where="/background")
    return ConversationOptions(
        conversation=conversation or headers.conversation,
        previous=previous,
        is_named=is_named,
        is_background=is_background,
        may_resend_history=bool(headers.conversation) and not conversation,
        attempt=headers.attempt,
        is_retry=headers.is_retry,
    )


def check_name(name: str, where: str) -> str:
    """Return a name a client chose for a conversation, or refuse it."""
    if len(name) > _MAX_NAME:
        words = f"the name of a conversation has {_MAX_NAME} characters at most"
        raise Problem("invalid_request", words, where=where)
    if not name.isprintable():
        words = "the name of a conversation has printable characters only, no control characters"
        raise Problem("invalid_request", words, where=where)
    return name


def read_conversation_id(raw: Raw | None) -> str:
    """Return the conversation a body names, by its id alone or in an object; "" for none."""
    said = json.decode(raw) if raw is not None else None
    match said:
        case None:
            return ""
        case str() | {"id": str()}:
            return check_name(said if isinstance(said, str) else str(said["id"]), "/conversation")
        case _:
            raise Problem("invalid_request", "a conversation is named by its id", where="/conversation")


def _read_flag(members: Mapping[str, Raw], name: str, *, default: bool) -> bool:
    raw = members.get(name)
    said = json.decode(raw) if raw is not None else None
    if said is not None and not isinstance(said, bool):
        raise Problem("invalid_request", f"{name} must be true or false", where=f"/{name}")
    return default if said is None else said


def _read_text(members: Mapping[str, Raw], name: str) -> str:
    raw = members.get(name)
    said = json.decode(raw) if raw is not None else None
    if said is not None and not isinstance(said, str):
        raise Problem("invalid_request", f"{name} must be a string", where=f"/{name}")
    return said or ""


_CONTENTS = "contents"
_OWN_MEMBERS = ("model", "stream", "conversation", "input")


def parse_session_request(body: bytes) -> tuple[Call, ConversationOptions]:
    """Return the request that Gemini would be sent, and the conversation it belongs to."""
    named = read_call(body)
    try:
        members = json.decode_object(body)
        contents = _build_contents(members)
        wanted = ConversationOptions(
            conversation=read_conversation_id(members.get("conversation")) or generate_conversation_id(),
            echoes_conversation=True,
        )
        for name in _OWN_MEMBERS:
            if name in members:
                body = remove_member(body, name)
        return Call(set_member(body, "contents", contents), named.model, named.stream), wanted
    except json.Malformed as error:
        raise build_body_error(error) from None


def _build_contents(members: dict[str, Raw]) -> bytes:
    if _CONTENTS in members:
        raise Problem("invalid_request", "what is new stands in input here, not in contents", where="/contents")
    if "input" not in members:
        raise Problem("invalid_request", "input is missing: a string, parts or contents", where="/input")
    said = members["input"]
    match json.first_byte(said):
        case b'"':
            return json.encode([_build_user_turn([{"text": said}])])
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
    return json.encode([_build_user_turn(items)])


def _build_user_turn(parts: list[Any]) -> dict[str, Any]:
    return {"role": "user", "parts": parts}


def _is_content(item: Raw, at: int) -> bool:
    if json.first_byte(item) != b"{":
        raise Problem("invalid_request", "a part or a content is an object", where=f"/input/{at}")
    return "parts" in json.decode_object(item)
