"""The request bodies of the API, member for member, in their four forms: generate or count, directly or on Vertex."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw

from dragoman.simulator.apis.messages.blocks import CacheControl, Text
from dragoman.simulator.apis.messages.server_blocks import Message
from dragoman.simulator.shape import Strict

Effort = Literal["low", "medium", "high", "xhigh", "max"]
Display = Literal["summarized", "omitted", "updates"]
VertexVersion = Literal["vertex-2023-10-16", "2026-10-21"]
Share = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[int, Meta(ge=0)]


class ChoiceAuto(Strict, tag_field="type", tag="auto"):
    """The model decides."""

    disable_parallel_tool_use: bool | None = None


class ChoiceAny(Strict, tag_field="type", tag="any"):
    """The model must call something."""

    disable_parallel_tool_use: bool | None = None


class ChoiceTool(Strict, tag_field="type", tag="tool"):
    """The model must call this tool."""

    name: str
    disable_parallel_tool_use: bool | None = None


class ChoiceNone(Strict, tag_field="type", tag="none"):
    """The model must not call."""


ToolChoice = ChoiceAuto | ChoiceAny | ChoiceTool | ChoiceNone


class BlockBinding(Strict):
    """What happens to a thought that belongs to another conversation."""

    prefix_mismatch_behavior: Literal["error", "drop_block"] | None = None


class ThinkingEnabled(Strict, tag_field="type", tag="enabled"):
    """Think with a budget."""

    budget_tokens: Annotated[int, Meta(ge=1024)]
    display: Display | None = None
    block_binding: BlockBinding | None = None


class ThinkingAdaptive(Strict, tag_field="type", tag="adaptive"):
    """Think as much as needed."""

    display: Display | None = None
    block_binding: BlockBinding | None = None


class ThinkingDisabled(Strict, tag_field="type", tag="disabled"):
    """Do not think."""


class ThinkingBetweenTools(Strict, tag_field="type", tag="between_tools"):
    """Think between tools only."""


ThinkingConfig = ThinkingEnabled | ThinkingAdaptive | ThinkingDisabled | ThinkingBetweenTools


class OutputFormat(Strict):
    """The answer is JSON of a schema."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class TaskBudget(Strict):
    """How many tokens a whole task may take."""

    type: Literal["tokens"]
    total: int
    remaining: int | None = None


class OutputConfig(Strict):
    """How the answer shall be."""

    effort: Effort | None = None
    format: OutputFormat | None = None
    task_budget: TaskBudget | None = None


class Metadata(Strict):
    """On whose behalf."""

    user_id: str | None = None


class Skill(Strict):
    """A skill of the container."""

    skill_id: str
    type: Literal["anthropic", "custom"]
    version: str | None = None


class Container(Strict):
    """Where programs run."""

    id: str | None = None
    skills: list[Skill] | None = None


class McpServer(Strict):
    """A remote MCP server."""

    type: Literal["url"]
    url: str
    name: str
    authorization_token: str | None = None
    tool_configuration: dict[str, Any] | None = None


class InputTokens(Strict, tag_field="type", tag="input_tokens"):
    """So many tokens."""

    value: NotNegative


class ToolUses(Strict, tag_field="type", tag="tool_uses"):
    """So many calls."""

    value: NotNegative


class ClearToolUses(Strict, tag_field="type", tag="clear_tool_uses_20250919"):
    """Forget old calls."""

    clear_at_least: InputTokens | None = None
    clear_tool_inputs: bool | list[str] | None = None
    exclude_tools: list[str] | None = None
    keep: ToolUses | None = None
    trigger: InputTokens | ToolUses | None = None


class ClearThinking(Strict, tag_field="type", tag="clear_thinking_20251015"):
    """Forget old thoughts."""

    keep: Literal["all"] | dict[str, Any] | None = None


class Compact(Strict, tag_field="type", tag="compact_20260112"):
    """Sum up what came before."""

    instructions: str | None = None
    pause_after_compaction: bool | None = None
    trigger: InputTokens | None = None


class ContextManagement(Strict):
    """What the vendor may forget by itself."""

    edits: list[ClearToolUses | ClearThinking | Compact] | None = None


class CompactionConfig(Strict):
    """Sum up what came before."""

    type: Literal["summarize"]
    instructions: str | None = None


class ThreadCreate(Strict, tag_field="type", tag="create"):
    """Keep this conversation."""


class ThreadContinue(Strict, tag_field="type", tag="continue"):
    """Go on with a conversation that was kept."""

    previous_message_id: str


class Asking(Strict, kw_only=True):
    """What generating and counting have in common. `tools` are held to their own shapes one by one."""

    messages: list[Message]
    system: str | list[Text] | None = None
    tools: list[Raw] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    cache_control: CacheControl | None = None
    context_management: ContextManagement | None = None
    mcp_servers: list[McpServer] | None = None
    speed: Literal["standard", "fast"] | None = None


class Generating(Asking, kw_only=True):
    """A request for an answer."""

    max_tokens: NotNegative
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    metadata: Metadata | None = None
    temperature: Share | None = None
    top_p: Share | None = None
    top_k: NotNegative | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    container: str | Container | None = None
    inference_geo: str | None = None
    diagnostics: dict[str, Any] | None = None
    compaction: CompactionConfig | None = None
    thread: ThreadCreate | ThreadContinue | None = None
    fallbacks: list[dict[str, Any]] | Literal["default"] | None = None
    fallback_credit_token: str | dict[str, Any] | None = None


class Request(Generating, kw_only=True):
    """`POST /v1/messages`."""

    model: str


class VertexRequest(Generating, kw_only=True):
    """`:rawPredict` and `:streamRawPredict`: the model stands in the path, the version in the body."""

    anthropic_version: VertexVersion
    anthropic_beta: list[str] | None = None


class CountRequest(Asking, kw_only=True):
    """`POST /v1/messages/count_tokens`."""

    model: str


class VertexCountRequest(Asking, kw_only=True):
    """`models/count-tokens:rawPredict`: here the model stands in the body."""

    model: str
    anthropic_version: VertexVersion
    anthropic_beta: list[str] | None = None
