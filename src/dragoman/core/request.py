"""A request in the neutral language."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from dragoman.core.parts import AnyPart, CallForm
from dragoman.core.value import Extras, Value

Role = Literal["system", "user", "assistant"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Message(Value, frozen=True, kw_only=True, eq=False):
    """One message of the conversation. Tool results live in user turns."""

    role: Role
    parts: tuple[AnyPart, ...]
    name: str = ""


class Tool(Value, frozen=True, kw_only=True, eq=False):
    """A tool the caller runs. `parameters` is the JSON Schema verbatim; None means no arguments."""

    name: str
    description: str = ""
    parameters: bytes | None = None
    openapi: bool = False
    """`parameters` is Google's OpenAPI subset (UPPERCASE types, nullable), not JSON Schema."""
    strict: bool | None = None
    form: CallForm = "json"
    grammar: bytes | None = None
    """Free-form tools: the `{"type":"grammar","syntax":…,"definition":…}` object, flat."""
    namespace: str = ""
    namespace_description: str = ""
    """What the whole namespace is for; said by its first tool."""
    cache: str | None = None


class NativeTool(Value, frozen=True, kw_only=True, eq=False):
    """A tool the vendor runs (googleSearch, web_search_…, code execution), kept whole."""

    dialect: str
    raw: bytes


AnyTool = Tool | NativeTool


class ToolChoice(Value, frozen=True, kw_only=True, eq=False):
    """How free the model is. `names` restricts it; with "required" and one name that tool must be called."""

    mode: Literal["auto", "none", "required"] | None = None
    names: tuple[str, ...] = ()
    listed: bool = False
    """The list is of all tools that may be used: a vendor's own, which have no names, stand in extras."""
    parallel: bool | None = None
    validated: bool = False
    """Calls are constrained to the schema though none is required (Gemini's VALIDATED)."""


class Sampling(Struct, frozen=True, kw_only=True):
    """Parameters of the sampler; None means that the caller left them out."""

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None


class Thinking(Struct, frozen=True, kw_only=True):
    """How much to think, and whether to show it."""

    mode: Literal["adaptive", "enabled", "disabled"] | None = None
    effort: Effort | None = None
    budget: int | None = None
    visible: bool | None = None


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The shape the answer must have."""

    kind: Literal["text", "json", "json_schema"]
    schema: bytes | None = None
    openapi: bool = False
    name: str = ""
    description: str = ""
    strict: bool | None = None


class Reference(Struct, frozen=True):
    """Where a request refers to what only the vendor's server keeps: without that it does not say what it means."""

    where: str
    code: str | None = None
    """The machine word at which clients of the dialect send everything instead."""


class Request(Struct, frozen=True, kw_only=True):
    """Everything a caller can ask for. `extras` is what nobody read, by JSON pointer."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    sampling: Sampling = Sampling()
    thinking: Thinking | None = None
    output: OutputFormat | None = None
    verbosity: str | None = None
    stream: bool = False
    candidates: int | None = None
    continues: str | None = None
    """Id of a stored earlier response this one goes on from."""
    references: tuple[Reference, ...] = ()
    """What else it goes on from or stands on; the members themselves are in extras."""
    user: str | None = None
    metadata: dict[str, str] | None = None
    extras: Extras | None = None
    spelling: frozenset[str] = frozenset()
    """Words the source dialect used where it has several (`max_tokens` for `max_completion_tokens`, …)."""
    written: bytes = b""
    """Turns that the target's dialect wrote before, as items of its history; instructions stand before them."""
    written_tools: bytes = b""
    """The tools as the target's dialect wrote them before; empty if they must be written."""


def count_leading_systems(messages: Sequence[Message]) -> int:
    """Count the system messages a history begins with."""
    for at, message in enumerate(messages):
        if message.role != "system":
            return at
    return len(messages)
