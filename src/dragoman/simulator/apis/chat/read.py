"""Convert a Chat Completions request to the vendor-neutral `ModelRequest`."""

from collections.abc import Iterator
from json import JSONDecodeError, loads
from typing import Any, cast

from dragoman.simulator.apis.chat.body import ChatCompletionsRequest
from dragoman.simulator.apis.conversation import (
    Call,
    ModelRequest,
    RequestResult,
    RequestTool,
    RequestToolChoice,
    RequestTurn,
)
from dragoman.simulator.apis.openai.models import is_search_model, is_thinking
from dragoman.simulator.apis.rule import Json

SEARCH = "web_search"
"""The name of a search model's built-in search tool; clients never see it."""
_UNKNOWN_IMAGE = "image/*"
_UNKNOWN_FILE = "application/octet-stream"


def read_model_request(request: ChatCompletionsRequest) -> ModelRequest:
    """Return everything the model uses of a request."""
    stop = request.get("stop")
    return ModelRequest(
        model=request.model,
        turns=tuple(_read_turns(request.list("messages"))),
        tools=tuple(_read_tools(request)),
        choice=_read_choice(request),
        max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        output_schema=_read_output_schema(request.get("response_format") or {}),
        thinks=is_thinking(request, request.get("reasoning_effort")),
        seed=request.get("seed") or 0,
        candidates=request.get("n") or 1,
    )


def _read_parts(message: Json) -> list[Json]:
    """Return the parts of a message; a string is one text part."""
    content: Any = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _read_text(message: Json) -> str:
    return "\n".join(part[part["type"]] for part in _read_parts(message) if part["type"] in {"text", "refusal"})


def _parse_media_type(data_url: str | None, default: str) -> str:
    if data_url is None or not data_url.startswith("data:"):
        return default
    return data_url[5:].split(",", 1)[0].split(";", 1)[0] or default


def _read_media(message: Json) -> Iterator[str]:
    for part in _read_parts(message):
        match part["type"]:
            case "image_url":
                yield _parse_media_type(part["image_url"]["url"], _UNKNOWN_IMAGE)
            case "input_audio":
                yield f"audio/{part['input_audio']['format']}"
            case "file":
                yield _parse_media_type(part["file"].get("file_data"), _UNKNOWN_FILE)
            case _:
                continue


def _read_turns(messages: list[Json]) -> Iterator[RequestTurn]:
    """Convert messages to turns; consecutive results become one turn."""
    names: dict[str, str] = {}
    results: list[RequestResult] = []
    for message in messages:
        if message["role"] in {"tool", "function"}:
            call_id = message.get("tool_call_id", "")
            name = names.get(call_id, "") if call_id or message["role"] == "tool" else message["name"]
            results.append(RequestResult(call_id=call_id, name=name, text=_read_text(message)))
            continue
        if results:
            yield RequestTurn(role="user", results=tuple(results))
            results = []
        turn = _read_turn(message)
        names.update((call.id, call.name) for call in turn.calls)
        yield turn
    if results:
        yield RequestTurn(role="user", results=tuple(results))


def _read_turn(message: Json) -> RequestTurn:
    text = _read_text(message)
    match message["role"]:
        case "user":
            return RequestTurn(role="user", text=text, media=tuple(_read_media(message)))
        case "assistant":
            calls = [_read_call(call) for call in message.get("tool_calls") or ()]
            if called := message.get("function_call"):
                calls.append(Call(id="", name=called["name"], arguments=_parse_arguments(called["arguments"])))
            return RequestTurn(role="assistant", text=text or message.get("refusal") or "", calls=tuple(calls))
        case _:
            return RequestTurn(role="system", text=text)


def _read_call(call: Json) -> Call:
    called = call[call["type"]]
    arguments = _parse_arguments(called["arguments"]) if call["type"] == "function" else called["input"]
    return Call(id=call["id"], name=called["name"], arguments=arguments)


def _parse_arguments(text: str) -> Json | str:
    """Parse arguments; a text that is not a JSON object is returned unchanged."""
    try:
        value: Any = loads(text or "{}")
    except (JSONDecodeError, RecursionError):
        return text
    return cast("Json", value) if isinstance(value, dict) else text


def _read_tools(request: ChatCompletionsRequest) -> Iterator[RequestTool]:
    for tool in request.list("tools"):
        if tool["type"] == "function":
            yield _read_function(tool["function"])
        else:
            custom = tool["custom"]
            yield RequestTool(name=custom["name"], description=custom.get("description") or "", kind="custom")
    for function in request.list("functions"):
        yield _read_function(function)
    if is_search_model(request.model):
        yield RequestTool(name=SEARCH, description="Search the web", kind="search")


def _read_function(function: Json) -> RequestTool:
    return RequestTool(
        name=function["name"],
        description=function.get("description") or "",
        schema=function.get("parameters") or {},
    )


def _read_choice(request: ChatCompletionsRequest) -> RequestToolChoice:
    parallel = request.get("parallel_tool_calls") is not False
    choice = request.get("tool_choice")
    match choice:
        case None:
            return _read_legacy_choice(request) if request.get("functions") else RequestToolChoice(parallel=parallel)
        case str():
            return RequestToolChoice(mode=cast("Any", choice), parallel=parallel)
        case {"type": "allowed_tools", "allowed_tools": allowed}:
            names = tuple(_read_tool_name(tool) for tool in allowed["tools"])
            return RequestToolChoice(mode=allowed["mode"], names=names, parallel=parallel)
        case _:
            return RequestToolChoice(mode="required", names=(_read_tool_name(choice),), parallel=parallel)


def _read_tool_name(tool: Json) -> str:
    return tool[tool["type"]]["name"]


def _read_legacy_choice(request: ChatCompletionsRequest) -> RequestToolChoice:
    """Read the legacy `function_call`, which allows one call at a time."""
    choice = request.get("function_call") or "auto"
    if isinstance(choice, str):
        return RequestToolChoice(mode=cast("Any", choice), parallel=False)
    return RequestToolChoice(mode="required", names=(choice["name"],), parallel=False)


def _read_output_schema(answer: Json) -> Json | None:
    match answer.get("type"):
        case "json_schema":
            return answer["json_schema"].get("schema") or {}
        case "json_object":
            return {}
        case _:
            return None
