"""Adapt a request to a target: change what the target does not accept, and report every loss.

The request that `adapt` returns can be rendered in the target's dialect without further loss; `Undo` restores the
reply. This module adapts sampling parameters and identity fields; each other subject has a module of its own.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, Request, Sampling, Thinking, Tool, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import NO_LIMIT, STORED_ELSEWHERE, Adaptation
from dragoman.interpreter.cache_marks import limit_marks
from dragoman.interpreter.foreign_fields import NEUTRAL, USUAL_VERBOSITY, find_shared_fields, report_unknown
from dragoman.interpreter.history import adapt_messages, arrange_turns
from dragoman.interpreter.parameters import adapt_output, adapt_shared_value, adapt_thinking, disable_in_tool_loop
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.signature_envelopes import join_thoughts, open_envelopes
from dragoman.interpreter.signatures import has_envelope
from dragoman.interpreter.text_calls.prompt import describe_tools
from dragoman.interpreter.tools import adapt_request_tools
from dragoman.interpreter.translation import MissingLinks
from dragoman.interpreter.turns import end_with_user
from dragoman.interpreter.undo import Arguments, Undo, hash_text

_NO_SPELLING: frozenset[str] = frozenset()


def adapt(
    request: Request, adaptation: Adaptation, prefix_of: Callable[[Arguments], Prefix] | None = None
) -> tuple[Request, Undo]:
    """Return `request` as the target of `adaptation` accepts it, and how to undo the changes in the reply.

    `prefix_of` returns the prefix of the history that is translated already; it is not adapted again. Raise
    `MissingLinks` if media must be fetched first.
    """
    traits, ledger = adaptation.traits, adaptation.ledger
    undo: Undo | None = None
    if traits.text_calls and (prompt := describe_tools(request, adaptation.source_issuer, traits, ledger)) is not None:
        request, undo = prompt.request, prompt.undo
    if not traits.function_tools and any(isinstance(tool, Tool) for tool in request.tools):
        raise Problem(
            "unsupported",
            "this model takes tools only in OpenAI's Responses API: use an upstream of kind 'openai-responses'",
            where=ledger.find_pointer("tools"),
        )
    changes = adapt_identity(request, adaptation)
    thinking = None
    if request.thinking is not None or traits.tools_need_no_effort:
        adaptation.max_tokens = find_max_tokens(request.sampling, traits)
        thinking = adapt_thinking(request, adaptation)
    # Claude's manual thinking and a forced tool exclude each other.
    adaptation.can_force = traits.forced_choice and (thinking is None or thinking.mode != "enabled")
    tools, choice = adapt_request_tools(request, adaptation)
    output = adapt_output(request, adaptation) if request.output is not None else None
    prefix, messages = NO_PREFIX, request.messages
    if prefix_of is not None:
        prefix = prefix_of(adaptation.history_changes)
        messages = _drop_prefix(prefix, messages, adaptation)
    turns = adapt_turns(messages, adaptation, is_start=not prefix.messages)
    if adaptation.links is not None and adaptation.links.missing:
        raise MissingLinks(adaptation.links.missing)
    if output is not None and not traits.prefill_formatted:
        turns = tuple(end_with_user(list(turns), ledger))
    if adaptation.has_cache_marks:
        turns = limit_marks(turns, traits, ledger)
    if thinking is not None and thinking.mode == "enabled":
        thinking = disable_in_tool_loop(turns, thinking, request, ledger)
    adapted = structs.replace(
        request,
        model=adaptation.model or request.model,
        messages=turns,
        tools=tools,
        tool_choice=choice,
        sampling=adapt_sampling(request.sampling, adaptation, thinking),
        thinking=thinking,
        output=output,
        extras=_adapt_extras(request, tools, adaptation),
        spelling=_NO_SPELLING,
        written=prefix.written,
        written_tools=adaptation.written_tools,
        **changes,
    )
    return adapted, undo or adaptation.build_undo()


def _drop_prefix(prefix: Prefix, messages: tuple[Message, ...], adaptation: Adaptation) -> tuple[Message, ...]:
    """Return the leading system messages and what follows the prefix; continue `adaptation` from the prefix's state."""
    if not prefix.messages:
        return messages
    adaptation.ledger.resume(prefix.reported_once, prefix.losses)
    adaptation.names.update(prefix.names)
    adaptation.runs, adaptation.unnamed = prefix.runs, prefix.unnamed
    return (*messages[: count_leading_systems(messages)], *messages[prefix.find_end(messages) :])


