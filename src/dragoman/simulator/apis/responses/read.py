"""Convert a Responses request to the vendor-neutral `ModelRequest`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from dragoman.simulator.apis.conversation import (
    Call,
    ModelRequest,
    RequestResult,
    RequestTool,
    RequestToolChoice,
    RequestTurn,
)
from dragoman.simulator.apis.openai.schemas import make_strict
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.client_tools import declare_vendor_tool, find_vendor_tools, read_vendor_item
from dragoman.simulator.apis.responses.rules_settings import is_thinking
from dragoman.simulator.apis.responses.rules_tools import find_client_tools, find_tools
from dragoman.simulator.apis.rule import Json

SEARCH_NAME = "tool_search"
_SEARCHES = ("web_search", "file_search")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Calls of client tools, and the field with their arguments."""


def read_model_request(request: ResponsesRequest) -> ModelRequest:
    """Return everything the model uses of a request."""
    return ModelRequest(
        model=request.model,
        turns=tuple(_read_turns(request)),
        tools=tuple(_read_tools(request)),
        choice=_read_choice(request),
        max_tokens=request.get("max_output_tokens"),
        output_schema=_read_output_schema(request),
        thinks=is_thinking(request),
    )


def map_tool_names(request: ResponsesRequest) -> dict[str, tuple[str, str]]:
    """Map the model's tool names to namespace and name; only ambiguous names are prefixed with the namespace."""
    if not find_client_tools(request):
        return {}
    placed = dict.fromkeys((namespace, tool["name"]) for _, tool, namespace in find_client_tools(request))
    shared = Counter(name for _, name in placed)
    return {
        f"{namespace}.{name}" if namespace and shared[name] > 1 else name: (namespace, name)
        for namespace, name in placed
    }


def _read_tools(request: ResponsesRequest) -> list[RequestTool]:
    """Return each tool once, client tools first."""
    names = {full: known for known, full in map_tool_names(request).items()}
    found = [_read_client_tool(names[group, tool["name"]], tool) for _, tool, group in find_client_tools(request)]
    found += [one for _, tool in find_tools(request) if (one := _read_hosted_tool(tool, request)) is not None]
    unique: dict[str, RequestTool] = {}
    for one in found:
        unique.setdefault(one.name, one)
    return list(unique.values())


def _read_client_tool(name: str, tool: Json) -> RequestTool:
    description = tool.get("description") or ""
    if tool["type"] == "custom":
        return RequestTool(name=name, description=description, kind="custom")
    schema = tool.get("parameters")
    if tool.get("strict") is None:
        schema = make_strict(schema) or schema
    return RequestTool(name=name, description=description, schema=schema or {})


def _read_hosted_tool(tool: Json, request: ResponsesRequest) -> RequestTool | None:
    kind = tool["type"]
    if kind in {"namespace", "function", "custom"}:
        return None
    if kind == "tool_search" and tool.get("execution") == "client":
        return RequestTool(
            name=SEARCH_NAME, description=tool.get("description") or "", schema=tool.get("parameters") or {}
        )
    if kind in find_vendor_tools(request):
        return declare_vendor_tool(kind)
    return RequestTool(name=kind, kind="search" if kind.startswith("web_search") else "other")


def _read_choice(request: ResponsesRequest) -> RequestToolChoice:
    parallel = request.get("parallel_tool_calls") is not False
    choice = request.get("tool_choice")
    match choice:
        case None:
            return RequestToolChoice(parallel=parallel)
        case str():
            return RequestToolChoice(mode=cast("Any", choice), parallel=parallel)
        case {"type": "function" | "custom"}:
            return RequestToolChoice(mode="required", names=(choice["name"],), parallel=parallel)
        case {"type": "allowed_tools"}:
            names = tuple(str(entry.get("name") or entry.get("type")) for entry in choice["tools"])
            return RequestToolChoice(mode=choice["mode"], names=names, parallel=parallel)
        case _:
            return RequestToolChoice(
                mode="required", names=(_find_hosted_name(choice["type"], request),), parallel=parallel
            )


def _find_hosted_name(kind: str, request: ResponsesRequest) -> str:
    """Return the declared name of a hosted tool that may be chosen by another of its names."""
    stem = next((search for search in _SEARCHES if kind.startswith(search)), kind)
    return next((tool["type"] for _, tool in find_tools(request) if tool["type"].startswith(stem)), kind)


