"""Whole replies that are nothing but a text and calls, perhaps with thoughts before them: what most are, read straight.

`response.py` reads any reply, these included, and what it would say of them is said here. Whatever is not quite plain
(several answers, a refusal, an annotation, a signature, an unknown member) is left to it.
"""

from operator import attrgetter

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.response import Response
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.chat.finish import read_finish, usage_of
from dragoman.dialects.chat.parts import known_extras
from dragoman.dialects.chat.wire import ABSENT
from dragoman.dialects.chat.words import spelled
from dragoman.wire.pointer import Numbered
from dragoman.wire.shape import Wire

_MESSAGE = "/choices/0/message"
_CALLS = Numbered(f"{_MESSAGE}/tool_calls/")
_THOUGHT = spelled("reasoning_content")


class _Function(Wire):
    name: str
    arguments: str


class _Call(Wire):
    function: _Function
    type: str
    id: str | None = None
    index: int | None = None


class _Message(Wire):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: None = None
    refusal: None = None
    tool_calls: list[_Call] | None = None
    function_call: None = None
    annotations: list[None] | None = None
    audio: None = None


class _Choice(Wire):
    message: _Message
    finish_reason: str
    index: int | None = None
    logprobs: None = None
    stop_reason: None = None
    content_filter_results: Raw = ABSENT
    native_finish_reason: Raw = ABSENT


class _Reply(Wire):
    choices: list[_Choice]
    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    usage: wire_reply.Usage | None = None
    error: None = None
    system_fingerprint: Raw = ABSENT
    service_tier: Raw = ABSENT
    provider: Raw = ABSENT
    timings: Raw = ABSENT
    prompt_filter_results: Raw = ABSENT


_REPLY: Decoder[_Reply] = Decoder(_Reply)
_CARRIED = ("system_fingerprint", "service_tier", "provider", "timings", "prompt_filter_results")
_CARRIED_BELOW = ("content_filter_results", "native_finish_reason")
"""What OpenAI, Azure, OpenRouter and llama.cpp say with every reply, and only their own clients hear."""
_carried = attrgetter(*_CARRIED)
_carried_below = attrgetter(*_CARRIED_BELOW)


def read_plain(body: bytes) -> Response | None:
    """Return a reply that is plain; None for any other, what is no reply included."""
    try:
        reply = _REPLY.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    choice = reply.choices[0] if len(reply.choices) == 1 else None
    if choice is None or choice.index or choice.message.annotations:
        return None
    parts = _read_parts(choice.message)
    finish = read_finish(choice.finish_reason, called=bool(choice.message.tool_calls), refused=False)
    # Whether a limit has cut off a call takes a closer look.
    if parts is None or (finish.reason == "length" and choice.message.tool_calls):
        return None
    fields = {f"/{name}": bytes(raw) for name, raw in zip(_CARRIED, _carried(reply), strict=True) if raw}
    for name, raw in zip(_CARRIED_BELOW, _carried_below(choice), strict=True):
        if raw:
            fields[f"/choices/0/{name}"] = bytes(raw)
    usage = usage_of(reply.usage, {}) if reply.usage is not None else None
    extras = known_extras(fields)
    counts = usage.extras if usage is not None else None
    if (extras is not None and not extras.is_ascii) or (counts is not None and not counts.is_ascii):
        return None
    return Response(
        id=reply.id or "",
        model=reply.model or "",
        parts=tuple(parts),
        finish=finish,
        usage=usage,
        created=reply.created or None,
        extras=extras,
    )


def _read_parts(message: _Message) -> list[AnyPart] | None:
    parts: list[AnyPart] = []
    if message.reasoning_content:
        texts = (message.reasoning_content,)
        parts.append(Reasoning(texts=texts, where=f"{_MESSAGE}/reasoning_content", spelling=_THOUGHT))
    if message.content:
        parts.append(Text(text=message.content, where=f"{_MESSAGE}/content"))
    calls = message.tool_calls
    if calls:
        for call, where in zip(calls, _CALLS.some(0, len(calls)), strict=True):
            function = call.function
            if call.type != "function" or not function.name:
                return None
            arguments = function.arguments or "{}"
            parts.append(ToolCall(id=call.id or "", name=function.name, arguments=arguments, where=where))
    return parts
