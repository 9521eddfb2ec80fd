"""OpenAI Responses: `POST /v1/responses`."""

from typing import Any, cast

import msgspec

from dragoman.simulator.apis.api import AcceptedRequest, Api
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.declarations import Mismatch, find_first_mismatch
from dragoman.simulator.apis.openai.errors import NOT_JSON
from dragoman.simulator.apis.openai.models import find_responses_family
from dragoman.simulator.apis.openai.replies import BAD_KEY, NO_KEY, build_answer_headers
from dragoman.simulator.apis.openai.words import describe_unknown
from dragoman.simulator.apis.responses import rules_items, rules_reasoning, rules_settings, rules_tools
from dragoman.simulator.apis.responses.body import BODY, ResponsesRequest, normalise
from dragoman.simulator.apis.responses.read import read_model_request
from dragoman.simulator.apis.responses.store import ResponseStore
from dragoman.simulator.apis.responses.words import build_violation
from dragoman.simulator.apis.responses.write import (
    compact,
    drop_output,
    render_broken_stream,
    render_error,
    render_reply,
    render_stream,
    render_stream_error,
    render_token_count,
)
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation, find_first_violation

_SOURCE = "wire/openai_responses.md sections 1 to 4; public measurement of 2026-08-30 (gpt-5.6-terra)"
MEMBER_RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule("responses.json", "The body is a JSON object.", "public reports of the vendor's error text"),
    Rule("responses.unknown-field", "The body has only fields of the API, at every depth.", _SOURCE),
    Rule("responses.type", "Every field has the documented type.", _SOURCE),
    Rule("responses.enum", "Enum values are among those of the API.", _SOURCE),
    Rule("responses.required", "Tools, items and parts have their required fields.", _SOURCE),
    Rule("responses.bounds", "Numbers, texts and lists are within their limits.", _SOURCE),
)
"""Rules that the declaration of the body enforces."""
RULES: tuple[Rule[ResponsesRequest], ...] = (
    *rules_settings.RULES,
    *rules_tools.RULES,
    *rules_items.RULES,
    *rules_reasoning.RULES,
    *rules_items.PAIR_RULES,
    *rules_settings.MODEL_RULES,
)
"""In the order in which the vendor reports errors."""
_NOT_JSON = Violation(f"{NOT_JSON})", rule="responses.json")
_COUNT_MEMBERS = frozenset(
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
_COMPACT_MEMBERS = frozenset(
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
"""The fields that openai-python 3.49 sends to count tokens, and to compact a conversation."""


def accept(body: bytes, context: CheckContext, signer: TokenSigner) -> AcceptedRequest | Violation:
    """Validate a request; one nested too deeply to parse is rejected as invalid JSON."""
    try:
        document: Any = msgspec.json.decode(body)
        if not isinstance(document, dict):
            return _NOT_JSON
        return _accept_document(normalise(cast("Json", document)), context, signer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOT_JSON


def _accept_document(document: Json, context: CheckContext, signer: TokenSigner) -> AcceptedRequest | Violation:
    found = find_first_mismatch(BODY, document)
    if found is None and document.get("model", "") is None:
        # Unlike all other fields, the model may be absent but not null.
        found = Mismatch("type", None, BODY.members["model"]).prepend("model")
    if found is not None:
        return build_violation(found, document)
    foreign = _find_unsupported_member(document, context)
    if foreign is not None:
        return Violation(describe_unknown(f"/{foreign}"), f"/{foreign}", rule="responses.unknown-field")
    model = document.get("model", context.model)
    items: list[Json] = [] if isinstance(document.get("input"), str) else document.get("input") or []
    request = ResponsesRequest(document, model=model, family=find_responses_family(model), signer=signer, items=items)
    wrong = find_first_violation(RULES, request, context)
    return wrong or AcceptedRequest(
        model_request=read_model_request(request), body=request, stream=bool(request.get("stream"))
    )


def _find_unsupported_member(document: Json, context: CheckContext) -> str | None:
    """Return a field that only requests for an answer may have."""
    if not context.counting and not context.compacting:
        return None
    known = _COUNT_MEMBERS if context.counting else _COMPACT_MEMBERS
    return next((name for name in document if name not in known), None)


API = Api(
    name="responses",
    rules=(*MEMBER_RULES, *RULES),
    accept=accept,
    render_reply=render_reply,
    render_stream=render_stream,
    render_error=render_error,
    render_stream_error=render_stream_error,
    render_token_count=render_token_count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    drop_answer=drop_output,
    build_headers=build_answer_headers,
    create_state=ResponseStore,
    render_broken_stream=render_broken_stream,
    compact=compact,
)

__all__ = ["API"]
