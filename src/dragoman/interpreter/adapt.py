"""Adapt a request to a target: change what the target does not accept, and report every loss.

The request that `adapt` returns can be rendered in the target's dialect without further loss; `Undo` restores the
reply. Each subject has a module of its own, which is called only if the request or the target needs it.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, NativeTool, Request, Sampling, Thinking, Tool, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.cache_marks import limit_marks
from dragoman.interpreter.deferred_tools import has_deferred, has_too_many, load_tools, require_search
from dragoman.interpreter.foreign_fields import find_shared_fields, report_unknown
from dragoman.interpreter.history import adapt_messages, arrange_turns
from dragoman.interpreter.parameters import adapt_output, adapt_shared_value, adapt_thinking, adapt_tool_loop
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.request_fields import adapt_identity, adapt_sampling, find_max_tokens
from dragoman.interpreter.search_limits import MAX_USES, find_max_uses, take_call_limit
from dragoman.interpreter.search_settings import merge_lists
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX, join_thoughts, open_envelopes
from dragoman.interpreter.text_call_prompt import describe_tools
from dragoman.interpreter.tool_kinds import declares_search
from dragoman.interpreter.tools import adapt_request_tools
from dragoman.interpreter.translation import MissingLinks
from dragoman.interpreter.turns import end_with_user
from dragoman.interpreter.undo import Arguments, Undo

_NO_SPELLING: frozenset[str] = frozenset()
_NO_SAMPLING = Sampling()
_get_identity = attrgetter("candidates", "continues", "references", "user", "metadata", "verbosity")
_NO_IDENTITY = (None, None, (), None, None, None)


def adapt(
    request: Request, adaptation: Adaptation, prefix_of: Callable[[Arguments], Prefix] | None = None
) -> tuple[Request, Undo]:
    """Return `request` as the target of `adaptation` accepts it, and how to undo the changes in the reply.

    `prefix_of` returns the prefix of the history that is translated already; it is not adapted again. Raise
    `MissingLinks` if media must be fetched first.
    """
    traits, ledger = adaptation.traits, adaptation.ledger
    undo: Undo | None = None
    request = _load(request, adaptation)
    if traits.text_calls and (prompt := describe_tools(request, adaptation.source_issuer, traits, ledger)) is not None:
        request, undo = prompt.request, prompt.undo
    if traits.tools_elsewhere and any(isinstance(tool, Tool) for tool in request.tools):
        raise Problem(
            "unsupported",
            f"this model takes tools only in {traits.tools_elsewhere}",
            where=ledger.find_pointer("tools"),
        )
    changes = adapt_identity(request, adaptation) if _get_identity(request) != _NO_IDENTITY else {}
    thinking = None
    if request.thinking is not None or traits.tools_need_no_effort:
        adaptation.max_tokens = find_max_tokens(request.sampling, traits)
        thinking = adapt_thinking(request, adaptation)
    adaptation.can_force = _can_force(traits, thinking)
    tools, choice = adapt_request_tools(request, adaptation)
    output = adapt_output(request, adaptation) if request.output is not None else None
    prefix, messages = NO_PREFIX, request.messages
    if prefix_of is not None and not adaptation.has_tool_search:
        prefix = prefix_of(adaptation.history_changes)
        messages = _drop_prefix(prefix, messages, adaptation)
    turns = adapt_turns(messages, adaptation, is_start=not prefix.messages)
    if adaptation.links is not None and adaptation.links.missing:
        raise MissingLinks(adaptation.links.missing)
    if output is not None and not traits.prefill_formatted:
        turns = tuple(end_with_user(list(turns), ledger))
    if adaptation.has_cache_marks:
        turns = limit_marks(turns, traits, ledger)
    if thinking is not None:
        thinking = adapt_tool_loop(turns, thinking, request, adaptation)
    sampling = request.sampling
    if sampling != _NO_SAMPLING or traits.max_tokens_default is not None:
        sampling = adapt_sampling(sampling, adaptation, thinking)
    adapted = structs.replace(
        request,
        model=adaptation.model or request.model,
        messages=turns,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        thinking=thinking,
        output=output,
        extras=_adapt_extras(request, tools, adaptation),
        spelling=_NO_SPELLING,
        written=prefix.written,
        written_tools=adaptation.written_tools,
        marks_ends=adaptation.adds_cache_marks and traits.cache_needs_marks and not adaptation.has_cache_marks,
        **changes,
    )
    return adapted, undo or adaptation.build_undo()


def _load(request: Request, adaptation: Adaptation) -> Request:
    """Return the request with the tools that the target gets now, if some are deferred or they are too many."""
    if request.extras is not None and MAX_USES in dialect_named(adaptation.traits.dialect).search_settings:
        request = take_call_limit(request)
    if _has_deferred(request.tools, adaptation):
        return load_tools(request, adaptation)
    if len(request.tools) > adaptation.traits.tools_max and has_too_many(request.tools, adaptation.traits):
        require_search(request, adaptation.ledger.find_pointer("tools"), adaptation.turn_functions)
    return request


def _has_deferred(tools: tuple[AnyTool, ...], adaptation: Adaptation) -> bool:
    """Return whether some tools are deferred; for an array of tools that is cached, that is known."""
    known = adaptation.tool_set
    is_cached = known is not None and known.tools is tools
    if known is not None and is_cached and known.has_deferred is not None:
        return known.has_deferred
    found = any(type(tool) is NativeTool or tool.extras is not None for tool in tools) and has_deferred(tools)
    if known is not None and is_cached:
        known.has_deferred = found
    return found


def _can_force(traits: Traits, thinking: Thinking | None) -> bool:
    """Return whether the model can be forced to call a tool: some cannot be while they think."""
    mode = thinking.mode if thinking is not None else None
    if not traits.forced_choice:
        return traits.forced_unthinking and mode == "disabled"
    # Claude's manual thinking and a forced tool exclude each other.
    return mode != "enabled" or traits.thinking == "switch"


def _drop_prefix(prefix: Prefix, messages: tuple[Message, ...], adaptation: Adaptation) -> tuple[Message, ...]:
    """Return the leading system messages and what follows the prefix; continue `adaptation` from the prefix's state."""
    if not prefix.messages:
        return messages
    adaptation.ledger.resume(prefix.reported_once, prefix.losses)
    adaptation.names.update(prefix.names)
    adaptation.runs, adaptation.unnamed, adaptation.calls = prefix.runs, prefix.unnamed, prefix.call_count
    adaptation.has_cache_marks = prefix.has_cache_marks
    return (*messages[: count_leading_systems(messages)], *messages[prefix.find_end(messages) :])


