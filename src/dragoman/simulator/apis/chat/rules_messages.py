"""Rules about the turns of a conversation: what may be empty, and which call a result belongs to."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from dragoman.simulator.apis.chat import words
from dragoman.simulator.apis.chat.models import family_of
from dragoman.simulator.apis.chat.shape import (
    AssistantMessage,
    ChatRequest,
    CustomToolCall,
    DeveloperMessage,
    FunctionMessage,
    FunctionToolCall,
    ToolCall,
    ToolMessage,
)
from dragoman.simulator.rule import Rule, Situation, Violation

_LONGEST_ID = 64
_LONGEST_NAME = 64
_CALL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_SPEAKER = re.compile(r"[^\s<|\\/>]+")
PROBED = "reported: probe of gpt-5.6-terra on /v1/chat/completions, 2026-08-30"


def _check_no_messages(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if not body.messages:
        yield Violation(words.empty_array("/messages"), "/messages")


def _check_no_calls(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        if isinstance(message, AssistantMessage) and message.tool_calls == []:
            where = f"/messages/{place}/tool_calls"
            yield Violation(words.empty_array(where), where)


def _stands_in(message: AssistantMessage) -> bool:
    """Tell whether something takes the place of an assistant's content."""
    substitutes = (message.tool_calls, message.function_call, message.refusal, message.audio)
    return any(substitute is not None for substitute in substitutes)


