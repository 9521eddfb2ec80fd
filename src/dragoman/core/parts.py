"""The parts of a message: text, reasoning, tool calls and results, media, and so on."""

from typing import Literal

from msgspec import Struct

from dragoman.core.value import Value

CallForm = Literal["json", "text"]
Executor = Literal["client", "provider"]
"""Who runs a call: the client, or the model's provider, which sends the result in the same reply."""
MediaKind = Literal["image", "document", "audio", "video"]
_MEDIA_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


class Signature(Struct, frozen=True):
    """Encrypted data of `issuer` ("google", "anthropic", "openai"), sent back unchanged, and only to that issuer."""

    issuer: str
    value: str
    item: str = ""
    """The id of the item that contains it, where the issuer checks that too (OpenAI's reasoning)."""


class Citation(Struct, frozen=True):
    """A source for a span of text. `raw` is the dialect's own form; the other fields are those that dialects share."""

    dialect: str
    raw: bytes
    url: str = ""
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None
    places: tuple[str, ...] = ()
    """Pointers of the citation in the reply, where it is not inside the text it is about (Gemini's grounding data).

    If the citation is rendered, what is at these pointers is not reported as a loss."""


class Part(Value, frozen=True, kw_only=True, eq=False):
    """Base of all parts."""

    signature: Signature | None = None
    cache: str | None = None
    """A cache mark: the prefix up to here is to be cached for this lifetime ("5m", "1h", …; "" is the default)."""


class Text(Part, frozen=True, kw_only=True, eq=False):
    """Plain text."""

    text: str
    citations: tuple[Citation, ...] = ()
    unread: bool = False
    """The text is a tool call that the model wrote as text and that could not be parsed.

    It is sent back to the model in the history, but not shown to a user."""


class Reasoning(Part, frozen=True, kw_only=True, eq=False):
    """Thinking of the model. Separate summaries stay separate; `redacted` has no text, only a signature."""

    texts: tuple[str, ...] = ()
    redacted: bool = False


class ToolCall(Part, frozen=True, kw_only=True, eq=False):
    """A tool call of the model. `arguments` is JSON text exactly as received, or free text for form "text"."""

    id: str
    name: str
    arguments: str
    form: CallForm = "json"
    namespace: str = ""
    complete: bool = True
    """False when the model was cut off inside the arguments."""
    executor: Executor = "client"
    native: str = ""
    """The type of the vendor's own tool that is called, if its dialect has an item of its own for such calls."""

    def _repr_html_(self) -> str:
        """Show the call in a notebook."""
        from dragoman.core.notebook import render_table  # noqa: PLC0415  only notebooks need it

        return render_table(("call", "id", "arguments"), [(self.name, self.id, self.arguments)])


class Data(Part, frozen=True, kw_only=True, eq=False):
    """Any JSON value as a tool returned it, kept as JSON text."""

    json: bytes


class Inline(Struct, frozen=True):
    """Media in the request itself, base64 text as received."""

    data: str


class Link(Struct, frozen=True):
    """Media at a URL that the model's server fetches."""

    url: str


class Plain(Struct, frozen=True):
    """A document given as plain text."""

    text: str


class Stored(Struct, frozen=True):
    """Media uploaded earlier; the id is valid only at the vendor that issued it."""

    issuer: str
    id: str


class Media(Part, frozen=True, kw_only=True, eq=False):
    """An image, document, audio or video. `media_type` is "" when the source does not give it."""

    kind: MediaKind
    media_type: str
    source: Inline | Link | Plain | Stored
    name: str = ""
    context: str = ""
    """What the client says about a document, for the model; it is no part of the document."""


def media_kind_of(media_type: str) -> MediaKind:
    """Return the kind of media of a media type in lower case; what is not an image, audio or video is a document."""
    return _MEDIA_KINDS.get(media_type.partition("/")[0], "document")


