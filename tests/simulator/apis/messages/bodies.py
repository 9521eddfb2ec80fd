"""Requests to validate: small ones written here, and recorded ones that the vendor accepted."""

import functools
import json
import re
from typing import Any

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.messages import API
from dragoman.simulator.apis.messages.errors import parse_betas
from dragoman.simulator.apis.rule import CheckContext, Violation
from shelf import ROOT, exchanges, samples

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Current weather for a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["city"],
    },
}
NEWEST = "claude-opus-5-5"


def user(*content: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "content": content[0] if len(content) == 1 and isinstance(content[0], str) else list(content),
    }


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **members}


def call(number: int = 1, **members: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "get_weather", "input": {"city": "Paris"}, **members}


def result(number: int = 1, **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "18 degrees", **members}


def asks(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    output = list(messages) or [user("What is the weather in Paris?")]
    return {"model": NEWEST, "max_tokens": 2048, "messages": output, **members}


def on_vertex(**members: Any) -> dict[str, Any]:
    body = asks(anthropic_version="vertex-2023-10-16", **members)
    del body["model"]
    return body


def judge(body: Any, signer: TokenSigner | None = None, **situation: Any) -> AcceptedRequest | Violation:
    loose = {"vertex": "anthropic_version" in body, "model": body.get("model", NEWEST), **situation}
    return API.accept(json.dumps(body).encode(), CheckContext(**loose), signer or TokenSigner())


def require_accepted(body: Any, signer: TokenSigner | None = None, **situation: Any) -> AcceptedRequest:
    found = judge(body, signer, **situation)
    assert isinstance(found, AcceptedRequest), found
    return found


def require_rejected(body: Any, signer: TokenSigner | None = None, **situation: Any) -> Violation:
    found = judge(body, signer, **situation)
    assert isinstance(found, Violation), "accepted"
    return found


@functools.cache
def sample_requests() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Yield samples and requests that the SDK sent, each with its context."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for path in samples("messages", ".request.json"):
        found[path.name] = (json.loads(path.read_text()), {"counting": "count_tokens" in path.name, "recorded": True})
    for path in sorted((ROOT / "wire" / "samples" / "captured").glob("anthropic*.json")):
        captured = json.loads(path.read_text())
        if captured["body"]:
            betas = tuple(filter(None, captured["headers"].get("anthropic-beta", "").split(",")))
            version = captured["headers"].get("anthropic-version", "")
            counting = "count_tokens" in path.name
            found[path.name] = (captured["body"], {"counting": counting, "betas": betas, "version": version})
    return found


@functools.cache
def client_requests() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Yield requests that clients sent to a simulator."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for path in sorted((ROOT / "clients" / "captures").glob("*/*POST-v1-messages*.json")):
        captured = json.loads(path.read_text())
        headers = dict(captured["headers"])
        output = headers.get("anthropic-beta", "")
        # A list that is truncated in the capture is useless.
        betas = None if "chars]" in output else tuple(filter(None, output.split(",")))
        situation = {"counting": "count" in path.name, "version": headers.get("anthropic-version", ""), "betas": betas}
        found[f"{path.parent.name}/{path.name[:2]}"] = (captured["body"], situation)
    return found


def model_of(exchange: dict[str, Any]) -> str:
    """Return the requested model; recordings of Vertex have it in the path only, but the reply names it."""
    if exchange["model"] != "x":
        return exchange["model"]
    replied = json.dumps(exchange.get("response") or {}) + (exchange.get("sse") or "")
    found = re.search(r"claude-[a-z0-9-]+", replied)
    return found[0] if found else "x"


def load_recordings(*statuses: int) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return recorded requests that got one of these statuses, each with its context."""
    return {
        exchange["id"]: (exchange["request"], situation_of(exchange))
        for exchange in exchanges("messages")
        if exchange["request"] and exchange["status"] in statuses
    }


def situation_of(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return the context of a recorded request; betas are known if its headers were recorded."""
    headers = exchange["request_headers"] or {}
    version = headers.get("anthropic-version", "")
    return {
        "model": model_of(exchange),
        "counting": exchange["op"] == "count_tokens",
        "recorded": True,
        "version": version,
        "betas": parse_betas(headers) if version else None,
    }
