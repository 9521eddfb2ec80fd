"""Fields of a request beside its messages and tools, read and written; and where fields of the core stand.

Rules: a value nobody knows stays in extras. Words in `Request.spelling` say which of several members was used: the
newer name of a member wins, and what the older one says is kept beside it.
"""

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.request import EFFORTS, OutputFormat, Request, Sampling, Thinking
from dragoman.core.traits import Traits
from dragoman.dialects.chat.parts import extras_at, whole_again
from dragoman.dialects.chat.wire import ChatRequest, ResponseFormat
from dragoman.wire.json import encode
from dragoman.wire.shape import CoreFields, core_pointers, present
from dragoman.wire.unread import Unread

POINTERS = core_pointers(ChatRequest) | {
    "tool.strict": ("/function/strict",),
    "tool.parameters": ("/function/parameters", "/parameters"),
    "part.cache": ("/prompt_cache_breakpoint",),
    "part.signature": ("/extra_content/google/thought_signature",),
    "part.citations": ("/annotations",),
    "message.name": ("/name",),
    "call.id": ("/id",),
    "call.arguments": ("/function/arguments", "/arguments"),
    "result.call_id": ("/tool_call_id",),
    "result.name": ("/name",),
    "media.name": ("/file/filename",),
}
REQUEST_FIELDS = CoreFields(ChatRequest)
_SAMPLING = CoreFields(ChatRequest, "sampling")
_METADATA: Decoder[dict[str, str]] = Decoder(dict[str, str])
_FORMAT_KINDS = {"text": "text", "json_object": "json", "json_schema": "json_schema"}
_FORMAT_TYPES = {kind: name for name, kind in _FORMAT_KINDS.items()}
_LIMITS = ("max_completion_tokens", "max_tokens")
_USERS = ("safety_identifier", "user")


def read_sampling(body: ChatRequest, words: set[str], extras: dict[str, bytes]) -> Sampling:
    """Read the settings of the sampler."""
    limit, stop = body.max_completion_tokens, body.stop
    if limit is not None:
        words.add("max_completion_tokens")
        if body.max_tokens is not None:
            extras["/max_tokens"] = encode(body.max_tokens)
    elif body.max_tokens is not None:
        limit = body.max_tokens
        words.add("max_tokens")
    if stop is None:
        stop = ()
    elif isinstance(stop, str):
        stop = (stop,)
        words.add("stop text")
    elif not stop:
        words.add("stop []")
    return Sampling(**_SAMPLING.read(body), max_tokens=limit, stop=tuple(stop))


def read_thinking(effort: Any, extras: dict[str, bytes]) -> Thinking | None:
    """Read how much to think."""
    if effort not in EFFORTS:
        extras["/reasoning_effort"] = encode(effort)
        return None
    return Thinking(effort=effort)


def read_output(
    form: ResponseFormat, unread: Unread | None, words: set[str], extras: dict[str, bytes]
) -> OutputFormat | None:
    """Read the format of the answer."""
    kind: Any = _FORMAT_KINDS.get(form.type)
    if kind is None or (kind == "json_schema") != (form.json_schema is not None):
        extras["/response_format"] = whole_again(form, extras_at(unread, "/response_format"))
        return None
    if form.json_schema is None:
        return OutputFormat(kind=kind)
    shape = form.json_schema
    if shape.description == "":
        words.add("output description")
    return OutputFormat(
        kind=kind,
        schema=present(shape.schema),
        name=shape.name or "",
        description=shape.description or "",
        strict=shape.strict,
    )


def read_user(body: ChatRequest, words: set[str], extras: dict[str, bytes]) -> str | None:
    """Read who asks."""
    if body.safety_identifier is None:
        if body.user is not None:
            words.add("user")
        return body.user
    if body.user is not None:
        extras["/user"] = encode(body.user)
    return body.safety_identifier


def read_metadata(metadata: Raw, extras: dict[str, bytes]) -> dict[str, str] | None:
    """Read labels; those that are not pairs of texts stay in extras."""
    raw = present(metadata)
    if raw is None:
        return None
    try:
        return _METADATA.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        extras["/metadata"] = raw
        return None


def write_fields(request: Request, traits: Traits) -> dict[str, Any]:
    """Return the members of a body that are not its messages or tools."""
    words, sampling = request.spelling, request.sampling
    body = _SAMPLING.write(sampling)
    if sampling.max_tokens is not None:
        body[next((word for word in _LIMITS if word in words), traits.max_tokens_word)] = sampling.max_tokens
    if sampling.stop or "stop []" in words:
        body["stop"] = sampling.stop[0] if "stop text" in words else sampling.stop
    if request.thinking is not None and request.thinking.effort is not None:
        body["reasoning_effort"] = request.thinking.effort
    if request.output is not None:
        body["response_format"] = _write_output(request.output, words)
    body |= REQUEST_FIELDS.write(request)
    if request.user is not None:
        body[_USERS["user" in words]] = request.user
    if request.metadata is not None:
        body["metadata"] = request.metadata
    if request.stream or "stream false" in words:
        body["stream"] = request.stream
    return body


def _write_output(output: OutputFormat, words: frozenset[str]) -> dict[str, Any]:
    if output.kind != "json_schema":
        return {"type": _FORMAT_TYPES[output.kind]}
    shape: dict[str, Any] = {"name": output.name or "answer"}
    if output.description or "output description" in words:
        shape["description"] = output.description
    if output.schema is not None:
        shape["schema"] = Raw(output.schema)
    if output.strict is not None:
        shape["strict"] = output.strict
    return {"type": "json_schema", "json_schema": shape}
