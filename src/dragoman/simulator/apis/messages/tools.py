"""Tools of a request, member for member: the caller's own, and those the vendor knows by type and version."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from dragoman.simulator.apis.messages.blocks import CacheControl, CitationsConfig
from dragoman.simulator.shape import Strict

CallerName = Literal["direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"]
Uses = Annotated[int, Meta(ge=1)]


class Kept(Strict, kw_only=True):
    """What every tool may say beside its own members."""

    cache_control: CacheControl | None = None
    allowed_callers: list[CallerName] | None = None
    defer_loading: bool | None = None
    strict: bool | None = None


class Custom(Kept, kw_only=True):
    """A tool of the caller's own."""

    name: str
    input_schema: dict[str, Any]
    description: str | None = None
    eager_input_streaming: bool | None = None
    input_examples: list[dict[str, Any]] | None = None
    type: Literal["custom"] | None = None


class Known(Kept, kw_only=True, tag_field="type"):
    """A tool that the vendor knows by its type."""


class ClientTool(Known, kw_only=True):
    """A tool the vendor defines and the caller runs."""

    input_examples: list[dict[str, Any]] | None = None


class OldBash(ClientTool, tag="bash_20241022", kw_only=True):
    """A shell."""

    name: Literal["bash"]


class Bash(ClientTool, tag="bash_20250124", kw_only=True):
    """A shell."""

    name: Literal["bash"]


class TextEditor2024(ClientTool, tag="text_editor_20241022", kw_only=True):
    """An editor."""

    name: Literal["str_replace_editor"]


class TextEditor202501(ClientTool, tag="text_editor_20250124", kw_only=True):
    """An editor."""

    name: Literal["str_replace_editor"]


class TextEditor202504(ClientTool, tag="text_editor_20250429", kw_only=True):
    """An editor."""

    name: Literal["str_replace_based_edit_tool"]


class TextEditor202507(ClientTool, tag="text_editor_20250728", kw_only=True):
    """An editor."""

    name: Literal["str_replace_based_edit_tool"]
    max_characters: Uses | None = None


class Memory(ClientTool, tag="memory_20250818", kw_only=True):
    """A store of notes."""

    name: Literal["memory"]


class Screen(ClientTool, kw_only=True):
    """A screen, a mouse and a keyboard."""

    name: Literal["computer"]
    display_height_px: Uses
    display_width_px: Uses
    display_number: int | None = None


class Computer2024(Screen, tag="computer_20241022", kw_only=True):
    """The first version."""


class Computer202501(Screen, tag="computer_20250124", kw_only=True):
    """The second version."""


class Computer202511(Screen, tag="computer_20251124", kw_only=True):
    """The third version."""

    enable_zoom: bool | None = None


class ComputerToolset(Strict, tag_field="type", tag="computer_toolset_20260801", kw_only=True):
    """Tools for a screen, without names of their own."""

    cache_control: CacheControl | None = None
    configs: dict[str, dict[str, Any] | None] | None = None


class BrowserToolset(Strict, tag_field="type", tag="browser_toolset_20260801", kw_only=True):
    """Tools for a browser, without names of their own."""

    cache_control: CacheControl | None = None
    configs: dict[str, dict[str, Any] | None] | None = None


class CodeExecution(Known, kw_only=True):
    """A container in which the model runs programs."""

    name: Literal["code_execution"]


class CodeExecution202505(CodeExecution, tag="code_execution_20250522", kw_only=True):
    """Python only."""


class CodeExecution202508(CodeExecution, tag="code_execution_20250825", kw_only=True):
    """A shell and files."""


class CodeExecution202601(CodeExecution, tag="code_execution_20260120", kw_only=True):
    """Programs that call tools."""


class CodeExecution202605(CodeExecution, tag="code_execution_20260521", kw_only=True):
    """The newest version."""


class UserLocation(Strict, tag_field="type", tag="approximate"):
    """Where the user is."""

    city: str | None = None
    country: str | None = None
    region: str | None = None
    timezone: str | None = None


