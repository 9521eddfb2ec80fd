"""Requests, and helpers that validate them."""

import functools
import json
from typing import Any

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.chat import API
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from shelf import exchanges, samples

SIGNER = TokenSigner(5)
HOSTS = {"api.openai.com"}
"""Hosts whose traffic is checked by OpenAI's rules; merely compatible servers accept what OpenAI rejects."""
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
STRICT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "find",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
CALCULATOR: dict[str, Any] = {"type": "custom", "custom": {"name": "calculate", "description": "Adds numbers"}}


def body(**members: Any) -> dict[str, Any]:
    """Return a request that is accepted, with other fields set."""
    asked = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "What is the weather in Paris?"}], **members}
    return {name: value for name, value in asked.items() if value is not ...}


def judge(request: dict[str, Any] | bytes, *, recorded: bool = False) -> AcceptedRequest | Violation:
    """Return the accepted request or the violation."""
    raw = request if isinstance(request, bytes) else json.dumps(request).encode()
    return API.accept(raw, CheckContext(model="", recorded=recorded), SIGNER)


def require_accepted(**members: Any) -> AcceptedRequest:
    """Return an accepted request."""
    result = judge(body(**members))
    assert isinstance(result, AcceptedRequest), result
    return result


def require_rejected(**members: Any) -> Violation:
    """Return the violation of a rejected request."""
    result = judge(body(**members))
    assert isinstance(result, Violation), result
    return result


def assistant_calls(*ids: str, name: str = "get_weather") -> dict[str, Any]:
    """Return an assistant message with tool calls."""
    calls = [{"id": each, "type": "function", "function": {"name": name, "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool_result(call_id: str, content: Any = "sunny") -> dict[str, Any]:
    """Return a tool result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@functools.cache
def recordings(*statuses: int) -> tuple[dict[str, Any], ...]:
    """Return recorded exchanges with OpenAI itself that ended with these statuses."""
    return tuple(
        exchange
        for exchange in exchanges("chat")
        if exchange["host"] in HOSTS and exchange["request"] and exchange["status"] in statuses
    )


@functools.cache
def seeds() -> tuple[dict[str, Any], ...]:
    """Return bodies that are accepted: recorded ones and samples."""
    written = [json.loads(path.read_text(encoding="utf-8")) for path in samples("chat", ".request.json")]
    all_of_them = [*written, *(exchange["request"] for exchange in recordings(200))]
    return tuple(each for each in all_of_them if isinstance(judge(each), AcceptedRequest))
