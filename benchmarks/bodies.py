"""The conversations that are translated: always the same bytes, one text in five not plain ASCII.

small: about 2 KB, two tools, one question. medium: about 30 KB, twenty tools with real schemas, one finished tool
round. large: about 300 KB, the same tools and a long history of tool rounds.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

SIZES = ("small", "medium", "large")
DIALECTS = ("chat", "responses", "messages", "gemini")

_WORDS = """
open the report and compare both tables before you change a single row then explain in simple words which numbers
moved and why docs/plan.md:17 "as agreed" None null retry timeout column header index value
"""
_PLAIN = [*_WORDS.split(), "next\nline"]
_WIDE = [*_PLAIN, "déjà", "größer", "Ελλάδα", "東京", "←", "„so“", "…", "🙂"]


class Turn(Struct, frozen=True):
    """One step of a conversation; `name` is the tool's in calls and results."""

    kind: str
    text: str = ""
    name: str = ""
    call_id: str = ""
    arguments: dict[str, Any] = {}


class Conversation(Struct, frozen=True):
    """What all four dialects are asked to say."""

    system: str
    tools: list[dict[str, Any]]
    turns: list[Turn]


def text(chance: random.Random, size: int) -> str:
    """Return `size` characters of words."""
    words = _WIDE if chance.random() < 0.2 else _PLAIN
    result = ""
    while len(result) < size:
        result += chance.choice(words) + " "
    return result[:size]


def tool(chance: random.Random, number: int, rich: bool) -> dict[str, Any]:
    """Return a tool; a rich one has nested parameters."""
    properties: dict[str, Any] = {
        "file": {"type": "string", "description": "Which file. " + text(chance, 50 if rich else 25)},
        "lines": {"type": "integer", "description": text(chance, 50 if rich else 20), "minimum": 1, "maximum": 900},
    }
    if rich:
        entry = {
            "type": "object",
            "properties": {
                "column": {"type": "string", "description": text(chance, 60)},
                "how": {"type": "string", "enum": ["equal", "less", "more", "like"]},
                "to": {"type": "string"},
            },
            "required": ["column", "how", "to"],
        }
        switches = {
            "deep": {"type": "boolean", "description": text(chance, 60)},
            "charset": {"type": "string", "description": text(chance, 45)},
            "most": {"type": "integer"},
        }
        properties["action"] = {"type": "string", "enum": ["show", "add", "drop"], "description": text(chance, 90)}
        properties["where"] = {"type": "array", "description": text(chance, 80), "items": entry}
        properties["switches"] = {"type": "object", "properties": switches, "required": ["deep"]}
    schema = {"type": "object", "properties": properties, "required": ["file"]}
    return {"name": f"table_{number:02d}_read", "description": text(chance, 170), "parameters": schema}


def tool_rounds(
    chance: random.Random, count: int, size: int, tools: list[dict[str, Any]], mark: str = "XyZ"
) -> Iterator[Turn]:
    """Iterate finished tool rounds whose results have `size` characters; `mark` ends the ids of their calls."""
    for number in range(count):
        call_id = f"call_{number:05d}{mark}"
        name = tools[number % len(tools)]["name"]
        yield Turn("user", text(chance, 320))
        yield Turn("assistant", text(chance, 150))
        yield Turn("call", "", name, call_id, {"file": f"/data/{number}.csv", "lines": 10 + number})
        yield Turn("result", text(chance, size), name, call_id)
        yield Turn("assistant", text(chance, 220))


def conversation(size: str) -> Conversation:
    """Return the conversation of one size."""
    chance = random.Random(11)  # noqa: S311
    rich = size != "small"
    tools = [tool(chance, number, rich) for number in range(20 if rich else 2)]
    if not rich:
        return Conversation(text(chance, 280), tools, [Turn("user", text(chance, 450))])
    rounds, result = (1, 700) if size == "medium" else (75, 2500)
    turns = [*tool_rounds(chance, rounds, result, tools), Turn("user", text(chance, 400))]
    return Conversation(text(chance, 1200), tools, turns)


