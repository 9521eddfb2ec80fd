"""Fit what is not history and not tools: sampling, thinking, the answer's format, identity."""

from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS, Effort, OutputFormat, Request, Sampling, Thinking
from dragoman.core.traits import Traits
from dragoman.interpreter.aliases import digest
from dragoman.interpreter.fitting import KEPT_ELSEWHERE, NO_LIMIT, Fitting
from dragoman.interpreter.foreign_fields import NEUTRAL, USUAL_VERBOSITY
from dragoman.interpreter.schemas.from_openapi import to_json_schema
from dragoman.interpreter.schemas.gemini_json import fit_gemini
from dragoman.interpreter.schemas.outcome import Converted
from dragoman.interpreter.schemas.roots import fit_root
from dragoman.interpreter.schemas.structured import is_openai_strict, to_anthropic_output
from dragoman.wire import json

_get_identity = attrgetter("candidates", "continues", "references", "user", "metadata", "verbosity")
_NO_IDENTITY = (None, None, (), None, None, None)
_COMBINATORS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"})
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


def fit_sampling(sampling: Sampling, fitting: Fitting, thinking: Thinking | None = None) -> Sampling:
    """Keep what the model accepts, clamp what it bounds, add what it demands."""
    traits, ledger = fitting.traits, fitting.ledger
    changes: dict[str, Any] = {}
    for name in _refused(traits.sampling if thinking is None else _sampling_with(thinking, traits)):
        value = getattr(sampling, name)
        if value is None or value == ():
            continue
        if value != NEUTRAL.get(name):
            ledger.field_dropped(f"sampling.{name}", "the model does not accept it")
        changes[name] = () if name == "stop" else None
    temperature, limit, top_k = sampling.temperature, sampling.max_tokens, sampling.top_k
    if temperature is not None and "temperature" not in changes and temperature > traits.temperature_max:
        ledger.field_approximated("sampling.temperature", f"the model's maximum is {traits.temperature_max:g}")
        changes["temperature"] = traits.temperature_max
    if sampling.stop and "stop" not in changes:
        changes["stop"] = _fit_stops(sampling.stop, fitting)
    if isinstance(top_k, float) and "top_k" not in changes:
        changes["top_k"] = _whole(top_k, fitting)
    if traits.temperature_or_top_p and temperature is not None and sampling.top_p is not None:
        ledger.field_dropped("sampling.top_p", "the model takes temperature or top_p, not both")
        changes["top_p"] = None
    if limit is None:
        if traits.max_tokens_default is not None:
            changes["max_tokens"] = _default_limit(traits.max_tokens_default, thinking, fitting)
    elif limit < traits.max_tokens_min:
        ledger.field_approximated("sampling.max_tokens", f"the target's minimum is {traits.max_tokens_min}")
        changes["max_tokens"] = traits.max_tokens_min
    elif limit > (most := traits.max_tokens_max or limit):
        ledger.field_approximated("sampling.max_tokens", f"the model's maximum is {most}")
        changes["max_tokens"] = most
    return structs.replace(sampling, **changes) if changes else sampling


def _whole(top_k: float, fitting: Fitting) -> int:
    if not top_k.is_integer():
        fitting.ledger.field_approximated("sampling.top_k", "the target takes whole numbers")
    return round(top_k)


def most_tokens(sampling: Sampling, traits: Traits) -> int:
    """Return how many tokens the answer may have at most, thoughts included."""
    most = traits.max_tokens_max or NO_LIMIT
    return min(sampling.max_tokens, most) if sampling.max_tokens is not None else most


def _default_limit(default: int, thinking: Thinking | None, fitting: Fitting) -> int:
    """Return the limit to send where the caller gave none: more than usual if thoughts would take nearly all of it."""
    budget = thinking.budget if thinking is not None and thinking.budget is not None else 0
    if budget + fitting.traits.budget_min <= default:
        return default
    return min(default + budget, fitting.max_tokens)


def _fit_stops(stops: tuple[str, ...], fitting: Fitting) -> tuple[str, ...]:
    """Return the stop sequences the target takes: not too many, and of some not those that nobody sees."""
    traits, ledger = fitting.traits, fitting.ledger
    place = ledger.place("sampling.stop")
    kept: list[str] = []
    for index, stop in enumerate(stops):
        if not traits.blank_stops and not stop.strip():
            ledger.dropped(f"{place}/{index}", "the target refuses a stop sequence of white space")
        elif len(kept) == traits.stop_max:
            ledger.dropped(f"{place}/{index}", f"the target takes {traits.stop_max} stop sequences")
        else:
            kept.append(stop)
    return tuple(kept)


