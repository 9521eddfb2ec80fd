"""Content blocks that come back from tools the vendor runs, and those of its beta features.

The vendor made their contents itself and takes them back as they are: the outer members are held to, the contents of
programs' output are only told apart by their type.
"""

from typing import Any, Literal

from dragoman.simulator.apis.messages.blocks import (
    CacheControl,
    ContainerUpload,
    Document,
    Image,
    RedactedThinking,
    SearchResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    WebFetchToolResult,
    WebSearchToolResult,
)
from dragoman.simulator.shape import Strict


class AdvisorResult(Strict, tag_field="type", tag="advisor_result"):
    """Advice."""

    text: str
    stop_reason: str | None = None


class AdvisorRedactedResult(Strict, tag_field="type", tag="advisor_redacted_result"):
    """Sealed advice."""

    encrypted_content: str
    stop_reason: str | None = None


class AdvisorError(Strict, tag_field="type", tag="advisor_tool_result_error"):
    """No advice."""

    error_code: str


class AdvisorToolResult(Strict, tag_field="type", tag="advisor_tool_result"):
    """What an advisor said."""

    content: AdvisorResult | AdvisorRedactedResult | AdvisorError
    tool_use_id: str
    cache_control: CacheControl | None = None


class CodeExecutionResult(Strict, tag_field="type", tag="code_execution_result"):
    """What a program did."""

    content: list[dict[str, Any]]
    return_code: int
    stderr: str
    stdout: str
    abort_reason: str | None = None


class EncryptedCodeExecutionResult(Strict, tag_field="type", tag="encrypted_code_execution_result"):
    """What a program did, sealed."""

    content: list[dict[str, Any]]
    encrypted_stdout: str
    return_code: int
    stderr: str
    abort_reason: str | None = None


class CodeExecutionError(Strict, tag_field="type", tag="code_execution_tool_result_error"):
    """A program that could not run."""

    error_code: str


class CodeExecutionToolResult(Strict, tag_field="type", tag="code_execution_tool_result"):
    """The result of running a program."""

    content: CodeExecutionResult | EncryptedCodeExecutionResult | CodeExecutionError
    tool_use_id: str
    cache_control: CacheControl | None = None


class BashResult(Strict, tag_field="type", tag="bash_code_execution_result"):
    """What a command did."""

    content: list[dict[str, Any]]
    return_code: int
    stderr: str
    stdout: str
    abort_reason: str | None = None


class BashError(Strict, tag_field="type", tag="bash_code_execution_tool_result_error"):
    """A command that could not run."""

    error_code: str


class BashToolResult(Strict, tag_field="type", tag="bash_code_execution_tool_result"):
    """The result of running a command."""

    content: BashResult | BashError
    tool_use_id: str
    cache_control: CacheControl | None = None


class TextEditorToolResult(Strict, tag_field="type", tag="text_editor_code_execution_tool_result"):
    """The result of an edit in the container."""

    content: dict[str, Any]
    tool_use_id: str
    cache_control: CacheControl | None = None


class ToolSearchFound(Strict, tag_field="type", tag="tool_search_tool_search_result"):
    """Tools that were found."""

    tool_references: list[ToolReference]


class ToolSearchError(Strict, tag_field="type", tag="tool_search_tool_result_error"):
    """A search that failed."""

    error_code: str
    error_message: str | None = None


class ToolSearchToolResult(Strict, tag_field="type", tag="tool_search_tool_result"):
    """The result of a search for tools."""

    content: ToolSearchFound | ToolSearchError
    tool_use_id: str
    cache_control: CacheControl | None = None


class McpToolUse(Strict, tag_field="type", tag="mcp_tool_use"):
    """A call of a tool of an MCP server, by the vendor."""

    id: str
    input: dict[str, Any]
    name: str
    server_name: str
    cache_control: CacheControl | None = None


class McpToolResult(Strict, tag_field="type", tag="mcp_tool_result"):
    """What an MCP server answered."""

    tool_use_id: str
    content: str | list[Text] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


class McpToolListing(Strict, tag_field="type", tag="mcp_tool_listing"):
    """The tools of an MCP server."""

    mcp_server_name: str
    tools: list[dict[str, Any]]


class NamedTool(Strict, tag_field="type", tag="tool_reference"):
    """A declared tool."""

    name: str


class NamedMcpTool(Strict, tag_field="type", tag="mcp_tool_reference"):
    """A tool of an MCP server."""

    name: str
    server_name: str


class NamedMcpToolset(Strict, tag_field="type", tag="mcp_toolset_reference"):
    """All tools of an MCP server."""

    server_name: str


class InlineTool(Strict, tag_field="type", tag="tool_definition"):
    """A tool that is declared in the middle of the conversation."""

    definition: dict[str, Any]


class ToolAddition(Strict, tag_field="type", tag="tool_addition"):
    """A tool is offered from here on."""

    tool: NamedTool | NamedMcpTool | NamedMcpToolset | InlineTool
    cache_control: CacheControl | None = None


class ToolRemoval(Strict, tag_field="type", tag="tool_removal"):
    """A tool is withdrawn from here on."""

    tool: NamedTool | NamedMcpTool | NamedMcpToolset
    cache_control: CacheControl | None = None


class Compaction(Strict, tag_field="type", tag="compaction"):
    """A summary of what came before."""

    content: str | None = None
    encrypted_content: str | None = None
    signature: str | None = None
    tool_changes: list[ToolAddition | ToolRemoval] | None = None
    cache_control: CacheControl | None = None


class Fallback(Strict, tag_field="type", tag="fallback", rename={"source": "from"}):
    """Another model took over."""

    source: dict[str, Any]
    to: dict[str, Any]
    trigger: Any = None


ServerResult = (
    WebSearchToolResult
    | WebFetchToolResult
    | AdvisorToolResult
    | CodeExecutionToolResult
    | BashToolResult
    | TextEditorToolResult
    | ToolSearchToolResult
)
Block = (
    Text
    | Image
    | Document
    | SearchResult
    | Thinking
    | RedactedThinking
    | ToolUse
    | ToolResult
    | ServerToolUse
    | ServerResult
    | ContainerUpload
    | McpToolUse
    | McpToolResult
    | McpToolListing
    | Compaction
    | Fallback
)


class UserMessage(Strict, tag_field="role", tag="user"):
    """A turn of the user."""

    content: str | list[Block]


class AssistantMessage(Strict, tag_field="role", tag="assistant"):
    """A turn of the model."""

    content: str | list[Block]


class TurnOutputConfig(Strict):
    """How hard to think from here on."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None


class SystemMessage(Strict, tag_field="role", tag="system"):
    """An instruction in the middle of the conversation."""

    content: str | list[Text | ToolAddition | ToolRemoval] | None = None
    clear_at: Literal["next_user_message", "never"] | None = None
    output_config: TurnOutputConfig | None = None


Message = UserMessage | AssistantMessage | SystemMessage
