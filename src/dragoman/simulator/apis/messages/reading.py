"""A request as the rules look at it: typed, its turns merged as the vendor merges them, its model known.

Consecutive turns of one speaker are one turn to the vendor, and its error messages count them so. A conversation that
begins with the model gets a turn of the user before it, which counts too (recorded: anthropic/opencode-0006).
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.apis.messages.blocks import CacheControl, Text, ToolResult
from dragoman.simulator.apis.messages.models import Model, model_of
from dragoman.simulator.apis.messages.server_blocks import (
    AssistantMessage,
    Block,
    Message,
    SystemMessage,
    ToolAddition,
    ToolRemoval,
    UserMessage,
)
from dragoman.simulator.apis.messages.shape import (
    Asking,
    CountRequest,
    Generating,
    Request,
    ThinkingBetweenTools,
    ThinkingDisabled,
    VertexCountRequest,
    VertexRequest,
)
from dragoman.simulator.apis.messages.tools import Custom, KnownTool, Tool
from dragoman.simulator.apis.messages.words import placed, say
from dragoman.simulator.rule import Situation, Violation
from dragoman.simulator.shape import Shaped

Role = Literal["user", "assistant", "system"]
AnyBlock = Block | ToolAddition | ToolRemoval
_REQUEST = Shaped[Request](Request, "messages", say)
_VERTEX = Shaped[VertexRequest](VertexRequest, "messages", say)
_COUNT = Shaped[CountRequest](CountRequest, "messages", say)
_VERTEX_COUNT = Shaped[VertexCountRequest](VertexCountRequest, "messages", say)
_CUSTOM = Shaped[Custom](Custom, "messages", say)
_KNOWN = Shaped[KnownTool](KnownTool, "messages", say)


class Placed(Struct, frozen=True):
    """A block, where it stands in the body, and where the vendor says it stands."""

    block: AnyBlock
    where: str
    path: str


class Turn(Struct, frozen=True):
    """What one speaker says before the next one speaks. `number` is the vendor's count."""

    role: Role
    number: int
    where: str
    blocks: tuple[Placed, ...]


class Reading(Struct, frozen=True, kw_only=True):
    """Everything a rule looks at."""

    request: Asking
    tools: tuple[Tool, ...]
    turns: tuple[Turn, ...]
    model: Model
    version: str
    betas: tuple[str, ...] | None
    vertex: bool
    size: int
    """Bytes of the body."""

    @property
    def generating(self) -> Generating | None:
        """The request, when it wants an answer."""
        return self.request if isinstance(self.request, Generating) else None

    @property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers this."""
        thinking = self.request.thinking
        if thinking is None:
            return self.model.thinks_by_default
        if isinstance(thinking, ThinkingBetweenTools):
            last = self.turns[-1].blocks if self.turns else ()
            return any(isinstance(placed.block, ToolResult) for placed in last)
        return not isinstance(thinking, ThinkingDisabled)

    @property
    def shows_thinking(self) -> bool:
        """Whether the words of its thoughts are shown."""
        display = getattr(self.request.thinking, "display", None)
        return self.model.shows_thinking if display is None else display != "omitted"

    def blocks(self) -> Iterator[tuple[Turn, Placed]]:
        """Every block of every turn."""
        for turn in self.turns:
            for block in turn.blocks:
                yield turn, block

    def cache_marks(self) -> Iterator[tuple[str, CacheControl]]:
        """Every breakpoint of the cache with its pointer, in the order in which the vendor hashes."""
        for number, tool in enumerate(self.tools):
            if tool.cache_control is not None:
                yield f"/tools/{number}", tool.cache_control
        system = self.request.system
        for number, block in enumerate(system if isinstance(system, list) else ()):
            if block.cache_control is not None:
                yield f"/system/{number}", block.cache_control
        for _, block in self.blocks():
            yield from _marks(block.block, block.where)


def _marks(block: Any, where: str) -> Iterator[tuple[str, CacheControl]]:
    inner: Any = getattr(block, "content", None)
    for number, part in enumerate(inner if isinstance(inner, list) else ()):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        yield from _marks(part, f"{where}/content/{number}")
    mark = getattr(block, "cache_control", None)
    if isinstance(mark, CacheControl):
        yield where, mark


def read_body(body: bytes, situation: Situation) -> Reading | Violation:
    """Hold a body to its shape; a violation is worded and placed as the vendor does it."""
    request = _shape(situation).read(body)
    if isinstance(request, Violation):
        return placed(request, _loose(body))
    tools: list[Tool] = []
    for number, raw in enumerate(request.tools or ()):
        tool = _read_tool(raw)
        if isinstance(tool, Violation):
            return placed(tool, _loose(body), f"/tools/{number}")
        tools.append(tool)
    vertex = isinstance(request, VertexRequest | VertexCountRequest)
    name = situation.model if isinstance(request, VertexRequest) else request.model
    told = request.anthropic_beta if isinstance(request, VertexRequest | VertexCountRequest) else None
    return Reading(
        request=request,
        tools=tuple(tools),
        turns=tuple(_turns(request.messages)),
        model=model_of(name),
        version=request.anthropic_version
        if isinstance(request, VertexRequest | VertexCountRequest)
        else situation.version,
        betas=situation.betas if told is None else (*told, *(situation.betas or ())),
        vertex=vertex,
        size=len(body),
    )


def _shape(
    situation: Situation,
) -> Shaped[Request] | Shaped[VertexRequest] | Shaped[CountRequest] | Shaped[VertexCountRequest]:
    if situation.counting:
        return _VERTEX_COUNT if situation.vertex else _COUNT
    return _VERTEX if situation.vertex else _REQUEST


def _read_tool(raw: Raw) -> Tool | Violation:
    loose = _loose(bytes(raw))
    members: dict[str, Any] = loose if isinstance(loose, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    known = members.get("type") is not None and members["type"] != "custom"
    return _KNOWN.read(bytes(raw)) if known else _CUSTOM.read(bytes(raw))


def _loose(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _turns(messages: list[Message]) -> Iterator[Turn]:
    number = 1 if messages and isinstance(messages[0], AssistantMessage) else 0
    at = 0
    while at < len(messages):
        first = at
        role = _role(messages[at])
        found: list[tuple[AnyBlock, str]] = []
        while at < len(messages) and _role(messages[at]) == role:
            found += _blocks(messages[at], f"/messages/{at}/content")
            at += 1
            if role == "system":
                break
        blocks = (
            Placed(block, where, f"messages.{number}.content.{place}") for place, (block, where) in enumerate(found)
        )
        yield Turn(role, number, f"/messages/{first}", tuple(blocks))
        number += 1


def _role(message: Message) -> Role:
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case SystemMessage():
            return "system"


def _blocks(message: Message, where: str) -> list[tuple[AnyBlock, str]]:
    content = message.content
    if content is None:
        return []
    if isinstance(content, str):
        return [(Text(content), where)] if content else []
    return [(block, f"{where}/{number}") for number, block in enumerate(content)]