def has_envelope(messages: Iterable[Message]) -> bool:
    """Return whether a signature came back in an envelope, which is rare."""
    for message in messages:
        if message.role == "assistant":
            for part in message.parts:
                if part.signature is not None and part.signature.value.startswith(ENVELOPE_PREFIX):
                    return True
    return False


def adapt_turns(messages: tuple[Message, ...], adaptation: Adaptation, *, is_start: bool) -> tuple[Message, ...]:
    """Return messages as the target's turns; `is_start` means that they are the first of the conversation."""
    if has_envelope(messages):
        traits = adaptation.traits
        unsigned_issuer = traits.issuer if traits.unsigned_reasoning else ""
        messages = open_envelopes(join_thoughts(messages, adaptation), unsigned_issuer)
    adapted = adapt_messages(messages, adaptation)
    if adaptation.instructions:
        # What the target has no field for is requested in the prompt, at the end of the system messages.
        instructions = Message(role="system", parts=(Text(text="\n".join(adaptation.instructions)),))
        adapted.insert(count_leading_systems(adapted), instructions)
    return arrange_turns(adapted, adaptation, is_start=is_start)


def _adapt_extras(request: Request, tools: tuple[AnyTool, ...], adaptation: Adaptation) -> Extras | None:
    """Drop fields that only the source dialect has, keep those the target shares, add those the target requires."""
    traits = adaptation.traits
    if request.extras is None and not (request.stream or traits.unkept or traits.native_mix):
        return None
    kept: dict[str, bytes] = {}
    if request.extras is not None:
        shared = find_shared_fields(request.extras.dialect, traits.dialect)
        for pointer, raw in request.extras.fields.items():
            if (field := shared.get(pointer)) is None:
                report_unknown(pointer, raw, request.extras.dialect, adaptation.traits.dialect, adaptation.ledger)
            elif raw != b"null" and (value := adapt_shared_value(pointer, raw, field, adaptation)) is not None:
                kept[pointer] = value
    if request.stream:
        kept.update(traits.stream_fields)
    for pointer, raw in traits.unkept:
        kept.setdefault(pointer, raw)
    if traits.search_fields and declares_search(tools):
        for pointer, raw in traits.search_fields:
            kept[pointer] = merge_lists(kept.get(pointer), raw)
        limit, max_uses = dialect_named(traits.dialect).call_limit, find_max_uses(request.tools)
        if limit and max_uses is not None:
            kept[limit] = max_uses
    if traits.native_mix and len({type(tool) for tool in tools}) > 1:
        kept.update(traits.native_mix)
    return Extras(traits.dialect, kept) if kept else None
