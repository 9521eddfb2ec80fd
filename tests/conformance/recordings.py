"""The recorded replies and requests, as bytes, one list a dialect."""

import functools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import shelf

DIALECTS = ("chat", "responses", "messages", "gemini")
KNOWN_BROKEN = {
    "openai_chat/llm-0005": "the host repeats a call's id and name in each chunk, which the SDK strings together",
    "openai_responses/vercel-ai-0053": "edited: the deltas do not add up to the text they end in",
    "anthropic/rig-0094": "the host ends with OpenAI's [DONE], which the SDK takes for JSON",
    "anthropic/vercel-ai-0032": "15 replies in one recording",
    "anthropic/vercel-ai-0040": "2 replies in one recording",
    "anthropic/vercel-ai-0043": "3 replies in one recording",
    "anthropic/vercel-ai-0046": "2 replies in one recording",
    "gemini/prism-php-0009": "edited: no blank lines between the frames",
    "gemini/vertexai-sdk-test-data-0060": "a test's own nonsense: neither content nor an end",
}
"""Recordings the SDK itself reads wrongly or not at all, by id with the defect."""


class Recording(NamedTuple):
    """One recorded reply of a model."""

    id: str
    body: bytes
    streamed: bool


class Asked(NamedTuple):
    """One recorded request."""

    id: str
    body: bytes
    model: str
    stream: bool


class Refused(NamedTuple):
    """One recorded error; `words` is what it says to a person."""

    id: str
    status: int
    headers: dict[str, str]
    body: bytes
    words: str


def _rows(dialect: str) -> Iterator[dict[str, Any]]:
    yield from shelf.exchanges(dialect)
    if dialect == "gemini":
        yield from shelf.exchanges("code_assist")


@functools.cache
def replies(dialect: str) -> tuple[Recording, ...]:
    """Every reply that went well, but for the broken ones."""
    return tuple(
        _reply(row)
        for row in _rows(dialect)
        if row["op"] == "generate" and row["status"] == 200 and row["id"] not in KNOWN_BROKEN
    )


def all_ids() -> dict[str, str]:
    """Every recorded exchange and its dialect."""
    return {row["id"]: dialect for dialect in DIALECTS for row in _rows(dialect)}


def _reply(row: dict[str, Any]) -> Recording:
    if row.get("sse") is not None:
        # Recorders trim the last blank line, without which SDKs drop the last event.
        return Recording(row["id"], f"{row['sse'].rstrip()}\n\n".encode(), streamed=True)
    match row["response"]:
        case [{"__data__": _}, *_] as dumped:
            # A recorder's dump of the SDK's chunks: put back into the frames they came in.
            frames = [f"data: {json.dumps(chunk['__data__'])}\n\n" for chunk in dumped]
            return Recording(row["id"], "".join([*frames, "data: [DONE]\n\n"]).encode(), streamed=True)
        case [*_] as chunks:
            return Recording(row["id"], json.dumps(chunks).encode(), streamed=True)
        case whole:
            return Recording(row["id"], json.dumps(whole).encode(), streamed=False)


@functools.cache
def requests(dialect: str) -> tuple[Asked, ...]:
    """Every request to generate: recorded, and captured from real clients."""
    recorded = [
        _ask(row["id"], row["url_path"], row["request"], row["model"])
        for row in _rows(dialect)
        if row["op"] == "generate" and row["request"]
    ]
    return (*recorded, *_read_captured(dialect))


def _read_captured(dialect: str) -> Iterator[Asked]:
    for path in sorted((shelf.ROOT / "clients" / "captures").glob("*/*.json")):
        capture = json.loads(path.read_bytes())
        if capture["method"] == "POST" and capture["path"].endswith(_ENDINGS[dialect]):
            yield _ask(f"{path.parent.name}/{path.stem}", capture["path"], capture["body"], "")


_ENDINGS = {
    "chat": ("/chat/completions",),
    "responses": ("/responses",),
    "messages": ("/messages",),
    "gemini": (":generateContent", ":streamGenerateContent"),
}


def _ask(name: str, path: str, body: dict[str, Any], model: str) -> Asked:
    in_path = path.rpartition("/")[2].partition(":")[0] if ":" in path else ""
    stream = "streamGenerateContent" in path or bool(body.get("stream"))
    return Asked(name, json.dumps(body).encode(), model or body.get("model") or in_path, stream)


@functools.cache
def errors(dialect: str) -> tuple[Refused, ...]:
    """Every error a service answered with."""
    return tuple(
        Refused(row["id"], row["status"], row.get("response_headers") or {}, _write(row.get("response")), _words(row))
        for row in _rows(dialect)
        if row["op"] == "generate" and row["status"] != 200
    )


def _write(value: Any) -> bytes:
    return json.dumps(value).encode() if value is not None else b""


def _words(row: dict[str, Any]) -> str:
    match row.get("response"):
        case {"error": {"message": str(words)}}:
            return words
        case _:
            return ""
