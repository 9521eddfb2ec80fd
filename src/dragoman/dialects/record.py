"""What a dialect is: a record of pure functions between bytes and core values.

Rules: parsing never normalises and never drops (what it does not read goes to extras); writing is total and lossless
on a value adapted to the dialect; nothing here knows another dialect.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from re import Pattern
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Kind, Problem
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.core.response import Response
from dragoman.core.traits import Traits
from dragoman.dialects.api import Api
from dragoman.dialects.decoder import Decoder, Encoder


class Call(Struct, frozen=True):
    """A request on the wire. Dialects that name the model or streaming in the URL have them here only."""

    body: bytes
    model: str = ""
    stream: bool = False


Tools = tuple[Tool | NativeTool, ...]
ReadTools = Callable[[bytes, str], Tools]
"""Parse the raw JSON of the tools of a request; the second argument is its pointer in the document."""


class ParseRequest(Protocol):
    """Read a request."""

    def __call__(self, call: Call, /, *, first: int = 0, read_tools: ReadTools = ...) -> Request:
        """Return the request of `call`.

        `first` is the number of the first message in the body: those before it were removed. `read_tools` replaces the
        dialect's own function, so that a cache can parse the tools.
        """
        ...


class ErrorReply(Struct, frozen=True):
    """An error on the wire."""

    status: int
    headers: dict[str, str]
    body: bytes
    losses: tuple[Loss, ...] = ()
    """What of another vendor's error it does not say."""


STATUS_KINDS: dict[int, Kind] = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    429: "rate_limit",
    499: "cancelled",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
"""The kind of problem that an HTTP status means where the body does not say it better."""


class ReplyCapabilities(Struct, frozen=True, kw_only=True):
    """What a reply in this dialect can say."""

    reasoning: bool = True
    signatures: frozenset[str] = frozenset()
    """Parts that have a field for a signature: "reasoning", "call", "text"."""
    call_issuers: frozenset[str] = frozenset()
    """Other vendors whose signature a call holds natively (Chat: Google's)."""
    any_issuer: bool = True
    """Such a field also takes an envelope with another vendor's signature."""
    refusal: bool = False
    custom_calls: bool = False
    plain_ids: bool = False
    """Call ids are letters, digits, `_` and `-` only."""
    partial_calls: bool = True
    """A stream can show a call that is cut off inside its arguments."""
    object_arguments: bool = False
    """A whole reply has arguments as a JSON object, so text that is not one cannot be said."""
    media: bool = False
    citations: bool = False
    citation_facts: frozenset[str] = frozenset({"span"})
    """What a citation says beside address and title: "span" (which words it is for), "quote" (the source's words)."""
    counts: frozenset[str] = frozenset({"cached", "cache_written", "reasoning"})
    """Token counts it has a place for, beside those of the whole input and output."""
    stop_sequence: bool = False
    """It says which stop sequence was hit."""
    namespaces: bool = False
    """A call says which namespace its tool is from."""
    order: bool = True
    """Text after a call stays after it."""
    finishes: frozenset[str] = frozenset({"stop", "length", "tool_calls", "filtered", "refused"})
    """Finish reasons it has a word for; any other is told as an error."""


class TokenCountFormat(Struct, frozen=True):
    """How a count of tokens is told."""

    member: str
    leading_members: dict[str, str] = {}
    """What stands before it."""


class ConversationFormat(Struct, frozen=True, kw_only=True):
    """How a conversation that somebody else keeps is written: what of a request lasts, what a reply adds to it."""

    choice_member: str
    """The member that says which tools may be called."""
    lasting_members: tuple[str, ...]
    """Members that hold for the turns that follow, unless these bring their own."""
    render_user_item: Callable[[bytes], bytes]
    """Make an item of a history of a plain JSON string."""
    read_reply_items: Callable[[bytes], list[bytes]]
    """Take what the model said out of a whole reply, as items of a history."""
    end_pattern: Pattern[bytes]
    """What the first event of a stream's end has in it, and no other: a JSON string has its quotes escaped."""
    has_store_member: bool = False
    """Requests say themselves what is to be kept, and replies say it back."""
    reply_member: str = ""
    """The member of a streamed event that holds the reply so far; "" if that is the whole event."""


APPROVED, DENIED = "approved", "denied"
"""How the word on a call is spelled, in place of its result."""


class RequestedServer(Struct, frozen=True, kw_only=True):
    """A server of tools that a request names: whoever answers is to run these."""

    name: str
    where: str = ""
    """Where the request asks for it."""
    allowed_tools: frozenset[str] | None = None
    """The tools that may be used; None for all."""
    excluded_tools: frozenset[str] = frozenset()
    """Tools that may not."""
    approval_free: frozenset[str] | None = None
    """Tools that run without anybody being asked first; None for all."""