def _chat(result: Conversation) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": result.system}]
    for turn in result.turns:
        match turn.kind:
            case "call":
                function = {"name": turn.name, "arguments": json.dumps(turn.arguments)}
                calls = [{"id": turn.call_id, "type": "function", "function": function}]
                messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            case "result":
                messages.append({"role": "tool", "tool_call_id": turn.call_id, "content": turn.text})
            case role:
                messages.append({"role": role, "content": turn.text})
    tools = [{"type": "function", "function": tool} for tool in result.tools]
    return {
        "model": "some-model",
        "messages": messages,
        "tools": tools,
        "tool_choice": "auto",
        "temperature": 0.3,
        "max_tokens": 900,
    }


def _responses(result: Conversation) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in result.turns:
        match turn.kind:
            case "call":
                arguments = json.dumps(turn.arguments)
                call = {"type": "function_call", "call_id": turn.call_id, "name": turn.name, "arguments": arguments}
                items.append(call)
            case "result":
                items.append({"type": "function_call_output", "call_id": turn.call_id, "output": turn.text})
            case "user":
                asked = {"type": "input_text", "text": turn.text}
                items.append({"type": "message", "role": "user", "content": [asked]})
            case role:
                part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
                about = {"id": f"msg_{len(items):04d}", "status": "completed"}
                items.append({"type": "message", "role": role, **about, "content": [part]})
    return {
        "model": "some-model",
        "instructions": result.system,
        "input": items,
        "tools": [{"type": "function", **tool, "strict": False} for tool in result.tools],
        "tool_choice": "auto",
        "temperature": 0.3,
        "max_output_tokens": 900,
    }


def _group(turns: list[Turn], words: tuple[str, str], block: Callable[[Turn], Any]) -> Iterator[tuple[str, list[Any]]]:
    """Iterate role and blocks, neighbours of the same role in one."""
    role, blocks = "", list[Any]()
    for turn in turns:
        word = words[0] if turn.kind in {"user", "result"} else words[1]
        if word != role and blocks:
            yield role, blocks
            blocks = []
        role = word
        blocks.append(block(turn))
    yield role, blocks


def _messages_block(turn: Turn) -> dict[str, Any]:
    match turn.kind:
        case "call":
            return {"type": "tool_use", "id": turn.call_id, "name": turn.name, "input": turn.arguments}
        case "result":
            return {"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.text}
        case _:
            return {"type": "text", "text": turn.text}


def _messages(result: Conversation) -> dict[str, Any]:
    grouped = _group(result.turns, ("user", "assistant"), _messages_block)
    return {
        "model": "some-model",
        "max_tokens": 900,
        "system": result.system,
        "messages": [{"role": role, "content": blocks} for role, blocks in grouped],
        "tools": [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in result.tools
        ],
        "temperature": 0.3,
    }


def _gemini_part(turn: Turn) -> dict[str, Any]:
    match turn.kind:
        case "call":
            return {"functionCall": {"id": turn.call_id, "name": turn.name, "args": turn.arguments}}
        case "result":
            return {"functionResponse": {"id": turn.call_id, "name": turn.name, "response": {"output": turn.text}}}
        case _:
            return {"text": turn.text}


def _gemini(result: Conversation) -> dict[str, Any]:
    grouped = _group(result.turns, ("user", "model"), _gemini_part)
    declarations = [
        {"name": tool["name"], "description": tool["description"], "parametersJsonSchema": tool["parameters"]}
        for tool in result.tools
    ]
    return {
        "contents": [{"role": role, "parts": parts} for role, parts in grouped],
        "systemInstruction": {"parts": [{"text": result.system}]},
        "tools": [{"functionDeclarations": declarations}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"temperature": 0.3, "maxOutputTokens": 900},
    }


_WRITERS = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}


def compact(value: Any) -> bytes:
    """Write JSON without spaces, as SDKs do."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def request(dialect: str, size: str, **more: Any) -> bytes:
    """Return a request of one size in one dialect, with `more` members."""
    return render(dialect, conversation(size), **more)


def render(dialect: str, result: Conversation, **more: Any) -> bytes:
    """Return a conversation as a request in one dialect, with `more` members."""
    return compact(_WRITERS[dialect](result) | more)
