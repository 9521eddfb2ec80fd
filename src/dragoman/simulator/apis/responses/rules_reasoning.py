"""Rules about thoughts: what they stand before, what cannot come without them, and that they come back as they went."""

import re
from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.responses.changes import altered, items_of, places, stands_alone, with_items, without
from dragoman.simulator.apis.responses.ids import Issued, issue, issued_by_us, thought_before
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
from dragoman.simulator.rule import Json, Rule, Situation, Violation
from dragoman.simulator.signatures import Signer

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


def _strand(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    thought: Json = {"type": "reasoning", "id": "rs_mutation", "summary": []}
    yield with_items(body, [thought, {"role": "user", "content": "Go on."}, *items])
    if body.get("store") is not False:
        yield with_items(body, [thought, {"role": "assistant", "content": "Yes."}, *items])
    for number in places(items, "reasoning"):
        following = items[number + 1].get("type") if number + 1 < len(items) else None
        if items[number].get("id") and following in {"message", "web_search_call"} and number + 2 == len(items):
            yield without(body, number + 1)


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


def _drop_thought(body: Json, _: Random) -> Iterator[Json]:
    if any(body.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        return
    items = items_of(body)
    issued = Issued(prefix="msg", reply="ab" * 12, index=1, stored=False, after_thought=True)
    said: Json = {
        "type": "message",
        "role": "assistant",
        "id": issue(issued),
        "content": "Hello.",
        "status": "completed",
    }
    yield with_items(body, [{"role": "user", "content": "Hi."}, said, *items])
    for number in places(items, "reasoning"):
        following = issued_by_us(str(items[number + 1].get("id"))) if number + 1 < len(items) else None
        if following is not None and following.after_thought:
            yield without(body, number)


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


def _forget(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    issued = Issued(prefix="rs", reply="cd" * 12, index=0, stored=False, after_thought=False)
    thought: Json = {"type": "reasoning", "id": issue(issued), "summary": []}
    said: Json = {
        "type": "message",
        "role": "assistant",
        "id": "msg_mutation",
        "content": "Hello.",
        "status": "completed",
    }
    if not any(item.get("id") == "msg_mutation" for item in items):
        yield with_items(body, [thought, said, *items])
    if stands_alone(body):
        yield with_items(body, [{"type": "item_reference", "id": issue(issued)}, *items])


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


def _unseal(body: Json, chance: Random) -> Iterator[Json]:
    items = items_of(body)
    token = Signer().issue("rs_other", "a mutation")
    thought: Json = {"type": "reasoning", "summary": [], "encrypted_content": token}
    yield with_items(body, [{**thought, "encrypted_content": "not a token"}, *items])
    yield with_items(body, [{**thought, "encrypted_content": token[:-8]}, *items])
    yield with_items(body, [thought, thought, *items])
    for number in places(items, "reasoning"):
        given = items[number].get("encrypted_content")
        if isinstance(given, str) and given:
            at = chance.randrange(len(given))
            yield altered(body, number, encrypted_content=f"{given[:at]}!{given[at + 1 :]}")
            if items[number].get("id"):
                yield altered(body, number, encrypted_content=token)


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.reasoning-followed",
        "A thought that bears its id stands right before what it led to; if stored, that bears its id too.",
        "recorded: openai_responses/pydantic-ai-0187",
        _unfollowed,
        _strand,
    ),
    Rule(
        "responses.reasoning-kept",
        "An item that followed a thought and bears its id comes back with that thought.",
        "wire/openai_responses.md section 2 (pairing)",
        _thoughtless,
        _drop_thought,
    ),
    Rule(
        "responses.item-stored",
        "What was not stored cannot be referred to, and a thought that was not stored needs its encrypted content.",
        "public reports of the vendor's words; wire/openai_responses.md section 5",
        _forgotten,
        _forget,
    ),
    Rule(
        "responses.encrypted-content",
        "Encrypted content comes back as it went: unaltered, under its own item's id, and once.",
        "wire/openai_responses.md section 5; public reports of the vendor's words",
        _unsealed,
        _unseal,
    ),
)
