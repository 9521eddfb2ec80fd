"""Apply a plan to one request, or leave the request unchanged.

A request that cannot be rewritten is forwarded unchanged: the gateway must never break a client. Requests for JSON
output are a client's own side requests (a check, a title, a choice of a model): they get no tools, and no caller waits
for their replies.
"""

from msgspec import Struct

from dragoman.intercept.document import GeminiDocument, ObjectFields
from dragoman.intercept.history_rules import contents_of, insert_results, remove_prompt, restore_conversation
from dragoman.intercept.plan import RewritePlan, Rule
from dragoman.intercept.replies import TurnRequest, replace_model_in_path
from dragoman.intercept.request_rules import inject_tools, set_instructions, set_model, strip_tools
from dragoman.wire import json

RULES: tuple[tuple[str, Rule], ...] = (
    ("client tools removed", strip_tools),
    ("caller tools added", inject_tools),
    ("calls and results inserted", insert_results),
    ("conversation restored", restore_conversation),
    ("continuation prompt removed", remove_prompt),
    ("model replaced", set_model),
    ("instructions changed", set_instructions),
)
"""Applied in this order: tools first, then the history, then the model and its instructions."""
_PLAIN = frozenset({"text/plain", ""})
_SCHEMAS = ("responseSchema", "responseJsonSchema")


class RewrittenRequest(Struct, frozen=True, kw_only=True):
    """A request after rewriting."""

    target: str
    body: bytes
    original_target: str = ""
    """The path as the client wrote it."""
    rules: tuple[str, ...] = ()
    """The rules that changed it."""
    problem: str = ""
    """Why it was not rewritten, although rules applied to it."""
    is_side_request: bool = False
    contents: bytes = b""
    """The history after rewriting."""
    last: bytes = b""
    """The client's last turn before rewriting."""
    model: str = ""


def rewrite_request(target: str, body: bytes, turn: TurnRequest, plan: RewritePlan) -> RewrittenRequest:
    """Apply a plan to a request; return it unchanged if that fails."""
    try:
        return _rewrite(target, body, turn, plan)
    except (json.Malformed, ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        # The request is malformed: forward it unchanged, and let the upstream decide.
        return RewrittenRequest(
            target=target, body=body, problem=f"{type(error).__name__}: {error}", is_side_request=True
        )


def _rewrite(target: str, body: bytes, turn: TurnRequest, plan: RewritePlan) -> RewrittenRequest:
    document = GeminiDocument(body, wrapped=turn.wrapped)
    is_side_request = _is_side_request(document)
    last = contents_of(document)[-1:] if not is_side_request else []
    effective_plan = RewritePlan(model=plan.model) if is_side_request else plan
    new_target = replace_model_in_path(target, plan.model) if plan.model else target
    is_renamed = new_target != target
    applied = tuple(
        name for name, rule in RULES if rule(document, effective_plan) or (rule is set_model and is_renamed)
    )
    named = document.envelope.get("model") if document.envelope is not None else None
    return RewrittenRequest(
        target=new_target,
        original_target=target,
        body=document.encode() if applied else body,
        rules=applied,
        is_side_request=is_side_request,
        contents=document.get("contents") or b"",
        last=last[0].raw if last else b"",
        model=turn.model or (str(json.decode(named)) if named is not None else ""),
    )


def _is_side_request(document: GeminiDocument) -> bool:
    raw = document.get("generationConfig")
    if raw is None:
        return False
    config = ObjectFields(raw)
    kind = config.get("responseMimeType")
    if kind is not None and json.decode(kind) not in _PLAIN:
        return True
    return any(config.get(name) is not None for name in _SCHEMAS)
