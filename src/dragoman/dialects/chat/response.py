"""A whole reply, parsed and built.

Rules: answer 0 is the reply, any other stays whole in extras. The parts stand in the order reasoning, text, refusal,
calls. What decides the finish is what was seen, not the vendor's word alone. Replies that are nothing but text and
calls are read straight, by `plain_reply`.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire, wire_reply, words
from dragoman.dialects.chat.errors import read_error
from dragoman.dialects.chat.finish import finish_word, is_whole, read_finish, read_usage, write_counts, write_usage
from dragoman.dialects.chat.messages import read_content
from dragoman.dialects.chat.parts import (
    is_legacy,
    known_extras,
    read_call,
    read_citation,
    read_legacy_call,
    with_extras,
    write_call,
    write_citation,
    write_part,
)
from dragoman.dialects.chat.plain_reply import read_plain
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.chat.words import spelled
from dragoman.wire.json import Malformed, encode, graft
from dragoman.wire.shape import Unread


def parse_response(body: bytes) -> Response:
    """Read a whole reply; one that holds an error, or nothing, raises it."""
    return read_plain(body) or read_any(body)


def read_any(body: bytes) -> Response:
    """Read a reply with whatever it may hold."""
    try:
        reply, unread = wire_reply.REPLY.read(body)
        error = wire.present(reply.error)
        if error is not None and not reply.choices:
            raise read_error(error)
        if not reply.choices:
            raise Problem("malformed_reply", "the reply has no choices", where="/choices")
        position, choice, below = _first_choice(reply.choices)
        usage = read_usage(wire.present(reply.usage))
    except Malformed as problem:
        raise Problem("malformed_reply", problem.message, where=problem.where) from None
    extras = unread.rest() if unread is not None else {}
    if error is not None:
        extras["/error"] = error
    parts = _read_message(choice.message or wire_reply.Said(), f"/choices/{position}/message", below, extras)
    if below is not None:
        extras.update(below.rest())
    for index, raw in enumerate(reply.choices):
        if index != position:
            extras[f"/choices/{index}"] = bytes(raw)
    finish = read_finish(
        choice.finish_reason,
        called=any(isinstance(part, ToolCall) or part.spelling == words.CALL for part in parts),
        refused=any(isinstance(part, Refusal) for part in parts),
        stopped_by=extras.get(f"/choices/{position}/stop_reason"),
    )
    return Response(
        id=reply.id or "",
        model=reply.model or "",
        parts=judged(parts, finish),
        finish=finish,
        usage=usage,
        created=int(reply.created) if reply.created else None,
        extras=known_extras(extras),
    )


def _first_choice(choices: list[Raw]) -> tuple[int, wire_reply.ReplyChoice, Unread | None]:
    first = _read_choice(choices, 0)
    if first[1].index in (0, None):
        return first
    others = (_read_choice(choices, position) for position in range(1, len(choices)))
    return next((other for other in others if other[1].index == 0), first)


def _read_choice(choices: list[Raw], position: int) -> tuple[int, wire_reply.ReplyChoice, Unread | None]:
    choice, below = wire_reply.REPLY_CHOICE.read(choices[position])
    if below is None:
        return position, choice, None
    unread = Unread()
    for pointer, raw in below.rest().items():
        unread.add(f"/choices/{position}{pointer}", raw)
    return position, choice, unread


def _read_message(
    message: wire_reply.Said, where: str, unread: Unread | None, extras: dict[str, bytes]
) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for word, text in (("reasoning_content", message.reasoning_content), ("reasoning", message.reasoning)):
        if text and not (word == "reasoning" and text == message.reasoning_content):
            parts.append(Reasoning(texts=(text,), where=f"{where}/{word}", spelling=spelled(word)))
    if message.content:
        spelling = words.PART if isinstance(message.content, list) else ""
        parts.extend(_read_said(message, spelling, where, unread))
    if message.refusal:
        parts.append(Refusal(text=message.refusal, where=f"{where}/refusal"))
    for index, call in enumerate(message.tool_calls or ()):
        parts.append(_named(read_call(call, f"{where}/tool_calls/{index}", unread)))
    if message.function_call is not None and (message.function_call.name or message.function_call.arguments):
        parts.append(_named(read_legacy_call(message.function_call, f"{where}/function_call", unread)))
    if message.annotations:
        _cite(parts, message.annotations, where, extras)
    return parts


def _read_said(message: wire_reply.Said, spelling: str, where: str, unread: Unread | None) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for part in read_content(message.content, where, unread):
        match part:
            case Text(text=text, extras=extras) if text or extras:
                parts.append(Text(text=text, where=part.where, spelling=spelling, extras=extras, cache=part.cache))
            case Text():
                continue
            case _:
                parts.append(part)
    return parts


def _named(call: ToolCall | Opaque) -> ToolCall | Opaque:
    if isinstance(call, ToolCall) and not call.name:
        raise Problem("malformed_reply", "a tool call has no name", where=call.where)
    return call


def _cite(parts: list[AnyPart], annotations: list[Raw], where: str, extras: dict[str, bytes]) -> None:
    """Put annotations on the text; without one they stay where they were."""
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, Text):
            places = (f"{where}/annotations/{number}" for number in range(len(annotations)))
            citations = tuple([read_citation(raw, place) for raw, place in zip(annotations, places, strict=True)])
            parts[index] = Text(
                text=part.text,
                citations=citations,
                where=part.where,
                spelling=part.spelling,
                extras=part.extras,
                cache=part.cache,
            )
            return
    extras[f"{where}/annotations"] = encode(annotations)


def judged(parts: list[AnyPart], finish: Finish) -> tuple[AnyPart, ...]:
    """Fill in absent arguments, and mark the calls that the limit cut off."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls:
        return tuple(parts)
    last = calls[-1]
    return tuple([_judge(part, finish, part is last) if isinstance(part, ToolCall) else part for part in parts])


