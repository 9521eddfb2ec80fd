"""Types that describe the HTTP API of a dialect: its paths, its clients' headers and its model names.

The server builds its route table from these rows, the router uses the model names, and the command line detects the
dialect of a request with them.
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
"""HTTP methods of a read-only endpoint."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """The operation of a path, and how its requests are parsed."""

    operation: Operation
    stream: bool = False
    streams_array: bool = False
    """A stream is a JSON array unless `alt=sse` is set."""
    convert: Callable[[bytes], bytes] | None = None
    """Converts a body that some clients send in another format; None if the API has only one."""
    in_url: bool = False
    """The path names the model and says whether the reply is streamed."""
    wrapped: bool = False
    """Requests and replies are wrapped in Code Assist's envelope."""
    name: str = ""
    """The stored object, exchange or method that the path names."""
    item: str = ""
    """The item of a stored object that the path names."""
    action: str = ""
    """The action on a stored object."""
    queried: bool = False
    """The query string is part of the request and is forwarded to an upstream of the same dialect."""
    in_session: bool = False
    """The body names a conversation that the gateway stores, in the gateway's own request format."""


class ServedPath(Struct, frozen=True):
    """A path of a dialect's API that the gateway serves."""

    path: str
    """The path, or a regular expression. Its groups are fields of the server's `PathMatch`: `model`, `name`, `item`."""
    endpoint: Endpoint
    methods: tuple[str, ...] = ("POST",)
    is_pattern: bool = False
    ending: str = ""
    """The literal end of the pattern. Paths without it are skipped before the pattern is matched, which is faster."""
    escaped: bool = False
    """The pattern is matched before percent-decoding, because a name may contain an encoded slash."""


class Api(Struct, frozen=True, kw_only=True):
    """The HTTP API of a dialect."""

    paths: tuple[ServedPath, ...] = ()
    other_paths: tuple[str, ...] = ()
    """Patterns of the vendor's other paths, which are passed through; the group `model`, if any, is the model name."""
    own_headers: frozenset[str] = frozenset()
    """Headers that only clients of this dialect send."""
    own_paths: str = ""
    """A pattern that is searched in a path. On a match, errors for that path are rendered in this dialect."""
    forwarded_headers: frozenset[str] = frozenset()
    """Headers that select vendor behaviour, such as an API version; they are forwarded to upstreams of this dialect."""
    model_names: str = ""
    """A pattern of model name prefixes: such models are routed to an upstream that speaks this dialect."""
    default_model: str = ""
    """The model of `dragoman chat`, `dragoman doctor` and MCP if none is named."""
    request_fields: frozenset[str] = frozenset()
    """Request members that identify this dialect among those whose `history` member has the same name."""
    tool_fields: frozenset[str] = frozenset()
    """Members of a tool that do the same."""
    is_message: Callable[[Any], bool] | None = None
    """Return whether an item of the conversation can only be of this dialect."""
