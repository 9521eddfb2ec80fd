"""Real requests to hold the laws against: recorded ones, samples, and what real clients send."""

import functools
import json
from typing import Any

import shelf

DIALECTS = ("chat", "responses", "messages", "gemini")
MODELS = {
    "chat": "gpt-4.1",
    "responses": "gpt-4.1",
    "messages": "claude-opus-4-8",
    "gemini": "gemini-3-flash",
}
CAPTURE_PATHS = {
    "chat/completions": "chat",
    "v1-chat-completions": "chat",
    "v1-responses": "responses",
    "v1-messages": "messages",
    "generateContent": "gemini",
    "streamGenerateContent": "gemini",
}


@functools.cache
def requests(dialect: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Every request of one dialect on the shelf, with a name."""
    found: list[tuple[str, dict[str, Any]]] = []
    for exchange in shelf.exchanges(dialect):
        body = exchange.get("request")
        if exchange["op"] == "generate" and exchange["status"] == 200 and isinstance(body, dict):
            found.append((exchange["id"], body))
    found.extend(
        (path.name, json.loads(path.read_text()))
        for path in shelf.samples(dialect, ".request.json")
        if not path.name.startswith("count_tokens")
    )
    found.extend(_captures(dialect))
    return tuple(found)


def _captures(dialect: str) -> list[tuple[str, dict[str, Any]]]:
    folder = shelf.ROOT / "clients" / "captures"
    found: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(folder.glob("*/*POST*.json")):
        if not any(word in path.name and name == dialect for word, name in CAPTURE_PATHS.items()):
            continue
        body = json.loads(path.read_text()).get("body")
        if isinstance(body, dict) and ("contents" in body or "messages" in body or "input" in body):
            found.append((f"{path.parent.name}/{path.name}", body))
    return found


def leaves(value: Any, where: str = "") -> list[tuple[str, Any]]:
    """All leaves with their pointers; an empty container is a leaf."""
    if isinstance(value, dict) and value:
        return [
            leaf
            for name, member in value.items()
            for leaf in leaves(member, f"{where}/{name.replace('~', '~0').replace('/', '~1')}")
        ]
    if isinstance(value, list) and value:
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, f"{where}/{index}")]
    return [(where, value)]


def shape(body: dict[str, Any]) -> frozenset[str]:
    """The shape of a request: pointers without indexes, with the types of the leaves."""
    return frozenset(
        "/".join("#" if token.isdigit() else token for token in where.split("/")) + f":{_kind(where, value)}"
        for where, value in leaves(body)
        if "/properties/" not in where
    )


def _kind(where: str, value: Any) -> str:
    name = where.rsplit("/", 1)[-1]
    return repr(value) if name in {"type", "role", "mode"} and isinstance(value, str) else type(value).__name__


@functools.cache
def distinct_requests(dialect: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """One request of each shape, the smallest."""
    by_shape: dict[frozenset[str], tuple[str, dict[str, Any]]] = {}
    for name, body in sorted(requests(dialect), key=lambda item: len(json.dumps(item[1]))):
        by_shape.setdefault(shape(body), (name, body))
    return tuple(by_shape.values())
