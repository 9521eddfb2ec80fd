"""Parses the fields of a request other than messages and tools; maps core fields to pointers; builds extras.

Rules: an unknown field becomes an extra of the object that contains it, and so does a known field with an unknown
value; null counts as absent. `Request.spelling` holds flags that record which of several equivalent members the caller
used. If both names of a member are present, the newer one is parsed and the older one is kept in extras.
"""

from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from dragoman.core.parts import ToolCall
from dragoman.core.request import EFFORTS, OutputFormat, Sampling, Thinking
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.chat.wire import NAME, ChatRequest, ResponseFormat
from dragoman.wire.json import encode
from dragoman.wire.shape import CoreFields, Wire, core_pointers, get_raw_members, non_null_bytes
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unread

POINTERS = core_pointers(ChatRequest) | {
    "thinking.mode": (
        "/thinking/type",
        "/enable_thinking",
        "/chat_template_kwargs/enable_thinking",
        "/chat_template_kwargs/thinking",
        "/reasoning/enabled",
    ),
    "thinking.effort": ("/reasoning_effort", "/reasoning/effort"),
    "thinking.budget": (
        "/thinking/budget_tokens",
        "/thinking_budget",
        "/thinking_token_budget",
        "/reasoning/max_tokens",
    ),
    "thinking.visible": ("/reasoning/exclude",),
    "tool.strict": ("/function/strict",),
    "tool.parameters": ("/function/parameters", "/parameters"),
    "part.cache": ("/prompt_cache_breakpoint",),
    "part.signature": ("/extra_content/google/thought_signature", "/signature", "/data"),
    "part.citations": ("/annotations",),
    "message.name": ("/name",),
    "call.id": ("/id",),
    "call.arguments": ("/function/arguments", "/arguments"),
    "result.call_id": ("/tool_call_id",),
    "result.name": ("/name",),
    "media.name": ("/file/filename",),
}
REQUEST_FIELDS = CoreFields(ChatRequest)
SAMPLING_FIELDS = CoreFields(ChatRequest, "sampling")
_get_options = attrgetter(
    "reasoning_effort",
    "response_format",
    "verbosity",
    "n",
    "safety_identifier",
    "user",
    "metadata",
)
_NO_OPTIONS = _get_options(ChatRequest([]))
_METADATA: Decoder[dict[str, str]] = Decoder(dict[str, str])
FORMAT_KINDS = {"text": "text", "json_object": "json", "json_schema": "json_schema"}


_NULL = b"null"
_PREFIX = f"{NAME} "


class Spelling:
    """Values of `spelling`: which of several equivalent wire forms was used.

    They start with the dialect's name, because other dialects use the same flags with other meanings.
    """

    CALL = f"{NAME} call"
    MESSAGE = f"{NAME} message"
    PART = f"{NAME} part"
    THINKING = f"{NAME} thinking"
    DETAILS = f"{NAME} reasoning_details"
    FUNCTION = f"{NAME} function"
    FUNCTION_CALL = f"{NAME} function_call"
    ANY = f"{NAME} any"
    ALLOWED_TOOLS = f"{NAME} allowed_tools"


REASONING_FLAGS = {
    "reasoning_content": "reasoning_content",
    "reasoning": "reasoning",
    "reasoning_text": "reasoning_text",
    "thinking_text": "thinking",
}
"""The member of a message that holds reasoning, by spelling flag; `thinking` is an item of the content."""
REASONING_MEMBERS = {f"{NAME} {flag}": member for flag, member in REASONING_FLAGS.items()}
"""The member of a message that holds reasoning, by spelling."""
REASONING_SPELLINGS = {member: spelling for spelling, member in REASONING_MEMBERS.items()}
"""The spelling of reasoning, by the member that holds it."""


def find_text_member(kind: str, spelling: str) -> str:
    """Return the message member that contains text of this kind ("text", "reasoning", "refusal")."""
    if kind == "reasoning":
        return (
            "reasoning_details"
            if spelling == Spelling.DETAILS
            else REASONING_MEMBERS.get(spelling, "reasoning_content")
        )
    return "refusal" if kind == "refusal" else "content"


def join_spelling(*flags: str) -> str:
    """Join the flags that are not empty into a spelling; "" if there are none."""
    joined = " ".join(filter(None, flags))
    return _PREFIX + joined if joined else ""


def split_spelling(spelling: str) -> tuple[str, ...] | list[str]:
    """Return the flags in a spelling; none if another dialect wrote it."""
    return spelling[len(_PREFIX) :].split() if spelling.startswith(_PREFIX) else ()


