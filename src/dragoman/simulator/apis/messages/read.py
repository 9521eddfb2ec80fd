"""Convert a Messages request to the vendor-neutral `ModelRequest`."""

import json
from typing import Any, cast

from dragoman.simulator.apis.conversation import (
    Call,
    ModelRequest,
    RequestResult,
    RequestTool,
    RequestToolChoice,
    RequestTurn,
)
from dragoman.simulator.apis.messages.request import (
    Block,
    MessagesRequest,
    MessagesTurn,
    find_output_schemas,
    read_tool_type,
)
from dragoman.simulator.apis.rule import Json

_STRING = {"type": "string"}
_BASH = {"type": "object", "properties": {"command": _STRING}, "required": ["command"]}
_FILES = {
    "type": "object",
    "properties": {"command": {"type": "string", "enum": ["view"]}, "path": _STRING},
    "required": ["command", "path"],
}


def read_model_request(request: MessagesRequest) -> ModelRequest:
    """Return everything the model uses of a request."""
    names = {use.members["id"]: use.members["name"] for use in request.blocks("tool_use")}
    system: Any = request.get("system") or ""
    instructions = system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)
    first = (RequestTurn(role="system", text=instructions),) if instructions else ()
    return ModelRequest(
        model=request.model.name,
        turns=(*first, *(_read_turn(turn, names) for turn in request.turns)),
        tools=tuple(_read_tool(tool) for tool in find_visible_tools(request)),
        choice=_read_choice(request.get("tool_choice") or {"type": "auto"}),
        max_tokens=request.get("max_tokens"),
        stop=tuple(request.list("stop_sequences")),
        output_schema=next((schema for _, schema in find_output_schemas(request)), None),
        thinks=request.thinks,
    )


def _read_turn(turn: MessagesTurn, names: dict[str, str]) -> RequestTurn:
    calls = (use.members for use in turn.blocks_of("tool_use"))
    return RequestTurn(
        role=turn.role,
        text="\n\n".join(block.members["text"] for block in turn.blocks_of("text")),
        calls=tuple(Call(id=use["id"], name=use["name"], arguments=use["input"]) for use in calls),
        results=tuple(_read_result(block, names) for block in turn.blocks_of("tool_result")),
        media=tuple(_read_media_type(block.members) for block in turn.blocks_of("image", "document")),
    )


def _read_result(block: Block, names: dict[str, str]) -> RequestResult:
    content, call = block.get("content"), block.members["tool_use_id"]
    text = content if isinstance(content, str) else "\n".join(filter(None, map(_read_part_text, content or ())))
    return RequestResult(call_id=call, name=names.get(call, ""), text=text, failed=bool(block.get("is_error")))


def _read_part_text(part: Json) -> str:
    match part["type"]:
        case "text":
            return part["text"]
        case "search_result":
            return "\n".join(text["text"] for text in part["content"])
        case "tool_reference":
            return f"The tool {part['tool_name']} is available now."
        case "image" | "document":
            return f"[{_read_media_type(part)}]"
        case _:
            return ""


def _read_media_type(block: Json) -> str:
    return block["source"].get("media_type") or ("image/*" if block["type"] == "image" else "application/pdf")


def find_visible_tools(request: MessagesRequest) -> list[Json]:
    """Return the tools the model sees: without deferred tools that were not found yet, and removed ones."""
    found: set[str] = set()
    gone: set[str] = set()
    for block in request.blocks("tool_result", "tool_search_tool_result", "tool_addition", "tool_removal"):
        if block.kind.endswith("_result"):
            found.update(list_references(block))
        elif block.members["tool"]["type"] == "tool_reference":
            name = block.members["tool"]["name"]
            if block.kind == "tool_addition":
                found.add(name)
                gone.discard(name)
            else:
                gone.add(name)
    return [
        tool
        for tool in request.list("tools")
        if tool.get("name") not in gone and (tool.get("name") in found or not tool.get("defer_loading"))
    ]


def list_references(block: Block) -> list[str]:
    """Return the tools that a result names: of the client's search, or of the vendor's own."""
    content: Any = block.get("content")
    parts: Any = cast("Json", content).get("tool_references") if isinstance(content, dict) else content
    found = cast("list[Json]", parts) if isinstance(parts, list) else []
    return [part["tool_name"] for part in found if part["type"] == "tool_reference"]


def _read_tool(tool: Json) -> RequestTool:
    kind, name = read_tool_type(tool), tool.get("name", "")
    match kind.split("_")[0]:
        case "custom":
            return RequestTool(name=name, description=tool.get("description") or "", schema=tool["input_schema"])
        case "web" if name == "web_search":
            return RequestTool(name=name, description="Search the web.", kind="search")
        case "bash":
            return RequestTool(name=name, description="Run a command in a shell.", schema=_BASH)
        case "text" | "memory":
            return RequestTool(name=name, description="View a file.", schema=_FILES)
        case _:
            return RequestTool(name=name or kind, kind="other")


def _read_choice(choice: Json) -> RequestToolChoice:
    parallel = not choice.get("disable_parallel_tool_use")
    match choice["type"]:
        case "none":
            return RequestToolChoice(mode="none")
        case "any":
            return RequestToolChoice(mode="required", parallel=parallel)
        case "tool":
            return RequestToolChoice(mode="required", names=(choice["name"],), parallel=parallel)
        case _:
            return RequestToolChoice(parallel=parallel)


def encode_arguments(arguments: dict[str, Any] | str) -> str:
    """Encode arguments as the vendor's models do; a plain text is wrapped as {"input": text}."""
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return json.dumps({"input": arguments}, ensure_ascii=False)
