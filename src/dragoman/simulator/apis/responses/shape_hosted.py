"""The shape of input items that tools of the vendor leave behind, and of items that change the conversation itself."""

from typing import Any, Literal

from dragoman.simulator.apis.responses.shape_items import (
    AdditionalTools,
    Caller,
    CallId,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    InputMessage,
    ItemId,
    OutputMessage,
    Reasoning,
    Status,
    ToolSearchCall,
    ToolSearchOutput,
)
from dragoman.simulator.shape import Strict

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class WebSearchCall(Strict, tag_field="type", tag="web_search_call", kw_only=True):
    """A search of the web."""

    id: ItemId
    action: dict[str, Any] | None = None
    status: Literal["in_progress", "searching", "completed", "failed", "incomplete"] | None = None


class FileSearchCall(Strict, tag_field="type", tag="file_search_call", kw_only=True):
    """A search of files."""

    id: ItemId
    queries: list[str]
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] | None = None
    results: list[dict[str, Any]] | None = None


class CodeInterpreterCall(Strict, tag_field="type", tag="code_interpreter_call", kw_only=True):
    """Python that ran."""

    id: ItemId
    code: str | None
    container_id: str
    outputs: list[dict[str, Any]] | None = None
    status: Literal["in_progress", "completed", "incomplete", "interpreting", "failed"] | None = None


class ImageGenerationCall(Strict, tag_field="type", tag="image_generation_call", kw_only=True):
    """A picture that was made; its id alone refers to it."""

    id: ItemId
    result: str | None = None
    status: Literal["in_progress", "completed", "generating", "failed"] | None = None
    action: str | None = None
    background: str | None = None
    error: dict[str, Any] | None = None
    output_format: str | None = None
    quality: str | None = None
    revised_prompt: str | None = None
    size: str | None = None
    svg_usage: dict[str, Any] | None = None


class ComputerCall(Strict, tag_field="type", tag="computer_call", kw_only=True):
    """Something done on a screen."""

    id: ItemId
    call_id: CallId
    pending_safety_checks: list[dict[str, Any]]
    status: Status
    action: dict[str, Any] | None = None
    actions: list[dict[str, Any]] | None = None


class ComputerCallOutput(Strict, tag_field="type", tag="computer_call_output", kw_only=True):
    """What the screen showed."""

    call_id: CallId
    output: dict[str, Any]
    id: ItemId | None = None
    acknowledged_safety_checks: list[dict[str, Any]] | None = None
    status: Status | None = None


class LocalShellCall(Strict, tag_field="type", tag="local_shell_call", kw_only=True):
    """A command for the client's shell."""

    id: ItemId
    call_id: CallId
    action: dict[str, Any]
    status: Status


class LocalShellCallOutput(Strict, tag_field="type", tag="local_shell_call_output", kw_only=True):
    """What the command printed; its id is the call's."""

    id: ItemId
    output: str
    status: Status | None = None


class ShellCall(Strict, tag_field="type", tag="shell_call", kw_only=True):
    """Commands for a shell."""

    call_id: CallId
    action: dict[str, Any]
    id: ItemId | None = None
    caller: Caller | None = None
    environment: dict[str, Any] | None = None
    status: Status | None = None


class ShellCallOutput(Strict, tag_field="type", tag="shell_call_output", kw_only=True):
    """What they printed."""

    call_id: CallId
    output: list[dict[str, Any]]
    id: ItemId | None = None
    caller: Caller | None = None
    max_output_length: int | None = None
    status: Status | None = None


class ApplyPatchCall(Strict, tag_field="type", tag="apply_patch_call", kw_only=True):
    """A change to a file."""

    call_id: CallId
    operation: dict[str, Any]
    status: Literal["in_progress", "completed"]
    id: ItemId | None = None
    caller: Caller | None = None


class ApplyPatchCallOutput(Strict, tag_field="type", tag="apply_patch_call_output", kw_only=True):
    """How it went."""

    call_id: CallId
    status: Literal["completed", "failed"]
    output: str | None = None
    id: ItemId | None = None
    caller: Caller | None = None


class McpListTools(Strict, tag_field="type", tag="mcp_list_tools", kw_only=True):
    """The tools of a server."""

    id: ItemId
    server_label: str
    tools: list[dict[str, Any]]
    error: Any = None


class McpApprovalRequest(Strict, tag_field="type", tag="mcp_approval_request", kw_only=True):
    """A question whether a tool of a server may be called."""

    id: ItemId
    arguments: str
    name: str
    server_label: str


class McpApprovalResponse(Strict, tag_field="type", tag="mcp_approval_response", kw_only=True):
    """The answer to it."""

    approval_request_id: str
    approve: bool
    id: ItemId | None = None
    reason: str | None = None


class McpCall(Strict, tag_field="type", tag="mcp_call", kw_only=True):
    """A call of a tool of a server."""

    id: ItemId
    arguments: str
    name: str
    server_label: str
    approval_request_id: str | None = None
    error: Any = None
    output: str | None = None
    status: Literal["in_progress", "completed", "incomplete", "calling", "failed"] | None = None


class Program(Strict, tag_field="type", tag="program", kw_only=True):
    """A program of the model."""

    id: ItemId
    call_id: CallId
    code: str
    fingerprint: str


class ProgramOutput(Strict, tag_field="type", tag="program_output", kw_only=True):
    """What it came to."""

    id: ItemId
    call_id: CallId
    result: str
    status: Literal["completed", "incomplete"]


class Compaction(Strict, tag_field="type", tag="compaction", kw_only=True):
    """All that went before, sealed."""

    encrypted_content: str
    id: ItemId | None = None


class CompactionTrigger(Strict, tag_field="type", tag="compaction_trigger", kw_only=True):
    """Seal what went before."""

    id: ItemId | None = None


class ItemReference(Strict, tag_field="type", tag="item_reference", kw_only=True):
    """An item the vendor keeps."""

    id: ItemId


class EffortUpdate(Strict, kw_only=True):
    """How hard to think from here on."""

    effort: Effort | None = None


class TextUpdate(Strict, kw_only=True):
    """How to answer from here on."""

    format: dict[str, Any]


class ConfigurationUpdate(Strict, tag_field="type", tag="configuration_update", kw_only=True):
    """A change of settings within the conversation."""

    id: ItemId | None = None
    reasoning: EffortUpdate | None = None
    text: TextUpdate | None = None


Item = (
    InputMessage
    | OutputMessage
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
    | ToolSearchCall
    | ToolSearchOutput
    | AdditionalTools
    | Reasoning
    | WebSearchCall
    | FileSearchCall
    | CodeInterpreterCall
    | ImageGenerationCall
    | ComputerCall
    | ComputerCallOutput
    | LocalShellCall
    | LocalShellCallOutput
    | ShellCall
    | ShellCallOutput
    | ApplyPatchCall
    | ApplyPatchCallOutput
    | McpListTools
    | McpApprovalRequest
    | McpApprovalResponse
    | McpCall
    | Program
    | ProgramOutput
    | Compaction
    | CompactionTrigger
    | ItemReference
    | ConfigurationUpdate
)
