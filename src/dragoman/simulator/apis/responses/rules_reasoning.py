"""Rules about thoughts: what they stand before, what cannot come without them, and that they come back as they went."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.responses.ids import issued_by_us, thought_before
from dragoman.simulator.apis.responses.rules_items import id_of, kind_of
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import (
    ApplyPatchCall,
    CodeInterpreterCall,
    Compaction,
    ComputerCall,
    FileSearchCall,
    ImageGenerationCall,
    Item,
    ItemReference,
    LocalShellCall,
    McpApprovalRequest,
    McpCall,
    McpListTools,
    Program,
    ShellCall,
    WebSearchCall,
)
from dragoman.simulator.apis.responses.shape_items import (
    CustomToolCall,
    FunctionCall,
    OutputMessage,
    Reasoning,
    ToolSearchCall,
)
from dragoman.simulator.rule import Rule, Situation, Violation

_FOREIGN = re.compile(r"gAAAA[\w=-]*|[a-z_]+_REDACTED_\d+")
"""The vendor's own tokens, and what stands for them where a recording was cleaned."""
_FROM_MODEL = (
    OutputMessage,
    FunctionCall,
    CustomToolCall,
    ToolSearchCall,
    Reasoning,
    WebSearchCall,
    FileSearchCall,
    CodeInterpreterCall,
    ImageGenerationCall,
    ComputerCall,
    LocalShellCall,
    ShellCall,
    ApplyPatchCall,
    McpListTools,
    McpApprovalRequest,
    McpCall,
    Program,
    ItemReference,
    Compaction,
)


def _unfollowed(request: Request, _: Situation) -> Iterator[Violation]:
    items = request.items
    for number, item in enumerate(items):
        if not isinstance(item, Reasoning) or item.id is None:
            continue
        following = items[number + 1] if number + 1 < len(items) else None
        if not _follows(following, stored=request.body.store is not False):
            yield Violation(
                f"Item '{item.id}' of type 'reasoning' was provided without its required following item.", "/input"
            )


def _follows(item: Item | None, *, stored: bool) -> bool:
    """A stored thought knows the item that came after it, by its id."""
    return isinstance(item, _FROM_MODEL) and (not stored or id_of(item) is not None)


def _thoughtless(request: Request, _: Situation) -> Iterator[Violation]:
    if request.continues:
        return
    items = request.items
    for number, item in enumerate(items):
        issued = issued_by_us(id_of(item) or "")
        if issued is None or not issued.after_thought or isinstance(item, ItemReference):
            continue
        wanted = thought_before(issued)
        if not any(id_of(earlier) == wanted for earlier in items[:number]):
            kind = kind_of(item).partition(":")[0]
            message = (
                f"Item '{id_of(item)}' of type '{kind}' was provided without its required 'reasoning' item: '{wanted}'."
            )
            yield Violation(message, "/input")


def _forgotten(request: Request, _: Situation) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        match item:
            case ItemReference():
                given = item.id
            case Reasoning(id=str() as given, encrypted_content=None):
                pass
            case _:
                continue
        issued = issued_by_us(given)
        if issued is not None and not issued.stored:
            yield Violation(
                f"Item with id '{given}' not found. Items are not persisted when `store` is set to false. Try again "
                "with `store` set to true, or remove this item from your input.",
                f"/input/{number}",
                404,
            )


def _unsealed(request: Request, situation: Situation) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in request.items:
        if not isinstance(item, Reasoning | Compaction) or item.encrypted_content is None:
            continue
        token = item.encrypted_content
        reason = "Encrypted content was provided more than once." if token in seen else _broken(token, item.id, request)
        if reason == "foreign":
            well_formed = situation.recorded and _FOREIGN.fullmatch(token) is not None
            reason = "" if well_formed else "Encrypted content could not be decrypted or parsed."
        seen.add(token)
        if reason:
            subject = f"for item {item.id}" if item.id else f"{token[:4]}...{token[-4:]}"
            yield Violation(f"The encrypted content {subject} could not be verified. Reason: {reason}", "")


def _broken(token: str, item_id: str | None, request: Request) -> str:
    """Say what became of a token; it is bound to the id of its item, which a client may leave out but not change."""
    match request.signer.judge(token, item_id or ""):
        case "foreign":
            return "foreign"
        case "altered":
            return "Encrypted content could not be decrypted or parsed."
        case "moved" if item_id is not None:
            return "Encrypted content item_id did not match the target item id."
        case _:
            return ""


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.reasoning-followed",
        "A thought that bears its id stands right before what it led to; if stored, that bears its id too.",
        "recorded: openai_responses/pydantic-ai-0187",
        _unfollowed,
    ),
    Rule(
        "responses.reasoning-kept",
        "An item that followed a thought and bears its id comes back with that thought.",
        "wire/openai_responses.md section 2 (pairing)",
        _thoughtless,
    ),
    Rule(
        "responses.item-stored",
        "What was not stored cannot be referred to, and a thought that was not stored needs its encrypted content.",
        "public reports of the vendor's words; wire/openai_responses.md section 5",
        _forgotten,
    ),
    Rule(
        "responses.encrypted-content",
        "Encrypted content comes back as it went: unaltered, under its own item's id, and once.",
        "wire/openai_responses.md section 5; public reports of the vendor's words",
        _unsealed,
    ),
)
