"""A request as the rules see it: turns merged as the vendor merges them, and the parsed model.

The vendor merges consecutive messages of one role into one turn, and its error messages number the turns so. A
conversation that begins with the assistant gets a user turn before it, which counts too (recorded:
anthropic/opencode-0006).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from msgspec import Struct

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.messages.body import SERVER_RESULTS
from dragoman.simulator.apis.messages.models import ClaudeModel, parse_model_name
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, VendorRequest, Violation, cache_per_request, find

Role = Literal["user", "assistant", "system"]
SERVER_RESULT_TYPES = frozenset({*SERVER_RESULTS, "mcp_tool_result"})
"""Results of server tools."""


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged; an empty list for a text or None."""
    return cast("list[Any]", value) if isinstance(value, list) else []


class Block(Struct, frozen=True):
    """A content block, its pointer in the body, and its path in the vendor's errors."""

    kind: str
    members: Json
    where: str
    path: str
    turn: int
    """The index of its turn."""

    def get(self, name: str) -> Any:
        """Return a field, or None if it is absent."""
        return self.members.get(name)

    def list(self, name: str) -> list[Any]:
        """Return a field that is a list; an empty list if it is absent or a text."""
        return as_list(self.members.get(name))


class MessagesTurn(Struct, frozen=True):
    """Consecutive messages of one role. `number` is the index in the vendor's errors."""

    role: Role
    number: int
    where: str
    blocks: tuple[Block, ...]

    def blocks_of(self, *kinds: str) -> list[Block]:
        """Return the blocks of these types."""
        return [block for block in self.blocks if block.kind in kinds]


class MessagesRequest(VendorRequest, frozen=True, kw_only=True):
    """A request whose fields are valid."""

    model: ClaudeModel
    version: str
    betas: tuple[str, ...] | None
    vertex: bool
    size: int
    """Size of the body in bytes."""
    signer: TokenSigner
    turns: tuple[MessagesTurn, ...]
    """The turns as the vendor merges them."""
    all_blocks: list[Block]

    @property
    def last(self) -> MessagesTurn | None:
        """The last turn."""
        return self.turns[-1] if self.turns else None

    @property
    def tool_names(self) -> set[str]:
        """The names of the tools; a toolset has none."""
        return {tool.get("name", "") for tool in self.list("tools")}

    @property
    def thinking(self) -> str | None:
        """The requested type of thinking."""
        thinking: Json = self.document.get("thinking") or {}
        return thinking.get("type")

    @property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers this request."""
        if self.thinking == "between_tools":
            return self.last is not None and bool(self.last.blocks_of("tool_result"))
        return self.model.thinks_by_default if self.thinking is None else self.thinking != "disabled"

    def has_beta(self, *starts: str) -> bool:
        """Return whether the request names a beta that begins with one of these prefixes."""
        return any(beta.startswith(starts) for beta in self.betas or ())

    def blocks(self, *kinds: str) -> list[Block]:
        """Return the blocks of these types in all turns."""
        return [block for block in self.all_blocks if block.kind in kinds]


def build_request(document: Json, size: int, context: CheckContext, signer: TokenSigner) -> MessagesRequest:
    """Return a valid document as the rules see it."""
    body_betas: list[str] | None = document.get("anthropic_beta")
    turns = tuple(_merge_turns(document["messages"]))
    return MessagesRequest(
        document,
        model=parse_model_name(document.get("model", context.model)),
        version=document.get("anthropic_version", context.version),
        betas=context.betas if body_betas is None else (*body_betas, *(context.betas or ())),
        vertex=context.vertex,
        size=size,
        signer=signer,
        turns=turns,
        all_blocks=[block for turn in turns for block in turn.blocks],
    )


def _merge_turns(messages: list[Json]) -> Iterator[MessagesTurn]:
    shift = 1 if messages and messages[0]["role"] == "assistant" else 0
    at = index = 0
    while at < len(messages):
        first, number = at, index + shift
        role = messages[at]["role"]
        found: list[tuple[str, Json]] = []
        while at < len(messages) and messages[at]["role"] == role and (role != "system" or at == first):
            found += _read_blocks(messages[at].get("content"), f"/messages/{at}/content")
            at += 1
        blocks = (
            Block(members["type"], members, where, f"messages.{number}.content.{place}", index)
            for place, (where, members) in enumerate(found)
        )
        yield MessagesTurn(role, number, f"/messages/{first}", tuple(blocks))
        index += 1


def _read_blocks(content: Any, where: str) -> list[tuple[str, Json]]:
    if content and isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    return [(f"{where}/{number}", block) for number, block in enumerate(as_list(content))]


@cache_per_request
def find_output_schemas(request: MessagesRequest) -> Iterator[tuple[str, Json]]:
    """Return the pointers and schemas of a structured answer: at most one is valid."""
    for path in ("/output_config/format/schema", "/output_format/schema"):
        yield from find(request.document, path)


@cache_per_request
def find_media(request: MessagesRequest) -> Iterator[tuple[str, str, Json]]:
    """Return every image and document: its pointer, the vendor's path, and the block."""
    for block in request.blocks("image", "document", "tool_result"):
        if block.kind != "tool_result":
            yield block.where, f"{block.path}.{block.kind}", block.members
            continue
        for number, part in enumerate(block.list("content")):
            if part["type"] in {"image", "document"}:
                path = f"{block.path}.tool_result.content.{number}.{part['type']}"
                yield f"{block.where}/content/{number}", path, part


@cache_per_request
def find_cache_breakpoints(request: MessagesRequest) -> Iterator[tuple[str, str]]:
    """Return the pointers and lifetimes of the cache breakpoints, in the order in which the vendor hashes."""
    for member in ("tools", "system"):
        for number, item in enumerate(as_list(request.get(member))):
            yield from _iterate_breakpoints(item, f"/{member}/{number}")
    for block in request.all_blocks:
        yield from _iterate_breakpoints(block.members, block.where)


def _iterate_breakpoints(item: Json, where: str) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(as_list(item.get("content"))):
        yield from _iterate_breakpoints(part, f"{where}/content/{number}")
    mark = item.get("cache_control")
    if mark is not None:
        yield where, read_ttl(mark)


def read_ttl(cache_control: Json) -> str:
    """Return the lifetime of a cache breakpoint; five minutes by default."""
    return cache_control.get("ttl") or "5m"


def read_tool_type(tool: Json) -> str:
    """Return a tool's type as the vendor's paths name it."""
    return tool.get("type") or "custom"


RequestCheck = Callable[[MessagesRequest, CheckContext], Iterable[Violation]]


def define_rule(name: str, source: str, root: str = "") -> Callable[[RequestCheck], Rule[MessagesRequest]]:
    """Turn a check into a rule described by the check's docstring; it is skipped if the field `root` is absent."""
    return lambda check: Rule(f"messages.{name}", check.__doc__ or "", source, check, root=root)
