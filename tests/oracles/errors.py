"""See which exception an official client raises, with its whole HTTP stack in between."""

from collections.abc import Mapping

import anthropic
import openai
from google.genai import errors as genai_errors

from oracles import anthropic_messages, google_gemini, openai_chat, openai_responses
from oracles.clients import live_anthropic, live_genai, live_openai, silent
from oracles.reading import Raised, Reading, get_error

_STREAM = {"content-type": "text/event-stream"}


def read_error(dialect: str, status: int, headers: Mapping[str, str], body: bytes) -> Raised | None:
    """Return what the client raises for a whole error reply, None if it takes it for success."""
    with silent():
        try:
            match dialect:
                case "chat":
                    live_openai(body, status, headers).chat.completions.create(model="m", messages=[])
                case "responses":
                    live_openai(body, status, headers).responses.create(model="m", input="x")
                case "messages":
                    live_anthropic(body, status, headers).messages.create(model="m", max_tokens=1, messages=[])
                case _:
                    live_genai(body, status, headers).models.generate_content(model="m", contents="x")
        except Exception as error:  # noqa: BLE001  whatever it raises is the answer
            return _describe(error)
    return None


def read_stream_error(dialect: str, sse: bytes, *, helper: bool = False) -> Raised | None:
    """Return what the client raises while it iterates a stream, None if it ends as if all were well.

    `helper` iterates with the SDK's accumulating helper (`.stream()`) where it has one.
    """
    with silent():
        try:
            if helper:
                read_live(dialect, sse)
            else:
                _iterate(dialect, sse)
        except Exception as error:  # noqa: BLE001  whatever it raises is the answer
            return _describe(error)
    return None


def read_live(dialect: str, sse: bytes) -> Reading:
    """Read a stream with the whole client and its accumulating helper; what it raises goes through."""
    with silent():
        match dialect:
            case "chat":
                return openai_chat.read_helper(live_openai(sse))
            case "responses":
                return openai_responses.read_helper(live_openai(sse))
            case "messages":
                return anthropic_messages.read_helper(live_anthropic(sse))
            case _:
                return google_gemini.read_helper(live_genai(sse))


def _iterate(dialect: str, sse: bytes) -> None:
    match dialect:
        case "chat":
            list(live_openai(sse).chat.completions.create(model="m", messages=[], stream=True))
        case "responses":
            list(live_openai(sse).responses.create(model="m", input="x", stream=True))
        case "messages":
            list(live_anthropic(sse).messages.create(model="m", max_tokens=1, messages=[], stream=True))
        case _:
            list(live_genai(sse).models.generate_content_stream(model="m", contents="x"))


def _describe(error: Exception) -> Raised:
    match error:
        case openai.APIError():
            return get_error(error, status=getattr(error, "status_code", None), type=error.type, code=error.code)
        case anthropic.APIStatusError():
            return get_error(error, status=error.status_code, type=error.type)
        case genai_errors.APIError():
            return get_error(error, status=error.code, type=error.status)
        case _:
            return get_error(error)