def adapt_turns(messages: tuple[Message, ...], adaptation: Adaptation, *, is_start: bool) -> tuple[Message, ...]:
    """Return messages as the target's turns; `is_start` means that they are the first of the conversation."""
    if has_envelope(messages):
        messages = open_envelopes(join_thoughts(messages, adaptation))
    adapted = adapt_messages(messages, adaptation)
    if adaptation.instructions:
        # What the target has no field for is requested in the prompt, at the end of the system messages.
        instructions = Message(role="system", parts=(Text(text="\n".join(adaptation.instructions)),))
        adapted.insert(count_leading_systems(adapted), instructions)
    return arrange_turns(adapted, adaptation.traits, adaptation.ledger, is_start=is_start, pair=adaptation.pair)


def _adapt_extras(request: Request, tools: tuple[AnyTool, ...], adaptation: Adaptation) -> Extras | None:
    """Drop fields that only the source dialect has, keep those the target shares, add those the target requires."""
    traits = adaptation.traits
    if request.extras is None and not (request.stream or traits.unkept or traits.native_mix):
        return None
    kept: dict[str, bytes] = {}
    if request.extras is not None:
        shared = find_shared_fields(request.extras.dialect, traits.dialect)
        for pointer, raw in request.extras.fields.items():
            if pointer not in shared:
                report_unknown(pointer, raw, request.extras.dialect, adaptation.traits.dialect, adaptation.ledger)
            elif raw != b"null" and (value := adapt_shared_value(pointer, raw, adaptation)) is not None:
                kept[pointer] = value
    if request.stream and traits.asks_usage:
        kept["/stream_options"] = b'{"include_usage":true}'
    for pointer, raw in traits.unkept:
        kept.setdefault(pointer, raw)
    if traits.native_mix and len({type(tool) for tool in tools}) > 1:
        kept.update(traits.native_mix)
    return Extras(traits.dialect, kept) if kept else None


_get_identity = attrgetter("candidates", "continues", "references", "user", "metadata", "verbosity")
_UNSET = -1
"""The value of `top_p` and `top_k` for "no limit" at local servers such as vLLM, which their clients send to others."""
_NO_IDENTITY = (None, None, (), None, None, None)


def adapt_sampling(sampling: Sampling, adaptation: Adaptation, thinking: Thinking | None = None) -> Sampling:
    """Drop sampling parameters the model does not accept, clamp the others to its limits, add those it requires."""
    traits, ledger = adaptation.traits, adaptation.ledger
    changes: dict[str, Any] = {}
    if _UNSET in (sampling.top_p, sampling.top_k):
        unset = {name: None for name in ("top_p", "top_k") if getattr(sampling, name) == _UNSET}
        sampling = structs.replace(sampling, **unset)
    for name in _list_rejected(traits.sampling if thinking is None else _find_accepted_parameters(thinking, traits)):
        value = getattr(sampling, name)
        if value is None or value == ():
            continue
        if value != NEUTRAL.get(name):
            ledger.report_dropped_field(f"sampling.{name}", "the model does not accept it")
        changes[name] = () if name == "stop" else None
    temperature, limit, top_k = sampling.temperature, sampling.max_tokens, sampling.top_k
    if temperature is not None and "temperature" not in changes and temperature > traits.temperature_max:
        ledger.report_approximated_field("sampling.temperature", f"the model's maximum is {traits.temperature_max:g}")
        changes["temperature"] = traits.temperature_max
    if sampling.stop and "stop" not in changes:
        changes["stop"] = _adapt_stops(sampling.stop, adaptation)
    if isinstance(top_k, float) and "top_k" not in changes:
        changes["top_k"] = _round_top_k(top_k, adaptation)
    if traits.temperature_or_top_p and temperature is not None and sampling.top_p is not None:
        ledger.report_dropped_field("sampling.top_p", "the model takes temperature or top_p, not both")
        changes["top_p"] = None
    if limit is None:
        if traits.max_tokens_default is not None:
            changes["max_tokens"] = _find_default_limit(traits.max_tokens_default, thinking, adaptation)
    elif limit < traits.max_tokens_min:
        ledger.report_approximated_field("sampling.max_tokens", f"the target's minimum is {traits.max_tokens_min}")
        changes["max_tokens"] = traits.max_tokens_min
    elif limit > (most := traits.max_tokens_max or limit):
        ledger.report_approximated_field("sampling.max_tokens", f"the model's maximum is {most}")
        changes["max_tokens"] = most
    return structs.replace(sampling, **changes) if changes else sampling


