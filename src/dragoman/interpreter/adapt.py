"""Adapt a request to a target: every change is made here or below, and every loss reported.

What `adapt` returns can be rendered in the target's dialect without loss; `Undo` turns the reply back. Sampling and
identity are adapted here, everything else by subject in its own module.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, Request, Sampling, Thinking, Tool, leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import KEPT_ELSEWHERE, NO_LIMIT, Fitting, Unfetched
from dragoman.interpreter.cache_marks import fit_marks
from dragoman.interpreter.foreign_fields import NEUTRAL, USUAL_VERBOSITY, book_unsaid, shared_fields, shared_value
from dragoman.interpreter.history import arranged, fit_messages
from dragoman.interpreter.output_format import fit_output
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.signature_envelopes import rejoined, restored
from dragoman.interpreter.signatures import has_envelope
from dragoman.interpreter.text_calls.prompt import in_words
from dragoman.interpreter.thinking import fit_thinking, thinking_in
from dragoman.interpreter.tools import fit_tools
from dragoman.interpreter.turns import end_with_user
from dragoman.interpreter.undo import Arguments, Undo, digest

_NO_WORDS: frozenset[str] = frozenset()


def adapt(
    request: Request, fitting: Fitting, prefix_of: Callable[[Arguments], Prefix] | None = None
) -> tuple[Request, Undo]:
    """Return `request` as the target of `fitting` can take it, and how to undo that in the reply.

    `prefix_of` returns the prefix of its history that is translated already; that is not adapted again. Raise
    `Unfetched` if media is missing.
    """
    traits, ledger = fitting.traits, fitting.ledger
    undo: Undo | None = None
    if traits.text_calls and (said := in_words(request, fitting.source_issuer, traits, ledger)) is not None:
        request, undo = said.request, said.undo
    if not traits.function_tools and any(isinstance(tool, Tool) for tool in request.tools):
        raise Problem("unsupported", "this model takes tools only on OpenAI's Responses", where=ledger.place("tools"))
    changes = fit_identity(request, fitting)
    thinking = None
    if request.thinking is not None or traits.tools_need_no_effort:
        fitting.max_tokens = most_tokens(request.sampling, traits)
        thinking = fit_thinking(request, fitting)
    # Claude's manual thinking and a forced tool exclude each other.
    fitting.forced = traits.forced_choice and (thinking is None or thinking.mode != "enabled")
    tools, choice = fit_tools(request, fitting)
    output = fit_output(request, fitting) if request.output is not None else None
    prefix, messages = NO_PREFIX, request.messages
    if prefix_of is not None:
        prefix = prefix_of(fitting.retold)
        messages = _after_prefix(prefix, messages, fitting)
    turns = fitted_turns(messages, fitting, begins=not prefix.messages)
    if fitting.links is not None and fitting.links.missing:
        raise Unfetched(fitting.links.missing)
    if output is not None and not traits.prefill_formatted:
        turns = tuple(end_with_user(list(turns), ledger))
    if fitting.marked:
        turns = fit_marks(turns, traits, ledger)
    if thinking is not None and thinking.mode == "enabled":
        thinking = thinking_in(turns, thinking, request, ledger)
    adapted = structs.replace(
        request,
        model=fitting.model or request.model,
        messages=turns,
        tools=tools,
        tool_choice=choice,
        sampling=fit_sampling(request.sampling, fitting, thinking),
        thinking=thinking,
        output=output,
        extras=_extras(request, tools, fitting),
        spelling=_NO_WORDS,
        written=prefix.written,
        written_tools=fitting.written_tools,
        **changes,
    )
    return adapted, undo or fitting.undo()


def _after_prefix(prefix: Prefix, messages: tuple[Message, ...], fitting: Fitting) -> tuple[Message, ...]:
    """Return instructions and what follows the prefix, and go on in `fitting` from where that ended."""
    if not prefix.messages:
        return messages
    fitting.ledger.go_on(prefix.once, prefix.losses)
    fitting.names.update(prefix.names)
    fitting.runs, fitting.unnamed = prefix.runs, prefix.unnamed
    return (*messages[: leading_systems(messages)], *messages[prefix.end_in(messages) :])


def fitted_turns(messages: tuple[Message, ...], fitting: Fitting, *, begins: bool) -> tuple[Message, ...]:
    """Return messages as the target's turns; `begins` tells whether the conversation begins with them."""
    if has_envelope(messages):
        messages = restored(rejoined(messages, fitting))
    fitted = fit_messages(messages, fitting)
    if fitting.instructions:
        # What the target has no field for is asked for in words, at the end of the system prompt.
        words = Message(role="system", parts=(Text(text="\n".join(fitting.instructions)),))
        fitted.insert(leading_systems(fitted), words)
    return arranged(fitted, fitting.traits, fitting.ledger, begins=begins, repair=fitting.pair)


def _extras(request: Request, tools: tuple[AnyTool, ...], fitting: Fitting) -> Extras | None:
    """Drop what only the source understands, keep what the target understands too, add what it demands."""
    traits = fitting.traits
    if request.extras is None and not (request.stream or traits.unkept or traits.native_mix):
        return None
    kept: dict[str, bytes] = {}
    if request.extras is not None:
        shared = shared_fields(request.extras.dialect, traits.dialect)
        for pointer, raw in request.extras.fields.items():
            if pointer not in shared:
                book_unsaid(pointer, raw, request.extras.dialect, fitting.traits.dialect, fitting.ledger)
            elif raw != b"null" and (taken := shared_value(pointer, raw, fitting)) is not None:
                kept[pointer] = taken
    if request.stream and traits.asks_usage:
        kept["/stream_options"] = b'{"include_usage":true}'
    for pointer, raw in traits.unkept:
        kept.setdefault(pointer, raw)
    if traits.native_mix and len({type(tool) for tool in tools}) > 1:
        kept.update(traits.native_mix)
    return Extras(traits.dialect, kept) if kept else None


_get_identity = attrgetter("candidates", "continues", "references", "user", "metadata", "verbosity")
_NO_IDENTITY = (None, None, (), None, None, None)


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
