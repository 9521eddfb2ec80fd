"""The `Dialect` record: pure functions between a dialect's bytes and core values, and tables about the dialect.

Rules: parsing never normalises and never drops (unknown members go to extras); rendering accepts every core value and
is lossless for a value adapted to the dialect; a dialect does not depend on any other dialect.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from re import Pattern
from typing import Any, Literal, Protocol

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Kind, Problem
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.core.response import Response, Usage
from dragoman.core.traits import Traits
from dragoman.dialects.api import Api
from dragoman.dialects.decoder import Decoder, Encoder


class Call(Struct, frozen=True):
    """A request on the wire. If the URL names the model or streaming, the body does not, and these fields do."""

    body: bytes
    model: str = ""
    stream: bool = False


Tools = tuple[Tool | NativeTool, ...]
ReadTools = Callable[[bytes, str], Tools]
"""Parses the raw JSON of a request's tools; the second argument is the JSON pointer of the tools in the body."""


class ParseRequest(Protocol):
    """The signature of a dialect's request parser."""

    def __call__(self, call: Call, /, *, first: int = 0, read_tools: ReadTools = ...) -> Request:
        """Return the request of `call`.

        `first` is the index of the first message in the body: earlier messages were removed because they are cached.
        `read_tools` replaces the dialect's own function, so that a cache can parse the tools.
        """
        ...


class ErrorReply(Struct, frozen=True):
    """An HTTP error response."""

    status: int
    headers: dict[str, str]
    body: bytes
    losses: tuple[Loss, ...] = ()
    """What it cannot express of another vendor's error."""


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
"""The kind of problem for an HTTP status if the body does not give a more specific one."""


class ReplyCapabilities(Struct, frozen=True, kw_only=True):
    """What a reply in this dialect can express."""

    reasoning: bool = True
    signatures: frozenset[str] = frozenset()
    """Kinds of parts with a signature field: "reasoning", "call", "text"."""
    call_issuers: frozenset[str] = frozenset()
    """Other vendors whose signatures a call has a native field for (Chat: Google's)."""
    any_issuer: bool = True
    """The signature field of a call also accepts an envelope with another vendor's signature."""
    unsigned_reasoning: bool = False
    """Reasoning without a signature needs no envelope: no vendor takes it for its own."""
    refusal: bool = False
    custom_calls: bool = False
    plain_ids: bool = False
    """Call ids may contain only letters, digits, `_` and `-`."""
    partial_calls: bool = True
    """A stream can contain a call whose arguments are cut off."""
    object_arguments: bool = False
    """Call arguments are a JSON object in a whole reply, so other text cannot be sent."""
    media: bool = False
    citations: bool = False
    citation_facts: frozenset[str] = frozenset({"span"})
    """What a citation has besides URL and title: "span" (the range of the answer), "quote" (the source's text)."""
    counts: frozenset[str] = frozenset({"cached", "cache_written", "reasoning"})
    """Counts it has fields for, besides total input and output: of tokens, and of web searches ("searches")."""
    block_citations: bool = False
    """A citation is about a whole text block, so its span is the block."""
    searches: bool = False
    """It can say that the provider ran a web search, with its queries."""
    search_titles: bool = False
    """The pages of a search have titles."""
    stop_sequence: bool = False
    """A reply names the stop sequence that ended it."""
    namespaces: bool = False
    """A call names the namespace of its tool."""
    tool_search: bool = False
    """It has blocks for a search for deferred tools and its result."""
    order: bool = True
    """Text that follows a call stays after it."""
    finishes: frozenset[str] = frozenset({"stop", "length", "tool_calls", "filtered", "refused"})
    """Finish reasons it can express; any other is sent as an error."""


class TokenCountFormat(Struct, frozen=True):
    """The JSON format of a token count."""

    member: str
    leading_members: dict[str, str] = {}
    """Members that come before it, with their values."""


