"""What a request asks of the model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from dragoman.simulator.apis.openai.schemas import made_strict
from dragoman.simulator.apis.responses.rules_model import thinks
from dragoman.simulator.apis.responses.rules_tools import clients_tools, declared, kind_of
from dragoman.simulator.apis.responses.shape import JsonFormat, Request, SchemaFormat
from dragoman.simulator.apis.responses.shape_hosted import ConfigurationUpdate, Item
from dragoman.simulator.apis.responses.shape_items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    InputFile,
    InputImage,
    InputMessage,
    InputPart,
    InputText,
    OutputMessage,
    OutputText,
    ResultPart,
    ToolSearchCall,
    ToolSearchOutput,
)
from dragoman.simulator.apis.responses.shape_tools import (
    ChosenAllowed,
    ChosenCustom,
    ChosenFunction,
    CustomTool,
    NamespaceTool,
    ToolSearchTool,
)
from dragoman.simulator.apis.responses.shape_tools import Tool as DeclaredTool
from dragoman.simulator.talk import Ask, Call, Choice, Result, Tool, Turn

SEARCH_NAME = "tool_search"
_SEARCHES = ("web_search", "file_search")


def ask_of(request: Request) -> Ask:
    """Return what the model looks at."""
    body = request.body
    return Ask(
        model=request.model.name,
        turns=tuple(_turns(request)),
        tools=tuple(_tools(request)),
        choice=_choice(request),
        max_tokens=body.max_output_tokens,
        output_schema=_output_schema(request),
        thinks=thinks(request),
    )


def tool_names(request: Request) -> dict[str, tuple[str, str]]:
    """Map the names the model knows tools by to namespace and name; the namespace is told where a name has several."""
    placed = dict.fromkeys((one.namespace, one.tool.name) for one in clients_tools(request))
    shared = Counter(name for _, name in placed)
    return {
        f"{namespace}.{name}" if namespace and shared[name] > 1 else name: (namespace, name)
        for namespace, name in placed
    }


def _tools(request: Request) -> Iterator[Tool]:
    names = {full: known for known, full in tool_names(request).items()}
    seen: set[str] = set()
    for one in clients_tools(request):
        tool = one.tool
        known = names[one.namespace, tool.name]
        if known in seen:
            continue
        seen.add(known)
        if isinstance(tool, CustomTool):
            yield Tool(name=known, description=tool.description or "", kind="custom")
        else:
            schema = tool.parameters if tool.strict is not None else made_strict(tool.parameters) or tool.parameters
            yield Tool(name=known, description=tool.description or "", schema=schema or {})
    for _, other in declared(request):
        found = _hosted(other)
        if found is not None and found.name not in seen:
            seen.add(found.name)
            yield found


def _hosted(tool: DeclaredTool) -> Tool | None:
    kind = kind_of(tool)
    match tool:
        case NamespaceTool():
            return None
        case ToolSearchTool(execution="client"):
            return Tool(name=SEARCH_NAME, description=tool.description or "", schema=tool.parameters or {})
        case _ if kind.startswith("web_search"):
            return Tool(name=kind, kind="search")
        case _ if kind in {"function", "custom"}:
            return None
        case _:
            return Tool(name=kind, kind="other")


def _choice(request: Request) -> Choice:
    choice = request.body.tool_choice
    parallel = request.body.parallel_tool_calls is not False
    match choice:
        case None:
            return Choice(parallel=parallel)
        case str():
            return Choice(mode=choice, parallel=parallel)
        case ChosenFunction() | ChosenCustom():
            return Choice(mode="required", names=(choice.name,), parallel=parallel)
        case ChosenAllowed():
            names = tuple(str(entry.get("name") or entry.get("type")) for entry in choice.tools)
            return Choice(mode=choice.mode, names=names, parallel=parallel)
        case _:
            return Choice(mode="required", names=(_hosted_name(kind_of(choice), request),), parallel=parallel)


def _hosted_name(kind: str, request: Request) -> str:
    """A hosted tool may be chosen by another of its names than the one it was declared by."""
    stem = next((search for search in _SEARCHES if kind.startswith(search)), kind)
    return next((kind_of(tool) for _, tool in declared(request) if kind_of(tool).startswith(stem)), kind)


def _output_schema(request: Request) -> dict[str, Any] | None:
    schema: dict[str, Any] | None = None
    text = request.body.text
    match text.format if text is not None else None:
        case SchemaFormat() as wanted:
            schema = wanted.schema
        case JsonFormat():
            schema = {}
        case _:
            pass
    for item in request.items:
        if isinstance(item, ConfigurationUpdate) and item.text is not None:
            schema = item.text.format.get("schema")
    return schema


def _turns(request: Request) -> Iterator[Turn]:
    if request.body.instructions:
        yield Turn(role="system", text=request.body.instructions)
    if isinstance(request.body.input, str):
        yield Turn(role="user", text=request.body.input)
    names = {item.call_id: item.name for item in request.items if isinstance(item, FunctionCall | CustomToolCall)}
    known = {full: name for name, full in tool_names(request).items()}
    waiting: Turn | None = None
    for item in request.items:
        turn = _turn(item, names, known)
        if turn is None:
            continue
        if waiting is not None and _belong_together(waiting, turn):
            waiting = _merged(waiting, turn)
            continue
        if waiting is not None:
            yield waiting
        waiting = turn
    if waiting is not None:
        yield waiting


def _belong_together(one: Turn, other: Turn) -> bool:
    """What the model says at once comes in several items, and so do the answers to its calls."""
    if one.role != other.role:
        return False
    return one.role == "assistant" or bool(one.results and other.results)


def _merged(one: Turn, other: Turn) -> Turn:
    return Turn(
        role=one.role,
        text="\n".join(text for text in (one.text, other.text) if text),
        calls=one.calls + other.calls,
        results=one.results + other.results,
        media=one.media + other.media,
    )


def _turn(item: Item, names: dict[str, str], known: dict[tuple[str, str], str]) -> Turn | None:
    match item:
        case InputMessage():
            parts = [item.content] if isinstance(item.content, str) else item.content
            text, media = _shown(parts)
            return Turn(role="user" if item.role == "user" else "system", text=text, media=media)
        case OutputMessage():
            return Turn(role="assistant", text=item.content if isinstance(item.content, str) else _said(item.content))
        case FunctionCall():
            name = known.get((item.namespace or "", item.name), item.name)
            call = Call(id=item.call_id, name=name, arguments=_arguments(item.arguments))
            return Turn(role="assistant", calls=(call,))
        case CustomToolCall():
            name = known.get((item.namespace or "", item.name), item.name)
            return Turn(role="assistant", calls=(Call(id=item.call_id, name=name, arguments=item.input),))
        case ToolSearchCall(call_id=str() as call_id, execution="client"):
            looked_for: Any = item.arguments
            given = cast("dict[str, Any]", looked_for) if isinstance(looked_for, dict) else {}
            return Turn(role="assistant", calls=(Call(id=call_id, name=SEARCH_NAME, arguments=given),))
        case FunctionCallOutput() | CustomToolCallOutput():
            found = [item.output] if isinstance(item.output, str) else item.output
            text, media = _shown(found)
            name = names.get(item.call_id, item.name or "")
            return Turn(role="user", results=(Result(call_id=item.call_id, name=name, text=text),), media=media)
        case ToolSearchOutput(call_id=str() as call_id, execution="client"):
            loaded = ", ".join(str(getattr(tool, "name", kind_of(tool))) for tool in item.tools)
            return Turn(role="user", results=(Result(call_id=call_id, name=SEARCH_NAME, text=f"Loaded: {loaded}"),))
        case _:
            return None


def _arguments(text: str) -> dict[str, Any]:
    try:
        given: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _said(parts: Iterable[Any]) -> str:
    return "\n".join(part.text if isinstance(part, OutputText) else part.refusal for part in parts)


def _shown(parts: Sequence[str | InputPart | ResultPart]) -> tuple[str, tuple[str, ...]]:
    texts = [part if isinstance(part, str) else part.text for part in parts if isinstance(part, str | InputText)]
    media = tuple(_media_type(part) for part in parts if not isinstance(part, str | InputText))
    return "\n".join(texts), media


def _media_type(part: Any) -> str:
    match part:
        case InputImage():
            return _data_type(part.image_url) or "image/*"
        case InputFile():
            return _data_type(part.file_data) or "application/pdf"
        case _:
            return f"audio/{part.input_audio.format}"


def _data_type(url: str | None) -> str:
    return url[5:].partition(",")[0].partition(";")[0] if url is not None and url.startswith("data:") else ""


def model_name(request: Request) -> str:
    """Return the name of the model, as it was asked for."""
    return request.body.model if request.body.model is not UNSET else request.model.name
