"""What a request asks of the model behind the API."""

import json
from typing import Any

from dragoman.simulator.apis.messages.blocks import (
    Base64Document,
    Base64Image,
    Document,
    Image,
    PlainDocument,
    SearchResult,
    Text,
    ToolReference,
    ToolResult,
    ToolUse,
)
from dragoman.simulator.apis.messages.reading import AnyBlock, Reading
from dragoman.simulator.apis.messages.reading import Turn as SaidTurn
from dragoman.simulator.apis.messages.server_blocks import NamedTool, ToolAddition, ToolRemoval
from dragoman.simulator.apis.messages.shape import ChoiceAny, ChoiceNone, ChoiceTool, OutputFormat
from dragoman.simulator.apis.messages.tools import (
    Bash,
    ClientTool,
    Custom,
    OldBash,
    Screen,
    WebSearch,
    kind_of,
    name_of,
)
from dragoman.simulator.apis.messages.tools import Tool as Declared
from dragoman.simulator.talk import Ask, Call, Choice, Result, Tool, Turn

_STRING = {"type": "string"}
_BASH = {"type": "object", "properties": {"command": _STRING}, "required": ["command"]}
_FILES = {
    "type": "object",
    "properties": {"command": {"type": "string", "enum": ["view"]}, "path": _STRING},
    "required": ["command", "path"],
}


def read_ask(reading: Reading) -> Ask:
    """Tell the model what it is asked."""
    generating = reading.generating
    names = {placed.block.id: placed.block.name for _, placed in reading.blocks() if isinstance(placed.block, ToolUse)}
    system = reading.request.system
    instructions = system if isinstance(system, str) else "\n\n".join(block.text for block in system or ())
    first = (Turn(role="system", text=instructions),) if instructions else ()
    output = _format(reading)
    return Ask(
        model=reading.model.name,
        turns=(*first, *(_turn(turn, names) for turn in reading.turns)),
        tools=tuple(_tool(tool) for tool in _offered(reading)),
        choice=_choice(reading),
        max_tokens=generating.max_tokens if generating is not None else None,
        stop=tuple(generating.stop_sequences or ()) if generating is not None else (),
        output_schema=output.schema if output is not None else None,
        thinks=reading.thinks,
    )


def _format(reading: Reading) -> OutputFormat | None:
    config = reading.request.output_config
    return (config.format if config is not None else None) or reading.request.output_format


def _turn(turn: SaidTurn, names: dict[str, str]) -> Turn:
    blocks = [placed.block for placed in turn.blocks]
    return Turn(
        role=turn.role,
        text="\n\n".join(block.text for block in blocks if isinstance(block, Text)),
        calls=tuple(Call(id=use.id, name=use.name, arguments=use.input) for use in blocks if isinstance(use, ToolUse)),
        results=tuple(_result(block, names) for block in blocks if isinstance(block, ToolResult)),
        media=tuple(_media(block) for block in blocks if isinstance(block, Image | Document)),
    )


def _result(block: ToolResult, names: dict[str, str]) -> Result:
    content = block.content
    text = content if isinstance(content, str) else "\n".join(filter(None, map(_shown, content or ())))
    name = names.get(block.tool_use_id, "")
    return Result(call_id=block.tool_use_id, name=name, text=text, failed=bool(block.is_error))


def _shown(part: AnyBlock | Any) -> str:
    match part:
        case Text(text=text):
            return text
        case SearchResult(content=content):
            return "\n".join(text.text for text in content)
        case ToolReference(tool_name=name):
            return f"The tool {name} is available now."
        case Image() | Document():
            return f"[{_media(part)}]"
        case _:
            return ""


def _media(block: Image | Document) -> str:
    source = block.source
    if isinstance(source, Base64Image | Base64Document | PlainDocument):
        return source.media_type
    return "image/*" if isinstance(block, Image) else "application/pdf"


def _offered(reading: Reading) -> list[Declared]:
    """Return the tools the model sees: not those that wait to be found, nor those that were withdrawn."""
    found: set[str] = set()
    gone: set[str] = set()
    for _, placed in reading.blocks():
        match placed.block:
            case ToolResult(content=list() as content):
                found.update(part.tool_name for part in content if isinstance(part, ToolReference))
            case ToolAddition(tool=NamedTool(name=name)):
                found.add(name)
                gone.discard(name)
            case ToolRemoval(tool=NamedTool(name=name)):
                gone.add(name)
            case _:
                pass
    return [
        tool
        for tool in reading.tools
        if name_of(tool) not in gone and (name_of(tool) in found or not getattr(tool, "defer_loading", None))
    ]


def _tool(tool: Declared) -> Tool:
    match tool:
        case Custom(name=name, description=description, input_schema=schema):
            return Tool(name=name, description=description or "", schema=schema)
        case WebSearch():
            return Tool(name="web_search", description="Search the web.", kind="search")
        case Bash() | OldBash():
            return Tool(name="bash", description="Run a command in a shell.", schema=_BASH)
        case ClientTool() if not isinstance(tool, Screen):
            return Tool(name=name_of(tool), description="View a file.", schema=_FILES)
        case _:
            return Tool(name=name_of(tool) or kind_of(tool), kind="other")


def _choice(reading: Reading) -> Choice:
    choice = reading.request.tool_choice
    parallel = not getattr(choice, "disable_parallel_tool_use", None)
    match choice:
        case ChoiceNone():
            return Choice(mode="none")
        case ChoiceAny():
            return Choice(mode="required", parallel=parallel)
        case ChoiceTool(name=name):
            return Choice(mode="required", names=(name,), parallel=parallel)
        case _:
            return Choice(parallel=parallel)


def arguments_text(arguments: dict[str, Any] | str) -> str:
    """Write arguments as the vendor's models do; words alone become a member of their own."""
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return json.dumps({"input": arguments}, ensure_ascii=False)
