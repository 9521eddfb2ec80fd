"""Real replies to hold the laws against, and canaries in them."""

import base64
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import shelf
from conformance.recordings import KNOWN_BROKEN
from dragoman.interpreter.signature_envelopes import ENVELOPE_MARKER
from laws.canary import FRACTION, NUMBER, TOKEN, replace
from laws.documents import leaves

CLOSED = {"type", "role", "object", "status", "finish_reason", "stop_reason", "finishReason", "blockReason"}
SPANS = {"start_index", "end_index", "startIndex", "endIndex", "start_char_index", "end_char_index"}
"""Character positions in a text, which may change with it."""
INCIDENTAL = {
    "/choices/#/index",
    "/choices/#/message/tool_calls/#/index",
    "/created",
    "/created_at",
    "/content/#/tool_use_id",
    "/candidates/#/content/parts/#/toolCall/id",
}
"""Fields without meaning for the answer: the index of a choice or call, the creation time, the id of a vendor's search."""
COUNTED_TOGETHER = {"/usage/output_tokens", "/usage/completion_tokens"}
"""Gemini counts them without reasoning tokens, and has a total of all."""
_OFTEN = 2
_ENVELOPE = re.compile(ENVELOPE_MARKER + rb"[A-Za-z0-9+/=]*")


def shape(where: str) -> str:
    """A pointer without its numbers."""
    return "/".join("#" if token.isdigit() else token for token in where.split("/"))


@functools.cache
def distinct_replies(dialect: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """One recorded whole reply of each shape, the smallest."""
    found = [
        (row["id"], row["response"])
        for row in shelf.exchanges(dialect)
        if row["op"] == "generate" and row["status"] == 200 and isinstance(row.get("response"), dict)
    ]
    by_shape: dict[frozenset[str], tuple[str, dict[str, Any]]] = {}
    for name, body in sorted(found, key=lambda item: len(json.dumps(item[1]))):
        if name not in KNOWN_BROKEN:
            by_shape.setdefault(frozenset(_kinds(body)), (name, body))
    return tuple(by_shape.values())


def _kinds(body: dict[str, Any]) -> Iterator[str]:
    for where, value in leaves(body):
        name = where.rsplit("/", 1)[-1]
        yield f"{_path(body, where)}:{value if name in CLOSED else type(value).__name__}"


def _path(body: Any, where: str) -> str:
    """A pointer with the types of all it leads through, and without its numbers."""
    path: list[str] = []
    for token in where.split("/")[1:]:
        if isinstance(body, list):
            path.append("#")
            body = body[int(token)]
            continue
        kind = body.get("type")
        path.append(f"{kind}.{token}" if isinstance(kind, str) else token)
        body = body[token.replace("~1", "/").replace("~0", "~")]
    return "/".join(path)


_RATED = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
RARE: dict[str, dict[str, dict[str, Any]]] = {
    "gemini": {
        "refused prompt": {
            "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": _RATED},
            "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3},
        },
        "two candidates": {
            "candidates": [
                {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"},
                {"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"},
            ]
        },
        "filtered": {"candidates": [{"finishReason": "SAFETY", "safetyRatings": _RATED}]},
        "everything": {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"text": "a", "partMetadata": {"b": [1, {"c": None}]}},
                            {"executableCode": {"language": "PYTHON", "code": "1"}},
                            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "c2ln"},
                        ]
                    },
                    "finishReason": "STOP",
                    "avgLogprobs": -0.5,
                    "logprobsResult": {"topCandidates": [{"candidates": [{"token": "a", "logProbability": -1.5}]}]},
                }
            ],
            "modelStatus": {"modelStage": "STABLE", "message": "m"},
        },
    },
    "chat": {
        "two choices": {
            "id": "c",
            "choices": [
                {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
                {"index": 1, "message": {"content": "b", "x": [1, {}]}, "finish_reason": "stop"},
            ],
        },
        "what the vendor adds": {
            "id": "c",
            "choices": [
                {
                    "index": 0,
                    "message": {"content": "a", "reasoning_details": [{"type": "t", "text": "b"}]},
                    "logprobs": {"content": [{"token": "a", "logprob": -1, "top_logprobs": []}], "refusal": None},
                    "finish_reason": "stop",
                }
            ],
            "timings": {"a": 1, "b": {"c": 2}},
        },
    },
    "messages": {
        "what the vendor adds": {
            "id": "m",
            "type": "message",
            "content": [
                {"type": "text", "text": "a", "novel": {"b": [1, 2]}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            ],
            "stop_reason": "end_turn",
            "container": {"id": "c", "skills": [{"a": 1}]},
        }
    },
    "responses": {
        "what the vendor adds": {
            "id": "r",
            "status": "completed",
            "output": [
                {
                    "type": "web_search_call",
                    "id": "w",
                    "status": "completed",
                    "action": {"query": "q", "sources": [{}]},
                },
                {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            ],
            "novel": {"b": [1, {"c": []}]},
        }
    },
}
"""Replies that are seldom recorded: refusals, several candidates, many fields that other dialects do not have."""


@functools.cache
def canaries(dialect: str) -> tuple[tuple[str, str, str, bytes], ...]:
    """Yield name, pointer, value to look for and changed reply, for two leaves of each kind that can contain a canary."""
    return tuple(_canaries(dialect))


def _canaries(dialect: str) -> Iterator[tuple[str, str, str, bytes]]:
    seen: Counter[str] = Counter()
    for name, body in distinct_replies(dialect):
        for where, value in leaves(body):
            member = where.rsplit("/", 1)[-1]
            if isinstance(value, bool) or value is None or value in ({}, []):
                continue
            if (member in CLOSED and isinstance(value, str)) or member in SPANS:
                continue
            path = _path(body, where)
            seen[path] += 1
            if seen[path] > _OFTEN:
                continue
            changed = _replacement(member, value)
            expected = str(changed) if isinstance(changed, int | float) else TOKEN
            yield name, where, expected, json.dumps(replace(body, where, changed)).encode()


def _replacement(member: str, value: Any) -> Any:
    match value:
        case int():
            return NUMBER
        case float():
            return FRACTION
        case str() if value.startswith(("http://", "https://")):
            return f"https://canary.example/{TOKEN}"
        case _:
            return json.dumps({"canary": TOKEN}) if member == "arguments" else TOKEN


def survives(expected: str, output: bytes) -> bool:
    """Return whether the canary is in the translated reply, or in a signature envelope in it."""
    letters = (base64.b64decode(letter) for letter in _ENVELOPE.findall(output))
    return any(expected.encode() in result for result in (output, *letters))