def _sampling_with(thinking: Thinking, traits: Traits) -> frozenset[str]:
    """Return the knobs a model accepts, which depends on whether it thinks."""
    if thinking.mode in ("adaptive", "enabled"):
        return traits.sampling - traits.thinks_without
    return traits.sampling | traits.unthinking_sampling if thinking.effort == "none" else traits.sampling


@lru_cache
def _refused(accepted: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in Sampling.__struct_fields__ if name not in accepted)


def fit_thinking(request: Request, fitting: Fitting) -> Thinking | None:
    """Say how much to think in the words of the model."""
    traits, ledger = fitting.traits, fitting.ledger
    thinking = request.thinking
    if thinking is None:
        return Thinking(effort="none") if traits.tools_need_no_effort and request.tools else None
    visible = thinking.visible
    if visible is not None and not traits.shows_thinking:
        # A target that never shows its thinking heeds the wish not to see it.
        if visible or traits.reasoning_text:
            ledger.field_dropped("thinking.visible", "the target cannot be asked to show its thinking")
        visible = None
    wanted = _wanted_effort(thinking)
    if traits.tools_need_no_effort and request.tools and wanted != "none":
        for name in (*_said(thinking), *(("visible",) if visible is not None else ())):
            ledger.field_approximated(f"thinking.{name}", "this model takes tools only without reasoning here")
        return Thinking(effort="none")
    if traits.thinking == "none":
        _drop_thinking(thinking, visible, fitting)
        return None
    return _STYLES[traits.thinking](thinking, wanted, visible, fitting)


def _wanted_effort(thinking: Thinking) -> Effort | None:
    """Return the effort the caller means, whatever words it used; None when it left that to the model."""
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


def _drop_thinking(thinking: Thinking, visible: bool | None, fitting: Fitting) -> None:
    """Book what is asked of a model that does not think; that it shall not think is heeded."""
    said = _said(thinking) if _wanted_effort(thinking) != "none" else ()
    for name in (*said, *(("visible",) if visible else ())):
        fitting.ledger.field_dropped(f"thinking.{name}", "the model has no such setting")


def _accepted(wanted: Effort, fitting: Fitting, fields: tuple[str, ...]) -> Effort:
    """Return the nearest effort the model accepts, upwards first."""
    efforts = fitting.traits.efforts
    if wanted in efforts:
        return wanted
    order = EFFORTS.index(wanted)
    higher: list[Effort] = [effort for effort in EFFORTS[order:] if effort in efforts]
    lower: list[Effort] = [effort for effort in EFFORTS[:order] if effort in efforts]
    chosen = higher[0] if higher else lower[-1]
    for name in fields:
        fitting.ledger.field_approximated(f"thinking.{name}", f"the model's nearest effort is {chosen!r}")
    return chosen


def _said(thinking: Thinking) -> tuple[str, ...]:
    return tuple(name for name in ("mode", "effort", "budget") if getattr(thinking, name) is not None)


def _budget_as_effort(thinking: Thinking, fitting: Fitting) -> None:
    if thinking.budget is not None:
        fitting.ledger.field_approximated("thinking.budget", "a token budget is said as an effort")


def _as_effort(thinking: Thinking, wanted: Effort | None, visible: bool | None, fitting: Fitting) -> Thinking | None:
    _budget_as_effort(thinking, fitting)
    if wanted is None:
        if thinking.mode is not None:
            fitting.ledger.field_approximated("thinking.mode", "how much to think is left to the model")
        return Thinking(visible=visible) if visible is not None else None
    return Thinking(effort=_accepted(wanted, fitting, _said(thinking)), visible=visible)


def _as_adaptive(thinking: Thinking, wanted: Effort | None, visible: bool | None, fitting: Fitting) -> Thinking | None:
    _budget_as_effort(thinking, fitting)
    if wanted == "none" and fitting.traits.can_disable_thinking:
        return Thinking(mode="disabled")
    effort = _accepted(wanted, fitting, _said(thinking)) if wanted is not None else None
    return Thinking(mode="adaptive", effort=effort, visible=visible)