class Refusal(Part, frozen=True, kw_only=True, eq=False):
    """The text with which the model refuses to answer."""

    text: str


class Opaque(Part, frozen=True, kw_only=True, eq=False):
    """A block that only `dialect` understands (a server tool's result, a compaction, …), kept as raw JSON."""

    dialect: str
    raw: bytes
    declares: bool = False
    """It declares tools in mid-conversation; `Dialect.read_declared_tools` parses them for other dialects."""
    refers: str = ""
    """The pointer, relative to the block, of an id of content that the vendor's server stores; "" if there is none.

    The block has only that id, not the content."""
    content: tuple[Text | Media, ...] = ()
    """Its texts and media, which other dialects get instead of the block."""
    is_accounting: bool = False
    """It is for the vendor's accounting, which no model reads: its loss is informational."""


class ToolSearch(Opaque, frozen=True, kw_only=True, eq=False):
    """A search for deferred tools that the vendor runs, or the gateway; its result is a `FoundTools` of the same turn.

    `raw` is the vendor's own block, empty for a search of the gateway.
    """

    dialect: str = ""
    raw: bytes = b""
    id: str = ""
    """Without the prefix that its vendor gives ids of searches."""
    query: str = ""
    pattern: bool = False
    """The query is a regular expression."""


class FoundTools(Opaque, frozen=True, kw_only=True, eq=False):
    """The deferred tools that a search found: they can be called from here on."""

    dialect: str = ""
    raw: bytes = b""
    id: str = ""
    """The id of the search."""
    names: tuple[str, ...] = ()
    """The names of the tools, each after its namespace and `__`."""
    tools: bytes = b""
    """Their declarations in the target's dialect, as a JSON array, for a dialect that repeats them."""
    error: str = ""
    """Why the search failed, as a code of Anthropic's: `invalid_tool_input`, `unavailable`, …"""
    repeated: str = ""
    """The pointer, below the part, of the declarations that it repeats from the request; "" if it repeats none."""


class ToolReference(Opaque, frozen=True, kw_only=True, eq=False):
    """A deferred tool that the client found, in a tool result: it can be called from here on."""

    name: str


class FoundPage(Struct, frozen=True):
    """A page that a web search found."""

    url: str
    title: str = ""
    age: str = ""
    """When the page was last changed, in the words of the search."""
    excerpt: str = ""
    """What the page says, where the search returns it in a form that everyone can read."""
    where: str = ""
    """Its JSON pointer in the document from which it was parsed."""


SearchStep = Literal["whole", "call", "results"]


class Search(Opaque, frozen=True, kw_only=True, eq=False):
    """A web search that the provider ran within the reply, with its results or its error.

    A dialect with one block for the query and another for the results has two parts with one id: the first with the
    step "call", the second with the step "results". `raw` is the dialect's own block; it is empty for a search without
    a block, and so is `dialect` for a search that does not come from a dialect. The extras are the fields of the block
    that no other dialect has.
    """

    dialect: str = ""
    raw: bytes = b""
    id: str = ""
    step: SearchStep = "whole"
    queries: tuple[str, ...] = ()
    pages: tuple[FoundPage, ...] = ()
    error: str = ""
    """Why the search failed, as Anthropic's error codes name it ("unavailable", "max_uses_exceeded", …)."""
    places: tuple[str, ...] = ()
    """Pointers of the search in the reply, where it is not a block of its own (Gemini's grounding data)."""


class ToolResult(Part, frozen=True, kw_only=True, eq=False):
    """The result of a tool call; `name` is "" where the dialect gives only the call id."""

    call_id: str
    name: str = ""
    content: tuple["Content", ...] = ()
    failed: bool = False
    form: CallForm = "json"
    executor: Executor = "client"
    native: str = ""
    """As for the call."""


Content = Text | Data | Media | Opaque
AnyPart = Text | Reasoning | ToolCall | ToolResult | Data | Media | Refusal | Opaque