def _check_content(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        if message.content is not None or isinstance(message, DeveloperMessage):
            continue
        if not (isinstance(message, AssistantMessage) and _stands_in(message)):
            yield Violation("Invalid value for 'content': expected a string, got null.", f"/messages/{place}/content")


class Fault(Struct, frozen=True):
    """What is wrong with the pairing of calls and results at one message."""

    kind: Literal["unasked", "stranger", "twice", "unanswered"]
    place: int
    ids: tuple[str, ...]


def _pairing(body: ChatRequest) -> Iterator[Fault]:
    """Walk the turns: results answer the calls of the assistant right before them, each once, and all of them."""
    asked: list[str] = []
    answered: set[str] = set()
    for place, message in enumerate(body.messages):
        if isinstance(message, ToolMessage):
            call_id = message.tool_call_id
            if not asked:
                yield Fault("unasked", place, (call_id,))
            elif call_id not in asked:
                yield Fault("stranger", place, (call_id,))
            elif call_id in answered:
                yield Fault("twice", place, (call_id,))
            answered.add(call_id)
            continue
        if missing := tuple(call_id for call_id in asked if call_id not in answered):
            yield Fault("unanswered", place, missing)
        asked = [call.id for call in _calls(message)]
        answered = set()
    if missing := tuple(call_id for call_id in asked if call_id not in answered):
        yield Fault("unanswered", len(body.messages) - 1, missing)


def _calls(message: object) -> list[ToolCall]:
    return (message.tool_calls or []) if isinstance(message, AssistantMessage) else []


def _check_unasked(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(body):
        if fault.kind == "unasked":
            yield Violation(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                f"/messages/{fault.place}/role",
            )


def _check_stranger(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(body):
        if fault.kind == "stranger":
            yield Violation(
                f"Invalid parameter: 'tool_call_id' of '{fault.ids[0]}' not found in 'tool_calls' of previous message.",
                f"/messages/{fault.place}/tool_call_id",
            )


def _check_twice(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        ids = [call.id for call in _calls(message)]
        for call_id in ids:
            if ids.count(call_id) > 1:
                yield _duplicate(call_id, place)
    for fault in _pairing(body):
        if fault.kind == "twice":
            yield _duplicate(fault.ids[0], fault.place)


def _duplicate(call_id: str, place: int) -> Violation:
    return Violation(f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{place}]", f"/messages/{place}")


def _check_unanswered(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(body):
        if fault.kind == "unanswered":
            yield Violation(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(fault.ids),
                f"/messages/{fault.place}/role",
            )


def _check_id_length(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        for index, call in enumerate(_calls(message)):
            if len(call.id) > _LONGEST_ID:
                where = f"/messages/{place}/tool_calls/{index}/id"
                yield Violation(words.long_string(where, _LONGEST_ID, len(call.id)), where)


def _name_fault(name: str, pattern: re.Pattern[str], where: str) -> Violation | None:
    if not name:
        return Violation(words.empty_string(where), where)
    if not pattern.fullmatch(name):
        return Violation(words.unlike_pattern(where, f"^{pattern.pattern}$"), where)
    if len(name) > _LONGEST_NAME:
        return Violation(words.long_string(where, _LONGEST_NAME, len(name)), where)
    return None


def check_tool_name(name: str, where: str) -> Iterator[Violation]:
    """Judge the name of a tool, wherever it stands."""
    if (fault := _name_fault(name, _CALL_NAME, where)) is not None:
        yield fault


def _check_call_name(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        for index, call in enumerate(_calls(message)):
            where = f"/messages/{place}/tool_calls/{index}"
            match call:
                case FunctionToolCall():
                    yield from check_tool_name(call.function.name, f"{where}/function/name")
                case CustomToolCall():
                    yield from check_tool_name(call.custom.name, f"{where}/custom/name")


def _check_speaker(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(body.messages):
        name = None if isinstance(message, FunctionMessage) else message.name
        fault = None if name is None else _name_fault(name, _SPEAKER, f"/messages/{place}/name")
        if fault is not None:
            yield fault


def _check_function_role(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if family_of(body.model).generation < (5, 6):
        return
    for place, message in enumerate(body.messages):
        if isinstance(message, FunctionMessage):
            where = f"/messages/{place}/role"
            yield Violation(
                f"Unsupported value: '{words.named(where)}' does not support 'function' with this model.", where
            )


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.messages-empty",
        "There is at least one message.",
        "recorded: openai_chat/ai-gateway-0008",
        _check_no_messages,
    ),
    Rule(
        "chat.tool-calls-empty",
        "An assistant message without calls has no `tool_calls`, not an empty list.",
        "wire/openai_chat.md section 2",
        _check_no_calls,
    ),
    Rule(
        "chat.tool-call-id-length",
        "The id of a call has at most 64 characters.",
        "wire/openai_chat.md section 5: a limit of 40 was enforced for years, 64 since January 2026",
        _check_id_length,
    ),
    Rule(
        "chat.call-name",
        "A called tool's name has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3; for calls of the history: reported in public issues",
        _check_call_name,
    ),
    Rule(
        "chat.speaker-name",
        "The name of a speaker has 1 to 64 characters without spaces, angle brackets, bars and slashes.",
        "reported in public issues: the pattern is told in the error",
        _check_speaker,
    ),
    Rule(
        "chat.tool-result-unasked",
        "A `tool` message follows an assistant message with `tool_calls`.",
        "wire/openai_chat.md section 2",
        _check_unasked,
    ),
    Rule(
        "chat.tool-result-unknown-id",
        "The id of a `tool` message is one of the calls it follows.",
        "wire/openai_chat.md section 2",
        _check_stranger,
    ),
    Rule(
        "chat.tool-call-id-duplicate",
        "No two calls of a message have the same id, and none is answered twice.",
        "reported in public issues; wire/mapping.md section 2 (duplicated result: reject)",
        _check_twice,
    ),
    Rule(
        "chat.tool-calls-unanswered",
        "Every call is answered by a `tool` message before any other message.",
        "wire/openai_chat.md section 2",
        _check_unanswered,
    ),
    Rule(
        "chat.function-role",
        "GPT-5.6 and later know no messages with the role `function`.",
        PROBED,
        _check_function_role,
    ),
)
CONTENT_RULE: Rule[ChatRequest] = Rule(
    "chat.content-required",
    "Content is null or absent only in an assistant message that has calls, a refusal or audio instead.",
    f"wire/openai_chat.md section 2; {PROBED}",
    _check_content,
)
"""OpenAI looks at this after everything else about the request."""
