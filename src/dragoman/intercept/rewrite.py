"""Apply a plan to one request, or leave the request as it is.

A request that cannot be rewritten is passed on as it came: a client is never broken by us. Requests for JSON are a
client's own side requests (a check, a title, a choice of a model): they get no tools, and nobody waits for the replies.
"""

from msgspec import Struct

from dragoman.intercept.document import GeminiDocument, ObjectFields
from dragoman.intercept.history_rules import contents_of, insert_results, remove_prompt, restore_conversation
from dragoman.intercept.plan import RewritePlan, Rule
from dragoman.intercept.replies import TurnRequest, replace_model_in_path
from dragoman.intercept.request_rules import inject_tools, set_instructions, set_model, strip_tools
from dragoman.wire import json

RULES: tuple[tuple[str, Rule], ...] = (
    ("the client's tools taken out", strip_tools),
    ("tools put in", inject_tools),
    ("calls and results put in", insert_results),
    ("the conversation put back", restore_conversation),
    ("our prompt taken out", remove_prompt),
    ("another model", set_model),
    ("other instructions", set_instructions),
)
"""Applied in this order: tools first, then the history, then the model and its instructions."""
_PLAIN = frozenset({"text/plain", ""})
_SCHEMAS = ("responseSchema", "responseJsonSchema")


class RewrittenRequest(Struct, frozen=True, kw_only=True):
    """A request on its way."""

    target: str
    body: bytes
    original_target: str = ""
    """The path as the client wrote it."""
    rules: tuple[str, ...] = ()
    """What was done to it."""
    problem: str = ""
    """Why nothing was, though there was something to be done."""
    is_side_request: bool = False
    contents: bytes = b""
    """The history as it goes."""
    last: bytes = b""
    """The last turn as it came."""
    model: str = ""


def rewrite_request(target: str, body: bytes, turn: TurnRequest, plan: RewritePlan) -> RewrittenRequest:
    """Apply a plan to a request."""
    try:
        return _rewrite(target, body, turn, plan)
    except (json.Malformed, ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        # Whatever is odd about the request: it is the client's, and the upstream's to judge.
        return RewrittenRequest(
            target=target, body=body, problem=f"{type(error).__name__}: {error}", is_side_request=True
        )


def _rewrite(target: str, body: bytes, turn: TurnRequest, plan: RewritePlan) -> RewrittenRequest:
    document = GeminiDocument(body, wrapped=turn.wrapped)
    is_aside = _is_side_request(document)
    last = contents_of(document)[-1:] if not is_aside else []
    wanted = RewritePlan(model=plan.model) if is_aside else plan
    going = replace_model_in_path(target, plan.model) if plan.model else target
    is_renamed = going != target
    done = tuple(name for name, rule in RULES if rule(document, wanted) or (rule is set_model and is_renamed))
    named = document.envelope.get("model") if document.envelope is not None else None
    return RewrittenRequest(
        target=going,
        original_target=target,
        body=document.encode() if done else body,
        rules=done,
        is_side_request=is_aside,
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
