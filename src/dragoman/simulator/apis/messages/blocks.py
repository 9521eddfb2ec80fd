"""Content blocks of a request, member for member.

Members are those of the vendor's typed parameters; a few that only recordings show (`abort_reason`) stand beside them.
What the vendor lets be null may be null here.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from dragoman.simulator.shape import Strict

Count = Annotated[int, Meta(ge=0)]


class CacheControl(Strict, tag_field="type", tag="ephemeral"):
    """A breakpoint of the prompt cache."""

    ttl: Literal["5m", "1h"] | None = None
    scope: Literal["global"] | None = None

    @property
    def lifetime(self) -> str:
        """How long the entry lives; five minutes unless said."""
        return self.ttl or "5m"


class CharLocation(Strict, tag_field="type", tag="char_location"):
    """A citation of a plain text."""

    cited_text: str
    document_index: Count
    document_title: str | None
    end_char_index: int
    start_char_index: Count
    file_id: str | None = None


class PageLocation(Strict, tag_field="type", tag="page_location"):
    """A citation of a PDF."""

    cited_text: str
    document_index: Count
    document_title: str | None
    end_page_number: int
    start_page_number: int
    file_id: str | None = None


class ContentBlockLocation(Strict, tag_field="type", tag="content_block_location"):
    """A citation of a document made of blocks."""

    cited_text: str
    document_index: Count
    document_title: str | None
    end_block_index: int
    start_block_index: Count
    file_id: str | None = None


class WebSearchLocation(Strict, tag_field="type", tag="web_search_result_location"):
    """A citation of a page that a web search found."""

    cited_text: str
    encrypted_index: str
    title: str | None
    url: str


class SearchResultLocation(Strict, tag_field="type", tag="search_result_location"):
    """A citation of a search result that the caller gave."""

    cited_text: str
    end_block_index: int
    search_result_index: Count
    source: str
    start_block_index: Count
    title: str | None


Citation = CharLocation | PageLocation | ContentBlockLocation | WebSearchLocation | SearchResultLocation


class Text(Strict, tag_field="type", tag="text"):
    """Words."""

    text: str
    cache_control: CacheControl | None = None
    citations: list[Citation] | None = None


class Base64Image(Strict, tag_field="type", tag="base64"):
    """An image, inline."""

    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str


class Link(Strict, tag_field="type", tag="url"):
    """An image or a PDF on the web."""

    url: str


class Stored(Strict, tag_field="type", tag="file"):
    """An image or a document that was uploaded."""

    file_id: str


class Base64Document(Strict, tag_field="type", tag="base64"):
    """A PDF, inline."""

    media_type: Literal["application/pdf"]
    data: str


class PlainDocument(Strict, tag_field="type", tag="text"):
    """A plain text."""

    media_type: Literal["text/plain"]
    data: str


class Image(Strict, tag_field="type", tag="image"):
    """An image."""

    source: Base64Image | Link | Stored
    cache_control: CacheControl | None = None
    transformations: dict[str, Any] | None = None


class BlockDocument(Strict, tag_field="type", tag="content"):
    """A document made of blocks."""

    content: str | list[Text | Image]


class CitationsConfig(Strict):
    """Whether a document may be cited."""

    enabled: bool | None = None


class Document(Strict, tag_field="type", tag="document"):
    """A document."""

    source: Base64Document | PlainDocument | BlockDocument | Link | Stored
    cache_control: CacheControl | None = None
    citations: CitationsConfig | None = None
    context: str | None = None
    title: str | None = None


class SearchResult(Strict, tag_field="type", tag="search_result"):
    """A search result that the caller gives."""

    content: list[Text]
    source: str
    title: str
    cache_control: CacheControl | None = None
    citations: CitationsConfig | None = None


class Thinking(Strict, tag_field="type", tag="thinking"):
    """What the model thought, signed."""

    thinking: str
    signature: str


class RedactedThinking(Strict, tag_field="type", tag="redacted_thinking"):
    """What the model thought, sealed."""

    data: str


class DirectCaller(Strict, tag_field="type", tag="direct"):
    """The model called by itself."""


class CodeCaller(Strict, tag_field="type", tag="code_execution_20250825"):
    """A program of the model called."""

    tool_id: str


class NewCodeCaller(Strict, tag_field="type", tag="code_execution_20260120"):
    """A program of the model called."""

    tool_id: str


Caller = DirectCaller | CodeCaller | NewCodeCaller


class ToolUse(Strict, tag_field="type", tag="tool_use"):
    """A call of a tool that the caller runs."""

    id: str
    name: str
    input: dict[str, Any]
    cache_control: CacheControl | None = None
    caller: Caller | None = None
    toolset_name: str | None = None


class ToolReference(Strict, tag_field="type", tag="tool_reference"):
    """A tool that a search found."""

    tool_name: str
    cache_control: CacheControl | None = None


class BrowserState(Strict, tag_field="type", tag="browser_state"):
    """The tabs of a browser."""

    tabs: list[dict[str, Any]]
    cache_control: CacheControl | None = None
    state_changes: list[dict[str, Any]] | None = None


Shown = Text | Image | SearchResult | Document | ToolReference | BrowserState


class ToolResult(Strict, tag_field="type", tag="tool_result"):
    """What a tool answered."""

    tool_use_id: str
    content: str | list[Shown] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None
    toolset_name: str | None = None


class ServerToolUse(Strict, tag_field="type", tag="server_tool_use"):
    """A call of a tool that the vendor runs."""

    id: str
    input: dict[str, Any]
    name: Literal[
        "advisor",
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search_tool_regex",
        "tool_search_tool_bm25",
    ]
    cache_control: CacheControl | None = None
    caller: Caller | None = None


class WebSearchResult(Strict, tag_field="type", tag="web_search_result"):
    """A page that a web search found."""

    encrypted_content: str
    title: str
    url: str
    page_age: str | None = None


class WebSearchError(Strict, tag_field="type", tag="web_search_tool_result_error"):
    """A web search that failed."""

    error_code: str


class WebSearchToolResult(Strict, tag_field="type", tag="web_search_tool_result"):
    """What a web search found."""

    content: list[WebSearchResult] | WebSearchError
    tool_use_id: str
    cache_control: CacheControl | None = None
    caller: Caller | None = None


class WebFetchResult(Strict, tag_field="type", tag="web_fetch_result"):
    """A page that was fetched."""

    content: Document
    url: str
    retrieved_at: str | None = None


class WebFetchError(Strict, tag_field="type", tag="web_fetch_tool_result_error"):
    """A fetch that failed."""

    error_code: str


class WebFetchToolResult(Strict, tag_field="type", tag="web_fetch_tool_result"):
    """What a fetch brought."""

    content: WebFetchResult | WebFetchError
    tool_use_id: str
    cache_control: CacheControl | None = None
    caller: Caller | None = None


class ContainerUpload(Strict, tag_field="type", tag="container_upload"):
    """A file for the container."""

    file_id: str
    cache_control: CacheControl | None = None
