"""What every upstream is: a dialect, and how a call becomes an HTTP request there.

Addresses and credentials come from the configuration alone. Of a client's headers only those pass that choose how a
vendor behaves, and only to an upstream of the same dialect.
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
    """A place where models live."""

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        ...

    @property
    def dialect(self) -> str:
        """The name of the dialect spoken there."""
        ...

    @property
    def form(self) -> str:
        """The envelope a request stands in there; "" for none."""
        ...

    @property
    def others(self) -> bool:
        """Tell whether it has other endpoints than those for answers, and passes requests for them on."""
        ...

    async def generate(self, call: Call, passed: Headers, *, translated: bool = False) -> Outgoing:
        """Address a request for an answer; `passed` are the client's headers that go with it.

        A `translated` one is for us to read: what only lays it out for people can be left out.
        """
        ...

    async def count(self, call: Call, passed: Headers) -> Outgoing | None:
        """Address a request to count tokens; None if nobody counts there."""
        ...

    async def models(self) -> Listing | None:
        """Address a request for the models there are; None if nobody lists them there."""
        ...

    def elsewhere(self, request: Request) -> Outgoing | None:
        """Address a request for another endpoint, as the vendor's clients write it; None if there is none such."""
        ...


Place = Callable[[str], Upstream]
"""Return the upstream for a model: most are the same for every model."""


class FixedPlace(Struct, frozen=True):
    """An upstream that is the same for every model."""

    upstream: Upstream

    def __call__(self, _model: str) -> Upstream:
        return self.upstream


class Site:
    """The address of an upstream, and the headers that every request there has."""

    def __init__(self, base_url: str, headers: Headers, agent: str) -> None:
        self.origin, self.prefix = split_url(base_url)
        self._headers: Headers = (("user-agent", agent), ("accept-encoding", "identity"), *headers)
        self._json_headers: Headers = (*self._headers, JSON_HEADER)

    def post(self, path: str, body: bytes, passed: Headers = ()) -> Outgoing:
        """Send JSON to a path below the base."""
        return Outgoing(self.origin, "POST", self.prefix + path, (*self._json_headers, *passed), body)

    def get(self, path: str, headers: Headers = ()) -> Outgoing:
        """Ask for what stands at a path below the base."""
        return Outgoing(self.origin, "GET", self.prefix + path, (*self._headers, *headers))

    def send(self, request: Request, path: str, headers: Headers = ()) -> Outgoing:
        """Send a request to a path below the base as it is, but with our credentials."""
        passed = (*self._headers, *headers, *request.headers)
        return Outgoing(self.origin, request.method, self.prefix + path, passed, request.body)


def choose_gemini_verb(call: Call, *, translated: bool) -> str:
    """Return Gemini's verb for a request; a whole reply comes laid out for people unless that is said not to be."""
    if call.stream:
        return "streamGenerateContent?alt=sse"
    return "generateContent?prettyPrint=false" if translated else "generateContent"


def select_members(body: bytes, names: frozenset[str]) -> bytes:
    """Return a JSON object with some of its members only: an endpoint that counts takes fewer than one that answers."""
    return encode({name: raw for name, raw in decode_object(body).items() if name in names})


@lru_cache(maxsize=1024)
def quote_path_segment(model: str) -> str:
    """Return a model's name as one segment of a path."""
    return quote(model, safe="@:.")