class ChoiceFormat(Struct, frozen=True, kw_only=True):
    """The members of a reply, or of a chunk of one, with its alternative answers."""

    choices: str
    """The list of the answers; each has its `index`."""
    usage: str
    shared: frozenset[str]
    """Members that are the same in all chunks of a stream."""
    envelope: str = ""
    """The member with the reply in a variant that nests it; "" if there is no such variant."""
    end_event: bytes = b""
    """The event after the last chunk; empty if there is none."""


class ConversationFormat(Struct, frozen=True, kw_only=True):
    """How to store a conversation in this dialect: the members of a request to keep, and the items a reply adds."""

    choice_member: str
    """The member for the tool choice."""
    lasting_members: tuple[str, ...]
    """Members that apply to later turns too, unless a turn has its own."""
    render_user_item: Callable[[bytes], bytes]
    """Render a JSON string as a user message of the history."""
    read_reply_items: Callable[[bytes], list[bytes]]
    """Return the model's output in a whole reply as items of the history."""
    end_pattern: Pattern[bytes]
    """Matches only the first event of a stream's end. JSON strings cannot match: their quotes are escaped."""
    has_store_member: bool = False
    """Requests have a `store` member, and replies repeat it."""
    reply_member: str = ""
    """The member of a stream event that has the reply so far; "" if the event itself is the reply."""


APPROVED, DENIED = "approved", "denied"
"""The `spelling` of a tool result that only answers an approval request."""


class RequestedServer(Struct, frozen=True, kw_only=True):
    """A tool server that a request names. The gateway runs its tools, not the client."""

    name: str
    where: str = ""
    """Its JSON pointer in the request."""
    allowed_tools: frozenset[str] | None = None
    """The tools the model may call; None for all."""
    excluded_tools: frozenset[str] = frozenset()
    """Tools the model may not call."""
    approval_free: frozenset[str] | None = None
    """Tools that run without approval; None for all."""


class RemoteToolFormat(Struct, frozen=True):
    """How a dialect requests server-side tools of MCP servers, and how a reply shows their calls."""

    marker: bytes
    """Bytes that every body with such a request contains."""
    take_servers: Callable[[Request, Container[str]], tuple[Request, tuple[RequestedServer, ...]]]
    """Remove the known servers from a request; return it and the servers."""
    render_tool_list: Callable[[str, Iterable[Tool], Request, str], tuple[bytes, ...]]
    """Render a server's tool list, or why there is none, for the start of a reply, if the dialect has such an item."""
    render_call: Callable[[str, ToolCall, ToolResult, str], tuple[bytes, ...]]
    """Render a call under the tool's own name, with its result and the id of its approval request, if any."""
    render_approval_request: Callable[[str, ToolCall], tuple[bytes, ...]]
    """Render a request to approve a call."""
    restore_calls: Callable[[Iterable[Message], Container[str]], tuple[Message, ...]]
    """Convert rendered calls of known servers in a history back to calls and results with the executor "provider".

    A call that waits for approval has the executor "client". The client's answer becomes a result whose `spelling` is
    `APPROVED` or `DENIED`.
    """
    call_prefix: str
    """The prefix of the ids of calls rendered in this format."""


class CallPlace(Struct, frozen=True, kw_only=True):
    """Where the items of a history have calls, or results."""

    parts: str = ""
    """The member with the list they are in; "" if the item itself is one."""
    member: str = ""
    """The member that only they have, or that has one of `values`; "" if everything in the list is one."""
    values: frozenset[str] = frozenset()
    name: tuple[str, ...] = ()
    """The pointers at which the name of the tool may be."""


class Implied(Struct, frozen=True):
    """Values of a request field that need no counterpart at the target, and the reason."""

    values: tuple[Any, ...]
    reason: str
    form: str = ""
    """A pattern that matches further such strings."""
    streaming_values: tuple[Any, ...] = ()
    """Further values, if the target streams call arguments."""


