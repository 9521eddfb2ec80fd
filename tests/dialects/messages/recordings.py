"""Recorded Messages traffic from the shelf, by kind."""

import json
import re

import shelf


def requests():
    """Iterate (name, body) of every recorded, sampled and captured request."""
    for row in shelf.exchanges("messages"):
        if row["request"] and "messages" in row["request"]:
            yield row["id"], row["request"]
    for path in shelf.samples("messages", ".request.json"):
        yield path.name, json.loads(path.read_text())
    for path in sorted((shelf.ROOT / "clients" / "captures").glob("*/*messages*.json")):
        yield f"{path.parent.name}/{path.name}", json.loads(path.read_text())["body"]


def replies():
    """Iterate (name, bytes) of every whole reply that went well."""
    for row in shelf.exchanges("messages"):
        if row["op"] == "generate" and row["status"] == 200 and "response" in row:
            yield row["id"], json.dumps(row["response"]).encode()
    for path in shelf.samples("messages", ".response.json"):
        if "count_tokens" not in path.name:
            yield path.name, json.dumps(json.loads(path.read_text())).encode()


def _replies_in(name, recorded):
    """Take apart the fixtures that hold the replies of several requests one after the other."""
    *earlier, last = re.split(r'(?<="message_stop"})\s+(?=event: message_start)', recorded)
    if not earlier:
        yield name, last.encode()
        return
    for number, stream in enumerate([*earlier, last]):
        yield f"{name}#{number}", f"{stream}\n\n".encode()


def streams():
    """Iterate (name, bytes) of every streamed reply that went well."""
    for row in shelf.exchanges("messages"):
        if row["op"] == "generate" and row["status"] == 200 and "sse" in row:
            yield from _replies_in(row["id"], row["sse"])
    for path in shelf.samples("messages", ".stream.sse"):
        if path.name != "error.stream.sse":
            yield path.name, path.read_bytes()


def errors():
    """Iterate (name, status, body) of every recorded error."""
    for row in shelf.exchanges("messages"):
        if row["status"] != 200:
            body = json.dumps(row["response"]) if "response" in row else row["response_text"]
            yield row["id"], row["status"], body.encode()
