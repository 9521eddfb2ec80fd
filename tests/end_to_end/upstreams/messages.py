"""How to read what arrived in Messages."""

from base64 import b64decode
from typing import Any

from end_to_end.talk import Call, ReceivedRequest, ReceivedResult, Tool, value_of

NAME = "messages"
FLAGS_FAILED = True
FAILS_BY_MEMBER = False
HOLDS_IMAGES = True
REPLAYS = True
_CHOICES = {"auto": "auto", "none": "none"}


def parse_request(body: dict[str, Any]) -> ReceivedRequest:
    """Read a request."""
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    thinking = [block for block in blocks if block["type"] == "thinking"]
    choice = body.get("tool_choice", {"type": "auto"})
    tools = body.get("tools", ())
    return ReceivedRequest(
        system="".join(block["text"] for block in _blocks(body["system"])),
        prompt="".join(block["text"] for block in _blocks(body["messages"][0]["content"])),
        tools=tuple(
            Tool(tool["name"], tool["description"], tool["input_schema"]) for tool in tools if not _is_own(tool)
        ),
        vendor_tools=tuple(tool for tool in tools if _is_own(tool)),
        choice=choice["name"] if choice["type"] == "tool" else _CHOICES[choice["type"]],
        calls=tuple(
            Call(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
        ),
        results=tuple(_result(block) for block in blocks if block["type"] == "tool_result"),
        images=tuple(_image(block) for block in blocks if block["type"] == "image"),
        thoughts=tuple(block["thinking"] for block in thinking),
        signatures=tuple(block["signature"] for block in thinking),
    )


def _is_own(tool: dict[str, Any]) -> bool:
    return tool.get("type", "custom") != "custom"


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result(block: dict[str, Any]) -> ReceivedResult:
    inside = _blocks(block["content"])
    return ReceivedResult(
        call_id=block["tool_use_id"],
        value=value_of("".join(part["text"] for part in inside if part["type"] == "text")),
        failed=block.get("is_error", False),
        images=tuple(_image(part) for part in inside if part["type"] == "image"),
    )


def _image(block: dict[str, Any]) -> bytes:
    assert block["source"]["media_type"] == "image/png"
    return b64decode(block["source"]["data"], validate=True)
