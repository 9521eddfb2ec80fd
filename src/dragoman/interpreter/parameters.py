"""Adapt the thinking settings, the output format and the fields that two dialects share to the target."""

from msgspec import structs

from dragoman.core.parts import Reasoning, Text, ToolResult
from dragoman.core.request import EFFORTS, Effort, Message, OutputFormat, Request, Thinking
from dragoman.dialects.record import SharedField
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.cache_marks import find_nearest_lifetime
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.schema.conversion import ConvertedSchema
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import is_openai_strict, to_anthropic_output
from dragoman.wire import json
from dragoman.wire.pointer import escape


def adapt_shared_value(pointer: str, raw: bytes, field: SharedField, adaptation: Adaptation) -> bytes | None:
    """Return the value of a shared field as the target takes it; report it and return None if it takes none of it."""
    if field == "tier" and json.peek(raw) not in adaptation.traits.tiers:
        adaptation.ledger.report_dropped(pointer, "the target has no such service tier")
        return None
    if field == "store" and raw == b"true":
        reason = "stored in the target's API: it cannot be retrieved through the caller's"
        adaptation.ledger.report_approximated(pointer, reason)
    return _adapt_cache_options(pointer, raw, adaptation) if field == "cache_options" else raw


def _adapt_cache_options(pointer: str, raw: bytes, adaptation: Adaptation) -> bytes | None:
    names, lifetimes = adaptation.traits.cache_options, adaptation.traits.options_lifetimes
    if not names or not json.is_object(raw):
        adaptation.ledger.report_dropped(pointer, "the model has no such setting")
        return None
    kept: dict[str, bytes] = {}
    for name, value in json.decode_object(raw).items():
        option_pointer = f"{pointer}/{escape(name)}"
        if name not in names:
            adaptation.ledger.report_dropped(option_pointer, "not known to the target")
            continue
        kept[name] = bytes(value)
        requested = json.peek(value) if name == "ttl" else None
        if isinstance(requested, str) and (nearest := find_nearest_lifetime(requested, lifetimes)) != requested:
            adaptation.ledger.report_approximated(
                option_pointer, f"the target's nearest lifetime is {nearest or 'its default'!r}"
            )
            del kept[name]
            if nearest:
                kept[name] = json.encode(nearest)
    return json.with_members(b"{}", kept) if kept else None


def disable_in_tool_loop(turns: tuple[Message, ...], thinking: Thinking, request: Request, ledger: Ledger) -> Thinking:
    """Turn manual thinking off in a tool loop that another model started: Claude requires its thinking blocks there."""
    if _find_unthinking_turn(turns) is not None:
        for name in ("mode", "effort", "budget"):
            if getattr(request.thinking, name) is not None:
                reason = "thinking is off in a tool loop that started without Claude's thinking blocks"
                ledger.report_approximated_field(f"thinking.{name}", reason)
        return Thinking(mode="disabled")
    return thinking


def _find_unthinking_turn(turns: tuple[Message, ...]) -> Message | None:
    """Return the assistant turn of the tool loop that a request continues if it begins without reasoning, else None."""
    if len(turns) < 2:
        return None
    last, answer = turns[-2], turns[-1]
    has_reasoning = last.role != "assistant" or isinstance(last.parts[0], Reasoning)
    return last if not has_reasoning and any(isinstance(part, ToolResult) for part in answer.parts) else None


def adapt_tool_loop(
    turns: tuple[Message, ...], thinking: Thinking, request: Request, adaptation: Adaptation
) -> Thinking:
    """Return the thinking settings for a history that may continue a tool loop without thinking blocks.

    A model that thinks adaptively takes it so, but may have lost its reasoning. Whether there was any is not known: it
    may not have thought, or the loop started at another model.
    """
    traits, ledger = adaptation.traits, adaptation.ledger
    if thinking.mode == "enabled" and traits.thinking != "switch":
        return disable_in_tool_loop(turns, thinking, request, ledger)
    if thinking.mode == "adaptive" and not traits.reasoning_text:
        turn = _find_unthinking_turn(turns)
        if turn is not None:
            what = "sent without thinking blocks before its calls: if the model thought there, it has lost that"
            ledger.report_approximated(turn.where, what, "informational")
    return thinking


