"""Adapt sampling parameters, and the fields that identify a request: user, metadata, earlier responses."""

from functools import lru_cache
from typing import Any

from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.core.request import Request, Sampling, Thinking
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import NO_LIMIT, STORED_ELSEWHERE, Adaptation
from dragoman.interpreter.choices import SeveralChoices
from dragoman.interpreter.foreign_fields import NEUTRAL, USUAL_VERBOSITY
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.undo import hash_text

_UNSET = -1
"""The value of `top_p` and `top_k` for "no limit" at local servers such as vLLM, which their clients send to others."""


def adapt_sampling(sampling: Sampling, adaptation: Adaptation, thinking: Thinking | None = None) -> Sampling:
    """Drop sampling parameters the model does not accept, clamp the others to its limits, add those it requires."""
    traits, ledger = adaptation.traits, adaptation.ledger
    changes: dict[str, Any] = {}
    if _UNSET in (sampling.top_p, sampling.top_k):
        unset = {name: None for name in ("top_p", "top_k") if getattr(sampling, name) == _UNSET}
        sampling = structs.replace(sampling, **unset)
    for name in _list_rejected(_find_accepted_parameters(thinking, traits)):
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


def _find_accepted_parameters(thinking: Thinking | None, traits: Traits) -> frozenset[str]:
    """Return the sampling parameters a model accepts, which depends on whether thinking is on."""
    if not traits.unthinking_sampling and not traits.thinks_without:
        return traits.sampling
    if thinking is None or (thinking.mode is None and thinking.effort is None):
        return traits.sampling if traits.thinks_by_default else traits.sampling | traits.unthinking_sampling
    if thinking.mode in ("adaptive", "enabled"):
        return traits.sampling - traits.thinks_without
    return traits.sampling | traits.unthinking_sampling if thinking.effort == "none" else traits.sampling


def thinks(thinking: Thinking | None, traits: Traits) -> bool:
    """Return whether a model thinks with these settings."""
    if thinking is None or (thinking.mode is None and thinking.effort is None):
        return traits.thinks_by_default
    return thinking.mode != "disabled" and thinking.effort != "none"


@lru_cache
def _list_rejected(accepted_names: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in Sampling.__struct_fields__ if name not in accepted_names)


def require_one_choice(request: Request, traits: Traits, ledger: Ledger) -> None:
    """Raise `SeveralChoices` if a request asks for more than one choice, or a `Problem` if for none."""
    count, where = request.candidates, ledger.find_pointer("candidates")
    if count is not None and count < 1:
        raise Problem("invalid_request", f"{where.rpartition('/')[2]} is {count}; it must be at least 1", where=where)
    if count is not None and count > 1:
        raise SeveralChoices(count, where, request.sampling.seed if "seed" in traits.sampling else None)


def adapt_identity(request: Request, adaptation: Adaptation) -> dict[str, Any]:
    """Return the changes to user, metadata, verbosity, candidate count and references to earlier responses."""
    changes: dict[str, Any] = {}
    traits, ledger = adaptation.traits, adaptation.ledger
    if request.candidates is not None:
        require_one_choice(request, traits, ledger)
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
