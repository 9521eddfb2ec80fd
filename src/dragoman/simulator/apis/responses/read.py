"""Read what a request asks of the model."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from dragoman.simulator.apis.openai.schemas import made_strict
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.rules_settings import thinks
from dragoman.simulator.apis.responses.rules_tools import clients_tools, declared_tools
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Ask, Call, Choice, Result, Tool, Turn

SEARCH_NAME = "tool_search"
_SEARCHES = ("web_search", "file_search")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Calls of the client's tools, and the member that holds what is called with."""


def read(request: ResponsesRequest) -> Ask:
    """Return everything the model looks at."""
    return Ask(
        model=request.model,
        turns=tuple(_turns(request)),
        tools=tuple(_tools(request)),
        choice=_choice(request),
        max_tokens=request.get("max_output_tokens"),
        output_schema=_output_schema(request),
        thinks=thinks(request),
    )


def tool_names(request: ResponsesRequest) -> dict[str, tuple[str, str]]:
    """Map the names the model knows tools by to namespace and name; the namespace is told where a name has several."""
    if not clients_tools(request):
        return {}
    placed = dict.fromkeys((namespace, tool["name"]) for _, tool, namespace in clients_tools(request))
    shared = Counter(name for _, name in placed)
    return {
        f"{namespace}.{name}" if namespace and shared[name] > 1 else name: (namespace, name)
        for namespace, name in placed
    }


def _tools(request: ResponsesRequest) -> list[Tool]:
    """Return the tools, each once: those of the client first."""
    names = {full: known for known, full in tool_names(request).items()}
    found = [_clients_tool(names[group, tool["name"]], tool) for _, tool, group in clients_tools(request)]
    found += [one for _, tool in declared_tools(request) if (one := _hosted_tool(tool)) is not None]
    unique: dict[str, Tool] = {}
    for one in found:
        unique.setdefault(one.name, one)
    return list(unique.values())


def _clients_tool(name: str, tool: Json) -> Tool:
    description = tool.get("description") or ""
    if tool["type"] == "custom":
        return Tool(name=name, description=description, kind="custom")
    schema = tool.get("parameters")
    if tool.get("strict") is None:
        schema = made_strict(schema) or schema
    return Tool(name=name, description=description, schema=schema or {})


def _hosted_tool(tool: Json) -> Tool | None:
    kind = tool["type"]
    if kind in {"namespace", "function", "custom"}:
        return None
    if kind == "tool_search" and tool.get("execution") == "client":
        return Tool(name=SEARCH_NAME, description=tool.get("description") or "", schema=tool.get("parameters") or {})
    return Tool(name=kind, kind="search" if kind.startswith("web_search") else "other")


def _choice(request: ResponsesRequest) -> Choice:
    parallel = request.get("parallel_tool_calls") is not False
    choice = request.get("tool_choice")
    match choice:
        case None:
            return Choice(parallel=parallel)
        case str():
            return Choice(mode=cast("Any", choice), parallel=parallel)
        case {"type": "function" | "custom"}:
            return Choice(mode="required", names=(choice["name"],), parallel=parallel)
        case {"type": "allowed_tools"}:
            names = tuple(str(entry.get("name") or entry.get("type")) for entry in choice["tools"])
            return Choice(mode=choice["mode"], names=names, parallel=parallel)
        case _:
            return Choice(mode="required", names=(_hosted_name(choice["type"], request),), parallel=parallel)


def _hosted_name(kind: str, request: ResponsesRequest) -> str:
    """A hosted tool may be chosen by another of its names than the one it was declared by."""
    stem = next((search for search in _SEARCHES if kind.startswith(search)), kind)
    return next((tool["type"] for _, tool in declared_tools(request) if tool["type"].startswith(stem)), kind)


def _output_schema(request: ResponsesRequest) -> Json | None:
    wanted: Json = request.object("text").get("format") or {}
    schema: Json | None = {} if wanted.get("type") == "json_object" else wanted.get("schema")
    for item in request.items:
        if item["type"] == "configuration_update" and item.get("text"):
            schema = item["text"]["format"].get("schema")
    return schema


def _turns(request: ResponsesRequest) -> Iterator[Turn]:
    if request.get("instructions"):
        yield Turn(role="system", text=request.get("instructions"))
    if isinstance(request.get("input"), str):
        yield Turn(role="user", text=request.get("input"))
    calls = {item["call_id"]: item["name"] for item in request.items if item["type"] in _CALLS}
    known = {full: name for name, full in tool_names(request).items()}
    waiting: Turn | None = None
    for item in request.items:
        turn = _turn(item, calls, known)
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
    return one.role == other.role and (one.role == "assistant" or bool(one.results and other.results))


def _merged(one: Turn, other: Turn) -> Turn:
    return Turn(
        role=one.role,
        text="\n".join(text for text in (one.text, other.text) if text),
        calls=one.calls + other.calls,
        results=one.results + other.results,
        media=one.media + other.media,
    )


def _turn(item: Json, calls: dict[str, str], known: dict[tuple[str, str], str]) -> Turn | None:
    match item:
        case {"type": "message", "role": role}:
            text, media = _shown(item["content"])
            spoken = role if role in {"user", "assistant"} else "system"
            return Turn(role=spoken, text=text, media=media)
        case {"type": "function_call" | "custom_tool_call" as kind, "name": name}:
            given = item[_CALLS[kind]]
            arguments = _arguments(given) if kind == "function_call" else given
            full = known.get((item.get("namespace") or "", name)) or name
            return Turn(role="assistant", calls=(Call(id=item["call_id"], name=full, arguments=arguments),))
        case {"type": "function_call_output" | "custom_tool_call_output", "call_id": call_id}:
            text, media = _shown(item["output"])
            name = calls.get(call_id, item.get("name") or "")
            return Turn(role="user", results=(Result(call_id=call_id, name=name, text=text),), media=media)
        case {"type": "tool_search_call", "execution": "client", "call_id": str() as call_id}:
            given = cast("Json", item["arguments"]) if isinstance(item["arguments"], dict) else {}
            return Turn(role="assistant", calls=(Call(id=call_id, name=SEARCH_NAME, arguments=given),))
        case {"type": "tool_search_output", "execution": "client", "call_id": str() as call_id}:
            loaded = ", ".join(tool.get("name", tool["type"]) for tool in item["tools"])
            return Turn(role="user", results=(Result(call_id=call_id, name=SEARCH_NAME, text=f"Loaded: {loaded}"),))
        case _:
            return None


def _arguments(text: str) -> Json:
    try:
        given: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast("Json", given) if isinstance(given, dict) else {}


def _shown(content: str | list[Json]) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message or a result, and the types of its media."""
    if isinstance(content, str):
        return content, ()
    texts = [part.get("text", part.get("refusal")) for part in content]
    media = tuple(_media_type(part) for part, text in zip(content, texts, strict=True) if text is None)
    return "\n".join(text for text in texts if text is not None), media


def _media_type(part: Json) -> str:
    match part["type"]:
        case "input_image":
            return _data_type(part.get("image_url")) or "image/*"
        case "input_file":
            return _data_type(part.get("file_data")) or "application/pdf"
        case _:
            return f"audio/{part['input_audio']['format']}"


def _data_type(url: str | None) -> str:
    return url[5:].partition(",")[0].partition(";")[0] if url is not None and url.startswith("data:") else ""
