"""Judge request bodies by the SDKs' own request types, and by the rules of pairing no type can express.

Members an SDK type does not know are complaints at any depth: validation drops them, so they are what is missing
from the validated value.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, Required, get_origin, get_type_hints

from google.genai import types as genai_types
from pydantic import TypeAdapter, ValidationError

from oracles.clients import silent

_GEMINI_MEMBERS: dict[str, Any] = {
    "contents": list[genai_types.Content],
    "systemInstruction": genai_types.Content,
    "tools": list[genai_types.Tool],
    "toolConfig": genai_types.ToolConfig,
    "safetySettings": list[genai_types.SafetySetting],
    "generationConfig": genai_types.GenerationConfig,
    "cachedContent": str,
    "labels": dict[str, str],
    "serviceTier": str,
    "store": bool,
    "continuationToken": str,
}
_OLDER_KNOBS = {"temperature", "top_p", "top_k"}
_PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_request(dialect: str, body: bytes, *, older_model: bool = False) -> list[str]:
    """Return what the official SDK's request types have against `body`.

    Anthropic's SDK dropped the sampling parameters with API version 2026-10-21; `older_model` still takes them.
    """
    value = json.loads(body)
    if dialect == "messages" and older_model:
        value = {name: member for name, member in value.items() if name not in _OLDER_KNOBS}
    with silent():
        return list(_gemini(value) if dialect == "gemini" else _find_typed_dict(dialect, value))


def check_pairs(dialect: str, body: bytes, *, older_model: bool = False) -> list[str]:
    """Return what a service would have against the order of turns, calls and results.

    Gemini up to 3.5 takes turns strictly, and results next to other user parts; from 3.6 on results are alone in a turn.
    """
    value = json.loads(body)
    return list(_gemini_pairs(value, older_model=older_model) if dialect == "gemini" else _PAIRS[dialect](value))


@functools.cache
def _request_type(dialect: str) -> type:
    match dialect:
        case "chat":
            from openai.types.chat import completion_create_params as chat

            return chat.CompletionCreateParamsStreaming
        case "responses":
            from openai.types.responses import response_create_params as responses

            return responses.ResponseCreateParamsStreaming
        case _:
            from anthropic.types import message_create_params as messages

            return messages.MessageCreateParamsStreaming


@functools.cache
def _list_required(dialect: str) -> set[str]:
    """`__required_keys__` does not see through annotations that are strings, as the SDKs' are."""
    hints = get_type_hints(_request_type(dialect), include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is Required and name != "stream"}


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Adapters live for ever: the lazy iterators they hand out break when they are collected."""
    return TypeAdapter(kind)


@functools.cache
def _member_adapters(dialect: str) -> dict[str, TypeAdapter[Any]]:
    hints = _GEMINI_MEMBERS if dialect == "gemini" else get_type_hints(_request_type(dialect), include_extras=False)
    return {name: _adapter(hint) for name, hint in hints.items() if name != "stream"}


def _find_typed_dict(dialect: str, value: dict[str, Any]) -> Iterator[str]:
    yield from _members(dialect, {name: member for name, member in value.items() if name != "stream"})
    yield from (f"/{name} is missing" for name in sorted(_list_required(dialect) - value.keys()))


def _gemini(value: dict[str, Any]) -> Iterator[str]:
    yield from _members("gemini", value)
    if "contents" not in value:
        yield "/contents is missing"


def _members(dialect: str, value: dict[str, Any]) -> Iterator[str]:
    adapters = _member_adapters(dialect)
    for name, member in value.items():
        adapter = adapters.get(name)
        if adapter is None:
            yield f"/{name} is not known"
            continue
        try:
            validated = adapter.validate_python(member)
            kept = member if dialect == "gemini" else _force_tool(validated)
        except ValidationError as error:
            yield f"/{name}: {_first(error)}"
            continue
        yield from _remove_required(member, kept, f"/{name}")


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False)
    deepest = max(details, key=lambda detail: len(detail["loc"]))
    return f"{deepest['loc']} {deepest['msg']} ({len(details)} complaints)"[:400]


def _force_tool(value: Any) -> Any:
    """Walk lazily validated iterables, so that they are validated."""
    if isinstance(value, dict):
        return {name: _force_tool(member) for name, member in value.items()}
    if isinstance(value, str | bytes | int | float) or value is None:
        return value
    return [_force_tool(member) for member in value]


def _remove_required(sent: Any, kept: Any, where: str) -> Iterator[str]:
    match sent, kept:
        case dict(), dict():
            for name, member in sent.items():
                if name not in kept:
                    yield f"{where}/{name} is not known"
                else:
                    yield from _remove_required(member, kept[name], f"{where}/{name}")
        case list(), list():
            for index, (member, keeps) in enumerate(zip(sent, kept, strict=False)):
                yield from _remove_required(member, keeps, f"{where}/{index}")
        case _:
            pass


def _chat_pairs(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"/messages/{index} answers no open call"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"/messages/{index} comes before the results of {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if message.get("tool_calls") == []:
            yield f"/messages/{index} has an empty list of calls"
    if waiting:
        yield f"no results for {waiting}"


def _responses_pairs(body: dict[str, Any]) -> Iterator[str]:
    if isinstance(body["input"], str):
        return
    called: list[str] = []
    answered: list[str] = []
    for item in body["input"]:
        match item.get("type"):
            case "function_call" | "custom_tool_call":
                called.append(item["call_id"])
            case "function_call_output" | "custom_tool_call_output":
                answered.append(item["call_id"])
                if item["call_id"] not in called:
                    yield f"{item['call_id']} is answered before it is called"
            case _:
                pass
    if sorted(called) != sorted(answered):
        yield f"calls {called} and results {answered} do not match"
    yield from (f"call id {call!r} is not 1 to 64 long" for call in called if not 1 <= len(call) <= 64)


def _messages_pairs(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    role = ""
    for index, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message["role"] == role:
            yield f"/messages/{index} repeats the role {role}"
        role = message["role"]
        if not message["content"]:
            yield f"/messages/{index} is empty"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block["type"] for block in blocks[: len(results)]]
        if sorted(results) != sorted(waiting):
            yield f"/messages/{index} answers {results}, expected {waiting}"
        if any(kind != "tool_result" for kind in leading):
            yield f"/messages/{index} has something before its results"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        yield from (f"{call!r} is no legal call id" for call in waiting if not _PLAIN_ID.fullmatch(call))
    if waiting:
        yield f"no results for {waiting}"
    if body["messages"] and body["messages"][0]["role"] != "user":
        yield "the first message is not the user's"


def _gemini_pairs(body: dict[str, Any], *, older_model: bool) -> Iterator[str]:
    waiting: list[str] = []
    role = ""
    answered = False
    for index, content in enumerate(body["contents"]):
        results = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if content["role"] == role and not (answered and not results and not older_model):
            yield f"/contents/{index} repeats the role {role}"
        if results and len(results) < len(content["parts"]) and not older_model:
            yield f"/contents/{index} has something beside its results"
        role = content["role"]
        answered = bool(results)
        if not content["parts"]:
            yield f"/contents/{index} is empty"
        if results != waiting:
            yield f"/contents/{index} answers {results}, expected {waiting}"
        waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    if waiting:
        yield f"no results for {waiting}"
    if body["contents"] and body["contents"][0]["role"] != "user":
        yield "the first content is not the user's"


_PAIRS = {"chat": _chat_pairs, "responses": _responses_pairs, "messages": _messages_pairs}
