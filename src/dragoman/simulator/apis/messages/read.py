"""What a request asks of the model behind the API."""

import json
from typing import Any

from dragoman.simulator.apis.messages.request import Block, MessagesRequest, formats, kind_of
from dragoman.simulator.apis.messages.request import Turn as SaidTurn
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Ask, Call, Choice, Result, Tool, Turn

_STRING = {"type": "string"}
_BASH = {"type": "object", "properties": {"command": _STRING}, "required": ["command"]}
_FILES = {
    "type": "object",
    "properties": {"command": {"type": "string", "enum": ["view"]}, "path": _STRING},
    "required": ["command", "path"],
}


def read_ask(request: MessagesRequest) -> Ask:
    """Tell the model what it is asked."""
    names = {use.members["id"]: use.members["name"] for use in request.blocks("tool_use")}
    system: Any = request.get("system") or ""
    instructions = system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)
    first = (Turn(role="system", text=instructions),) if instructions else ()
    return Ask(
        model=request.model.name,
        turns=(*first, *(_turn(turn, names) for turn in request.turns)),
        tools=tuple(_tool(tool) for tool in _offered(request)),
        choice=_choice(request.get("tool_choice") or {"type": "auto"}),
        max_tokens=request.get("max_tokens"),
        stop=tuple(request.list("stop_sequences")),
        output_schema=next((schema for _, schema in formats(request)), None),
        thinks=request.thinks,
    )


def _turn(turn: SaidTurn, names: dict[str, str]) -> Turn:
    calls = (use.members for use in turn.of("tool_use"))
    return Turn(
        role=turn.role,
        text="\n\n".join(block.members["text"] for block in turn.of("text")),
        calls=tuple(Call(id=use["id"], name=use["name"], arguments=use["input"]) for use in calls),
        results=tuple(_result(block, names) for block in turn.of("tool_result")),
        media=tuple(_media(block.members) for block in turn.of("image", "document")),
    )


def _result(block: Block, names: dict[str, str]) -> Result:
    content, call = block.get("content"), block.members["tool_use_id"]
    text = content if isinstance(content, str) else "\n".join(filter(None, map(_shown, content or ())))
    return Result(call_id=call, name=names.get(call, ""), text=text, failed=bool(block.get("is_error")))


def _shown(part: Json) -> str:
    match part["type"]:
        case "text":
            return part["text"]
        case "search_result":
            return "\n".join(text["text"] for text in part["content"])
        case "tool_reference":
            return f"The tool {part['tool_name']} is available now."
        case "image" | "document":
            return f"[{_media(part)}]"
        case _:
            return ""


def _media(block: Json) -> str:
    return block["source"].get("media_type") or ("image/*" if block["type"] == "image" else "application/pdf")


def _offered(request: MessagesRequest) -> list[Json]:
    """Return the tools the model sees: not those that wait to be found, nor those that were withdrawn."""
    found: set[str] = set()
    gone: set[str] = set()
    for block in request.blocks("tool_result", "tool_addition", "tool_removal"):
        if block.kind == "tool_result":
            found.update(part["tool_name"] for part in block.list("content") if part["type"] == "tool_reference")
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


def _tool(tool: Json) -> Tool:
    kind, name = kind_of(tool), tool.get("name", "")
    match kind.split("_")[0]:
        case "custom":
            return Tool(name=name, description=tool.get("description") or "", schema=tool["input_schema"])
        case "web" if name == "web_search":
            return Tool(name=name, description="Search the web.", kind="search")
        case "bash":
            return Tool(name=name, description="Run a command in a shell.", schema=_BASH)
        case "text" | "memory":
            return Tool(name=name, description="View a file.", schema=_FILES)
        case _:
            return Tool(name=name or kind, kind="other")


def _choice(choice: Json) -> Choice:
    parallel = not choice.get("disable_parallel_tool_use")
    match choice["type"]:
        case "none":
            return Choice(mode="none")
        case "any":
            return Choice(mode="required", parallel=parallel)
        case "tool":
            return Choice(mode="required", names=(choice["name"],), parallel=parallel)
        case _:
            return Choice(parallel=parallel)


def arguments_text(arguments: dict[str, Any] | str) -> str:
    """Write arguments as the vendor's models do; words alone become a member of their own."""
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return json.dumps({"input": arguments}, ensure_ascii=False)