def _read_output_schema(request: ResponsesRequest) -> Json | None:
    wanted: Json = request.object("text").get("format") or {}
    schema: Json | None = {} if wanted.get("type") == "json_object" else wanted.get("schema")
    for item in request.items:
        if item["type"] == "configuration_update" and item.get("text"):
            schema = item["text"]["format"].get("schema")
    return schema


def _read_turns(request: ResponsesRequest) -> Iterator[RequestTurn]:
    if request.get("instructions"):
        yield RequestTurn(role="system", text=request.get("instructions"))
    if isinstance(request.get("input"), str):
        yield RequestTurn(role="user", text=request.get("input"))
    calls = {item["call_id"]: item["name"] for item in request.items if item["type"] in _CALLS}
    known = {full: name for name, full in map_tool_names(request).items()}
    waiting: RequestTurn | None = None
    for item in request.items:
        turn = _read_turn(item, calls, known) or read_vendor_item(item, request.items)
        if turn is None:
            continue
        if waiting is not None and _is_same_turn(waiting, turn):
            waiting = _merge_turns(waiting, turn)
            continue
        if waiting is not None:
            yield waiting
        waiting = turn
    if waiting is not None:
        yield waiting


def _is_same_turn(one: RequestTurn, other: RequestTurn) -> bool:
    """Return whether two items belong to one turn: items of one model reply do, and so do consecutive results."""
    return one.role == other.role and (one.role == "assistant" or bool(one.results and other.results))


def _merge_turns(one: RequestTurn, other: RequestTurn) -> RequestTurn:
    return RequestTurn(
        role=one.role,
        text="\n".join(text for text in (one.text, other.text) if text),
        calls=one.calls + other.calls,
        results=one.results + other.results,
        media=one.media + other.media,
    )


def _read_turn(item: Json, calls: dict[str, str], known: dict[tuple[str, str], str]) -> RequestTurn | None:
    match item:
        case {"type": "message", "role": role}:
            text, media = _split_content(item["content"])
            turn_role = role if role in {"user", "assistant"} else "system"
            return RequestTurn(role=turn_role, text=text, media=media)
        case {"type": "function_call" | "custom_tool_call" as kind, "name": name}:
            given = item[_CALLS[kind]]
            arguments = _parse_arguments(given) if kind == "function_call" else given
            full = known.get((item.get("namespace") or "", name)) or name
            return RequestTurn(role="assistant", calls=(Call(id=item["call_id"], name=full, arguments=arguments),))
        case {"type": "function_call_output" | "custom_tool_call_output", "call_id": call_id}:
            text, media = _split_content(item["output"])
            name = calls.get(call_id, item.get("name") or "")
            return RequestTurn(
                role="user", results=(RequestResult(call_id=call_id, name=name, text=text),), media=media
            )
        case {"type": "tool_search_call", "execution": "client", "call_id": str() as call_id}:
            given = cast("Json", item["arguments"]) if isinstance(item["arguments"], dict) else {}
            return RequestTurn(role="assistant", calls=(Call(id=call_id, name=SEARCH_NAME, arguments=given),))
        case {"type": "tool_search_output", "execution": "client", "call_id": str() as call_id}:
            loaded = ", ".join(tool.get("name", tool["type"]) for tool in item["tools"])
            return RequestTurn(
                role="user", results=(RequestResult(call_id=call_id, name=SEARCH_NAME, text=f"Loaded: {loaded}"),)
            )
        case _:
            return None


def _parse_arguments(text: str) -> Json:
    try:
        given: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast("Json", given) if isinstance(given, dict) else {}


def _split_content(content: str | list[Json]) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message or a result, and the types of its media."""
    if isinstance(content, str):
        return content, ()
    texts = [part.get("text", part.get("refusal")) for part in content]
    media = tuple(_read_media_type(part) for part, text in zip(content, texts, strict=True) if text is None)
    return "\n".join(text for text in texts if text is not None), media


def _read_media_type(part: Json) -> str:
    match part["type"]:
        case "input_image":
            return _parse_data_url_type(part.get("image_url")) or "image/*"
        case "input_file":
            return _parse_data_url_type(part.get("file_data")) or "application/pdf"
        case _:
            return f"audio/{part['input_audio']['format']}"


def _parse_data_url_type(url: str | None) -> str:
    return url[5:].partition(",")[0].partition(";")[0] if url is not None and url.startswith("data:") else ""
