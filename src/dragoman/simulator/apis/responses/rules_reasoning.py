"""Rules about reasoning items: what must follow them, what depends on them, and that they come back unchanged."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.ids import build_thought_id, decode_item_id
from dragoman.simulator.apis.responses.rules_items import RESULT_TYPES
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation

_MODEL_ITEM_TYPES = frozenset(
    {
        *RESULT_TYPES,
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_call",
        "program",
        "item_reference",
        "compaction",
    }
)
"""Items that may follow a reasoning item, other than assistant messages."""
_VENDOR_TOKEN = re.compile(r"gAAAA[\w=-]*|[a-z_]+_REDACTED_\d+|rsn_[\w+/=-]{64,}|[A-Za-z0-9+/]{256,}={0,2}")
"""The vendor's tokens, their placeholders in cleaned recordings, and the tokens of Amazon and xAI."""


def _check_reasoning_followed(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    items = request.items
    for item, following in zip_longest(items, items[1:]):
        if item["type"] == "reasoning" and item.get("id") is not None and not _may_follow_reasoning(following, request):
            message = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            yield Violation(message, "/input")


def _may_follow_reasoning(item: Json | None, request: ResponsesRequest) -> bool:
    """Return whether an item may follow a reasoning item; after a stored one it must have an id."""
    if item is None or (item["type"] not in _MODEL_ITEM_TYPES and item.get("role") != "assistant"):
        return False
    return not request.is_stored or item.get("id") is not None


def _check_reasoning_present(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in request.items:
        given = item.get("id") or ""
        issued = decode_item_id(given)
        if issued is not None and issued.after_thought and item["type"] != "item_reference" and not request.continues:
            wanted = build_thought_id(issued)
            if wanted not in seen:
                yield Violation(
                    f"Item '{given}' of type '{item['type']}' was provided without its required 'reasoning' item: "
                    f"'{wanted}'.",
                    "/input",
                )
        seen.add(given)


def _check_item_stored(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        is_thought = item["type"] == "reasoning" and item.get("encrypted_content") is None
        issued = decode_item_id(item.get("id") or "") if is_thought or item["type"] == "item_reference" else None
        if issued is not None and not issued.stored:
            yield Violation(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input.",
                f"/input/{number}",
                404,
            )


def _check_encrypted_content(request: ResponsesRequest, context: CheckContext) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in request.items:
        token, item_id = item.get("encrypted_content"), item.get("id")
        if token is None:
            continue
        if token in seen:
            reason = "Encrypted content was provided more than once."
        else:
            reason = _describe_token_problem(token, item_id, request, context)
        seen.add(token)
        if reason:
            subject = f"for item {item_id}" if item_id else f"{token[:4]}...{token[-4:]}"
            yield Violation(f"The encrypted content {subject} could not be verified. Reason: {reason}")


def _describe_token_problem(token: str, item_id: str | None, request: ResponsesRequest, context: CheckContext) -> str:
    """Return why a token is rejected, or ""; it is bound to its item's id, which a client may drop but not change."""
    match request.signer.judge(token, item_id or ""):
        case "foreign" if context.recorded and _VENDOR_TOKEN.fullmatch(token):
            return ""
        case "foreign" | "altered":
            return "Encrypted content could not be decrypted or parsed."
        case "moved" if item_id is not None:
            return "Encrypted content item_id did not match the target item id."
        case _:
            return ""


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.reasoning-followed",
        "A reasoning item with an id comes right before the item it led to; if stored, that item has an id too.",
        "recorded: openai_responses/pydantic-ai-0187",
        _check_reasoning_followed,
    ),
    Rule(
        "responses.reasoning-kept",
        "An item with an id that followed a reasoning item comes back with that reasoning item.",
        "wire/openai_responses.md section 2 (pairing)",
        _check_reasoning_present,
    ),
    Rule(
        "responses.item-stored",
        "Items that were not stored cannot be referenced, and a reasoning item that was not stored needs encrypted "
        "content.",
        "public reports of the vendor's error text; wire/openai_responses.md section 5",
        _check_item_stored,
    ),
    Rule(
        "responses.encrypted-content",
        "Encrypted content comes back unaltered, under its own item's id, and once.",
        "wire/openai_responses.md section 5; public reports of the vendor's error text; in recordings, tokens of other "
        "servers are accepted: openai_responses/pydantic-ai-0062 (Amazon), openai_responses/ruby-llm-0015 (xAI)",
        _check_encrypted_content,
    ),
)
