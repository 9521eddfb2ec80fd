"""The HTTP API of Messages: Anthropic's paths, its clients' headers and its model names."""

from typing import Any

from dragoman.dialects.api import READ_METHODS, Api, Endpoint, ServedPath

_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}


def _is_message(message: Any) -> bool:
    match message:
        case {"content": [{"type": str(kind)}, *_]}:
            return kind in _BLOCKS
        case _:
            return False


API = Api(
    paths=(
        ServedPath("/v1/messages", Endpoint(operation="generate", queried=True)),
        ServedPath("/v1/messages/count_tokens", Endpoint(operation="count")),
        # Claude Code requests this path to check that the server is reachable.
        ServedPath("/api/hello", Endpoint(operation="health"), READ_METHODS),
    ),
    other_paths=(r"/v1/(?:messages/batches|complete|skills)(?:[/:].+)?",),
    own_headers=frozenset({"anthropic-version"}),
    own_paths=r"^/v1/messages",
    forwarded_headers=frozenset({"anthropic-version", "anthropic-beta"}),
    model_names=r"claude",
    default_model="claude-haiku-4-5",
    request_fields=frozenset(
        {"system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking", "output_config"}
    ),
    tool_fields=frozenset({"input_schema"}),
    is_message=_is_message,
)
