"""What the simulator needs to know of an API: how it accepts a request, how it answers, how it refuses."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from dragoman.http.message import Request
from dragoman.simulator.routes import Route
from dragoman.simulator.rule import CheckContext, Rule, Violation
from dragoman.simulator.talk import Answer, Ask, TokenSigner


class Chunking(Struct, frozen=True, kw_only=True):
    """How a text is cut into the deltas of a stream: about `size` characters each, or all at once for 0."""

    size: int = 24
    seed: int = 0
    interleaved: bool = False
    """Parallel calls grow in turns, where the API can say that."""
    partial_args: bool = False
    """Arguments come in pieces, where the API can say that (Vertex)."""

    def split_text(self, text: str) -> list[str]:
        """Cut a text, never into nothing."""
        if not self.size or not text:
            return [text] if text else []
        chance = Random(f"{self.seed} {text}")  # noqa: S311  it shall come out the same each time
        pieces: list[str] = []
        at = 0
        while at < len(text):
            length = chance.randint(1, 2 * self.size)
            pieces.append(text[at : at + length])
            at += length
        return pieces


class ReplyMeta(Struct, frozen=True, kw_only=True):
    """One reply: under which id, when, signed by whom, in which pieces."""

    id: str
    """24 hexadecimal digits, another for every reply."""
    created: int
    signer: TokenSigner
    chunking: Chunking = Chunking()


class AcceptedRequest(Struct, frozen=True, kw_only=True):
    """A request that broke no rule. `body` is the API's own typed form of it, for what a reply must echo."""

    ask: Ask
    body: Any
    stream: bool = False


class ApiRejection(Struct, frozen=True, kw_only=True):
    """Why a request gets no answer. `kind` is the vendor's word for the error where it has several for a status."""

    status: int
    message: str
    kind: str = ""
    where: str = ""
    rule: str = ""
    retry_after: float | None = None


class HttpReply(Struct, frozen=True):
    """A reply on the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Envelope(Struct, frozen=True):
    """A second form of an API, in which requests and replies stand within another object."""

    unwrap: Callable[[bytes], tuple[str, bytes] | Violation]
    """Return the model and the request that an envelope holds."""
    wrap: Callable[[bytes], bytes]
    wrap_count: Callable[[bytes], bytes]
    """Return a count of tokens as it is told in this form."""


class ApiState(Protocol):
    """What an API keeps from one request to the next."""

    def expand_request(self, body: bytes, *, recorded: bool = False) -> bytes | ApiRejection:
        """Return a request with what it goes on from, or why there is nothing."""
        ...

    def save_reply(self, body: bytes, reply: bytes) -> bytes:
        """Remember a reply, and return what its caller is told now."""
        ...

    def save_stream(self, body: bytes, frames: Iterable[bytes], whole: Callable[[], bytes], /) -> Iterator[bytes]:
        """Pass the frames of a stream on, and remember the reply they tell, which is `whole`."""
        ...

    def handle_request(self, request: Request, route: Route) -> HttpReply | ApiRejection:
        """Answer a request about what is kept."""
        ...


class Api(Struct, frozen=True, kw_only=True):
    """One vendor's API, as pure functions."""

    name: str
    rules: tuple[Rule[Any], ...]
    accept: Callable[[bytes, CheckContext, TokenSigner], AcceptedRequest | Violation]
    render_reply: Callable[[Answer, AcceptedRequest, ReplyMeta], bytes]
    render_stream: Callable[[Answer, AcceptedRequest, ReplyMeta], Iterator[bytes]]
    """Frames of a stream; the content type is text/event-stream."""
    render_error: Callable[[ApiRejection], HttpReply]
    render_stream_error: Callable[[ApiRejection], bytes]
    """The frame with which a stream breaks off in the vendor's own way."""
    render_token_count: Callable[[AcceptedRequest, int], bytes]
    """The answer to a request for a count of tokens, of which there are so many."""
    bad_key: ApiRejection
    """What a key that is not accepted is told."""
    drop_answer: Callable[[bytes], bytes]
    """Take the answer out of a whole reply, or out of the data of a frame."""
    no_key: ApiRejection | None = None
    """What is told to who has no key at all, where that is something else."""
    bad_token: ApiRejection | None = None
    """What a token that is not accepted is told on Google's cloud, where that is something else."""
    build_headers: Callable[[ReplyMeta], Mapping[str, str]] | None = None
    """What stands in the headers of an answer beside its type."""
    render_broken_stream: Callable[[ApiRejection, AcceptedRequest, ReplyMeta, int], bytes] | None = None
    """What `fail` is, for a vendor whose last frames tell of the reply, and count on from so many that went before."""
    compact: Callable[[AcceptedRequest, ReplyMeta, int], bytes] | None = None
    """A conversation of so many tokens made short, where the API does that."""
    check_headers: Callable[[Mapping[str, str]], Violation | None] | None = None
    envelope: Envelope | None = None
    render_array: Callable[[Iterable[bytes]], Iterator[bytes]] | None = None
    """Make one JSON array of the frames of a stream, for callers who do not ask for events."""
    create_state: Callable[[], ApiState] | None = None
    """Make what is kept of the replies, from which a request may go on."""
