"""Apply a plan to one request, or leave the request unchanged: its tools, its history, its model and instructions.

A request that cannot be rewritten is forwarded unchanged: the gateway must never break a client. Requests for JSON
output are a client's own side requests (a check, a title, a choice of a model): they get no tools, and no caller waits
for their replies.
"""

from collections.abc import Collection

from msgspec import Struct

from dragoman.intercept.document import GeminiDocument, ObjectFields, items_of, join_items
from dragoman.intercept.history_rules import contents_of, insert_results, remove_prompt, restore_conversation
from dragoman.intercept.plan import RewritePlan, Rule
from dragoman.intercept.replies import TurnRequest, replace_model_in_path
from dragoman.wire import json

_FUNCTIONS, _INSTRUCTIONS = "functionDeclarations", "systemInstruction"
_CONFIG, _CALLING, _PIECES = "toolConfig", "functionCallingConfig", "streamFunctionCallArguments"
_PREFIX = "models/"
"""An optional prefix of model names in Google's API."""


def strip_tools(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Remove the client's tools, as far as `strip` says."""
    raw = document.get("tools")
    if not plan.tools.objects:
        return False
    if plan.strip == "all":
        unchosen = _remove_tool_choice(document)
        document.remove("tools")
        return raw is not None or unchosen
    if raw is None:
        return False
    before = items_of(raw)
    named = frozenset(() if plan.strip == "none" else plan.strip)
    kept = [tool for item in before if (tool := _drop_named(item, named | plan.tools.names, named)) is not None]
    if kept == before:
        return False
    document.set("tools", join_items(kept))
    return True


def _drop_named(tool: bytes, functions: Collection[str], natives: Collection[str]) -> bytes | None:
    """Return a tool object without the named functions and native tools; None if nothing is left."""
    fields = ObjectFields(tool)
    raw = fields.get(_FUNCTIONS)
    if raw is not None:
        before = items_of(raw)
        kept = [item for item in before if json.decode(item).get("name") not in functions]
        if not kept:
            fields.remove(_FUNCTIONS)
        elif kept != before:
            fields.set(_FUNCTIONS, join_items(kept))
    for name in natives:
        fields.remove(name)
    return fields.raw if fields.names else None


def _remove_tool_choice(document: GeminiDocument) -> bool:
    raw = document.get(_CONFIG)
    if raw is None:
        return False
    config = ObjectFields(raw)
    if config.get(_CALLING) is None:
        return False
    config.remove(_CALLING)
    document.set(_CONFIG, config.raw)
    return True


def inject_tools(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Add the caller's tools."""
    if not plan.tools.objects:
        return False
    raw = document.get("tools")
    client_tools = items_of(raw) if raw is not None else []
    document.set("tools", join_items(_merge_tools(client_tools, plan.tools.objects)))
    _set_tool_choice(document, plan)
    return True


def _merge_tools(client_tools: list[bytes], caller_tools: tuple[bytes, ...]) -> list[bytes]:
    at = next((at for at, tool in enumerate(client_tools) if ObjectFields(tool).get(_FUNCTIONS) is not None), None)
    joined = list(client_tools)
    for tool in caller_tools:
        functions = ObjectFields(tool).get(_FUNCTIONS)
        if at is None or functions is None:
            at = len(joined) if at is None and functions is not None else at
            joined.append(tool)
            continue
        merged = ObjectFields(joined[at])
        merged.set(_FUNCTIONS, join_items([*items_of(merged.get(_FUNCTIONS) or b"[]"), *items_of(functions)]))
        joined[at] = merged.raw
    return joined


def _set_tool_choice(document: GeminiDocument, plan: RewritePlan) -> None:
    raw = document.get(_CONFIG)
    config = ObjectFields(raw if raw is not None else b"{}")
    calling = plan.tools.config or config.get(_CALLING)
    if calling is None:
        return
    chosen = ObjectFields(calling)
    chosen.remove(_PIECES)
    config.set(_CALLING, chosen.raw)
    document.set(_CONFIG, config.raw)


def set_instructions(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Replace the system instruction, or append to it."""
    if not plan.system:
        return False
    part = json.encode({"text": plan.system})
    raw = document.get(_INSTRUCTIONS)
    if raw is None or plan.system_mode == "replace":
        document.set(_INSTRUCTIONS, _build_content([part]))
    elif json.first_byte(raw) == b'"':
        document.set(_INSTRUCTIONS, _build_content([json.encode({"text": json.decode(raw)}), part]))
    else:
        content = ObjectFields(raw)
        content.set("parts", join_items([*items_of(content.get("parts") or b"[]"), part]))
        document.set(_INSTRUCTIONS, content.raw)
    return True


def _build_content(parts: list[bytes]) -> bytes:
    return b'{"parts":' + join_items(parts) + b"}"


def set_model(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Change the model in the body."""
    if not plan.model:
        return False
    changed = False
    for fields in (document, document.envelope):
        raw = fields.get("model") if fields is not None else None
        if fields is None or raw is None:
            continue
        named = json.decode(raw)
        prefix = _PREFIX if isinstance(named, str) and named.startswith(_PREFIX) else ""
        if named != prefix + plan.model:
            fields.set("model", json.encode(prefix + plan.model))
            changed = True
    return changed


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
