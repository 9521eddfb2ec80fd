"""How to read what arrived in Gemini's dialect, in Code Assist's envelope or without.

Google's own SDK writes some members in snake case, and what it writes is passed on as it is.
"""

import re
from base64 import b64decode
from typing import Any

from end_to_end.talk import Call, ReceivedRequest, ReceivedResult, Tool, value_of

NAME = "gemini"
FLAGS_FAILED = True
FAILS_BY_MEMBER = True
"""A result that failed is an object with this one member."""
HOLDS_IMAGES = True
REPLAYS = True
_MODES = {"AUTO": "auto", "NONE": "none", "VALIDATED": "auto"}
_FREE = frozenset({"args", "response", "parametersJsonSchema"})
"""The contents of these fields are the caller's own."""
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
"""A declaration without parameters is one of a tool that takes none."""
_UNDERSCORE = re.compile(r"_([a-z])")


def parse_request(body: dict[str, Any]) -> ReceivedRequest:
    """Parse a request; its path decides whether it is streamed."""
    body = _camel(body.get("request", body))
    parts = [part for content in body["contents"] for part in content["parts"]]
    declared = [one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    return ReceivedRequest(
        system="".join(part["text"] for part in body["systemInstruction"]["parts"]),
        prompt="".join(part["text"] for part in body["contents"][0]["parts"]),
        tools=tuple(
            Tool(one["name"], one["description"], one.get("parametersJsonSchema", _NOTHING)) for one in declared
        ),
        choice=_choice(body.get("toolConfig", {}).get("functionCallingConfig", {})),
        calls=tuple(Call(call["id"], call["name"], call["args"]) for call in called),
        results=tuple(_result(part["functionResponse"]) for part in parts if "functionResponse" in part),
        images=tuple(_image(part) for part in parts if "inlineData" in part),
        thoughts=tuple(part["text"] for part in parts if part.get("thought")),
        signatures=tuple(part["thoughtSignature"] for part in parts if "thoughtSignature" in part),
    )


def _camel(value: Any) -> Any:
    """Name the members of a request as the vendor does."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {_UNDERSCORE.sub(lambda found: found[1].upper(), name): item for name, item in value.items()}
    return {name: item if name in _FREE else _camel(item) for name, item in named.items()}


def _choice(config: dict[str, Any]) -> str:
    if config.get("mode") == "ANY":
        (name,) = config["allowedFunctionNames"]
        return name
    return _MODES[config.get("mode", "AUTO")]


def _result(response: dict[str, Any]) -> ReceivedResult:
    result = response["response"]
    failed = set(result) == {"error"}
    value = result["error"] if failed else result.get("output", result)
    return ReceivedResult(
        call_id=response["id"],
        name=response["name"],
        value=value_of(value) if isinstance(value, str) else value,
        failed=failed,
        images=tuple(_image(part) for part in response.get("parts", ())),
    )


def _image(part: dict[str, Any]) -> bytes:
    assert part["inlineData"]["mimeType"] == "image/png"
    return b64decode(part["inlineData"]["data"], validate=True)
