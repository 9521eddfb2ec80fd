"""How to read what arrived in Chat Completions."""

import json
from base64 import b64decode
from typing import Any

from end_to_end.talk import Call, ReceivedRequest, ReceivedResult, Tool, value_of

NAME = "chat"
FLAGS_FAILED = False
FAILS_BY_MEMBER = False
HOLDS_IMAGES = False
REPLAYS = False
"""Chat has no field in which reasoning or a signature could come back."""


def parse_request(body: dict[str, Any]) -> ReceivedRequest:
    """Read a request."""
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    choice = body.get("tool_choice", "auto")
    parts = [part for message in messages[2:] if message["role"] == "user" for part in _parts(message["content"])]
    return ReceivedRequest(
        system=messages[0]["content"],
        prompt="".join(part["text"] for part in _parts(messages[1]["content"])),
        tools=tuple(_tool(tool) for tool in body.get("tools", ())),
        choice=choice if isinstance(choice, str) else choice["function"]["name"],
        calls=tuple(
            Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
        ),
        results=tuple(_result(message) for message in messages if message["role"] == "tool"),
        images=tuple(_image(part) for part in parts if part["type"] == "image_url"),
        thoughts=tuple(message["reasoning_content"] for message in messages if "reasoning_content" in message),
        signatures=(),
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _tool(tool: dict[str, Any]) -> Tool:
    function = tool["function"]
    return Tool(function["name"], function["description"], function["parameters"])


def _result(message: dict[str, Any]) -> ReceivedResult:
    text = "".join(part["text"] for part in _parts(message["content"]))
    return ReceivedResult(call_id=message["tool_call_id"], value=value_of(text))


def _image(part: dict[str, Any]) -> bytes:
    return b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"), validate=True)
