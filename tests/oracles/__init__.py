"""Judges made of nothing but the official SDKs: they never import the project.

`read_whole` and `read_stream` say what an SDK makes of a reply, `read_error` and `read_stream_error` what it raises,
`check_request` what its request types have against a body.
"""

from oracles import anthropic_messages, google_gemini, openai_chat, openai_responses
from oracles.errors import read_error, read_live, read_stream_error
from oracles.reading import Call, Raised, Reading, Usage
from oracles.request_checks import check_pairs, check_request

_READERS = {
    "chat": openai_chat,
    "responses": openai_responses,
    "messages": anthropic_messages,
    "gemini": google_gemini,
}


def read_whole(dialect: str, body: bytes, *, strict: bool = True) -> Reading:
    """Say what the SDK of `dialect` reads in a whole reply; strict validates every field."""
    return _READERS[dialect].read_whole(body, strict=strict)


def read_stream(dialect: str, sse: bytes, *, strict: bool = True) -> Reading:
    """Say what the SDK of `dialect` reads in a stream; strict validates every event."""
    return _READERS[dialect].read_stream(sse, strict=strict)


__all__ = [
    "Call",
    "Raised",
    "Reading",
    "Usage",
    "check_pairs",
    "check_request",
    "read_error",
    "read_live",
    "read_stream",
    "read_stream_error",
    "read_whole",
]
