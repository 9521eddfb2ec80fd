"""Rules about beta features: each is unknown to whoever does not ask for it by its header."""

from collections.abc import Iterator

from msgspec import Struct

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.server_blocks import InlineTool, SystemMessage, ToolAddition, ToolRemoval
from dragoman.simulator.apis.messages.tools import Advisor, McpToolset, Screen, Tool, kind_of
from dragoman.simulator.rule import Situation, Violation

_EXTRA = "Extra inputs are not permitted"
_MEMBERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mcp_servers", ("mcp-client-",)),
    ("context_management", ("context-management-", "compact-")),
    ("compaction", ("compact-",)),
    ("fallbacks", ("server-side-fallback-",)),
    ("fallback_credit_token", ("fallback-credit-",)),
    ("output_format", ("structured-outputs-",)),
)
_CHANGES = ("mid-conversation-tool-changes-", "inline-tools-")


class _Feature(Struct, frozen=True):
    """A feature that a request uses: where, the beginnings of the betas that have it, and what is said without one."""

    where: str
    betas: tuple[str, ...]
    words: str


def _extra(where: str, *betas: str) -> _Feature:
    return _Feature(where, betas, f"{where.strip('/').replace('/', '.')}: {_EXTRA}")


def _unknown_tag(tag: object) -> str:
    return f"Input tag '{tag}' found using 'type' does not match any of the expected tags"


def _settings(reading: Reading) -> Iterator[_Feature]:
    request = reading.request
    for member, betas in _MEMBERS:
        if getattr(request, member, None) is not None:
            yield _extra(f"/{member}", *betas)
    if request.output_config is not None and request.output_config.task_budget is not None:
        yield _extra("/output_config/task_budget", "task-budgets-")
    if getattr(request.thinking, "block_binding", None) is not None:
        yield _extra("/thinking/block_binding", "thinking-binding-controls-")
    if getattr(request.thinking, "display", None) == "updates":
        words = "thinking.display: Input should be 'summarized' or 'omitted'"
        yield _Feature("/thinking/display", ("thinking-display-updates-",), words)


def _turns(reading: Reading) -> Iterator[_Feature]:
    for number, message in enumerate(reading.request.messages):
        if not isinstance(message, SystemMessage):
            continue
        where = f"/messages/{number}"
        if message.clear_at is not None:
            yield _extra(f"{where}/clear_at", "mid-conversation-system-clear-at-")
        if message.output_config is not None:
            yield _extra(f"{where}/output_config", "mid-conversation-output-config-")
        for place, block in enumerate(message.content if isinstance(message.content, list) else ()):
            if isinstance(block, ToolAddition | ToolRemoval):
                words = f"messages.{number}.content.{place}: {_unknown_tag(type(block).__struct_config__.tag)}"
                betas = ("inline-tools-",) if isinstance(block.tool, InlineTool) else _CHANGES
                yield _Feature(f"{where}/content/{place}", betas, words)


def _beta_of(tool: Tool) -> str:
    match tool:
        case Advisor():
            return "advisor-tool-"
        case McpToolset():
            return "mcp-client-"
        case Screen():
            return "computer-use-"
        case _:
            return ""


def _tools(reading: Reading) -> Iterator[_Feature]:
    for number, tool in enumerate(reading.tools):
        beta = _beta_of(tool)
        if beta:
            yield _Feature(f"/tools/{number}/type", (beta,), f"tools.{number}: {_unknown_tag(kind_of(tool))}")


@rule(
    "beta-header",
    "wire/anthropic_messages.md sections 2, 3, 4 and 6.3; the vendor's list of betas; no source for the words",
)
def betas(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A beta feature needs its beta header."""
    if reading.betas is None:
        return
    for features in (_settings, _turns, _tools):
        for feature in features(reading):
            if not any(beta.startswith(feature.betas) for beta in reading.betas):
                yield Violation(feature.words, feature.where)


RULES = (betas,)