def _judge(call: ToolCall, finish: Finish, last: bool) -> ToolCall:
    whole = is_whole(call.form, call.arguments, finish, last)
    arguments = "{}" if whole and not call.arguments and call.form == "json" else call.arguments
    if whole and arguments is call.arguments:
        return call
    return ToolCall(
        id=call.id,
        name=call.name,
        arguments=arguments,
        form=call.form,
        complete=whole,
        where=call.where,
        spelling=call.spelling,
        signature=call.signature,
        extras=call.extras,
    )


def build_response(response: Response, _request: Request | None) -> bytes:
    """Write a whole reply."""
    fields = (own_extras(response, NAME) or {}) if response.extras is not None else {}
    message = _write_plain(response.parts)
    refusal = legacy = False
    if message is None:
        message = _write_message(response.parts)
        refusal = any(isinstance(part, Refusal) for part in response.parts)
        legacy = any(isinstance(part, ToolCall) and is_legacy(part) for part in response.parts)
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": finish_word(response.finish, refusal=refusal, legacy=legacy),
    }
    if "/choices/0/logprobs" not in fields:
        choice["logprobs"] = None
    body: dict[str, Any] = {
        "id": response.id,
        "object": "chat.completion",
        "created": response.created or 0,
        "model": response.model,
        "choices": [choice],
    }
    if response.usage is not None:
        usage = response.usage
        body["usage"] = write_counts(usage, {}) if usage.extras is None else Raw(write_usage(usage))
    return graft(encode(body), fields) if fields else encode(body)


def _write_plain(parts: tuple[AnyPart, ...]) -> dict[str, Any] | None:
    """Write what is nothing but texts and calls, as most replies are, straight; None for any other."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts:
        if part.spelling or part.extras is not None:
            return None
        if type(part) is Text and not part.citations:
            texts.append(part.text)
        elif type(part) is ToolCall and part.form == "json" and part.signature is None:
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function})
        else:
            return None
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    return message


def _write_message(parts: tuple[AnyPart, ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    reasoning: dict[str, list[str]] = {}
    said: list[AnyPart] = []
    refusals: list[str] = []
    calls: list[dict[str, Any] | Raw] = []
    citations: list[dict[str, Any] | Raw | None] = []
    size = 0
    for part in parts:
        match part:
            case Text():
                said.append(part)
                citations.extend([write_citation(one, size, len(part.text)) for one in part.citations])
                size += len(part.text)
            case ToolCall() if is_legacy(part):
                message["function_call"] = with_extras({"name": part.name, "arguments": part.arguments}, part)
            case ToolCall():
                calls.append(write_call(part, reply=True))
            case Reasoning(spelling=words.THINKING) | Refusal(spelling=words.PART):
                said.append(part)
            case Reasoning(texts=texts) if texts:
                word = words.REASONING.get(part.spelling, "reasoning_content")
                reasoning.setdefault(word, []).extend(texts)
            case Refusal(text=text):
                refusals.append(text)
            case Opaque(dialect=dialect, spelling=words.CALL, raw=raw) if dialect == NAME:
                calls.append(Raw(raw))
            case Opaque(dialect=dialect) if dialect == NAME:
                said.append(part)
            case _:
                continue
    message["content"] = _write_said(said)
    message.update({word: "\n\n".join(texts) for word, texts in reasoning.items()})
    if refusals:
        message["refusal"] = "".join(refusals)
    if calls:
        message["tool_calls"] = calls
    written = [value for value in citations if value is not None]
    if written:
        message["annotations"] = written
    return message


def _write_said(said: list[AnyPart]) -> str | list[Any] | None:
    """Write content as text, unless it came as a list or holds what text cannot say."""
    if not said:
        return None
    texts = [part.text for part in said if isinstance(part, Text) and part.spelling != words.PART]
    if len(texts) == len(said):
        return "".join(texts)
    return [value for value in map(write_part, said) if value is not None]
