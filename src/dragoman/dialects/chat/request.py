"""A whole request, parsed and rendered.

Rules: every field the core has no word for stays in extras by its pointer, also a known field with a value nobody
knows. `Request.spelling` holds the words that were used where the dialect has several.
"""

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS, OutputFormat, Request, Sampling, Thinking, leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire
from dragoman.dialects.chat.messages import Written, read_messages, write_message
from dragoman.dialects.chat.parts import extras_at, known_extras, whole_again
from dragoman.dialects.chat.tools import (
    read_choice,
    read_legacy_functions,
    read_tools,
    write_choice,
    write_tools,
)
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, encode, graft
from dragoman.wire.shape import carried, present
from dragoman.wire.unread import Unread

_FORMAT_KINDS = {"text": "text", "json_object": "json", "json_schema": "json_schema"}
_FORMAT_WORDS = {kind: word for word, kind in _FORMAT_KINDS.items()}
_METADATA: Decoder[dict[str, str]] = Decoder(dict[str, str])
_SAMPLING = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")
_LIMIT_WORDS = ("max_completion_tokens", "max_tokens")
_USER_WORDS = ("safety_identifier", "user")
MODEL_IN_URL = "model in url"


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request."""
    try:
        body, unread = wire.REQUEST.read(call.body)
        raw_tools = present(body.tools)
        tools = read_tools(raw_tools, "/tools") if raw_tools is not None else ()
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    spelling: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = read_messages(body.messages, unread, first)
    if body.model is None:
        spelling.add(MODEL_IN_URL)
    if raw_tools is not None and not tools:
        spelling.add("tools []")
    if body.functions is not None:
        tools = (*tools, *read_legacy_functions(body.functions, unread))
        if not body.functions:
            spelling.add("functions []")
    choice = read_choice(body, unread, extras)
    sampling = _read_sampling(body, spelling, extras)
    form = body.response_format
    thinking = _read_thinking(body.reasoning_effort, extras) if body.reasoning_effort is not None else None
    output = _read_output(form, unread, spelling, extras) if form is not None else None
    user = _read_user(body, spelling, extras)
    metadata = _read_metadata(body.metadata, extras) if body.metadata else None
    if body.stream is False:
        spelling.add("stream false")
    if unread is not None:
        extras = {**unread.rest(), **extras}
    if (fields := carried(body)) is not None:
        extras = {**fields, **extras}
    return Request(
        model=body.model or call.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        thinking=thinking,
        output=output,
        verbosity=body.verbosity,
        stream=body.stream or call.stream,
        candidates=body.n,
        user=user,
        metadata=metadata,
        extras=known_extras(extras) if extras else None,
        spelling=frozenset(spelling),
    )


def _read_sampling(body: wire.ChatRequest, spelling: set[str], extras: dict[str, bytes]) -> Sampling:
    limit = body.max_completion_tokens
    if limit is None:
        limit = body.max_tokens
        if limit is not None:
            spelling.add("max_tokens")
    else:
        spelling.add("max_completion_tokens")
        if body.max_tokens is not None:
            extras["/max_tokens"] = encode(body.max_tokens)
    stop: tuple[str, ...] = ()
    if isinstance(body.stop, str):
        stop = (body.stop,)
        spelling.add("stop text")
    elif body.stop is not None:
        stop = tuple(body.stop)
        if not stop:
            spelling.add("stop []")
    return Sampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        max_tokens=limit,
        stop=stop,
        seed=body.seed,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
    )


def _read_thinking(effort: Any, extras: dict[str, bytes]) -> Thinking | None:
    if effort not in EFFORTS:
        extras["/reasoning_effort"] = encode(effort)
        return None
    return Thinking(effort=effort)


def _read_output(
    form: wire.ResponseFormat, unread: Unread | None, spelling: set[str], extras: dict[str, bytes]
) -> OutputFormat | None:
    kind: Any = _FORMAT_KINDS.get(form.type)
    if kind is None or (kind == "json_schema") != (form.json_schema is not None):
        extras["/response_format"] = whole_again(form, extras_at(unread, "/response_format"))
        return None
    if form.json_schema is None:
        return OutputFormat(kind=kind)
    shape = form.json_schema
    if shape.description == "":
        spelling.add("output description")
    return OutputFormat(
        kind=kind,
        schema=present(shape.schema),
        name=shape.name or "",
        description=shape.description or "",
        strict=shape.strict,
    )


def _read_user(body: wire.ChatRequest, spelling: set[str], extras: dict[str, bytes]) -> str | None:
    if body.safety_identifier is None:
        if body.user is not None:
            spelling.add("user")
        return body.user
    if body.user is not None:
        extras["/user"] = encode(body.user)
    return body.safety_identifier


def _read_metadata(given: Raw, extras: dict[str, bytes]) -> dict[str, str] | None:
    raw = present(given)
    if raw is None:
        return None
    try:
        return _METADATA.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        extras["/metadata"] = raw
        return None


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request."""
    words = request.spelling
    sampling, thinking = request.sampling, request.thinking
    body: dict[str, Any] = {"messages": _write_messages(request)}
    if request.model and MODEL_IN_URL not in words:
        body["model"] = request.model
    _write_tools(request, body)
    if request.tool_choice is not None:
        write_choice(request.tool_choice, request, body)
    limit = next((word for word in _LIMIT_WORDS if word in words), traits.max_tokens_word)
    stop = sampling.stop[0] if "stop text" in words else sampling.stop
    settings = {
        **{name: getattr(sampling, name) for name in _SAMPLING},
        limit: sampling.max_tokens,
        "stop": stop if sampling.stop or "stop []" in words else None,
        "reasoning_effort": thinking.effort if thinking is not None else None,
        "response_format": _write_output(request.output, words) if request.output is not None else None,
        "verbosity": request.verbosity,
        "n": request.candidates,
        _USER_WORDS["user" in words]: request.user,
        "metadata": request.metadata,
        "stream": request.stream if request.stream or "stream false" in words else None,
    }
    body.update({name: value for name, value in settings.items() if value is not None})
    fields = own_extras(request, wire.NAME)
    encoded = graft(encode(body), fields) if fields else encode(body)
    return Call(encoded, request.model, request.stream)


def _write_messages(request: Request) -> list[Written]:
    split = leading_systems(request.messages)
    messages = [item for message in request.messages[:split] for item in write_message(message)]
    if request.written:
        messages.append(Raw(request.written))
    messages.extend([item for message in request.messages[split:] for item in write_message(message)])
    return messages


def _write_tools(request: Request, body: dict[str, Any]) -> None:
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
        return
    if not request.tools and not request.spelling:
        return
    for word, legacy in (("tools", False), ("functions", True)):
        written = write_tools(request.tools, legacy=legacy)
        if written or f"{word} []" in request.spelling:
            body[word] = written


def _write_output(output: OutputFormat, spelling: frozenset[str]) -> dict[str, Any]:
    if output.kind != "json_schema":
        return {"type": _FORMAT_WORDS[output.kind]}
    shape: dict[str, Any] = {"name": output.name or "answer"}
    if output.description or "output description" in spelling:
        shape["description"] = output.description
    if output.schema is not None:
        shape["schema"] = Raw(output.schema)
    if output.strict is not None:
        shape["strict"] = output.strict
    return {"type": "json_schema", "json_schema": shape}
