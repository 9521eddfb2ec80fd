"""Ways to change an accepted body, shared by the mutators of the rules.

A mutator must break one rule and no earlier one: `onto` moves a body to another model and keeps only what every model
accepts.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from dragoman.simulator.apis.rule import Json

_PARTICULAR = (
    "temperature",
    "top_p",
    "top_k",
    "thinking",
    "output_config",
    "output_format",
    "tool_choice",
    "fallbacks",
    "speed",
    "context_management",
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M9QDwADhgGAWjTQ7gAAAABJRU5ErkJggg=="


def change(body: Json, **members: Any) -> Json:
    """Copy a body with other fields; None removes a field."""
    copy = deepcopy(body)
    for name, value in members.items():
        if value is None:
            copy.pop(name, None)
        else:
            copy[name] = value
    return copy


def onto(body: Json, model: str, **members: Any) -> Iterator[Json]:
    """Copy a body for another model; yield nothing if the path names the model or the history does not suit it."""
    words = json.dumps(body["messages"])
    if "model" not in body or '"system"' in words or "thinking" in words or '"computer"' in json.dumps(body):
        return
    if "max_tokens" not in body or ends_with(body) != "user" or body["messages"][0]["role"] != "user":
        return
    if any(tool.get("strict") for tool in body.get("tools") or ()):
        return
    copy = change(body, **dict.fromkeys(_PARTICULAR))
    copy["model"] = model
    copy["max_tokens"] = 2048
    copy.update({name: value for name, value in members.items() if value is not None})
    yield copy


def ends_with(body: Json) -> str:
    """Return the role of the last message; "" if there are none."""
    messages = body["messages"]
    return messages[-1]["role"] if messages else ""


def blocks_of(message: Json) -> list[Json]:
    """Return a message's blocks; none for a plain text."""
    content = message.get("content")
    return content if isinstance(content, list) else []  # pyright: ignore[reportUnknownVariableType]


def places(body: Json, kind: str) -> Iterator[tuple[int, int]]:
    """Find the blocks of a type: indexes of message and block."""
    for number, message in enumerate(body["messages"]):
        for place, block in enumerate(blocks_of(message)):
            if block.get("type") == kind:
                yield number, place


def block_changed(body: Json, place: tuple[int, int], **members: Any) -> Json:
    """Copy a body with other fields in one block; None removes a field."""
    copy = deepcopy(body)
    number, at = place
    block = copy["messages"][number]["content"][at]
    copy["messages"][number]["content"][at] = change(block, **members)
    return copy


def user_blocks_added(body: Json, *blocks: Json, first: bool = False) -> Iterator[Json]:
    """Copy a body with blocks in its last user turn."""
    if ends_with(body) != "user":
        return
    copy = deepcopy(body)
    last = copy["messages"][-1]
    content = last["content"]
    old = [{"type": "text", "text": content}] if isinstance(content, str) else content
    last["content"] = [*deepcopy(list(blocks)), *old] if first else [*old, *deepcopy(list(blocks))]
    yield copy


def custom_tools(body: Json) -> list[int]:
    """Return the indexes of the custom tools."""
    tools: list[Json] = body.get("tools") or []
    return [number for number, tool in enumerate(tools) if tool.get("type") in {None, "custom"}]


def tool_changed(body: Json, number: int, **members: Any) -> Json:
    """Copy a body with other fields in one tool."""
    copy = deepcopy(body)
    copy["tools"][number] = change(copy["tools"][number], **members)
    return copy


def schema_changed(body: Json, number: int, **members: Any) -> Json:
    """Copy a body with other fields in one tool's schema."""
    schema = change(body["tools"][number]["input_schema"], **members)
    return tool_changed(body, number, input_schema=schema)


def with_tool(body: Json, *tools: Json) -> Json:
    """Copy a body with more tools."""
    return change(body, tools=[*(body.get("tools") or []), *tools])


def a_tool(name: str = "dragoman_extra", **members: Any) -> Json:
    """Return a simple tool."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"name": name, "description": "An extra tool.", "input_schema": schema, **members}


def with_exchange(body: Json, *, results: bool = True, **call: Any) -> Iterator[Json]:
    """Copy a body that ends with a user turn, with a call and its result at the end."""
    if ends_with(body) != "user":
        return
    copy = deepcopy(body)
    used = {"type": "tool_use", "id": "toolu_01Extra", "name": "dragoman_extra", "input": {"city": "Paris"}, **call}
    copy["messages"].append({"role": "assistant", "content": [used]})
    if results:
        result = {"type": "tool_result", "tool_use_id": used["id"], "content": "18 degrees"}
        copy["messages"].append({"role": "user", "content": [result]})
    yield with_tool(copy, a_tool())
