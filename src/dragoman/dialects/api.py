"""Types that describe the HTTP API of a dialect: its paths, its clients' headers, its model names and model list.

The server builds its route table and its model lists from these rows, the router uses the model names, and the command
line detects the dialect of a request with them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.core.problems import Problem

Operation = Literal[
    "generate",
    "count",
    "models",
    "model",
    "health",
    "ready",
    "metrics",
    "translate",
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


ModelRow = dict[str, Any]
Query = Mapping[str, str]
_CREATED = 1767225600
"""Each model needs a creation date; the true one is not known."""
_MAX_DIGITS = 9


class ListedModel(Struct, frozen=True, kw_only=True):
    """One model in the list of an upstream."""

    name: str
    display_name: str = ""
    """The name to show to users."""
    input_limit: int | None = None
    output_limit: int | None = None
    row: ModelRow
    """The row as the upstream sent it."""


UNLISTED = ListedModel(name="", row={})


class ModelEntry(Struct, frozen=True, kw_only=True):
    """A model in the list for clients."""

    name: str
    issuer: str = ""
    """The vendor in whose format `listed` is."""
    listed: ListedModel = UNLISTED
    """The model as its upstream lists it, if it does."""


def _build_row(entry: ModelEntry) -> ModelRow:
    limits = {"context_length": entry.listed.input_limit, "max_output_tokens": entry.listed.output_limit}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return {"id": entry.name, "object": "model", "created": _CREATED, "owned_by": entry.issuer or "dragoman", **known}


def _build_page(rows: list[ModelRow], _query: Query) -> ModelRow:
    return {"object": "list", "data": rows}


class ModelFormat(Struct, frozen=True, kw_only=True):
    """The format of a model list. The defaults are the format of most servers, which has no pages."""

    member: str = "id"
    """The member of a row with the model's name."""
    prefix: str = ""
    """The beginning of that member, before the name."""
    build_row: Callable[[ModelEntry], ModelRow] = _build_row
    """Build the row of a model of any vendor."""
    build_page: Callable[[list[ModelRow], Query], ModelRow] = _build_page
    """Build the page of the list that the query parameters request."""


def read_page_size(query: Query, name: str, default: int, maximum: int) -> int:
    """Return the query parameter with the number of models on a page."""
    size = query.get(name) or str(default)
    # Python does not parse numbers of thousands of digits.
    if not size.isdecimal() or len(size) > _MAX_DIGITS or int(size) == 0:
        raise Problem("invalid_request", f"{name} must be a number from 1 to {maximum}", where=f"/{name}")
    return min(int(size), maximum)


def find_row(rows: list[ModelRow], member: str, query: Query, parameter: str) -> int:
    """Return the index of the row that a query parameter names."""
    names, name = [row[member] for row in rows], query[parameter]
    if name not in names:
        message = f"{parameter} must be a value of an earlier page of the list; no model is named {name!r}"
        raise Problem("invalid_request", message)
    return names.index(name)


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
    account_headers: frozenset[str] = frozenset()
    """Headers that select an account of the vendor; they are never forwarded, because the account is the gateway's."""
    model_names: str = ""
    """A pattern of model name prefixes: such models are routed to an upstream that speaks this dialect."""
    default_model: str = ""
    """The model of `dragoman chat`, `dragoman doctor` and MCP if none is named."""
    models: ModelFormat = ModelFormat()
    """How models are listed for clients of this dialect."""
    request_fields: frozenset[str] = frozenset()
    """Request members that identify this dialect among those whose `history` member has the same name."""
    tool_fields: frozenset[str] = frozenset()
    """Members of a tool that do the same."""
    is_message: Callable[[Any], bool] | None = None
    """Return whether an item of the conversation can only be of this dialect."""
