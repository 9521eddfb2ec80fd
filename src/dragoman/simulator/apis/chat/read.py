"""Read what a request asks of the model."""

from collections.abc import Iterator
from json import JSONDecodeError, loads
from typing import Any, cast

from dragoman.simulator.apis.chat.body import ChatRequest
from dragoman.simulator.apis.chat.models import effort_of, is_search_model
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Ask, Call, Choice, Result, Tool, Turn

SEARCH = "web_search"
"""What the search of a search model is called; clients never see the name."""
_UNKNOWN_IMAGE = "image/*"
_UNKNOWN_FILE = "application/octet-stream"


def read(request: ChatRequest) -> Ask:
    """Return everything the model looks at."""
    stop = request.get("stop")
    return Ask(
        model=request.model,
        turns=tuple(_turns(request.list("messages"))),
        tools=tuple(_tools(request)),
        choice=_choice(request),
        max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        output_schema=_output_schema(request.get("response_format") or {}),
        thinks=effort_of(request.model, request.get("reasoning_effort")) != "none",
        seed=request.get("seed") or 0,
        candidates=request.get("n") or 1,
    )


def _parts(message: Json) -> list[Json]:
    """Return the parts of a message; a text is one part."""
    content: Any = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _text(message: Json) -> str:
    return "\n".join(part[part["type"]] for part in _parts(message) if part["type"] in {"text", "refusal"})


def _media_type(data_url: str | None, otherwise: str) -> str:
    if data_url is None or not data_url.startswith("data:"):
        return otherwise
    return data_url[5:].split(",", 1)[0].split(";", 1)[0] or otherwise


def _media(message: Json) -> Iterator[str]:
    for part in _parts(message):
        match part["type"]:
            case "image_url":
                yield _media_type(part["image_url"]["url"], _UNKNOWN_IMAGE)
            case "input_audio":
                yield f"audio/{part['input_audio']['format']}"
            case "file":
                yield _media_type(part["file"].get("file_data"), _UNKNOWN_FILE)
            case _:
                continue


def _turns(messages: list[Json]) -> Iterator[Turn]:
    """Turn messages into turns; results that follow one another are one turn."""
    names: dict[str, str] = {}
    results: list[Result] = []
    for message in messages:
        if message["role"] in {"tool", "function"}:
            call_id = message.get("tool_call_id", "")
            name = names.get(call_id, "") if call_id or message["role"] == "tool" else message["name"]
            results.append(Result(call_id=call_id, name=name, text=_text(message)))
            continue
        if results:
            yield Turn(role="user", results=tuple(results))
            results = []
        turn = _turn(message)
        names.update((call.id, call.name) for call in turn.calls)
        yield turn
    if results:
        yield Turn(role="user", results=tuple(results))


def _turn(message: Json) -> Turn:
    text = _text(message)
    match message["role"]:
        case "user":
            return Turn(role="user", text=text, media=tuple(_media(message)))
        case "assistant":
            calls = [_call(call) for call in message.get("tool_calls") or ()]
            if called := message.get("function_call"):
                calls.append(Call(id="", name=called["name"], arguments=_arguments(called["arguments"])))
            return Turn(role="assistant", text=text or message.get("refusal") or "", calls=tuple(calls))
        case _:
            return Turn(role="system", text=text)


def _call(call: Json) -> Call:
    called = call[call["type"]]
    arguments = _arguments(called["arguments"]) if call["type"] == "function" else called["input"]
    return Call(id=call["id"], name=called["name"], arguments=arguments)


def _arguments(text: str) -> Json | str:
    """Read arguments; what is no JSON object stays as it was written."""
    try:
        value: Any = loads(text or "{}")
    except (JSONDecodeError, RecursionError):
        return text
    return cast("Json", value) if isinstance(value, dict) else text


def _tools(request: ChatRequest) -> Iterator[Tool]:
    for tool in request.list("tools"):
        if tool["type"] == "function":
            yield _function(tool["function"])
        else:
            custom = tool["custom"]
            yield Tool(name=custom["name"], description=custom.get("description") or "", kind="custom")
    for function in request.list("functions"):
        yield _function(function)
    if is_search_model(request.model):
        yield Tool(name=SEARCH, description="Search the web", kind="search")


def _function(function: Json) -> Tool:
    return Tool(
        name=function["name"],
        description=function.get("description") or "",
        schema=function.get("parameters") or {},
    )


def _choice(request: ChatRequest) -> Choice:
    parallel = request.get("parallel_tool_calls") is not False
    choice = request.get("tool_choice")
    match choice:
        case None:
            return _legacy_choice(request) if request.get("functions") else Choice(parallel=parallel)
        case str():
            return Choice(mode=cast("Any", choice), parallel=parallel)
        case {"type": "allowed_tools", "allowed_tools": allowed}:
            names = tuple(_name(tool) for tool in allowed["tools"])
            return Choice(mode=allowed["mode"], names=names, parallel=parallel)
        case _:
            return Choice(mode="required", names=(_name(choice),), parallel=parallel)


def _name(tool: Json) -> str:
    return tool[tool["type"]]["name"]


def _legacy_choice(request: ChatRequest) -> Choice:
    """Read `function_call`: before there were tools, there was one call at a time."""
    choice = request.get("function_call") or "auto"
    if isinstance(choice, str):
        return Choice(mode=cast("Any", choice), parallel=False)
    return Choice(mode="required", names=(choice["name"],), parallel=False)


def _output_schema(answer: Json) -> Json | None:
    match answer.get("type"):
        case "json_schema":
            return answer["json_schema"].get("schema") or {}
        case "json_object":
            return {}
        case _:
            return None