def take_extras(unread: Unread | None, where: str, owner: Struct | None = None) -> Extras | None:
    """Take the unknown fields below `where`, and the fields of `owner` that are declared but not parsed."""
    below = build_extras(unread.take(where)) if unread is not None else None
    fields = get_raw_members(owner) if owner is not None else None
    return add_fields(below, fields) if fields else below


def add_fields(extras: Extras | None, fields: dict[str, bytes]) -> Extras | None:
    """Return the extras with `fields` added in front; existing fields win."""
    return build_extras({**fields, **(extras.fields if extras is not None else {})})


def remove_field(extras: Extras | None, pointer: str) -> Extras | None:
    """Return the extras without one field."""
    fields = extras.fields if extras is not None else {}
    return build_extras({name: raw for name, raw in fields.items() if name != pointer})


def build_extras(fields: dict[str, bytes] | None) -> Extras | None:
    """Build extras from unknown fields, without those that are null."""
    present = {pointer: raw for pointer, raw in fields.items() if raw != _NULL} if fields else None
    return Extras(NAME, present) if present else None


def restore_extras(value: dict[str, Any], owner: Any) -> dict[str, Any] | Raw:
    """Add the owner's extras of this dialect back to its JSON object."""
    fields = own_extras(owner, NAME)
    return Raw(graft(encode(value), fields)) if fields else value


def encode_with_extras(value: Wire, extras: Extras | None) -> bytes:
    """Encode a parsed wire value together with its extras."""
    return graft(encode(value), extras.fields) if extras is not None else encode(value)


def is_legacy(call: ToolCall) -> bool:
    """Return whether a call uses the legacy `function_call` member, which has no id."""
    return call.spelling == Spelling.FUNCTION_CALL and not call.id


def read_sampling(body: ChatRequest, spelling: set[str], extras: dict[str, bytes]) -> Sampling:
    """Parse the sampling parameters; add flags to `spelling` and superseded members to `extras`."""
    limit, stop = body.max_completion_tokens, body.stop
    if limit is not None:
        spelling.add("max_completion_tokens")
        if body.max_tokens is not None:
            extras["/max_tokens"] = encode(body.max_tokens)
    elif body.max_tokens is not None:
        limit = body.max_tokens
        spelling.add("max_tokens")
    if stop is None:
        stop = ()
    elif isinstance(stop, str):
        stop = (stop,)
        spelling.add("stop text")
    elif not stop:
        spelling.add("stop []")
    return Sampling(**SAMPLING_FIELDS.read(body), max_tokens=limit, stop=tuple(stop))


def read_options(
    body: ChatRequest, unread: Unread | None, spelling: set[str], extras: dict[str, bytes]
) -> dict[str, Any]:
    """Return the core fields of a request other than sampling, by name; most requests have none."""
    if _get_options(body) == _NO_OPTIONS:
        return {}
    options = REQUEST_FIELDS.read(body)
    if body.reasoning_effort is not None:
        options["thinking"] = _read_thinking(body.reasoning_effort, extras)
    if body.response_format is not None:
        options["output"] = _read_output(body.response_format, unread, spelling, extras)
    options["user"] = _read_user(body, spelling, extras)
    options["metadata"] = _read_metadata(body.metadata, extras)
    return options


def _read_thinking(effort: Any, extras: dict[str, bytes]) -> Thinking | None:
    if effort not in EFFORTS:
        extras["/reasoning_effort"] = encode(effort)
        return None
    return Thinking(effort=effort)


def _read_output(
    form: ResponseFormat, unread: Unread | None, spelling: set[str], extras: dict[str, bytes]
) -> OutputFormat | None:
    kind: Any = FORMAT_KINDS.get(form.type)
    if kind is None or (kind == "json_schema") != (form.json_schema is not None):
        extras["/response_format"] = encode_with_extras(form, take_extras(unread, "/response_format"))
        return None
    if form.json_schema is None:
        return OutputFormat(kind=kind)
    shape = form.json_schema
    if shape.description == "":
        spelling.add("output description")
    return OutputFormat(
        kind=kind,
        schema=non_null_bytes(shape.schema),
        name=shape.name or "",
        description=shape.description or "",
        strict=shape.strict,
    )


def _read_user(body: ChatRequest, spelling: set[str], extras: dict[str, bytes]) -> str | None:
    if body.safety_identifier is None:
        if body.user is not None:
            spelling.add("user")
        return body.user
    if body.user is not None:
        extras["/user"] = encode(body.user)
    return body.safety_identifier


def _read_metadata(metadata: Raw, extras: dict[str, bytes]) -> dict[str, str] | None:
    """Parse `metadata`; a value that is not a map of strings to strings stays in extras."""
    raw = non_null_bytes(metadata)
    if raw is None:
        return None
    try:
        return _METADATA.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        extras["/metadata"] = raw
        return None
