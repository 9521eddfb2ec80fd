"""Grounded replies: made, read, and recorded."""

import json

from dialects.gemini import recordings
from dragoman.dialects.gemini import DIALECT
from event_grammar import check_events

GROUNDING = "/candidates/0/groundingMetadata"
WEB = [{"web": {"uri": "https://a.org", "title": "A"}}, {"web": {"uri": "https://b.org"}}]
CALL = {"functionCall": {"name": "f", "args": {}}}


def support(start, end, text, *chunks, **segment):
    segment = {"startIndex": start, "endIndex": end, "text": text, **segment}
    return {"segment": segment, "groundingChunkIndices": list(chunks)}


def ground(*supports, chunks=WEB, **members):
    return {"groundingMetadata": {"groundingChunks": chunks, "groundingSupports": list(supports), **members}}


def reply(*parts, **candidate):
    content = {"parts": [{"text": part} if isinstance(part, str) else part for part in parts], "role": "model"}
    return {"candidates": [{"content": content, "index": 0, "finishReason": "STOP", **candidate}]}


def parse(*parts, **candidate):
    return DIALECT.parse_response(json.dumps(reply(*parts, **candidate)).encode())


def sse(*chunks):
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


def decode(stream, size=1 << 20):
    decoder = DIALECT.decoder()
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    return [*check_events([*events, *decoder.close()])]


def list_citations(response):
    """Return (words, url) of every citation with a span, the span alone of one without words."""
    found = []
    for part in response.parts:
        for citation in getattr(part, "citations", ()):
            assert citation.dialect == "gemini"
            assert citation.raw == b""
            found.append((part.text[citation.start : citation.end], citation.url))
    return found


def spans(response):
    return [(citation.start, citation.end) for part in response.parts for citation in getattr(part, "citations", ())]


def with_sources():
    """Iterate (name, body) of recorded whole replies that have the metadata."""
    for name, body in recordings.replies():
        if b"roundingMetadata" in body or b"itationMetadata" in body:
            yield name, body


def streams_with_sources():
    for name, stream in recordings.streams():
        if b"groundingSupports" in stream:
            yield name, stream
