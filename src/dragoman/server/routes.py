"""Which operation and dialect a path stands for, and the response to bytes that are no valid request.

The vendors' other endpoints (files, embeddings, audio, batches and so on) are passed through. A path that begins with
`/upstreams/NAME` names the upstream, and the rest is the upstream's own path.
"""

import re
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from dragoman.core.problems import Kind, Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record, headers_of, signed
from dragoman.http.message import Headers, Request


class OtherPath(Struct, frozen=True, kw_only=True):
    """A path at an upstream."""

    dialect: str = ""
    upstream: str = ""
    """The upstream it names; "" for none."""
    path: str
    model: str = ""
    """The model it names; "" for none."""


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_NAMED = re.compile(r"/upstreams/(?P<name>[^/]+)(?P<path>/.+)")
_BELOW = r"(?:[/:].+)?"
_ANY_VERSION = r"(?:/upload|/download)?/(?:v1|v1beta|v1beta1|v1alpha)"
_MODEL = re.compile(rf"{_ANY_VERSION}/models/(?P<model>[^:]+):[A-Za-z]+")
_PLAIN = (
    (re.compile(rf"/v1/(?:files|batches){_BELOW}"), ""),
    (re.compile(rf"/v1/(?:messages/batches|complete|skills){_BELOW}"), "messages"),
    (
        re.compile(
            r"/v1/(?:assistants|audio|completions|containers|embeddings|evals|fine_tuning|images|moderations|realtime"
            rf"|rerank|threads|uploads|vector_stores|videos){_BELOW}"
        ),
        "chat",
    ),
    (
        re.compile(
            rf"{_ANY_VERSION}/(?:batches|cachedContents|corpora|fileSearchStores|files|operations|tunedModels|models/[^:/]+"
            rf"/operations){_BELOW}"
        ),
        "gemini",
    ),
)


def other_path_of(method: str, path: str) -> OtherPath | None:
    """Return where a path leads; None for one that is nobody's."""
    if method not in _METHODS or not _is_plain(path):
        return None
    named = _NAMED.fullmatch(path)
    if named is not None:
        model = _MODEL.fullmatch(named["path"])
        return OtherPath(upstream=named["name"], path=named["path"], model=model["model"] if model else "")
    model = _MODEL.fullmatch(path)
    if model is not None:
        return OtherPath(dialect="gemini", path=path, model=model["model"])
    for pattern, dialect in _PLAIN:
        if pattern.fullmatch(path) is not None:
            return OtherPath(dialect=dialect, path=path)
    return None


def _is_plain(path: str) -> bool:
    """Tell whether everybody on the way reads a path alike: nobody is to find a way up, or a second meaning."""
    if not path.isprintable() or "\\" in path or "//" in path or unquote(path) != path:
        return False
    return not any(segment in {".", ".."} for segment in path.split("/"))


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


class Path(Struct, frozen=True, kw_only=True):
    """What a path means."""

    dialect: str = ""
    """Whose errors a client wants there; where several may ask, the headers decide."""
    operation: Operation
    model: str = ""
    stream: bool = False
    google: bool = False
    """Google's own way: a stream is an array unless events are asked for, and a count may hold a whole request."""
    flat: bool = False
    """Tools stand flat there, but clients write them nested too."""
    in_url: bool = False
    """The model stands in the path, and whether the answer is streamed."""
    wrapped: bool = False
    """Requests and replies stand in Code Assist's envelope."""
    name: str = ""
    action: str = ""
    """What is asked about something that is kept."""
    item: str = ""
    other: OtherPath | None = None
    """Another endpoint of a vendor, which is passed on untouched."""
    queried: bool = False
    """Its vendor's clients choose by the query how it behaves."""
    in_session: bool = False
    """The body names its conversation in a form of our own."""


_FIXED: dict[tuple[str, str], Path] = {
    ("POST", "/v1/chat/completions"): Path(dialect="chat", operation="generate"),
    ("POST", "/v1/responses"): Path(dialect="responses", operation="generate", flat=True),
    ("POST", "/v1/messages"): Path(dialect="messages", operation="generate", queried=True),
    ("POST", "/v1/messages/count_tokens"): Path(dialect="messages", operation="count"),
    ("POST", "/v1/responses/input_tokens"): Path(dialect="responses", operation="count", flat=True),
    ("POST", "/v1/gemini"): Path(dialect="gemini", operation="generate", in_session=True),
    ("POST", "/v1/conversations"): Path(dialect="responses", operation="kept", action="conversations.create"),
    ("GET", "/v1/models"): Path(operation="models"),
    ("POST", "/mcp"): Path(operation="mcp"),
    ("GET", "/mcp"): Path(operation="mcp"),
    ("DELETE", "/mcp"): Path(operation="mcp"),
    ("GET", "/health"): Path(operation="health"),
    ("GET", "/metrics"): Path(operation="metrics"),
    ("GET", "/api/hello"): Path(dialect="messages", operation="health"),
}
_VERSION = r"/(?:v1|v1beta|v1beta1|v1alpha)"
_PLACE = r"(?:/projects/[^/]+/locations/[^/]+)?/publishers/google"
_VERB = r":(?P<verb>generateContent|streamGenerateContent|countTokens)"
_GEMINI = re.compile(rf"{_VERSION}(?:{_PLACE})?/models/(?P<model>.+){_VERB}")
_ASSIST = re.compile(r"/v1internal:(?P<verb>\w+)")
_OPERATION = re.compile(r"/v1internal/operations/[^/]+")
_GENERATING = {"generateContent", "streamGenerateContent"}
_MODELS = re.compile(rf"{_VERSION}(?:{_PLACE})?/models(?:/(?P<model>(?!.+/operations/).+))?")
_INTERCEPT = re.compile(r"/intercept/(?P<name>[^/@]+)(?:@(?P<session>[^/]*))?(?P<rest>/.*)?")
_EXCHANGE = re.compile(r"/v1/exchanges/(?P<name>[^/]+)")
_KEPT = re.compile(
    r"/v1/(?P<room>responses|conversations)/(?P<name>[^/]+)(?P<below>/cancel|/input_items|/items)?(?:/(?P<item>[^/]+))?"
)
_ACTIONS = {
    ("GET", "responses", "", False): "responses.retrieve",
    ("DELETE", "responses", "", False): "responses.delete",
    ("POST", "responses", "/cancel", False): "responses.cancel",
    ("GET", "responses", "/input_items", False): "responses.input_items",
    ("GET", "conversations", "", False): "conversations.retrieve",
    ("POST", "conversations", "", False): "conversations.update",
    ("DELETE", "conversations", "", False): "conversations.delete",
    ("GET", "conversations", "/items", False): "conversations.items",
    ("POST", "conversations", "/items", False): "conversations.add",
    ("GET", "conversations", "/items", True): "conversations.item",
    ("DELETE", "conversations", "/items", True): "conversations.remove",
}
"""By method, room, what stands below the name, and whether an item is named."""


