"""HTTP API of the Chat dialect: its endpoint, OpenAI's other paths, and the names of OpenAI's models."""

from typing import Any

from dragoman.dialects.api import Api, Endpoint, ServedPath

_OTHER_PATHS = (
    "assistants|audio|completions|containers|embeddings|evals|fine_tuning|images|moderations|realtime|rerank|threads"
    "|uploads|vector_stores|videos"
)


def _is_message(message: Any) -> bool:
    """Return whether a message has a role or member that only Chat has."""
    match message:
        case {"role": "tool" | "developer" | "function"} | {"tool_calls": _}:
            return True
        case _:
            return False


API = Api(
    paths=(ServedPath("/v1/chat/completions", Endpoint(operation="generate")),),
    other_paths=(rf"/v1/(?:{_OTHER_PATHS})(?:[/:].+)?",),
    forwarded_headers=frozenset({"openai-beta"}),
    model_names=r"gpt-|o\d|chatgpt-|codex-",
    default_model="gpt-5.4-mini",
    request_fields=frozenset(
        {"max_completion_tokens", "response_format", "stream_options", "functions", "reasoning_effort", "n"}
    ),
    tool_fields=frozenset({"function"}),
    is_message=_is_message,
)
