"""Read what a request asks of the model."""

from collections.abc import Iterator
from json import JSONDecodeError, loads
from typing import Any, cast

from dragoman.simulator.apis.chat.models import effort_of, is_search_model
from dragoman.simulator.apis.chat.shape import (
    AllowedTools,
    AssistantMessage,
    ChatRequest,
    DeveloperMessage,
    FunctionDefinition,
    FunctionMessage,
    FunctionTool,
    FunctionToolCall,
    JsonObjectAnswer,
    JsonSchemaAnswer,
    Message,
    Named,
    NamedCustom,
    NamedFunction,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from dragoman.simulator.apis.chat.shape_parts import (
    AudioPart,
    Content,
    FilePart,
    ImagePart,
    RefusalPart,
    TextPart,
)
from dragoman.simulator.talk import Ask, Call, Choice, Result, Turn
from dragoman.simulator.talk import Tool as TalkTool

SEARCH = "web_search"
"""What the search of a search model is called; clients never see the name."""
_UNKNOWN_IMAGE = "image/*"
_UNKNOWN_FILE = "application/octet-stream"


def read(body: ChatRequest) -> Ask:
    """Return everything the model looks at."""
    return Ask(
        model=body.model,
        turns=tuple(_turns(body.messages)),
        tools=tuple(_tools(body)),
        choice=_choice(body),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        stop=(body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ()),
        output_schema=_output_schema(body),
        thinks=effort_of(body.model, body.reasoning_effort) != "none",
        seed=body.seed or 0,
        candidates=body.n or 1,
    )


def _text(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = [
        part.text if isinstance(part, TextPart) else part.refusal
        for part in content
        if isinstance(part, TextPart | RefusalPart)
    ]
    return "\n".join(texts)


def _media_type(data_url: str | None, otherwise: str) -> str:
    if data_url is None or not data_url.startswith("data:"):
        return otherwise
    return data_url[5:].split(",", 1)[0].split(";", 1)[0] or otherwise


def _media(content: Content | None) -> tuple[str, ...]:
    shown: list[str] = []
    for part in content if isinstance(content, list) else ():
        match part:
            case ImagePart():
                shown.append(_media_type(part.image_url.url, _UNKNOWN_IMAGE))
            case AudioPart():
                shown.append(f"audio/{part.input_audio.format}")
            case FilePart():
                shown.append(_media_type(part.file.file_data, _UNKNOWN_FILE))
            case _:
                continue
    return tuple(shown)


def _turns(messages: list[Message]) -> Iterator[Turn]:
    """Turn messages into turns; results that follow one another are one turn."""
    names: dict[str, str] = {}
    results: list[Result] = []
    for message in messages:
        if isinstance(message, ToolMessage | FunctionMessage):
            results.append(_result(message, names))
            continue
        if results:
            yield Turn(role="user", results=tuple(results))
            results = []
        turn = _turn(message)
        names.update((call.id, call.name) for call in turn.calls)
        yield turn
    if results:
        yield Turn(role="user", results=tuple(results))


def _result(message: ToolMessage | FunctionMessage, names: dict[str, str]) -> Result:
    text = _text(message.content)
    if isinstance(message, FunctionMessage):
        return Result(call_id="", name=message.name, text=text)
    return Result(call_id=message.tool_call_id, name=names.get(message.tool_call_id, ""), text=text)


def _turn(message: DeveloperMessage | SystemMessage | UserMessage | AssistantMessage) -> Turn:
    text = _text(message.content)
    match message:
        case DeveloperMessage() | SystemMessage():
            return Turn(role="system", text=text)
        case UserMessage():
            return Turn(role="user", text=text, media=_media(message.content))
        case AssistantMessage():
            calls = [_call(call) for call in message.tool_calls or ()]
            if message.function_call is not None:
                called = message.function_call
                calls.append(Call(id="", name=called.name, arguments=_arguments(called.arguments)))
            return Turn(role="assistant", text=text or message.refusal or "", calls=tuple(calls))


def _call(call: ToolCall) -> Call:
    if isinstance(call, FunctionToolCall):
        return Call(id=call.id, name=call.function.name, arguments=_arguments(call.function.arguments))
    return Call(id=call.id, name=call.custom.name, arguments=call.custom.input)


def _arguments(text: str) -> dict[str, Any] | str:
    """Read arguments; what is no JSON object stays as it was written."""
    try:
        value: Any = loads(text or "{}")
    except (JSONDecodeError, RecursionError):
        return text
    return cast("dict[str, Any]", value) if isinstance(value, dict) else text


def _tools(body: ChatRequest) -> Iterator[TalkTool]:
    for tool in body.tools or ():
        yield _tool(tool)
    for function in body.functions or ():
        yield _function(function)
    if is_search_model(body.model):
        yield TalkTool(name=SEARCH, description="Search the web", kind="search")


def _tool(tool: Tool) -> TalkTool:
    if isinstance(tool, FunctionTool):
        return _function(tool.function)
    return TalkTool(name=tool.custom.name, description=tool.custom.description or "", kind="custom")


def _function(function: FunctionDefinition) -> TalkTool:
    return TalkTool(name=function.name, description=function.description or "", schema=function.parameters or {})


def _choice(body: ChatRequest) -> Choice:
    parallel = body.parallel_tool_calls is not False
    choice = body.tool_choice
    match choice:
        case "auto" | "none" | "required":
            return Choice(mode=choice, parallel=parallel)
        case NamedFunction() | NamedCustom():
            return Choice(mode="required", names=(_named(choice),), parallel=parallel)
        case AllowedTools():
            names = tuple(_named(tool) for tool in choice.allowed_tools.tools)
            return Choice(mode=choice.allowed_tools.mode, names=names, parallel=parallel)
        case None:
            return _legacy_choice(body) if body.functions else Choice(parallel=parallel)


def _named(tool: NamedFunction | NamedCustom) -> str:
    return tool.function.name if isinstance(tool, NamedFunction) else tool.custom.name


def _legacy_choice(body: ChatRequest) -> Choice:
    """Read `function_call`: before there were tools, there was one call at a time."""
    if isinstance(body.function_call, Named):
        return Choice(mode="required", names=(body.function_call.name,), parallel=False)
    return Choice(mode=body.function_call or "auto", parallel=False)


def _output_schema(body: ChatRequest) -> dict[str, Any] | None:
    match body.response_format:
        case JsonSchemaAnswer(json_schema=asked):
            return asked.schema or {}
        case JsonObjectAnswer():
            return {}
        case _:
            return None
