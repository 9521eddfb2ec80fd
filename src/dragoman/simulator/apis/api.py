"""The interface of a simulated API: how it accepts a request, answers it, and rejects it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from dragoman.http.message import Request
from dragoman.simulator.apis.conversation import Answer, ModelRequest, TokenSigner
from dragoman.simulator.apis.routes import Route
from dragoman.simulator.apis.rule import CheckContext, Rule, Violation


class Chunking(Struct, frozen=True, kw_only=True):
    """How text is split into the deltas of a stream: about `size` characters each, or all at once for 0."""

    size: int = 24
    seed: int = 0
    interleaved: bool = False
    """Interleave the deltas of parallel calls, where the API allows that."""
    partial_args: bool = False
    """Stream the arguments of calls in pieces, where the API allows that (Vertex)."""

    def split_text(self, text: str) -> list[str]:
        """Split a text into pieces that are never empty."""
        if not self.size or not text:
            return [text] if text else []
        chance = Random(f"{self.seed} {text}")  # noqa: S311  reproducible on purpose
        pieces: list[str] = []
        at = 0
        while at < len(text):
            length = chance.randint(1, 2 * self.size)
            pieces.append(text[at : at + length])
            at += length
        return pieces


class ReplyMeta(Struct, frozen=True, kw_only=True):
    """What identifies one reply: its id, its time, its signer, and how it is split into deltas."""

    id: str
    """24 hexadecimal digits, different for every reply."""
    created: int
    signer: TokenSigner
    chunking: Chunking = Chunking()


class AcceptedRequest(Struct, frozen=True, kw_only=True):
    """A request that broke no rule. `body` is the API's own typed form of it, for what a reply must echo."""

    model_request: ModelRequest
    body: Any
    stream: bool = False


class ApiRejection(Struct, frozen=True, kw_only=True):
    """Why a request is rejected. `kind` is the vendor's error type, where a status has several."""

    status: int
    message: str
    kind: str = ""
    where: str = ""
    rule: str = ""
    retry_after: float | None = None


class HttpReply(Struct, frozen=True):
    """An HTTP reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Envelope(Struct, frozen=True):
    """An alternative form of an API that wraps requests and replies in another object."""

    unwrap: Callable[[bytes], tuple[str, bytes] | Violation]
    """Return the model and the request inside an envelope."""
    wrap: Callable[[bytes], bytes]
    wrap_count: Callable[[bytes], bytes]
    """Return a token count in this form."""


class ApiState(Protocol):
    """What an API keeps between requests."""

    def expand_request(self, body: bytes, *, recorded: bool = False) -> bytes | ApiRejection:
        """Return a request with the stored conversation it continues, or a rejection if that is not stored."""
        ...

    def save_reply(self, body: bytes, reply: bytes) -> bytes:
        """Store a reply, and return the reply to send now (a background reply is sent before it is complete)."""
        ...

    def save_stream(self, body: bytes, frames: Iterable[bytes], whole: Callable[[], bytes], /) -> Iterator[bytes]:
        """Yield the frames of a stream unchanged, and store the reply they make up, which is `whole`."""
        ...

    def handle_request(self, request: Request, route: Route) -> HttpReply | ApiRejection:
        """Answer a request about stored objects."""
        ...


class Api(Struct, frozen=True, kw_only=True):
    """One vendor's API, as pure functions."""

    name: str
    rules: tuple[Rule[Any], ...]
    accept: Callable[[bytes, CheckContext, TokenSigner], AcceptedRequest | Violation]
    render_reply: Callable[[Answer, AcceptedRequest, ReplyMeta], bytes]
    render_stream: Callable[[Answer, AcceptedRequest, ReplyMeta], Iterator[bytes]]
    """Returns the frames of a stream; the content type is text/event-stream."""
    render_error: Callable[[ApiRejection], HttpReply]
    render_stream_error: Callable[[ApiRejection], bytes]
    """Returns the frame that ends a stream with the vendor's error."""
    render_token_count: Callable[[AcceptedRequest, int], bytes]
    """Returns the reply to a token-count request, given the count."""
    bad_key: ApiRejection
    """The rejection of a key that is not accepted."""
    drop_answer: Callable[[bytes], bytes]
    """Returns a whole reply, or the data of a frame, without the answer."""
    no_key: ApiRejection | None = None
    """The rejection of a request without any key, where it differs from `bad_key`."""
    bad_token: ApiRejection | None = None
    """The rejection of a token that is not accepted on Google's cloud, where it differs from `bad_key`."""
    build_headers: Callable[[ReplyMeta], Mapping[str, str]] | None = None
    """Returns the headers of a reply other than its content type."""
    render_broken_stream: Callable[[ApiRejection, AcceptedRequest, ReplyMeta, int], bytes] | None = None
    """Like `render_stream_error`, for a vendor whose last frames repeat the reply and continue its sequence numbers."""
    compact: Callable[[AcceptedRequest, ReplyMeta, int], bytes] | None = None
    """Returns a compacted conversation, given its number of tokens, where the API can compact."""
    check_headers: Callable[[Mapping[str, str]], Violation | None] | None = None
    envelope: Envelope | None = None
    render_array: Callable[[Iterable[bytes]], Iterator[bytes]] | None = None
    """Turns the frames of a stream into one JSON array, for clients that do not request SSE."""
    create_state: Callable[[], ApiState] | None = None
    """Creates the store of replies that later requests can continue."""