_EFFORT_OF_BUDGET: tuple[tuple[int, Effort], ...] = ((0, "none"), (1024, "low"), (8192, "medium"), (24_576, "high"))


_BUDGET_OF_EFFORT: dict[str, int] = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}


def adapt_thinking(request: Request, adaptation: Adaptation) -> Thinking | None:
    """Return the thinking settings in the form that the model takes."""
    traits, ledger = adaptation.traits, adaptation.ledger
    thinking = request.thinking
    if thinking is None:
        return Thinking(effort="none") if traits.tools_need_no_effort and request.tools else None
    visible = thinking.visible
    if visible is not None and not traits.shows_thinking:
        # A target that never shows its thinking already does what visible=False requests.
        if visible or traits.reasoning_text:
            ledger.report_dropped_field("thinking.visible", "the target has no setting to show thinking")
        visible = None
    requested = find_effort(thinking)
    if traits.tools_need_no_effort and request.tools and requested != "none":
        for name in (*_list_set_fields(thinking), *(("visible",) if visible is not None else ())):
            reason = "this model takes tools only without reasoning in this API"
            ledger.report_approximated_field(f"thinking.{name}", reason)
        return Thinking(effort="none")
    if traits.thinking == "none":
        _drop_thinking(thinking, visible, adaptation)
        return None
    return _ADAPTERS[traits.thinking](thinking, requested, visible, adaptation)


def find_effort(thinking: Thinking) -> Effort | None:
    """Return the effort the caller requests by mode, effort or budget; None if it leaves that to the model."""
    if thinking.mode == "disabled":
        return "none"
    if thinking.effort is not None:
        return thinking.effort
    if thinking.budget is None or thinking.budget < 0:
        return None
    for limit, effort in _EFFORT_OF_BUDGET:
        if thinking.budget <= limit:
            return effort
    return "xhigh"


def _drop_thinking(thinking: Thinking, visible: bool | None, adaptation: Adaptation) -> None:
    """Report the thinking settings for a model that cannot think; no loss if thinking is turned off."""
    names = _list_set_fields(thinking) if find_effort(thinking) != "none" else ()
    for name in (*names, *(("visible",) if visible else ())):
        adaptation.ledger.report_dropped_field(f"thinking.{name}", "the model has no such setting")


def _find_nearest_effort(requested: Effort, adaptation: Adaptation, fields: tuple[str, ...]) -> Effort:
    """Return the nearest effort that the model accepts: the next higher one, else the highest."""
    efforts = adaptation.traits.efforts
    if requested in efforts:
        return requested
    order = EFFORTS.index(requested)
    higher: list[Effort] = [effort for effort in EFFORTS[order:] if effort in efforts]
    lower: list[Effort] = [effort for effort in EFFORTS[:order] if effort in efforts]
    chosen = higher[0] if higher else lower[-1]
    for name in fields:
        adaptation.ledger.report_approximated_field(f"thinking.{name}", f"the model's nearest effort is {chosen!r}")
    return chosen


def _list_set_fields(thinking: Thinking) -> tuple[str, ...]:
    return tuple(name for name in ("mode", "effort", "budget") if getattr(thinking, name) is not None)


def _report_budget(thinking: Thinking, adaptation: Adaptation) -> None:
    """Report a token budget for a target that has only levels; 0 turns thinking off, -1 leaves it to the model."""
    if thinking.budget is not None and thinking.budget > 0:
        adaptation.ledger.report_approximated_field("thinking.budget", "a token budget is sent as an effort level")


