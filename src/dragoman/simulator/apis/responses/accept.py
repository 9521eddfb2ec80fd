"""Whether a request is accepted: its shape first, then the rules, in the order in which the vendor tells faults."""

from msgspec import UNSET

from dragoman.simulator.api import Accepted
from dragoman.simulator.apis.responses import (
    rules_items,
    rules_model,
    rules_pairs,
    rules_reasoning,
    rules_request,
    rules_tools,
)
from dragoman.simulator.apis.responses.models import model_of
from dragoman.simulator.apis.responses.notes import NOTES
from dragoman.simulator.apis.responses.read import ask_of
from dragoman.simulator.apis.responses.shape import Request, read_body
from dragoman.simulator.apis.responses.words import NOT_JSON
from dragoman.simulator.rule import Json, Rule, Situation, Violation, first_violation
from dragoman.simulator.signatures import Signer

RULES: tuple[Rule[Request], ...] = (
    *rules_request.RULES,
    *rules_tools.RULES,
    *rules_items.RULES,
    *rules_reasoning.RULES,
    *rules_pairs.RULES,
    *rules_model.RULES,
)
ALL_NOTES: tuple[Rule[Request], ...] = (*NOTES, *RULES)


_COUNTED = frozenset(
    {
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    }
)
_COMPACTED = frozenset(
    {
        "image",
        "input",
        "instructions",
        "model",
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
    }
)
"""What openai-python 3.49 sends where tokens are only counted or the conversation made short."""


def _foreign(document: Json, situation: Situation) -> Violation | None:
    """Find a member that only a request for an answer has."""
    if not situation.counting and not situation.compacting:
        return None
    known = _COUNTED if situation.counting else _COMPACTED
    name = next((name for name in document if name not in known), None)
    if name is None:
        return None
    return Violation(f"Unknown parameter: '{name}'.", f"/{name}", rule="responses.unknown-field")


def accept(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    """Read a request, or say what is wrong with it; one nested so deeply that it cannot be read is no JSON."""
    try:
        return _judged(body, situation, signer)
    except RecursionError:
        return Violation(NOT_JSON, rule="responses.json")


def _judged(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    read = read_body(body)
    if isinstance(read, Violation):
        return read
    typed, document = read
    foreign = _foreign(document, situation)
    if foreign is not None:
        return foreign
    name = typed.model if typed.model is not UNSET else situation.model
    request = Request(body=typed, document=document, model=model_of(name), signer=signer)
    wrong = first_violation(RULES, request, situation)
    if wrong is not None:
        return wrong
    return Accepted(ask=ask_of(request), body=request, stream=bool(typed.stream))
