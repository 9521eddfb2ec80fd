"""How to read what arrived in Responses."""

import json
from base64 import b64decode
from typing import Any

from end_to_end.talk import Call, ReceivedRequest, ReceivedResult, Tool, value_of

NAME = "responses"
FLAGS_FAILED = False
FAILS_BY_MEMBER = False
HOLDS_IMAGES = True
REPLAYS = True
_RESULTS = ("function_call_output", "shell_call_output")


def parse_request(body: dict[str, Any]) -> ReceivedRequest:
    """Read a request."""
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    output = [item for item in items if item.get("type", "message") == "message"]
    instructions = [item for item in output if item["role"] in {"system", "developer"}]
    users = [item for item in output if item["role"] == "user"]
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    choice = body.get("tool_choice", "auto")
    tools = body.get("tools", ())
    behind = [part for item in users[1:] for part in _parts(item["content"])]
    return ReceivedRequest(
        system=body.get("instructions") or _text(instructions[0]["content"]),
        prompt=_text(users[0]["content"]),
        tools=tuple(
            Tool(tool["name"], tool["description"], tool["parameters"]) for tool in tools if tool["type"] == "function"
        ),
        vendor_tools=tuple(tool for tool in tools if tool["type"] != "function"),
        choice=choice if isinstance(choice, str) else choice["name"],
        calls=tuple(_call(item) for item in items if item.get("type") in {"function_call", "shell_call"}),
        results=tuple(_result(item) for item in items if item.get("type") in _RESULTS),
        images=tuple(_image(part) for part in behind if part["type"] == "input_image"),
        thoughts=tuple(summary["text"] for item in reasoning for summary in item["summary"]),
        signatures=tuple(item["encrypted_content"] for item in reasoning),
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    return "".join(part["text"] for part in _parts(content) if "text" in part)


def _call(item: dict[str, Any]) -> Call:
    if item["type"] == "shell_call":
        return Call(item["call_id"], "shell", item["action"])
    return Call(item["call_id"], item["name"], json.loads(item["arguments"]))


def _result(item: dict[str, Any]) -> ReceivedResult:
    if item["type"] == "shell_call_output":
        return ReceivedResult(call_id=item["call_id"], value=item["output"])
    parts = _parts(item["output"])
    return ReceivedResult(
        call_id=item["call_id"],
        value=value_of(_text(parts)),
        images=tuple(_image(part) for part in parts if part["type"] == "input_image"),
    )


def _image(part: dict[str, Any]) -> bytes:
    return b64decode(part["image_url"].removeprefix("data:image/png;base64,"), validate=True)
