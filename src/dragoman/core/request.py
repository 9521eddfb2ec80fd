"""A request in the core: messages, tools and parameters."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from dragoman.core.parts import AnyPart, CallForm
from dragoman.core.value import Extras, Value

Role = Literal["system", "user", "assistant"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Message(Value, frozen=True, kw_only=True, eq=False):
    """One message of the conversation. Tool results are parts of user messages."""

    role: Role
    parts: tuple[AnyPart, ...]
    name: str = ""


class Tool(Value, frozen=True, kw_only=True, eq=False):
    """A tool that the client runs. `parameters` is the JSON Schema verbatim; None means no arguments."""

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
    """The description of the whole namespace; set on its first tool only."""
    cache: str | None = None
    native: str = ""
    """The type of the vendor's own tool that this function replaces, if its dialect has an item for calls of it."""


class NativeTool(Value, frozen=True, kw_only=True, eq=False):
    """A tool of the vendor's own (googleSearch, web_search_…, bash_…), kept as raw JSON."""

    dialect: str
    raw: bytes
    calls: tuple[str, ...] = ()
    """The names in its calls, each after its namespace and `__`, if the client runs it and the dialect knows it."""


AnyTool = Tool | NativeTool


class ToolChoice(Value, frozen=True, kw_only=True, eq=False):
    """Which tools the model may or must call. With "required" and one name in `names`, that tool must be called."""

    mode: Literal["auto", "none", "required"] | None = None
    names: tuple[str, ...] = ()
    listed: bool = False
    """`names` lists all tools that may be used; the vendor's own tools, which have no names, are listed in extras."""
    parallel: bool | None = None
    validated: bool = False
    """Calls are constrained to the schema though none is required (Gemini's VALIDATED)."""


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters; None means that the client did not set them."""

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None


class Thinking(Struct, frozen=True, kw_only=True):
    """Thinking parameters: how much to think, and whether to return it."""

    mode: Literal["adaptive", "enabled", "disabled"] | None = None
    effort: Effort | None = None
    budget: int | None = None
    visible: bool | None = None
    extras: Extras | None = None
    """The members of the request that these values come from, where a dialect has several forms."""


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The format that the answer must have."""

    kind: Literal["text", "json", "json_schema"]
    schema: bytes | None = None
    openapi: bool = False
    name: str = ""
    description: str = ""
    strict: bool | None = None


class Reference(Struct, frozen=True):
    """A pointer at which a request refers to data that only the vendor's server stores; it is incomplete without it."""

    where: str
    code: str | None = None
    """The error code after which clients of the dialect send the whole history instead."""


class Request(Struct, frozen=True, kw_only=True):
    """A whole request. `extras` has the fields that the parser does not know, by JSON pointer."""

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
    """Id of a stored response that this request continues."""
    references: tuple[Reference, ...] = ()
    """Other stored data that the request depends on; the fields themselves are in extras."""
    user: str | None = None
    metadata: dict[str, str] | None = None
    extras: Extras | None = None
    spelling: frozenset[str] = frozenset()
    """Field names that the source used where its dialect has several (`max_tokens` for `max_completion_tokens`, …)."""
    written: bytes = b""
    """Turns already rendered in the target's dialect, as items of its history; system messages come before them."""
    written_tools: bytes = b""
    """The tools already rendered in the target's dialect; empty if they must be rendered."""
    marks_ends: bool = False
    """The renderer adds cache marks at the ends of the tools, the instructions and the last turns: it has none."""


def count_leading_systems(messages: Sequence[Message]) -> int:
    """Return how many system messages the history starts with."""
    for at, message in enumerate(messages):
        if message.role != "system":
            return at
    return len(messages)