def _to_effort(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    _report_budget(thinking, adaptation)
    if requested is None:
        for name in _list_set_fields(thinking):
            # "adaptive" leaves it to the model too, and so does a target that has only levels and is sent none.
            adaptation.ledger.report_approximated_field(
                f"thinking.{name}", "how much to think is left to the model", grade="informational"
            )
        return Thinking(visible=visible) if visible is not None else None
    return Thinking(effort=_find_nearest_effort(requested, adaptation, _list_set_fields(thinking)), visible=visible)


def _to_adaptive(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    _report_budget(thinking, adaptation)
    if requested == "none" and adaptation.traits.can_disable_thinking:
        return Thinking(mode="disabled")
    effort = _find_nearest_effort(requested, adaptation, _list_set_fields(thinking)) if requested is not None else None
    return Thinking(mode="adaptive", effort=effort, visible=visible)


def _to_enabled(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    """Return a thinking budget of at least the model's minimum and less than `max_tokens`.

    A budget other than the caller's own leaves at least the minimum budget to the answer; if `max_tokens` is too small
    for both, thinking is turned off.
    """
    least, limit = adaptation.traits.budget_min, adaptation.max_tokens
    if requested == "none":
        return Thinking(mode="disabled")
    own_budget = thinking.budget if thinking.budget is not None and thinking.budget > 0 else None
    if own_budget is not None and least <= own_budget < limit:
        return Thinking(mode="enabled", budget=own_budget, visible=visible)
    if limit < 2 * least:
        for name in _list_set_fields(thinking):
            adaptation.ledger.report_approximated_field(
                f"thinking.{name}", f"{limit} tokens are too few for thinking: it is turned off"
            )
        return Thinking(mode="disabled")
    budget = own_budget if own_budget is not None else _BUDGET_OF_EFFORT[requested or "medium"]
    budget = max(least, min(budget, limit - least))
    for name in _list_set_fields(thinking):
        adaptation.ledger.report_approximated_field(f"thinking.{name}", f"sent as a budget of {budget} tokens")
    return Thinking(mode="enabled", budget=budget, visible=visible)


def _to_level(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    _report_budget(thinking, adaptation)
    if requested is None:
        return Thinking(visible=visible) if visible is not None else None
    return Thinking(effort=_find_nearest_effort(requested, adaptation, _list_set_fields(thinking)), visible=visible)


def _to_budget(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    traits = adaptation.traits
    budget = thinking.budget
    if budget is None:
        if requested is None:
            return Thinking(budget=-1, visible=visible) if thinking.mode is not None else Thinking(visible=visible)
        budget = _BUDGET_OF_EFFORT[requested]
        if requested != "none":
            adaptation.ledger.report_approximated_field("thinking.effort", f"sent as a budget of {budget} tokens")
    if 0 <= budget < traits.budget_min:
        for name in _list_set_fields(thinking):
            adaptation.ledger.report_approximated_field(
                f"thinking.{name}", f"the model's minimum budget is {traits.budget_min} tokens"
            )
        budget = traits.budget_min
    elif traits.budget_max is not None and budget > traits.budget_max:
        for name in _list_set_fields(thinking):
            adaptation.ledger.report_approximated_field(
                f"thinking.{name}", f"the model's maximum budget is {traits.budget_max} tokens"
            )
        budget = traits.budget_max
    return Thinking(budget=budget, visible=visible)


def _to_switch(
    thinking: Thinking, requested: Effort | None, visible: bool | None, adaptation: Adaptation
) -> Thinking | None:
    """Turn thinking on or off, with an effort or a budget if the target has a field for it."""
    traits = adaptation.traits
    if requested == "none":
        return Thinking(mode="disabled", visible=visible)
    if not _list_set_fields(thinking):
        return Thinking(visible=visible) if visible is not None else None
    if thinking.budget is not None and thinking.budget > 0 and traits.budget_member:
        return Thinking(mode="enabled", budget=thinking.budget, visible=visible)
    if traits.efforts and requested is not None:
        _report_budget(thinking, adaptation)
        effort = _find_nearest_effort(requested, adaptation, _list_set_fields(thinking))
        return Thinking(mode="enabled", effort=effort, visible=visible)
    for name in _list_set_fields(thinking):
        if name != "mode":
            adaptation.ledger.report_approximated_field(f"thinking.{name}", "the target only turns thinking on or off")
    return Thinking(mode="enabled", visible=visible)


_ADAPTERS = {
    "effort": _to_effort,
    "adaptive": _to_adaptive,
    "enabled": _to_enabled,
    "level": _to_level,
    "budget": _to_budget,
    "switch": _to_switch,
}


_COMBINATORS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"})


def adapt_output(request: Request, adaptation: Adaptation) -> OutputFormat | None:
    """Return the output format as the target takes it; request it in the prompt if the target has no field for it."""
    output, traits, ledger = request.output, adaptation.traits, adaptation.ledger
    if output is None or output.kind == "text":
        return None
    if request.tools and not traits.output_with_tools:
        ledger.report_approximated_field(
            "output", "the model takes tools or an output format, not both: requested in the prompt"
        )
        adaptation.instructions.append(_describe_output(output, request))
        return None
    if output.kind == "json":
        if traits.output_json:
            if traits.output_names and not _mentions_json(request):
                reason = "also requested in the prompt: the target requires the word JSON there"
                ledger.report_approximated_field("output", reason)
                adaptation.instructions.append(_describe_output(output, request))
            return OutputFormat(kind="json")
        ledger.report_approximated_field("output", "requested in the prompt")
        adaptation.instructions.append(_describe_output(output, request))
        return None
    if not traits.output_schema or (traits.output_names and not _has_object_root(output)):
        reason = "the target takes only objects at the root" if traits.output_schema else "the model takes no schema"
        ledger.report_approximated_field("output", f"{reason}: requested in the prompt")
        adaptation.instructions.append(_describe_output(output, request))
        return None
    return _adapt_schema(output, adaptation)


def _mentions_json(request: Request) -> bool:
    """Return whether a message contains "JSON": OpenAI requires that for the JSON format without a schema."""
    texts = (part.text for message in request.messages for part in message.parts if isinstance(part, Text))
    return any("json" in text.lower() for text in texts)


def _has_object_root(output: OutputFormat) -> bool:
    """Return whether a schema has type object and no combinators at the root: OpenAI takes nothing else."""
    schema = json.peek(output.schema) if output.schema is not None else None
    root = json.as_object(schema)
    root_type = root.get("type")
    return isinstance(root_type, str) and root_type.lower() == "object" and _COMBINATORS.isdisjoint(root)


def _describe_output(output: OutputFormat, request: Request) -> str:
    start = "When you call no tool, answer" if request.tools else "Answer"
    schema = output.schema
    if schema is None:
        return f"{start} with one JSON object and nothing else."
    if output.openapi:
        schema = to_json_schema(schema).schema or schema
    label = ": ".join(text for text in (output.name, output.description) if text)
    answer = f"one JSON value ({label})" if label else "one JSON value"
    return f"{start} with {answer} that matches this JSON Schema and nothing else:\n{schema.decode()}"


def _adapt_schema(output: OutputFormat, adaptation: Adaptation) -> OutputFormat:
    traits = adaptation.traits
    schema = output.schema or b"{}"
    if not json.is_object(schema):
        adaptation.ledger.report_approximated_field(
            "output.schema", "the schema is not a JSON object: any value is allowed"
        )
        schema = b"{}"
    if output.openapi:
        schema = _report_conversion(to_json_schema(schema), schema, adaptation)
    if traits.output_strict_only:
        schema = _report_conversion(to_anthropic_output(schema), schema, adaptation)
    elif traits.result_names:
        schema = _report_conversion(adapt_gemini(schema), schema, adaptation)
    if traits.output_names:
        schema = _report_conversion(adapt_root(schema), schema, adaptation)
        strict = output.strict
        if strict and traits.strict_needs_all and not is_openai_strict(schema):
            adaptation.ledger.report_dropped_field("output.strict", "the target rejects this schema if it is strict")
            strict = None
        return structs.replace(output, schema=schema, openapi=False, name=output.name or "answer", strict=strict)
    if output.strict is False:
        adaptation.ledger.report_approximated_field("output.strict", "the target enforces the schema on every answer")
    return OutputFormat(kind="json_schema", schema=_add_title(schema, output, adaptation))


def _report_conversion(converted: ConvertedSchema, schema: bytes, adaptation: Adaptation) -> bytes:
    adaptation.report_notes(converted.notes, "output.schema")
    return converted.schema or schema


def _add_title(schema: bytes, output: OutputFormat, adaptation: Adaptation) -> bytes:
    """Put the format's name and description into the schema, since the target has no other field for them."""
    members = json.decode_object(schema) if json.is_object(schema) else {}
    added: dict[str, bytes] = {}
    for field, keyword, value in (("name", "title", output.name), ("description", "description", output.description)):
        if value and keyword in members and json.peek(members[keyword]) != value:
            adaptation.ledger.report_dropped_field(f"output.{field}", f"the schema already has a {keyword}")
        elif value and keyword not in members:
            added[keyword] = json.encode(value)
    return json.with_members(schema, added)
