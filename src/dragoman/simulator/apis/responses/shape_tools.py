"""The shape of tools and of a choice among them.

Hosted tools are held to their members; what the simulator never runs is taken as any object below that.
"""

from typing import Any, Literal

from msgspec import field

from dragoman.simulator.shape import Strict

Callers = list[Literal["direct", "programmatic"]]
Location = dict[str, Any]


class GrammarText(Strict, tag_field="type", tag="text"):
    """A custom tool that takes any text."""


class Grammar(Strict, tag_field="type", tag="grammar", kw_only=True):
    """A custom tool whose text follows a grammar."""

    syntax: Literal["lark", "regex"]
    definition: str


class FunctionTool(Strict, tag_field="type", tag="function", kw_only=True):
    """A function of the client."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: Callers | None = None
    output_schema: dict[str, Any] | None = None
    is_async: bool | None = field(default=None, name="async")


class CustomTool(Strict, tag_field="type", tag="custom", kw_only=True):
    """A tool of the client that takes text."""

    name: str
    description: str | None = None
    format: GrammarText | Grammar | None = None
    defer_loading: bool | None = None
    allowed_callers: Callers | None = None
    is_async: bool | None = field(default=None, name="async")


class NamespaceTool(Strict, tag_field="type", tag="namespace", kw_only=True):
    """A group of tools."""

    name: str
    description: str
    tools: list[FunctionTool | CustomTool]


class ToolSearchTool(Strict, tag_field="type", tag="tool_search", kw_only=True):
    """Loads deferred tools when the model looks for them."""

    execution: Literal["server", "client"] | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class McpTool(Strict, tag_field="type", tag="mcp", kw_only=True):
    """A remote MCP server."""

    server_label: str
    server_url: str | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    server_description: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | dict[str, Any] | None = None
    require_approval: Literal["always", "never"] | dict[str, Any] | None = None
    defer_loading: bool | None = None
    allowed_callers: Callers | None = None


class WebSearchTool(Strict, tag_field="type", tag="web_search", kw_only=True):
    """The vendor's search, which the simulator runs over its own documents."""

    external_web_access: bool | None = None
    filters: dict[str, Any] | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    search_content_types: list[Literal["text", "image"]] | None = None
    return_token_budget: str | None = None
    user_location: Location | None = None


class WebSearchToolDated(WebSearchTool, tag_field="type", tag="web_search_2025_08_26", kw_only=True):
    """The same, of a date."""


class WebSearchPreviewTool(Strict, tag_field="type", tag="web_search_preview", kw_only=True):
    """The search before it was finished."""

    search_context_size: Literal["low", "medium", "high"] | None = None
    search_content_types: list[Literal["text", "image"]] | None = None
    user_location: Location | None = None


class WebSearchPreviewToolDated(WebSearchPreviewTool, tag_field="type", tag="web_search_preview_2025_03_11"):
    """The same, of a date."""


class FileSearchTool(Strict, tag_field="type", tag="file_search", kw_only=True):
    """A search of stored files."""

    vector_store_ids: list[str]
    filters: dict[str, Any] | None = None
    max_num_results: int | None = None
    ranking_options: dict[str, Any] | None = None


class CodeInterpreterTool(Strict, tag_field="type", tag="code_interpreter", kw_only=True):
    """Python in a container."""

    container: str | dict[str, Any]
    allowed_callers: Callers | None = None


class ImageGenerationTool(Strict, tag_field="type", tag="image_generation", kw_only=True):
    """Pictures."""

    action: Literal["generate", "edit", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    complexity: Literal["low", "medium", "high"] | None = None
    frame_count: int | None = None
    frame_duration_ms: int | None = None
    input_fidelity: Literal["high", "low"] | None = None
    input_image_mask: dict[str, Any] | None = None
    model: str | None = None
    moderation: Literal["auto", "low"] | None = None
    n: int | None = None
    output_compression: int | None = None
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] | None = None
    partial_images: int | None = None
    quality: Literal["low", "medium", "high", "xhigh", "max", "auto"] | None = None
    size: str | None = None
    svg: dict[str, Any] | None = None


class ComputerTool(Strict, tag_field="type", tag="computer"):
    """A screen the client drives."""