class VendorTool(Struct, frozen=True):
    """A tool that a vendor runs on its servers and that other vendors offer too."""

    names: tuple[str, ...]
    """The types or member names of its declaration, without version dates."""
    raw: bytes
    """The declaration to send, as JSON."""
    choice: ToolChoice | None = None
    """The tool choice that forces the model to use it."""


class ServerRow(Struct, frozen=True, kw_only=True):
    """How a server differs from the traits of its models."""

    hosts: tuple[str, ...] = ()
    """Patterns of the host, or of host and port, in the base URL."""
    models: tuple[str, ...] = ()
    """Patterns of model names that identify the server where the base URL does not."""
    changes: Mapping[str, Any] = {}
    """Fields of `Traits` and their values."""
    variants: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Further changes by pattern of the model name; the first match counts."""


class MessageEdit(Struct, frozen=True):
    """A change of the bytes of a message for a server that refuses something in it."""

    where: str
    raw: bytes | None
    """The new value; None removes it."""
    loss: str = ""
    """What is lost; "" if nothing is."""


SharedField = Literal["as_is", "tier", "store", "cache_options"]
"""How the value of a field is adapted to the vendor's other dialect: not at all, as the service tier, as the switch
that stores the reply, or as the prompt cache options.
"""


class Dialect(Struct, frozen=True, kw_only=True):
    """One API dialect: its functions and its tables."""

    name: str
    issuer: str
    call_prefix: str
    reply_prefix: str
    """The prefixes of its call ids and reply ids."""
    history: str
    """The request member with the list of conversation items."""
    nests_functions: bool = False
    """The members of a tool are nested in one with the name of its type, as `{"type": "function", "function": {…}}`."""
    turns: ConversationFormat
    traits: tuple[tuple[str, Traits], ...]
    """What its models accept, by pattern of the model name. The first match wins; the last pattern is `*`."""
    servers: Mapping[str, ServerRow] = {}
    """Servers that differ from these traits, by the name that `server` has in an upstream's configuration."""
    edit_messages: Callable[[bytes, Traits], Iterable[MessageEdit]] | None = None
    """Return how the history of a request must change for one of these servers; None if none refuses a message."""
    respell_model: Callable[[str], str] | None = None
    """Return a name that `Api.model_names` matches as `traits` spells it; None if all platforms spell it so."""
    call_place: CallPlace | None = None
    result_place: CallPlace | None = None
    """Where a history has calls and results, to add missing ids to its bytes; None if no id can be missing."""
    results_first: bool = False
    """In a turn of the user, tool results come before all else."""
    api: Api = Api()
    """Its HTTP API. A dialect without paths is only for the library, the command line and upstreams."""
    capabilities: ReplyCapabilities
    pointers: Mapping[str, tuple[str, ...]]
    """JSON pointers of core fields in a request (`"sampling.seed": ("/seed",)`)."""
    reply_pointers: Mapping[str, tuple[str, ...]]
    """JSON pointers of core fields in a reply. The counts under "usage.counted" are included in the core's numbers."""
    parse_request: ParseRequest
    render_request: Callable[[Request, Traits], Call]
    read_tools: ReadTools
    write_tools: Callable[[Tools], list[Any]]
    """Render tools as the items of the request's array of tools."""
    parse_response: Callable[[bytes], Response]
    build_response: Callable[[Response, Request | None], bytes]
    decoder: Callable[[], Decoder]
    encoder: Callable[[Request | None], Encoder]
    parse_error: Callable[[int, Mapping[str, str], bytes], Problem]
    build_error: Callable[[Problem], ErrorReply]
    choices: ChoiceFormat | None = None
    """How a reply has several answers, for requests that ask for them; None if no request can."""
    count: TokenCountFormat | None = None
    """The format of a token count; None if the API does not count tokens."""
    id_header: str = ""
    """The response header with the request id that users quote to support; "" if there is none."""
    id_member: str = ""
    """The member of an error body with the request id; "" if there is none."""
    read_declared_tools: Callable[[Iterable[Message]], tuple[Tool | NativeTool, ...]] | None = None
    """Return the tools that messages declare, for targets that need all tools in one list."""
    envelopes: frozenset[str] = frozenset()
    """The values of `Request.spelling` that mark a request in an envelope; an upstream's `form` is one of them."""
    is_wrapped: Callable[[bytes], bool] | None = None
    """Return whether the first bytes of a reply or stream start an envelope that plain clients cannot read."""
    mapped_finishes: frozenset[str]
    """Its finish reasons that the core's finish reasons express fully."""
    ignores_comments: bool = True
    """Whether its clients ignore comments in a stream."""
    signature_error: Pattern[str] | None = None
    """Matches the message of an error that rejects a signature in the history."""
    signed_member: str = ""
    """The pointer, in a message, of a list of signed reasoning that is kept as extra; "" if there is none."""
    item_id: str = ""
    """The pointer, in an item of the history, of the id that is accepted only after the reasoning it came with."""
    mapped_error_types: frozenset[str]
    """Its error types and codes that the core's problem kinds express fully."""
    repeated: frozenset[str] = frozenset()
    """Reply members that only repeat the request."""
    find_extra_pointer: Callable[[str, str], str] | None = None
    """Return the pointer of a part's extra field in a whole reply; None if all such fields are directly in the part."""
    remote: RemoteToolFormat | None = None
    """Its format for server-side tools of MCP servers; None if it has none."""
    unwrap: Callable[[Call], tuple[Call, tuple[str, ...]] | None] | None = None
    """Unwrap a request from its envelope. Return it and the pointers of the members that are lost; None without an
    envelope.
    """
    implied: Mapping[str, Implied] = {}
    """Request fields that are no loss at another dialect, by JSON pointer with `#` for an index."""
    implied_replies: Mapping[str, Implied] = {}
    """Reply fields that are no loss for a client of another dialect, by JSON pointer with `#` for an index."""
    informational: Mapping[str, str] = {}
    """Request fields whose loss is informational, by JSON pointer with `#` for an index, each with the reason."""
    informational_replies: Mapping[str, str] = {}
    """Reply fields whose loss is informational, by JSON pointer with `#` for an index, each with the reason."""
    repeats_count: Callable[[str, bytes, Usage], bool] | None = None
    """Return whether an extra usage field only repeats one of the counts; None if the dialect has no such field."""
    vendor_tools: Mapping[str, VendorTool] = {}
    """Its versions of tools that several vendors run, by purpose, such as "search"."""
    list_pages: Callable[[Mapping[str, bytes]], list[tuple[str, str]]] | None = None
    """Return the URL and title of each page that the extras of a reply name, cited or not; None if they name none."""
    search_settings: Mapping[str, str] = {}
    """The settings that its web search has, each with its pointer in the declaration."""
    unsent_settings: frozenset[str] = frozenset()
    """Those of these settings that only some of its servers take: they are read, but not sent."""
    call_limit: str = ""
    """The pointer of the request's limit of calls of all tools that its vendor runs; "" if it has none."""
    is_hosted: Callable[[bytes], bool] | None = None
    """Return whether the vendor runs a tool of its own, given the JSON of its declaration; None if it has none."""
    declare_client_tool: Callable[[NativeTool], tuple[Tool, ...]] | None = None
    """Return a tool of its vendor that the client runs as functions with the documented parameters.

    Other dialects get these functions. Return none if the parameters are not documented."""
    fit_arguments: Callable[[ToolCall], str] | None = None
    """Return the arguments of a call with `native` as the vendor's own tool requires; None if it has no such calls."""
    shared_fields: Mapping[str, SharedField] = {}
    """Request fields that mean the same in the vendor's other dialect, by pointer; one of the two lists them."""
    image_detail: str = ""
    """The pointer of an image's detail setting, whose values the vendor's dialects share."""