class RemoteToolFormat(Struct, frozen=True):
    """How a request asks for tools that whoever answers runs, and how their calls are told."""

    marker: bytes
    """What a body has in it that asks for some."""
    take_servers: Callable[[Request, Container[str]], tuple[Request, tuple[RequestedServer, ...]]]
    """Take the known servers out of a request."""
    render_tool_list: Callable[[str, Iterable[Tool], Request, str], tuple[bytes, ...]]
    """Say at the beginning of a reply which tools a server has, or why that is not known, if the dialect does."""
    render_call: Callable[[str, ToolCall, ToolResult, str], tuple[bytes, ...]]
    """Say a call of a server's tool, by the tool's own name, and its result; the id of its approval, if it had one."""
    render_approval_request: Callable[[str, ToolCall], tuple[bytes, ...]]
    """Ask whether a call may be run."""
    restore_calls: Callable[[Iterable[Message], Container[str]], tuple[Message, ...]]
    """Make calls and results of the provider's of what a history tells of known servers in that way.

    A call that was asked for is the client's. The word on it is a result, spelled `APPROVED` or `DENIED`.
    """
    call_prefix: str
    """How the ids of calls begin that are told so."""


class Implied(Struct, frozen=True):
    """Values of a request field that need no counterpart at the target, and why."""

    values: tuple[Any, ...]
    reason: str
    form: str = ""
    """A pattern of more such texts."""
    streaming_values: tuple[Any, ...] = ()
    """More values, for targets that stream the arguments of calls."""


NOTHING_EXTRA = "asks for nothing more than comes anyway"
SAYS_NOTHING = "an empty list or object names nothing"
NOT_STORED = "nothing is kept: a translated request is not stored at the target, nor by the gateway then"
DEFAULT_TIER = "the tier that holds where none is asked for"
NO_PADDING = "our streams are not padded"
TEXT_ANYWAY = "text comes anyway"
LOADED_AT_ONCE = "declared at once, as every tool is"
DEFAULT_DETAIL = "how closely to look is left to the model, as where nothing is said"
"""Reasons that several dialects share."""


class VendorTool(Struct, frozen=True):
    """A tool that a vendor runs itself and that other vendors have too."""

    names: tuple[str, ...]
    """Its types or members in a declaration, without their dates."""
    raw: bytes
    """Its declaration."""
    choice: ToolChoice | None = None
    """How the vendor is made to use it."""


class Dialect(Struct, frozen=True, kw_only=True):
    """One JSON language."""

    name: str
    issuer: str
    call_prefix: str
    reply_prefix: str
    """How the ids of its calls and of its replies begin."""
    history: str
    """The member of a request that is the conversation, item by item."""
    turns: ConversationFormat
    traits: tuple[tuple[str, Traits], ...]
    """What its models accept, by pattern of the bare name. The first match wins; the last pattern is `*`."""
    api: Api = Api()
    """Its HTTP API. One without paths is only for the library, the command and upstreams."""
    holds: ReplyCapabilities
    pointers: Mapping[str, tuple[str, ...]]
    """Where a core field stands in this dialect's request (`"sampling.seed": ("/seed",)`)."""
    reply_pointers: Mapping[str, tuple[str, ...]]
    """The same for its reply; what is under "usage.counted" is counted in with the core's numbers."""
    parse_request: ParseRequest
    render_request: Callable[[Request, Traits], Call]
    read_tools: ReadTools
    write_tools: Callable[[Tools], list[Any]]
    """Write tools as items of the array in which a request has them."""
    parse_response: Callable[[bytes], Response]
    build_response: Callable[[Response, Request | None], bytes]
    decoder: Callable[[], Decoder]
    encoder: Callable[[Request | None], Encoder]
    parse_error: Callable[[int, Mapping[str, str], bytes], Problem]
    build_error: Callable[[Problem], ErrorReply]
    count: TokenCountFormat | None = None
    """How its clients are told a count; None if they cannot ask for one."""
    id_header: str = ""
    """Where its clients read what a request is called, for who asks about it; "" if nowhere."""
    id_member: str = ""
    """The same in an error."""
    read_declared_tools: Callable[[Iterable[Message]], tuple[Tool | NativeTool, ...]] | None = None
    """Read the tools that a conversation declares on its way, for targets where all stand in one place."""
    is_wrapped: Callable[[bytes], bool] | None = None
    """Tell from its first bytes whether a reply or stream stands in an envelope that a plain client does not know."""
    finish_words: frozenset[str]
    """Its words for the end of a reply that say no more than the core's reasons do."""
    error_words: frozenset[str]
    """Its words in errors that say no more than the core's kinds of problems do."""
    repeated: frozenset[str] = frozenset()
    """Members of a reply that only repeat the request it answers."""
    field_place: Callable[[str, str], str] | None = None
    """Where a field stands in a whole reply that a part there carries, if some stand elsewhere than right below it."""
    remote: RemoteToolFormat | None = None
    """Its words for tools that whoever answers runs."""
    unwrap: Callable[[Call], tuple[Call, tuple[str, ...]] | None] | None = None
    """Take a request out of that envelope; return it and the places of what is left behind, None if it stands in none.
    """
    implied: Mapping[str, Implied] = {}
    """Request fields that are no loss at another dialect, by pointer with `#` for a number."""
    vendor_tools: Mapping[str, VendorTool] = {}
    """Its counterparts of tools that several vendors run, by what they do."""
    shared_fields: frozenset[str] = frozenset()
    """Pointers of request fields that mean the same in its vendor's other dialect; one of the two lists them."""
    image_detail: str = ""
    """The pointer in an image of how closely to look at it, in the words that its vendor's dialects share."""
