"""HTTP API of the Responses dialect: paths for responses and conversations, and the names of OpenAI's models."""

from dragoman.dialects.api import Api, Endpoint, ServedPath
from dragoman.dialects.responses.compat import flatten_tools

_RESPONSE = r"/v1/responses/(?P<name>[^/]+)"
_CONVERSATION = r"/v1/conversations/(?P<name>[^/]+)"


def _build_stored_path(method: str, path: str, action: str) -> ServedPath:
    """Return the route for an action on a stored object whose id is in the path."""
    return ServedPath(path, Endpoint(operation="kept", action=action), (method,), is_pattern=True, escaped=True)


API = Api(
    paths=(
        ServedPath("/v1/responses", Endpoint(operation="generate", convert=flatten_tools)),
        ServedPath("/v1/responses/input_tokens", Endpoint(operation="count", convert=flatten_tools)),
        ServedPath("/v1/conversations", Endpoint(operation="kept", action="conversations.create")),
        _build_stored_path("GET", _RESPONSE, "responses.retrieve"),
        _build_stored_path("DELETE", _RESPONSE, "responses.delete"),
        _build_stored_path("POST", rf"{_RESPONSE}/cancel", "responses.cancel"),
        _build_stored_path("GET", rf"{_RESPONSE}/input_items", "responses.input_items"),
        _build_stored_path("GET", _CONVERSATION, "conversations.retrieve"),
        _build_stored_path("POST", _CONVERSATION, "conversations.update"),
        _build_stored_path("DELETE", _CONVERSATION, "conversations.delete"),
        _build_stored_path("GET", rf"{_CONVERSATION}/items", "conversations.items"),
        _build_stored_path("POST", rf"{_CONVERSATION}/items", "conversations.add"),
        _build_stored_path("GET", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", "conversations.item"),
        _build_stored_path("DELETE", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", "conversations.remove"),
    ),
    own_paths=r"^/v1/responses",
    forwarded_headers=frozenset({"openai-beta"}),
    model_names=r"gpt-|o\d|chatgpt-|codex-",
    default_model="gpt-5.4-mini",
)
