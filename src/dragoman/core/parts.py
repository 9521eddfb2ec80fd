"""What a message is made of."""

from typing import Literal

from msgspec import Struct

from dragoman.core.value import Value

CallForm = Literal["json", "text"]
Executor = Literal["client", "provider"]
"""Who runs a call: whoever asked, or whoever answers. A call of the provider's has its result in the same reply."""
MediaKind = Literal["image", "document", "audio", "video"]


class Signature(Struct, frozen=True):
    """An opaque proof by `issuer` ("google", "anthropic", "openai"), returned unchanged to it and to nobody else."""

    issuer: str
    value: str
    item: str = ""
    """The id of the item it stands in, where the issuer checks that too (OpenAI's reasoning)."""


class Citation(Struct, frozen=True):
    """A source named for a span of text. `raw` is the dialect's own form; the rest is what others can say too."""

    dialect: str
    raw: bytes
    url: str = ""
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None
    places: tuple[str, ...] = ()
    """Where it stands in the reply, if that is apart from the text it is about: what is told is not lost there."""


class Part(Value, frozen=True, kw_only=True, eq=False):
    """Base of all parts."""

    signature: Signature | None = None
    cache: str | None = None
    """A cache mark ends here; the value is the requested lifetime ("5m", "1h", …), "" for the default."""


class Text(Part, frozen=True, kw_only=True, eq=False):
    """Plain text."""

    text: str
    citations: tuple[Citation, ...] = ()
    unread: bool = False
    """A call that the model wrote in words and nobody could read: the model sees it again, a user does not."""


class Reasoning(Part, frozen=True, kw_only=True, eq=False):
    """Thinking. Separate summaries stay separate; `redacted` has no text, only a signature."""

    texts: tuple[str, ...] = ()
    redacted: bool = False


class ToolCall(Part, frozen=True, kw_only=True, eq=False):
    """A model's wish to run a tool. `arguments` is JSON text exactly as received, or free text for form "text"."""

    id: str
    name: str
    arguments: str
    form: CallForm = "json"
    namespace: str = ""
    complete: bool = True
    """False when the model was cut off inside the arguments."""
    executor: Executor = "client"


class Data(Part, frozen=True, kw_only=True, eq=False):
    """Any JSON value as a tool returned it, kept as JSON text."""

    json: bytes


class Inline(Struct, frozen=True):
    """Media in the request itself, base64 text as received."""

    data: str


class Link(Struct, frozen=True):
    """Media behind a URL that the model's server fetches."""

    url: str


class Plain(Struct, frozen=True):
    """A document given as plain text."""

    text: str


class Stored(Struct, frozen=True):
    """Media uploaded before; the id means something only to the vendor that issued it."""

    issuer: str
    id: str


class Media(Part, frozen=True, kw_only=True, eq=False):
    """An image, document, sound or film. `media_type` is "" when the dialect did not say."""

    kind: MediaKind
    media_type: str
    source: Inline | Link | Plain | Stored
    name: str = ""


class Refusal(Part, frozen=True, kw_only=True, eq=False):
    """The model's own words for not answering."""

    text: str


class Opaque(Part, frozen=True, kw_only=True, eq=False):
    """A block only `dialect` understands (a server tool's result, a compaction, …), kept whole."""

    dialect: str
    raw: bytes
    declares: bool = False
    """It declares tools at this point of the conversation; `Dialect.declared` reads them for everybody else."""
    refers: str = ""
    """It only names what was said, which the vendor's server keeps: the pointer of that name below it."""


class ToolResult(Part, frozen=True, kw_only=True, eq=False):
    """What a tool answered; `name` is "" where the dialect names only the call id."""

    call_id: str
    name: str = ""
    content: tuple["Content", ...] = ()
    failed: bool = False
    form: CallForm = "json"
    executor: Executor = "client"


Content = Text | Data | Media | Opaque
AnyPart = Text | Reasoning | ToolCall | ToolResult | Data | Media | Refusal | Opaque