def _as_enabled(thinking: Thinking, wanted: Effort | None, visible: bool | None, fitting: Fitting) -> Thinking | None:
    """Say a budget of at least the model's minimum and less than the limit on the whole answer.

    One that is not the caller's own leaves at least as much to the answer; where that is not there, thinking is off.
    """
    least, limit = fitting.traits.budget_min, fitting.max_tokens
    if wanted == "none":
        return Thinking(mode="disabled")
    asked = thinking.budget if thinking.budget is not None and thinking.budget > 0 else None
    if asked is not None and least <= asked < limit:
        return Thinking(mode="enabled", budget=asked, visible=visible)
    if limit < 2 * least:
        for name in _said(thinking):
            fitting.ledger.field_approximated(f"thinking.{name}", f"{limit} tokens are too few to think: it is off")
        return Thinking(mode="disabled")
    budget = asked if asked is not None else _BUDGET_OF_EFFORT[wanted or "medium"]
    budget = max(least, min(budget, limit - least))
    for name in _said(thinking):
        fitting.ledger.field_approximated(f"thinking.{name}", f"said as a budget of {budget} tokens")
    return Thinking(mode="enabled", budget=budget, visible=visible)


def _as_level(thinking: Thinking, wanted: Effort | None, visible: bool | None, fitting: Fitting) -> Thinking | None:
    _budget_as_effort(thinking, fitting)
    if wanted is None:
        return Thinking(visible=visible) if visible is not None else None
    return Thinking(effort=_accepted(wanted, fitting, _said(thinking)), visible=visible)


def _as_budget(thinking: Thinking, wanted: Effort | None, visible: bool | None, fitting: Fitting) -> Thinking | None:
    traits = fitting.traits
    budget = thinking.budget
    if budget is None:
        if wanted is None:
            return Thinking(budget=-1, visible=visible) if thinking.mode is not None else Thinking(visible=visible)
        budget = _BUDGET_OF_EFFORT[wanted]
        if wanted != "none":
            fitting.ledger.field_approximated("thinking.effort", f"said as a budget of {budget} tokens")
    if 0 <= budget < traits.budget_min:
        for name in _said(thinking):
            fitting.ledger.field_approximated(
                f"thinking.{name}", f"the model thinks at least {traits.budget_min} tokens"
            )
        budget = traits.budget_min
    elif traits.budget_max is not None and budget > traits.budget_max:
        for name in _said(thinking):
            fitting.ledger.field_approximated(
                f"thinking.{name}", f"the model thinks at most {traits.budget_max} tokens"
            )
        budget = traits.budget_max
    return Thinking(budget=budget, visible=visible)


_STYLES = {
    "effort": _as_effort,
    "adaptive": _as_adaptive,
    "enabled": _as_enabled,
    "level": _as_level,
    "budget": _as_budget,
}


def fit_output(request: Request, fitting: Fitting) -> OutputFormat | None:
    """Say what shape the answer must have."""
    output, traits, ledger = request.output, fitting.traits, fitting.ledger
    if output is None or output.kind == "text":
        return None
    if request.tools and not traits.output_with_tools:
        ledger.field_approximated("output", "the model takes tools or an output format, not both: asked for in words")
        fitting.instructions.append(_answer_in_words(output, request))
        return None
    if output.kind == "json":
        if traits.output_json:
            if traits.output_names and not _says_json(request):
                ledger.field_approximated("output", "asked for in words too: the target wants the word there")
                fitting.instructions.append(_answer_in_words(output, request))
            return OutputFormat(kind="json")
        ledger.field_approximated("output", "asked for in words")
        fitting.instructions.append(_answer_in_words(output, request))
        return None
    if not traits.output_schema or (traits.output_names and not _is_object(output)):
        why = "the target takes only objects at the root" if traits.output_schema else "the model takes no schema"
        ledger.field_approximated("output", f"{why}: asked for in words")
        fitting.instructions.append(_answer_in_words(output, request))
        return None
    return _fit_output_schema(output, fitting)


def _says_json(request: Request) -> bool:
    """Tell whether somebody says "JSON": OpenAI takes the format without a schema only then."""
    texts = (part.text for message in request.messages for part in message.parts if isinstance(part, Text))
    return any("json" in text.lower() for text in texts)


