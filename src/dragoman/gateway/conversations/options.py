"""Reads the conversation options of a request: from its headers, its body, or the format of `/v1/gemini`.

`/v1/gemini` uses the Gemini format with a conversation: `input` has only what is new, as a string, parts of one turn or
whole contents. Everything else is as in Gemini.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Raw, Struct

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import CONVERSATION_HEADERS, read_call
from dragoman.gateway.conversation_recorder import generate_conversation_id
from dragoman.gateway.errors import build_body_error
from dragoman.wire import json
from dragoman.wire.splice import remove_member, set_member

T = TypeVar("T")
_MAX_NAME = 256


class ConversationOptions(Struct, frozen=True, kw_only=True):
    """The conversation that a request belongs to, and how its reply is stored."""

    owner: str = ""
    conversation: str = ""
    previous: str = ""
    """The id of the response that it continues."""
    is_named: bool = False
    """Whether the reply can be retrieved by its id."""
    may_resend_history: bool = False
    """Whether the client may send the whole history again."""
    attempt: str = ""
    """The client's id for this request, the same for each retry."""
    is_retry: bool = False
    """Whether the client marks it as a retry."""
    is_background: bool = False
    """Whether the reply is generated in the background and retrieved later."""
    echoes_conversation: bool = False
    """Whether the reply names its conversation."""

    @property
    def is_saved(self) -> bool:
        """Whether the reply is stored."""
        return self.is_named or bool(self.conversation)


_NO_OPTIONS = ConversationOptions()


def read_header_options(headers: Mapping[str, str]) -> ConversationOptions:
    """Read the options in the headers."""
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
    """Read the options in the body of a Responses request; they take precedence over the headers."""
    conversation = read_conversation_id(members.get("conversation"))
    previous = _read_member(members, "previous_response_id", str, "a string") or ""
    if previous and (conversation or headers.conversation):
        message = "'conversation' and 'previous_response_id' cannot be used together"
        raise Problem("invalid_request", message, where="/previous_response_id", code="mutually_exclusive_parameters")
    is_named = _read_member(members, "store", bool, "true or false") is not False
    is_background = _read_member(members, "background", bool, "true or false") or False
    if is_background and not is_named:
        raise Problem(
            "invalid_request",
            "a background response must be stored; set `store` to true or remove `background`",
            where="/background",
        )
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
    """Check the name that a client chose for a conversation, and return it."""
    if len(name) > _MAX_NAME:
        message = f"the name of a conversation must have at most {_MAX_NAME} characters"
        raise Problem("invalid_request", message, where=where)
    if not name.isprintable():
        message = "the name of a conversation must have only printable characters, no control characters"
        raise Problem("invalid_request", message, where=where)
    return name


def read_conversation_id(raw: Raw | None) -> str:
    """Return the conversation id in a body, given as a string or in an object; "" for none."""
    value = json.decode(raw) if raw is not None else None
    match value:
        case None:
            return ""
        case str() | {"id": str()}:
            return check_name(value if isinstance(value, str) else str(value["id"]), "/conversation")
        case _:
            raise Problem(
                "invalid_request", "`conversation` must be an id or an object with an `id`", where="/conversation"
            )


def _read_member(members: Mapping[str, Raw], name: str, kind: type[T], described: str) -> T | None:
    """Return a field of this type; None if it is missing or null."""
    raw = members.get(name)
    value = json.decode(raw) if raw is not None else None
    if value is not None and not isinstance(value, kind):
        raise Problem("invalid_request", f"{name} must be {described}", where=f"/{name}")
    return value


_CONTENTS = "contents"
_SESSION_MEMBERS = ("model", "stream", "conversation", "input")


def parse_session_request(body: bytes) -> tuple[Call, ConversationOptions]:
    """Convert a `/v1/gemini` request to a Gemini request and its conversation options."""
    call = read_call(body)
    try:
        members = json.decode_object(body)
        contents = _build_contents(members)
        options = ConversationOptions(
            conversation=read_conversation_id(members.get("conversation")) or generate_conversation_id(),
            echoes_conversation=True,
        )
        for name in _SESSION_MEMBERS:
            if name in members:
                body = remove_member(body, name)
        return Call(set_member(body, "contents", contents), call.model, call.stream), options
    except json.Malformed as error:
        raise build_body_error(error) from None


def _build_contents(members: dict[str, Raw]) -> bytes:
    if _CONTENTS in members:
        raise Problem("invalid_request", "use `input`, not `contents`", where="/contents")
    if "input" not in members:
        raise Problem("invalid_request", "`input` is required: a string, parts or contents", where="/input")
    value = members["input"]
    match json.first_byte(value):
        case b'"':
            return json.encode([_build_user_turn([{"text": value}])])
        case b"{":
            items = [value]
        case b"[":
            items = json.decode_array(value)
        case _:
            raise Problem("invalid_request", "`input` must be a string, parts or contents", where="/input")
    are_contents = [_is_content(item, index) for index, item in enumerate(items)]
    if all(are_contents):
        return json.encode(items)
    if any(are_contents):
        raise Problem("invalid_request", "`input` must be either parts or contents, not both", where="/input")
    return json.encode([_build_user_turn(items)])


def _build_user_turn(parts: list[Any]) -> dict[str, Any]:
    return {"role": "user", "parts": parts}


def _is_content(item: Raw, index: int) -> bool:
    if json.first_byte(item) != b"{":
        raise Problem("invalid_request", "a part or a content must be an object", where=f"/input/{index}")
    return "parts" in json.decode_object(item)
