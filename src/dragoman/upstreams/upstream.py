"""The interface of an upstream: its dialect, and how a call becomes an HTTP request to it.

Addresses and credentials come only from the configuration. Of the client's headers, only those that control the
vendor's behaviour are forwarded, and only to an upstream of the same dialect.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote

from msgspec import Struct

from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request, split_url
from dragoman.upstreams.model_list import Listing
from dragoman.wire.json import decode_object, encode

JSON_HEADER = ("content-type", "application/json")


class Upstream(Protocol):
    """A server that hosts models."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def dialect(self) -> str:
        """The dialect it uses."""
        ...

    @property
    def form(self) -> str:
        """The envelope around its requests; "" for none."""
        ...

    @property
    def has_passthrough(self) -> bool:
        """Whether it has endpoints besides those for replies, token counts and models, for clients to call."""
        ...

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:
        """Build the request for a reply; `client_headers` are headers of the client to forward.

        If `translated`, only the gateway reads the reply, so pretty-printing can be turned off.
        """
        ...

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        """Build a request to count tokens; None if the upstream cannot count."""
        ...

    async def models(self) -> Listing | None:
        """Build a request for the model list; None if the upstream has none."""
        ...

    def build_passthrough(self, request: Request) -> Outgoing | None:
        """Build a request for another endpoint from the one that a client sent; None if there is no such endpoint."""
        ...


UpstreamSelector = Callable[[str], Upstream]
"""Return the upstream for a model; for most kinds it is the same for every model."""


class FixedUpstream(Struct, frozen=True):
    """Uses the same upstream for every model."""

    upstream: Upstream

    def __call__(self, _model: str) -> Upstream:
        return self.upstream


class Site:
    """The address of an upstream and the headers of every request to it."""

    def __init__(self, base_url: str, headers: Headers, agent: str) -> None:
        self.origin, self.prefix = split_url(base_url)
        self._headers: Headers = (("user-agent", agent), ("accept-encoding", "identity"), *headers)
        self._json_headers: Headers = (*self._headers, JSON_HEADER)

    def post(self, path: str, body: bytes, client_headers: Headers = ()) -> Outgoing:
        """Build a POST request with a JSON body for a path below the base URL."""
        return Outgoing(self.origin, "POST", self.prefix + path, (*self._json_headers, *client_headers), body)

    def get(self, path: str, headers: Headers = ()) -> Outgoing:
        """Build a GET request for a path below the base URL."""
        return Outgoing(self.origin, "GET", self.prefix + path, (*self._headers, *headers))

    def send(self, request: Request, path: str, headers: Headers = ()) -> Outgoing:
        """Forward a request unchanged to a path below the base URL, with the configured credentials."""
        merged = (*self._headers, *headers, *request.headers)
        return Outgoing(self.origin, request.method, self.prefix + path, merged, request.body)


def choose_gemini_verb(call: Call, *, translated: bool) -> str:
    """Return the Gemini method for a request; without `prettyPrint=false` Google indents the JSON of a whole reply."""
    if call.stream:
        return "streamGenerateContent?alt=sse"
    return "generateContent?prettyPrint=false" if translated else "generateContent"


def select_members(body: bytes, names: frozenset[str]) -> bytes:
    """Keep only some fields of a JSON object: a count endpoint accepts fewer fields than a generate endpoint."""
    return encode({name: raw for name, raw in decode_object(body).items() if name in names})


@lru_cache(maxsize=1024)
def quote_path_segment(model: str) -> str:
    """Encode a model name as one path segment."""
    return quote(model, safe="@:.")