class Web(Known, kw_only=True):
    """A tool that looks into the web."""

    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    max_uses: Uses | None = None


class WebSearch(Web, kw_only=True):
    """A web search."""

    name: Literal["web_search"]
    user_location: UserLocation | None = None


class WebSearch202503(WebSearch, tag="web_search_20250305", kw_only=True):
    """The first version."""


class WebSearch202602(WebSearch, tag="web_search_20260209", kw_only=True):
    """The second version."""


class WebSearch202603(WebSearch, tag="web_search_20260318", kw_only=True):
    """The third version."""

    response_inclusion: Literal["full", "excluded"] | None = None


class WebFetch(Web, kw_only=True):
    """A fetch of a page."""

    name: Literal["web_fetch"]
    citations: CitationsConfig | None = None
    max_content_tokens: Uses | None = None
    url_sources: dict[str, Any] | None = None


class WebFetch202509(WebFetch, tag="web_fetch_20250910", kw_only=True):
    """The first version."""


class WebFetch202602(WebFetch, tag="web_fetch_20260209", kw_only=True):
    """The second version."""


class WebFetch20260309(WebFetch, tag="web_fetch_20260309", kw_only=True):
    """The third version."""

    use_cache: bool | None = None


class WebFetch20260318(WebFetch, tag="web_fetch_20260318", kw_only=True):
    """The fourth version."""

    use_cache: bool | None = None
    response_inclusion: Literal["full", "excluded"] | None = None


class Advisor(Known, tag="advisor_20260301", kw_only=True):
    """Another model that gives advice."""

    name: Literal["advisor"]
    model: str
    caching: CacheControl | None = None
    max_tokens: int | None = None
    max_uses: Uses | None = None


class ToolSearch(Known, kw_only=True):
    """A search among the deferred tools."""


class RegexSearch(ToolSearch, tag="tool_search_tool_regex_20251119", kw_only=True):
    """By regular expression."""

    name: Literal["tool_search_tool_regex"]


class AnyRegexSearch(ToolSearch, tag="tool_search_tool_regex", kw_only=True):
    """By regular expression, whatever the version."""

    name: Literal["tool_search_tool_regex"]


class WordSearch(ToolSearch, tag="tool_search_tool_bm25_20251119", kw_only=True):
    """By words."""

    name: Literal["tool_search_tool_bm25"]


class AnyWordSearch(ToolSearch, tag="tool_search_tool_bm25", kw_only=True):
    """By words, whatever the version."""

    name: Literal["tool_search_tool_bm25"]


class McpToolset(Strict, tag_field="type", tag="mcp_toolset", kw_only=True):
    """The tools of an MCP server."""

    mcp_server_name: str
    cache_control: CacheControl | None = None
    configs: dict[str, dict[str, Any]] | None = None
    default_config: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None


KnownTool = (
    OldBash
    | Bash
    | TextEditor2024
    | TextEditor202501
    | TextEditor202504
    | TextEditor202507
    | Memory
    | Computer2024
    | Computer202501
    | Computer202511
    | ComputerToolset
    | BrowserToolset
    | CodeExecution202505
    | CodeExecution202508
    | CodeExecution202601
    | CodeExecution202605
    | WebSearch202503
    | WebSearch202602
    | WebSearch202603
    | WebFetch202509
    | WebFetch202602
    | WebFetch20260309
    | WebFetch20260318
    | Advisor
    | RegexSearch
    | AnyRegexSearch
    | WordSearch
    | AnyWordSearch
    | McpToolset
)
Tool = Custom | KnownTool


def kind_of(tool: Tool) -> str:
    """Return a tool's type as the vendor's paths name it."""
    return "custom" if isinstance(tool, Custom) else str(type(tool).__struct_config__.tag)


def name_of(tool: Tool) -> str:
    """Return a tool's name; "" for a set of tools."""
    return "" if isinstance(tool, ComputerToolset | BrowserToolset | McpToolset) else tool.name
