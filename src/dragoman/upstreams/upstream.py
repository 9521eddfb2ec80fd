"""What every upstream is: a dialect, how a call becomes an HTTP request there, and the models that it lists.

Addresses and credentials come from the configuration alone. Of a client's headers only those pass that choose how a
vendor behaves, and only to an upstream of the same dialect. A row of a model list is kept as it came, for clients of
the same vendor; for others names and limits are read, which compatible servers give under many names.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol, cast
from urllib.parse import quote

from msgspec import Struct

from dragoman.dialects.record import Call
from dragoman.http.addresses import split
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.wire.json import Malformed, decode, decode_object, encode

Row = dict[str, Any]
_INPUT = (
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "loaded_context_length",
    "max_input_tokens",
)
_OUTPUT = ("max_output_tokens", "max_completion_tokens", "max_tokens")


class ListedModel(Struct, frozen=True, kw_only=True):
    """A model, as an upstream lists it."""

    name: str
    shown: str = ""
    """What a person is shown."""
    input_limit: int | None = None
    output_limit: int | None = None
    row: Row
    """All that the upstream says of it."""


class Listing(Struct, frozen=True):
    """How an upstream is asked for its models, and how its answer is read."""

    request: Outgoing
    read: Callable[[bytes], list[ListedModel]]


def openai_rows(body: bytes) -> list[ListedModel]:
    """Read the list of OpenAI, or of a server that speaks its language."""
    return [_openai(row) for row in _rows(body, "data") if isinstance(row.get("id"), str)]


def anthropic_rows(body: bytes) -> list[ListedModel]:
    """Read Anthropic's list."""
    return [
        ListedModel(
            name=row["id"],
            shown=_text(row, "display_name"),
            input_limit=_number(row, "max_input_tokens"),
            output_limit=_number(row, "max_tokens"),
            row=row,
        )
        for row in _rows(body, "data")
        if isinstance(row.get("id"), str)
    ]


def gemini_rows(body: bytes) -> list[ListedModel]:
    """Read Google's list."""
    return [
        ListedModel(
            name=row["name"].removeprefix("models/"),
            shown=_text(row, "displayName"),
            input_limit=_number(row, "inputTokenLimit"),
            output_limit=_number(row, "outputTokenLimit"),
            row=row,
        )
        for row in _rows(body, "models")
        if isinstance(row.get("name"), str)
    ]


def publisher_rows(body: bytes) -> list[ListedModel]:
    """Read the list of a publisher on Vertex: names only."""
    rows = _rows(body, "publisherModels")
    return [
        ListedModel(name=row["name"].rpartition("/")[2], row={}) for row in rows if isinstance(row.get("name"), str)
    ]


def _openai(row: Row) -> ListedModel:
    inner = (row.get("top_provider"), row.get("meta"))
    places = [row, *(cast("Row", value) for value in inner if isinstance(value, dict))]
    return ListedModel(
        name=row["id"],
        shown=_text(row, "name"),
        input_limit=_first(places, (*_INPUT, "n_ctx_train")),
        output_limit=_first(places, _OUTPUT),
        row=row,
    )


def _rows(body: bytes, member: str) -> list[Row]:
    try:
        document = decode(body)
    except Malformed:
        return []
    rows: Any = cast("Row", document).get(member) if isinstance(document, dict) else None
    return [cast("Row", row) for row in cast("list[Any]", rows) if isinstance(row, dict)] if rows else []


def _first(places: Iterable[Row], names: tuple[str, ...]) -> int | None:
    found = (_number(place, name) for place in places for name in names)
    return next((number for number in found if number is not None), None)


def _number(row: Row, name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) and value > 0 else None


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


JSON = ("content-type", "application/json")


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
        self.origin, self.prefix = split(base_url)
        self._headers: Headers = (("user-agent", agent), ("accept-encoding", "identity"), *headers)
        self._posting: Headers = (*self._headers, JSON)

    def post(self, path: str, body: bytes, passed: Headers = ()) -> Outgoing:
        """Send JSON to a path below the base."""
        return Outgoing(self.origin, "POST", self.prefix + path, (*self._posting, *passed), body)

    def get(self, path: str, headers: Headers = ()) -> Outgoing:
        """Ask for what stands at a path below the base."""
        return Outgoing(self.origin, "GET", self.prefix + path, (*self._headers, *headers))

    def send(self, request: Request, path: str, headers: Headers = ()) -> Outgoing:
        """Send a request to a path below the base as it is, but with our credentials."""
        passed = (*self._headers, *headers, *request.headers)
        return Outgoing(self.origin, request.method, self.prefix + path, passed, request.body)


def generating(call: Call, *, translated: bool) -> str:
    """Return Gemini's verb for a request; a whole reply comes laid out for people unless that is said not to be."""
    if call.stream:
        return "streamGenerateContent?alt=sse"
    return "generateContent?prettyPrint=false" if translated else "generateContent"


def only(body: bytes, names: frozenset[str]) -> bytes:
    """Return a JSON object with some of its members only: an endpoint that counts takes fewer than one that answers."""
    return encode({name: raw for name, raw in decode_object(body).items() if name in names})


@lru_cache(maxsize=1024)
def in_path(model: str) -> str:
    """Return a model's name as one segment of a path."""
    return quote(model, safe="@:.")