def path_of(method: str, path: str, written: str = "") -> Path | None:
    """Return what a path means; None for one that nobody serves.

    `written` is the path with its percent escapes: a name in it may hold a slash.
    """
    found = _FIXED.get(("GET" if method == "HEAD" else method, path))
    if found is not None:
        return found
    if path.startswith("/intercept/"):
        return _intercepted(written or path)
    kept = _KEPT.fullmatch(written or path)
    if kept is not None:
        return _asked_of_kept(method, kept)
    known = _posted(path) if method == "POST" else _looked_at(path) if method in {"GET", "HEAD"} else None
    return known or _other(method, path)


def _intercepted(written: str) -> Path | None:
    """Read a path of an intercepted client: behind the name of its entry, or upstream, stands what it asks there."""
    found = _INTERCEPT.fullmatch(written)
    if found is None:
        return None
    name, session = unquote(found["name"]), unquote(found["session"] or "")
    return Path(dialect="gemini", operation="intercept", name=name, item=session, action=found["rest"] or "/")


def methods_of(path: str, written: str) -> tuple[str, ...]:
    """Return the methods by which something can be asked at a path."""
    return tuple(method for method in ("GET", "POST", "DELETE") if path_of(method, path, written) is not None)


def _other(method: str, path: str) -> Path | None:
    other = other_path_of(method, path)
    return None if other is None else Path(dialect=other.dialect, operation="other", model=other.model, other=other)


def _asked_of_kept(method: str, found: re.Match[str]) -> Path | None:
    action = _ACTIONS.get((method, found["room"], found["below"] or "", found["item"] is not None))
    if action is None:
        return None
    return Path(
        dialect="responses",
        operation="kept",
        action=action,
        name=unquote(found["name"]),
        item=unquote(found["item"] or ""),
    )


def _posted(path: str) -> Path | None:
    asked = _GEMINI.fullmatch(path)
    if asked is not None:
        verb = asked["verb"]
        return Path(
            dialect="gemini",
            operation="generate" if verb in _GENERATING else "count",
            model=asked["model"],
            stream=verb.startswith("stream"),
            google=True,
            in_url=True,
        )
    wrapped = _ASSIST.fullmatch(path)
    if wrapped is None:
        return None
    verb = wrapped["verb"]
    operation: Operation = "generate" if verb in _GENERATING else "count" if verb == "countTokens" else "assist"
    stream = verb.startswith("stream")
    return Path(dialect="gemini", operation=operation, stream=stream, google=True, wrapped=True, name=verb)


def _looked_at(path: str) -> Path | None:
    exchange = _EXCHANGE.fullmatch(path)
    if exchange is not None:
        return Path(operation="exchange", name=exchange["name"])
    if _OPERATION.fullmatch(path) is not None:
        return Path(dialect="gemini", operation="assist", name="operation")
    models = _MODELS.fullmatch(path)
    if models is None:
        return None
    dialect = "" if path.startswith("/v1/models") else "gemini"
    return Path(dialect=dialect, operation="model" if models["model"] else "models", model=models["model"] or "")


def dialect_of(path: str, headers: dict[str, str]) -> str:
    """Tell whose errors a client wants where the path alone does not say."""
    if "x-goog-api-key" in headers or "x-goog-api-client" in headers or "/v1beta" in path or "v1internal" in path:
        return "gemini"
    if "anthropic-version" in headers or path.startswith("/v1/messages"):
        return "messages"
    return "responses" if path.startswith("/v1/responses") else "chat"


_SAID: dict[int, tuple[Kind, str]] = {
    400: ("invalid_request", "this is no HTTP request, or one that could be read in two ways"),
    408: ("timeout", "the body of the request did not come in time"),
    413: ("too_large", "the request is larger than this server takes"),
    415: ("unsupported", "the body is encoded in a way that is not known here: send it plain, or with gzip or deflate"),
    431: ("invalid_request", "the headers of the request are larger than this server takes"),
}


def refusal(status: int, request: Request) -> tuple[Headers, bytes]:
    """Say why something is no request; of the request only its first lines are known."""
    path = path_of("POST", request.path)
    dialect = (path.dialect if path is not None else "") or dialect_of(request.path, dict(request.headers))
    record = Record(dialect=dialect, status=status)
    kind, words = _SAID[status]
    told = dialect_named(dialect).build_error(Problem(kind, words, status=status))
    return tuple(headers_of(record, told.headers).items()), signed(told.body, record)