def _is_object(output: OutputFormat) -> bool:
    """Tell whether a schema says that its value is an object, without combinators: OpenAI takes nothing else."""
    schema = json.peek(output.schema) if output.schema is not None else None
    root = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    said = root.get("type")
    return isinstance(said, str) and said.lower() == "object" and _COMBINATORS.isdisjoint(root)


def _answer_in_words(output: OutputFormat, request: Request) -> str:
    start = "When you call no tool, answer" if request.tools else "Answer"
    schema = output.schema
    if schema is None:
        return f"{start} with one JSON object and nothing else."
    if output.openapi:
        schema = to_json_schema(schema).schema or schema
    said = ": ".join(text for text in (output.name, output.description) if text)
    wanted = f"one JSON value ({said})" if said else "one JSON value"
    return f"{start} with {wanted} that matches this JSON Schema and nothing else:\n{schema.decode()}"


def _fit_output_schema(output: OutputFormat, fitting: Fitting) -> OutputFormat:
    traits = fitting.traits
    schema = output.schema or b"{}"
    if not json.is_object(schema):
        fitting.ledger.field_approximated("output.schema", "any value: it is not a schema with members")
        schema = b"{}"
    if output.openapi:
        schema = _converted(to_json_schema(schema), schema, fitting)
    if traits.output_strict_only:
        schema = _converted(to_anthropic_output(schema), schema, fitting)
    elif traits.result_names:
        schema = _converted(fit_gemini(schema), schema, fitting)
    if traits.output_names:
        schema = _converted(fit_root(schema), schema, fitting)
        strict = output.strict
        if strict and traits.strict_needs_all and not is_openai_strict(schema):
            fitting.ledger.field_dropped("output.strict", "the target refuses this schema as a strict one")
            strict = None
        return structs.replace(output, schema=schema, openapi=False, name=output.name or "answer", strict=strict)
    if output.strict is False:
        fitting.ledger.field_approximated("output.strict", "the target holds every answer to its schema")
    return OutputFormat(kind="json_schema", schema=_with_title(schema, output, fitting))


def _converted(converted: Converted, schema: bytes, fitting: Fitting) -> bytes:
    fitting.book_notes(converted.notes, "output.schema")
    return converted.schema or schema


def _with_title(schema: bytes, output: OutputFormat, fitting: Fitting) -> bytes:
    """Keep a format's name and description in the schema, where the target has no other place."""
    members = json.decode_object(schema) if json.is_object(schema) else {}
    added: dict[str, bytes] = {}
    for field, word, value in (("name", "title", output.name), ("description", "description", output.description)):
        if value and word in members and json.peek(members[word]) != value:
            fitting.ledger.field_dropped(f"output.{field}", f"the schema has a {word} of its own")
        elif value and word not in members:
            added[word] = json.encode(value)
    return json.with_members(schema, added)


def fit_identity(request: Request, fitting: Fitting) -> dict[str, Any]:
    """Return the changes to who asks and where the conversation stands."""
    changes: dict[str, Any] = {}
    if _get_identity(request) == _NO_IDENTITY:
        return changes
    traits, ledger = fitting.traits, fitting.ledger
    if request.candidates is not None:
        if request.candidates > 1:
            raise Problem(
                "unsupported",
                f"{request.candidates} candidates cannot be asked for across dialects: send the request as often",
                where=_where("candidates", fitting),
            )
        changes["candidates"] = None
    if request.continues is not None and not traits.continues:
        raise Problem(
            "unsupported",
            "the target keeps no earlier responses: send the whole conversation",
            where=_where("continues", fitting),
        )
    for reference in request.references:
        raise Problem("unsupported", KEPT_ELSEWHERE, where=reference.where, code=reference.code)
    for name in ("user", "metadata", "verbosity"):
        value = getattr(request, name)
        if value is not None and not getattr(traits, name):
            if value not in ({}, USUAL_VERBOSITY):
                ledger.field_dropped(name, "the target has no place for it")
            changes[name] = None
    user = request.user
    if user is not None and "user" not in changes and len(user) > traits.user_max:
        ledger.field_approximated("user", f"shortened to {traits.user_max} characters, alike for the same user")
        changes["user"] = f"{user[: traits.user_max - 25]}_{digest(user, 24)}"
    return changes


def _where(field: str, fitting: Fitting) -> str:
    return fitting.ledger.places(field)[0]
