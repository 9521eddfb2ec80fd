"""Requests to validate: small ones written here, and recorded ones that the vendor accepted."""

import functools
import json
from typing import Any

from dragoman.simulator.apis.api import AcceptedRequest
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.responses import API
from dragoman.simulator.apis.rule import CheckContext, Violation
from shelf import ROOT, exchanges, samples

VENDOR = ("openai.com", "azure.com", "chatgpt.com")
"""Hosts of the vendor itself; others have the same API but rules of their own."""
MOCKED = {
    "openai_responses/opentelemetry-js-contrib-0008": "a hand-written reply (fc_12345xyz): the vendor refuses such a schema"
}
WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather in a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": False,
}
PATCH: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Change files",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}


def judge(body: Any, *, recorded: bool = False, signer: TokenSigner | None = None) -> AcceptedRequest | Violation:
    situation = CheckContext(model=str(body.get("model", "")), recorded=recorded)
    return API.accept(json.dumps(body).encode(), situation, signer or TokenSigner())


def require_accepted(body: Any, **options: Any) -> AcceptedRequest:
    found = judge(body, **options)
    assert isinstance(found, AcceptedRequest), found
    return found


def require_rejected(body: Any, **options: Any) -> Violation:
    found = judge(body, **options)
    assert isinstance(found, Violation), "accepted"
    return found


def asks(**members: Any) -> dict[str, Any]:
    return {"model": "gpt-6.1-sol", "input": "What is the weather in Paris?", **members}


@functools.cache
def sample_requests() -> dict[str, dict[str, Any]]:
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in samples("responses", ".request.json")}
    for path in sorted((ROOT / "wire" / "samples" / "captured").glob("openai__responses*.json")):
        captured = json.loads(path.read_text(encoding="utf-8"))
        if captured["url"].endswith("/responses") and captured["body"]:
            found[path.name] = captured["body"]
    return found


@functools.cache
def client_requests() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "clients" / "captures").glob("*/*POST-v1-responses.json")):
        captured = json.loads(path.read_text(encoding="utf-8"))
        found[f"{path.parent.name}/{path.name}"] = captured["body"]
    return found


@functools.cache
def load_recordings(status: int) -> dict[str, dict[str, Any]]:
    """Return recorded requests to the vendor that got this status."""
    return {
        row["id"]: row["request"]
        for row in exchanges("responses")
        if row["op"] == "generate"
        and row["status"] == status
        and isinstance(row["request"], dict)
        and row["host"].endswith(VENDOR)
    }
