"""Adapt a request to a target: every change is made here, and every loss reported.

What leaves this function can be said in the target's dialect without loss; `Undo` turns the answer back. Of too many
cache marks the last stay: a mark keeps all that is before it, so the earlier ones matter least. A mark that asks to
live longer than one before it asks for as long as that.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import is_

from msgspec import structs

from dragoman.core.parts import AnyPart, Reasoning, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Thinking, Tool, leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter import carry
from dragoman.interpreter.arrange import answered, arranged
from dragoman.interpreter.fitting import Fitting, Unfetched
from dragoman.interpreter.foreign_fields import (
    BORROWED_MARK,
    book_unsaid,
    borrowed_mark,
    seconds,
    shared_fields,
    shared_value,
)
from dragoman.interpreter.history import fit_messages
from dragoman.interpreter.knobs import fit_identity, fit_output, fit_sampling, fit_thinking, most_tokens
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.text_calls.prompt import in_words
from dragoman.interpreter.tools import fit_tools
from dragoman.interpreter.undo import Arguments, Undo


def marks_agree(messages: Sequence[Message], most: int) -> bool:
    """Tell whether the marks of a history can all stand wherever it is cut: few enough, and of one lifetime."""
    lifetimes = [lifetime for message in messages for part in message.parts for lifetime in _asked(part)]
    return len(lifetimes) <= most and len(set(lifetimes)) < 2


def _asked(part: AnyPart) -> Iterator[str]:
    for item in part.content if isinstance(part, ToolResult) else ():
        yield from _asked(item)
    if part.cache is not None:
        yield part.cache
    elif part.extras is not None:
        place, lifetime = borrowed_mark(part.extras)
        if place is not None:
            yield lifetime


def fit_marks(turns: tuple[Message, ...], traits: Traits, ledger: Ledger) -> tuple[Message, ...]:
    """Return turns with as many marks as the target takes, in an order it takes."""
    if traits.cache_marks_max is None:
        return turns
    count = sum(1 for turn in turns for part in turn.parts for _ in _asked(part))
    return _Marks(traits, ledger, count - traits.cache_marks_max).fitted(turns) if count else turns


class _Marks:
    def __init__(self, traits: Traits, ledger: Ledger, surplus: int) -> None:
        self._most = traits.cache_marks_max
        self._default = traits.cache_lifetimes[0]
        """How long a mark lives that does not say it."""
        self._ledger = ledger
        self._surplus = surplus
        self._shortest: str | None = None

    def fitted(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        fitted: list[Message] = []
        for turn in turns:
            parts = tuple(self._part(part) for part in turn.parts)
            same = all(map(is_, parts, turn.parts))
            fitted.append(turn if same else structs.replace(turn, parts=parts))
        return tuple(fitted)

    def _part(self, part: AnyPart) -> AnyPart:
        if isinstance(part, ToolResult) and any(item.cache is not None for item in part.content):
            content = tuple(self._part(item) for item in part.content)
            part = structs.replace(part, content=content)
        if part.cache is None:
            return part
        lifetime = self._lifetime(part, part.cache)
        return part if lifetime == part.cache else structs.replace(part, cache=lifetime)

    def _lifetime(self, part: AnyPart, asked: str) -> str | None:
        if self._surplus > 0:
            self._surplus -= 1
            self._ledger.dropped(self._place(part), f"the target takes {self._most} cache marks: the last stand")
            return None
        shortest = self._shortest
        if shortest is not None and seconds(asked or self._default) > seconds(shortest or self._default):
            self._ledger.approximated(f"{self._place(part)}/ttl", "no mark may live longer than one before it")
            return shortest
        self._shortest = asked
        return asked

    def _place(self, part: AnyPart) -> str:
        """Return where a mark stands in the caller's document, in the caller's words or in borrowed ones."""
        place, borrowed = self._ledger.place("part.cache", part), part.where + BORROWED_MARK
        return borrowed if self._ledger.has(borrowed) and not self._ledger.has(place) else place


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
        turns = tuple(answered(list(turns), ledger))
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
    if carry.has_envelope(messages):
        messages = carry.restored(carry.rejoined(messages, fitting))
    fitted = fit_messages(messages, fitting)
    if fitting.instructions:
        # What the target has no field for is asked for in words, at the end of the system prompt.
        words = Message(role="system", parts=(Text(text="\n".join(fitting.instructions)),))
        fitted.insert(leading_systems(fitted), words)
    return arranged(fitted, fitting.traits, fitting.ledger, begins=begins, repair=fitting.pair)


def thinking_in(turns: tuple[Message, ...], thinking: Thinking, request: Request, ledger: Ledger) -> Thinking:
    """Switch manual thinking off within a tool loop that another model began: Claude wants its own thoughts there."""
    if len(turns) < 2:
        return thinking
    last, answer = turns[-2], turns[-1]
    begun_elsewhere = last.role == "assistant" and not isinstance(last.parts[0], Reasoning)
    if begun_elsewhere and any(isinstance(part, ToolResult) for part in answer.parts):
        for name in ("mode", "effort", "budget"):
            if getattr(request.thinking, name) is not None:
                what = "off within a tool loop that began without Claude's thoughts"
                ledger.field_approximated(f"thinking.{name}", what)
        return Thinking(mode="disabled")
    return thinking


def _extras(request: Request, tools: tuple[Tool | NativeTool, ...], fitting: Fitting) -> Extras | None:
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