def _round_top_k(top_k: float, adaptation: Adaptation) -> int:
    if not top_k.is_integer():
        adaptation.ledger.report_approximated_field("sampling.top_k", "the target takes only integers")
    return round(top_k)


def find_max_tokens(sampling: Sampling, traits: Traits) -> int:
    """Return the maximum number of tokens of the answer, reasoning included."""
    most = traits.max_tokens_max or NO_LIMIT
    return min(sampling.max_tokens, most) if sampling.max_tokens is not None else most


def _find_default_limit(default: int, thinking: Thinking | None, adaptation: Adaptation) -> int:
    """Return the `max_tokens` to send if the caller gave none: more than the default if thinking would use it up."""
    budget = thinking.budget if thinking is not None and thinking.budget is not None else 0
    if budget + adaptation.traits.budget_min <= default:
        return default
    return min(default + budget, adaptation.max_tokens)


def _adapt_stops(stops: tuple[str, ...], adaptation: Adaptation) -> tuple[str, ...]:
    """Return the stop sequences the target takes: at most `stop_max`, and no blank ones where it rejects those."""
    traits, ledger = adaptation.traits, adaptation.ledger
    pointer = ledger.find_pointer("sampling.stop")
    kept: list[str] = []
    for index, stop in enumerate(stops):
        if not traits.blank_stops and not stop.strip():
            ledger.report_dropped(f"{pointer}/{index}", "the target rejects stop sequences of only white space")
        elif len(kept) == traits.stop_max:
            ledger.report_dropped(f"{pointer}/{index}", f"the target takes at most {traits.stop_max} stop sequences")
        else:
            kept.append(stop)
    return tuple(kept)


def _find_accepted_parameters(thinking: Thinking, traits: Traits) -> frozenset[str]:
    """Return the sampling parameters a model accepts, which depends on whether thinking is on."""
    if thinking.mode in ("adaptive", "enabled"):
        return traits.sampling - traits.thinks_without
    return traits.sampling | traits.unthinking_sampling if thinking.effort == "none" else traits.sampling


@lru_cache
def _list_rejected(accepted_names: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in Sampling.__struct_fields__ if name not in accepted_names)


def adapt_identity(request: Request, adaptation: Adaptation) -> dict[str, Any]:
    """Return the changes to user, metadata, verbosity, candidate count and references to earlier responses."""
    changes: dict[str, Any] = {}
    if _get_identity(request) == _NO_IDENTITY:
        return changes
    traits, ledger = adaptation.traits, adaptation.ledger
    if request.candidates is not None:
        if request.candidates > 1:
            raise Problem(
                "unsupported",
                f"{request.candidates} candidates cannot be requested across dialects: "
                f"ask for 1 candidate and send the request {request.candidates} times",
                where=_find_field_pointer("candidates", adaptation),
            )
        changes["candidates"] = None
    if request.continues is not None and not traits.continues:
        raise Problem(
            "unsupported",
            "the target does not store earlier responses: send the whole conversation",
            where=_find_field_pointer("continues", adaptation),
        )
    for reference in request.references:
        raise Problem("unsupported", STORED_ELSEWHERE, where=reference.where, code=reference.code)
    for name in ("user", "metadata", "verbosity"):
        value = getattr(request, name)
        if value is not None and not getattr(traits, name):
            if value not in ({}, USUAL_VERBOSITY):
                ledger.report_dropped_field(name, "the target has no field for it")
            changes[name] = None
    user = request.user
    if user is not None and "user" not in changes and len(user) > traits.user_max:
        ledger.report_approximated_field(
            "user", f"shortened to {traits.user_max} characters, the same way for the same user"
        )
        changes["user"] = f"{user[: traits.user_max - 25]}_{hash_text(user, 24)}"
    return changes


def _find_field_pointer(field: str, adaptation: Adaptation) -> str:
    return adaptation.ledger.list_pointers(field)[0]
