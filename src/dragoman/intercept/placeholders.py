"""A turn that was made here: valid, short, and the same in all three forms of a reply."""

from uuid import uuid4

from dragoman.intercept.paths import Turn
from dragoman.wire import json

_NO_USAGE = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}


def made_reply(text: str, turn: Turn, model: str) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a reply in which the model says nothing but `text`."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    name = model.removeprefix("models/")
    reply = {"candidates": [candidate], "usageMetadata": _NO_USAGE, "modelVersion": name, "responseId": uuid4().hex}
    body = json.encode({"response": reply} if turn.wrapped else reply)
    if turn.stream and turn.events:
        return {"content-type": "text/event-stream"}, b"data: " + body + b"\r\n\r\n"
    return {"content-type": "application/json; charset=UTF-8"}, b"[" + body + b"]" if turn.stream else body
