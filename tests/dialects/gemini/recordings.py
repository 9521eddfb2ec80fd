"""Recorded Gemini and Code Assist traffic from the shelf, by kind."""

import functools
import json

import shelf

MISFILED = {
    "gemini/prism-php-0017": "the reply to the creation of a cache",
    "gemini/vertexai-sdk-test-data-0085": "the reply to countTokens",
    "gemini/vertexai-sdk-test-data-0059": "no reply at all: a test's own nonsense",
}
UNFINISHED = {
    "gemini/vertexai-sdk-test-data-0030": "no reply at all: a test's own nonsense",
    "gemini/vertexai-sdk-test-data-0031": "a content without parts and no finish reason",
}
FAILING = {
    "gemini/vertexai-sdk-test-data-0027": "a bare JSON error in the middle of SSE",
}


@functools.cache
def exchanges():
    """All recorded exchanges; read here because an open file is a warning, and a warning an error."""
    rows = []
    for name in ("gemini", "code_assist"):
        path = shelf.ROOT / "corpus" / shelf.CORPUS_FILES[name]
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        rows.extend(json.loads(line) for line in lines if line)
    return tuple(rows)


def _generate():
    for row in exchanges():
        if row["op"] == "generate" and row["status"] == 200:
            yield row


def requests():
    """Iterate (name, body) of every recorded, sampled and captured request."""
    for row in exchanges():
        if row["op"] == "generate" and row["request"]:
            yield row["id"], row["request"]
    for path in (*shelf.samples("gemini", ".request.json"), *shelf.samples("code_assist", "generate.request.json")):
        if "count_tokens" not in path.name:
            yield path.name, json.loads(path.read_text())
    for path in sorted((shelf.ROOT / "clients" / "captures").glob("*/*enerateContent.json")):
        yield f"{path.parent.name}/{path.name}", json.loads(path.read_text())["body"]


def replies():
    """Iterate (name, bytes) of every whole reply that went well."""
    for row in _generate():
        if isinstance(row.get("response"), dict) and row["id"] not in MISFILED:
            yield row["id"], json.dumps(row["response"]).encode()
    for path in (*shelf.samples("gemini", ".response.json"), *shelf.samples("code_assist", "generate.response.json")):
        if "count_tokens" not in path.name:
            yield path.name, json.dumps(json.loads(path.read_bytes())).encode()


def streams():
    """Iterate (name, bytes) of every streamed reply that went well."""
    for row in _generate():
        if row["id"] in UNFINISHED or row["id"] in FAILING:
            continue
        if "sse" in row:
            yield row["id"], row["sse"].encode()
        elif isinstance(row["response"], list):
            yield row["id"], json.dumps(row["response"]).encode()
    for path in (*shelf.samples("gemini", ".stream.sse"), *shelf.samples("code_assist", ".stream.sse")):
        if path.name != "error.stream.sse":
            yield path.name, path.read_bytes()
    for path in shelf.samples("gemini", ".array.json"):
        yield path.name, path.read_bytes()


def stream(name):
    """Return one recorded stream."""
    return next(row["sse"].encode() for row in exchanges() if row["id"] == name)


def errors():
    """Iterate (name, status, body) of every recorded error."""
    for row in exchanges():
        if row["status"] != 200:
            yield row["id"], row["status"], json.dumps(row["response"]).encode()
