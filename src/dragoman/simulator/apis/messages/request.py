"""A request as the rules look at it: its turns merged as the vendor merges them, its model known.

Consecutive turns of one speaker are one turn to the vendor, and its error messages count them so. A conversation that
begins with the model gets a turn of the user before it, which counts too (recorded: anthropic/opencode-0006).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from msgspec import Struct

from dragoman.simulator.apis.messages.body import SERVER_RESULTS
from dragoman.simulator.apis.messages.models import Model, model_of
from dragoman.simulator.rule import Json, Request, Rule, Situation, Violation, computed_once, find
from dragoman.simulator.talk import Signer

Role = Literal["user", "assistant", "system"]
FROM_SERVER = frozenset({*SERVER_RESULTS, "mcp_tool_result"})
"""Results of tools that the vendor runs."""


def items_of(value: Any) -> list[Any]:
    """Return a list as it is; an empty list for a text or nothing."""
    return cast("list[Any]", value) if isinstance(value, list) else []


class Block(Struct, frozen=True):
    """A content block, where it stands in the body, and where the vendor says it stands."""

    kind: str
    members: Json
    where: str
    path: str
    turn: int
    """The index of the turn in which it stands."""

    def get(self, name: str) -> Any:
        """Return a member; None if it is absent."""
        return self.members.get(name)

    def list(self, name: str) -> list[Any]:
        """Return a member that is a list; an empty list if it is absent, or a text."""
        return items_of(self.members.get(name))


class Turn(Struct, frozen=True):
    """What one speaker says before the next one speaks. `number` is the vendor's count."""

    role: Role
    number: int
    where: str
    blocks: tuple[Block, ...]

    def of(self, *kinds: str) -> list[Block]:
        """Return the blocks of some kinds."""
        return [block for block in self.blocks if block.kind in kinds]


class MessagesRequest(Request, frozen=True, kw_only=True):
    """A request of the right shape."""

    model: Model
    version: str
    betas: tuple[str, ...] | None
    vertex: bool
    size: int
    """Bytes of the body."""
    signer: Signer
    turns: tuple[Turn, ...]
    """The turns as the vendor merges them."""
    all_blocks: list[Block]

    @property
    def last(self) -> Turn | None:
        """The last turn."""
        return self.turns[-1] if self.turns else None

    @property
    def tool_names(self) -> set[str]:
        """The names of the tools; a toolset has none."""
        return {tool.get("name", "") for tool in self.list("tools")}

    @property
    def thinking(self) -> str | None:
        """The type of thinking that is asked for."""
        thinking: Json = self.document.get("thinking") or {}
        return thinking.get("type")

    @property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers this."""
        if self.thinking == "between_tools":
            return self.last is not None and bool(self.last.of("tool_result"))
        return self.model.thinks_by_default if self.thinking is None else self.thinking != "disabled"

    def has_beta(self, *starts: str) -> bool:
        """Tell whether a beta is asked for that begins with one of these words."""
        return any(beta.startswith(starts) for beta in self.betas or ())

    def blocks(self, *kinds: str) -> list[Block]:
        """Return the blocks of some kinds, of all turns."""
        return [block for block in self.all_blocks if block.kind in kinds]


def request_of(document: Json, size: int, situation: Situation, signer: Signer) -> MessagesRequest:
    """Return a document of the right shape as the rules look at it."""
    told: list[str] | None = document.get("anthropic_beta")
    turns = tuple(_turns(document["messages"]))
    return MessagesRequest(
        document,
        model=model_of(document.get("model", situation.model)),
        version=document.get("anthropic_version", situation.version),
        betas=situation.betas if told is None else (*told, *(situation.betas or ())),
        vertex=situation.vertex,
        size=size,
        signer=signer,
        turns=turns,
        all_blocks=[block for turn in turns for block in turn.blocks],
    )


def _turns(messages: list[Json]) -> Iterator[Turn]:
    shift = 1 if messages and messages[0]["role"] == "assistant" else 0
    at = index = 0
    while at < len(messages):
        first, number = at, index + shift
        role = messages[at]["role"]
        found: list[tuple[str, Json]] = []
        while at < len(messages) and messages[at]["role"] == role and (role != "system" or at == first):
            found += _blocks(messages[at].get("content"), f"/messages/{at}/content")
            at += 1
        blocks = (
            Block(members["type"], members, where, f"messages.{number}.content.{place}", index)
            for place, (where, members) in enumerate(found)
        )
        yield Turn(role, number, f"/messages/{first}", tuple(blocks))
        index += 1


def _blocks(content: Any, where: str) -> list[tuple[str, Json]]:
    if content and isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    return [(f"{where}/{number}", block) for number, block in enumerate(items_of(content))]


@computed_once
def formats(request: MessagesRequest) -> Iterator[tuple[str, Json]]:
    """Return the pointers and schemas of a structured answer: at most one is right."""
    for path in ("/output_config/format/schema", "/output_format/schema"):
        yield from find(request.document, path)


@computed_once
def media(request: MessagesRequest) -> Iterator[tuple[str, str, Json]]:
    """Return every image and document: its pointer, the vendor's path, itself."""
    for block in request.blocks("image", "document", "tool_result"):
        if block.kind != "tool_result":
            yield block.where, f"{block.path}.{block.kind}", block.members
            continue
        for number, part in enumerate(block.list("content")):
            if part["type"] in {"image", "document"}:
                path = f"{block.path}.tool_result.content.{number}.{part['type']}"
                yield f"{block.where}/content/{number}", path, part


@computed_once
def breakpoints(request: MessagesRequest) -> Iterator[tuple[str, str]]:
    """Return the pointers and lifetimes of the cache's breakpoints, in the order in which the vendor hashes."""
    for member in ("tools", "system"):
        for number, item in enumerate(items_of(request.get(member))):
            yield from _breakpoints_of(item, f"/{member}/{number}")
    for block in request.all_blocks:
        yield from _breakpoints_of(block.members, block.where)


def _breakpoints_of(item: Json, where: str) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(items_of(item.get("content"))):
        yield from _breakpoints_of(part, f"{where}/content/{number}")
    mark = item.get("cache_control")
    if mark is not None:
        yield where, lifetime(mark)


def lifetime(mark: Json) -> str:
    """Return how long a breakpoint of the cache lives; five minutes unless said."""
    return mark.get("ttl") or "5m"


def kind_of(tool: Json) -> str:
    """Return a tool's type as the vendor's paths name it."""
    return tool.get("type") or "custom"


Check = Callable[[MessagesRequest, Situation], Iterable[Violation]]


def rule(name: str, source: str, root: str = "") -> Callable[[Check], Rule[MessagesRequest]]:
    """Make a rule of the check that follows, whose docstring is what it says; without `root` it finds nothing."""
    return lambda check: Rule(f"messages.{name}", check.__doc__ or "", source, check, root=root)