class ComputerUsePreviewTool(Strict, tag_field="type", tag="computer_use_preview", kw_only=True):
    """The same, before it was finished."""

    display_width: int
    display_height: int
    environment: Literal["windows", "mac", "linux", "ubuntu", "browser"]


class LocalShellTool(Strict, tag_field="type", tag="local_shell"):
    """A shell of the client."""


class ShellTool(Strict, tag_field="type", tag="shell", kw_only=True):
    """A shell, of the client or of a container."""

    environment: dict[str, Any] | None = None
    allowed_callers: Callers | None = None


class ApplyPatchTool(Strict, tag_field="type", tag="apply_patch", kw_only=True):
    """Changes to the client's files."""

    allowed_callers: Callers | None = None


class ProgrammaticTool(Strict, tag_field="type", tag="programmatic_tool_calling"):
    """Programs that call tools."""


Tool = (
    FunctionTool
    | CustomTool
    | NamespaceTool
    | ToolSearchTool
    | McpTool
    | WebSearchTool
    | WebSearchToolDated
    | WebSearchPreviewTool
    | WebSearchPreviewToolDated
    | FileSearchTool
    | CodeInterpreterTool
    | ImageGenerationTool
    | ComputerTool
    | ComputerUsePreviewTool
    | LocalShellTool
    | ShellTool
    | ApplyPatchTool
    | ProgrammaticTool
)


class ChosenFunction(Strict, tag_field="type", tag="function", kw_only=True):
    """This function, and no other."""

    name: str


class ChosenCustom(Strict, tag_field="type", tag="custom", kw_only=True):
    """This custom tool, and no other."""

    name: str


class ChosenMcp(Strict, tag_field="type", tag="mcp", kw_only=True):
    """A tool of this server."""

    server_label: str
    name: str | None = None


class ChosenAllowed(Strict, tag_field="type", tag="allowed_tools", kw_only=True):
    """Only some of the tools."""

    mode: Literal["auto", "required"]
    tools: list[dict[str, Any]]


class ChosenFileSearch(Strict, tag_field="type", tag="file_search"):
    """This hosted tool."""


class ChosenWebSearch(Strict, tag_field="type", tag="web_search"):
    """This hosted tool."""


class ChosenWebSearchDated(Strict, tag_field="type", tag="web_search_2025_08_26"):
    """This hosted tool."""


class ChosenWebSearchPreview(Strict, tag_field="type", tag="web_search_preview"):
    """This hosted tool."""


class ChosenWebSearchPreviewDated(Strict, tag_field="type", tag="web_search_preview_2025_03_11"):
    """This hosted tool."""


class ChosenComputer(Strict, tag_field="type", tag="computer"):
    """This hosted tool."""


class ChosenComputerUse(Strict, tag_field="type", tag="computer_use"):
    """This hosted tool."""


class ChosenComputerUsePreview(Strict, tag_field="type", tag="computer_use_preview"):
    """This hosted tool."""


class ChosenCodeInterpreter(Strict, tag_field="type", tag="code_interpreter"):
    """This hosted tool."""


class ChosenImageGeneration(Strict, tag_field="type", tag="image_generation"):
    """This hosted tool."""


class ChosenApplyPatch(Strict, tag_field="type", tag="apply_patch"):
    """This hosted tool."""


class ChosenShell(Strict, tag_field="type", tag="shell"):
    """This hosted tool."""


class ChosenProgrammatic(Strict, tag_field="type", tag="programmatic_tool_calling"):
    """This hosted tool."""


ToolChoice = (
    Literal["none", "auto", "required"]
    | ChosenFunction
    | ChosenCustom
    | ChosenMcp
    | ChosenAllowed
    | ChosenFileSearch
    | ChosenWebSearch
    | ChosenWebSearchDated
    | ChosenWebSearchPreview
    | ChosenWebSearchPreviewDated
    | ChosenComputer
    | ChosenComputerUse
    | ChosenComputerUsePreview
    | ChosenCodeInterpreter
    | ChosenImageGeneration
    | ChosenApplyPatch
    | ChosenShell
    | ChosenProgrammatic
)
