"""OpenAI Responses: `POST /v1/responses`."""

from typing import Any, cast

import msgspec

from dragoman.simulator.api import Accepted, Api
from dragoman.simulator.apis.openai.errors import NOT_JSON
from dragoman.simulator.apis.openai.models import responses_family
from dragoman.simulator.apis.openai.replies import BAD_KEY, NO_KEY, of_answer
from dragoman.simulator.apis.openai.words import unknown
from dragoman.simulator.apis.responses import rules_items, rules_reasoning, rules_settings, rules_tools
from dragoman.simulator.apis.responses.body import BODY, ResponsesRequest, normalise
from dragoman.simulator.apis.responses.read import read
from dragoman.simulator.apis.responses.store import Store
from dragoman.simulator.apis.responses.words import violation_of
from dragoman.simulator.apis.responses.write import broken_off, compact, count, fail, refuse, silenced, stream, whole
from dragoman.simulator.members import Mismatch, first_mismatch
from dragoman.simulator.rule import Json, Rule, Situation, Violation, first_violation
from dragoman.simulator.talk import Signer

_SOURCE = "wire/openai_responses.md sections 1 to 4; public measurement of 2026-08-30 (gpt-5.6-terra)"
MEMBER_RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule("responses.json", "The body is a JSON object.", "public reports of the vendor's words"),
    Rule("responses.unknown-field", "The body has only members the API knows, at every depth.", _SOURCE),
    Rule("responses.type", "Members have their types.", _SOURCE),
    Rule("responses.enum", "Words are among those the API knows.", _SOURCE),
    Rule("responses.required", "Tools, items and parts have the members they need.", _SOURCE),
    Rule("responses.bounds", "Numbers, texts and lists are within their limits.", _SOURCE),
)
"""What the declaration of the body keeps by itself."""
RULES: tuple[Rule[ResponsesRequest], ...] = (
    *rules_settings.RULES,
    *rules_tools.RULES,
    *rules_items.RULES,
    *rules_reasoning.RULES,
    *rules_items.PAIR_RULES,
    *rules_settings.MODEL_RULES,
)
"""In the order in which the vendor tells faults."""
_NOT_JSON = Violation(f"{NOT_JSON})", rule="responses.json")
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


def accept(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    """Judge a request; one nested so deeply that it cannot be read is no JSON."""
    try:
        document: Any = msgspec.json.decode(body)
        if not isinstance(document, dict):
            return _NOT_JSON
        return _judge(normalise(cast("Json", document)), situation, signer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOT_JSON


def _judge(document: Json, situation: Situation, signer: Signer) -> Accepted | Violation:
    found = first_mismatch(BODY, document)
    if found is None and document.get("model", "") is None:
        # A model may be absent, but unlike all else it may not be null.
        found = Mismatch("type", None, BODY.members["model"]).within("model")
    if found is not None:
        return violation_of(found, document)
    foreign = _foreign_member(document, situation)
    if foreign is not None:
        return Violation(unknown(f"/{foreign}"), f"/{foreign}", rule="responses.unknown-field")
    model = document.get("model", situation.model)
    items: list[Json] = [] if isinstance(document.get("input"), str) else document.get("input") or []
    request = ResponsesRequest(document, model=model, family=responses_family(model), signer=signer, items=items)
    wrong = first_violation(RULES, request, situation)
    return wrong or Accepted(ask=read(request), body=request, stream=bool(request.get("stream")))


def _foreign_member(document: Json, situation: Situation) -> str | None:
    """Return a member that only a request for an answer has."""
    if not situation.counting and not situation.compacting:
        return None
    known = _COUNTED if situation.counting else _COMPACTED
    return next((name for name in document if name not in known), None)


API = Api(
    name="responses",
    rules=(*MEMBER_RULES, *RULES),
    accept=accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    silenced=silenced,
    headers=of_answer,
    memory=Store,
    broken_off=broken_off,
    compact=compact,
)

__all__ = ["API"]
