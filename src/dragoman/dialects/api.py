"""What a dialect's HTTP API looks like: its paths, the headers of its clients, the names of its models.

The server builds its table of paths from these rows, the router reads the names of models, and the command recognises
requests by them.
"""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

Operation = Literal[
    "generate",
    "count",
    "models",
    "model",
    "health",
    "metrics",
    "exchange",
    "assist",
    "kept",
    "other",
    "mcp",
    "intercept",
]
READ_METHODS = ("GET", "HEAD")
"""The methods of an endpoint that only shows something."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """What is done at a path, and how its requests are read."""

    operation: Operation
    stream: bool = False
    google: bool = False
    """A stream is a JSON array unless events are asked for, and a count may hold a whole request."""
    flat: bool = False
    """Tools are flat there, but clients write them nested too."""
    in_url: bool = False
    """The model is in the path, and whether the answer is streamed."""
    wrapped: bool = False
    """Requests and replies are in Code Assist's envelope."""
    name: str = ""
    """The name of the stored object, of the exchange or of the method that the path has."""
    action: str = ""
    """What to do with a stored object."""
    queried: bool = False
    """The query is part of the request: it goes to an upstream of the same dialect."""
    in_session: bool = False
    """The body names its conversation in a form of our own."""


class ServedPath(Struct, frozen=True):
    """A path of a dialect's API that the gateway serves."""

    path: str
    """The path, or a regular expression with groups named as fields of the server's `Path`: `model`, `name`, `item`."""
    endpoint: Endpoint
    methods: tuple[str, ...] = ("POST",)
    is_pattern: bool = False
    ending: str = ""
    """The text that the pattern ends with: a path is not matched without it, which is quicker."""
    escaped: bool = False
    """The pattern is matched before percent escapes are decoded: a name may have a slash in it."""


class Api(Struct, frozen=True, kw_only=True):
    """The HTTP API of a dialect."""

    paths: tuple[ServedPath, ...] = ()
    other_paths: tuple[str, ...] = ()
    """Patterns of paths of its vendor that are passed through; a group `model` is the model that one names."""
    own_headers: frozenset[str] = frozenset()
    """Headers that only its clients send."""
    own_paths: str = ""
    """A pattern that is searched in a path: if it is found, errors there are written in this dialect."""
    passed_headers: frozenset[str] = frozenset()
    """Headers by which its clients choose how the vendor behaves; they go to upstreams of the same dialect."""
    model_names: str = ""
    """A pattern of the beginning of model names: such a model goes to an upstream that speaks the dialect."""
    default_model: str = ""
    """The model that is used where nobody names one."""
    request_fields: frozenset[str] = frozenset()
    """Members by which a request is told from one of a dialect whose conversation has the same name."""
    tool_fields: frozenset[str] = frozenset()
    """The same for members of a tool."""
    is_message: Callable[[Any], bool] | None = None
    """The same for an item of the conversation."""
