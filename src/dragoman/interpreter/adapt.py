"""Fit a request to a target: every change is made here, and booked here.

What leaves this function can be said in the target's dialect without loss; `Undo` turns the answer back.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from dragoman.core.parts import Reasoning, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import (
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Thinking,
    Tool,
    ToolChoice,
    leading_systems,
)
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.interpreter import carry
from dragoman.interpreter.arrange import answered, arranged
from dragoman.interpreter.cache_marks import fit_marks
from dragoman.interpreter.fitting import Arguments, Fitting, Undo
from dragoman.interpreter.heeded import book_unsaid
from dragoman.interpreter.history import fit_messages
from dragoman.interpreter.kin import shared_fields, shared_value
from dragoman.interpreter.knobs import fit_identity, fit_output, fit_sampling, fit_thinking, most_tokens
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.links import Links
from dragoman.interpreter.recall import NOTHING, Beginning
from dragoman.interpreter.repair import paired
from dragoman.interpreter.text_calls.saying import in_words
from dragoman.interpreter.tools import fit_tools


def adapt(  # noqa: PLR0913, PLR0917  a request, its target, and what is known beside both
    request: Request,
    source_issuer: str,
    traits: Traits,
    ledger: Ledger,
    recalled: Callable[[Arguments], Beginning] = lambda _: NOTHING,
    links: Links | None = None,
) -> tuple[Request, Undo]:
    """Return `request` as `traits` can take it, and how to undo that in the reply.

    A beginning of its history that was translated by itself is `recalled`, and not looked at again.
    """
    said = in_words(request, source_issuer, traits, ledger) if traits.text_calls else None
    request = said.request if said is not None else request
    fitting = Fitting(traits, ledger, source_issuer, most_tokens(request.sampling, traits), links=links)
    settled = settle(request, fitting)
    messages = request.messages
    beginning = recalled(fitting.retold())
    if beginning.messages:
        ledger.go_on(beginning.once, beginning.losses)
        fitting.names.update(beginning.names)
        messages = (*messages[: leading_systems(messages)], *messages[beginning.end_in(messages) :])
    turns = history_fitted(messages, settled, fitting, begins=not beginning.messages)
    thinking = thinking_in(turns, settled.thinking, request, ledger)
    asked = structs.replace(request, messages=turns, written=beginning.written)
    undo = said.undo if said is not None else None
    return frame_fitted(asked, settled, thinking, fitting), undo or fitting.undo()


class Settled(Struct, frozen=True):
    """What is settled of a request before its history is looked at."""

    identity: dict[str, Any]
    thinking: Thinking | None
    tools: tuple[Tool | NativeTool, ...]
    choice: ToolChoice | None
    output: OutputFormat | None


def settle(request: Request, fitting: Fitting) -> Settled:
    """Fit what has a say in how the history is fitted."""
    traits, ledger = fitting.traits, fitting.ledger
    if not traits.function_tools and any(isinstance(tool, Tool) for tool in request.tools):
        raise Problem("unsupported", "this model takes tools only on OpenAI's Responses", where=ledger.place("tools"))
    identity = fit_identity(request, fitting)
    thinking = fit_thinking(request, fitting)
    # Claude's manual thinking and a forced tool exclude each other.
    fitting.forced = traits.forced_choice and not (thinking is not None and thinking.mode == "enabled")
    tools, choice = fit_tools(request, fitting)
    return Settled(identity, thinking, tools, choice, fit_output(request, fitting))


def history_fitted(
    messages: tuple[Message, ...], settled: Settled, fitting: Fitting, *, begins: bool
) -> tuple[Message, ...]:
    """Return the history, or what is not known of it, as the target takes it beside what is settled."""
    traits, ledger = fitting.traits, fitting.ledger
    turns = fitted_turns(messages, fitting, begins=begins)
    if fitting.links is not None:
        fitting.links.require()
    if settled.output is not None and not traits.prefill_formatted:
        turns = tuple(answered(list(turns), ledger))
    return fit_marks(turns, traits, ledger) if fitting.marked else turns


def frame_fitted(request: Request, settled: Settled, thinking: Thinking | None, fitting: Fitting) -> Request:
    """Return all but the history as the target takes it, thinking as the history lets it stand."""
    return structs.replace(
        request,
        tools=settled.tools,
        tool_choice=settled.choice,
        sampling=fit_sampling(request.sampling, fitting, thinking),
        thinking=thinking,
        output=settled.output,
        extras=_extras(request, settled.tools, fitting),
        spelling=frozenset(),
        **settled.identity,
    )


def fitted_turns(messages: tuple[Message, ...], fitting: Fitting, *, begins: bool) -> tuple[Message, ...]:
    """Return messages as the target's turns; `begins` tells whether the conversation begins with them."""
    traits, ledger = fitting.traits, fitting.ledger
    if carry.has_envelope(messages):
        messages = carry.restored(carry.rejoined(messages, fitting))
    fitted = paired(fit_messages(messages, fitting), traits, ledger)
    return arranged(_instructed(fitted, fitting), traits, ledger, begins=begins)


def thinking_in(
    turns: tuple[Message, ...], thinking: Thinking | None, request: Request, ledger: Ledger
) -> Thinking | None:
    """Switch manual thinking off within a tool loop that another model began: Claude wants its own thoughts there."""
    if thinking is None or thinking.mode != "enabled" or len(turns) < 2:
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


def _instructed(messages: list[Message], fitting: Fitting) -> list[Message]:
    """Say in words, at the end of the system prompt, what the target has no field for."""
    if not fitting.instructions:
        return messages
    leading = leading_systems(messages)
    words = Message(role="system", parts=(Text(text="\n".join(fitting.instructions)),))
    return [*messages[:leading], words, *messages[leading:]]


def _extras(request: Request, tools: tuple[Tool | NativeTool, ...], fitting: Fitting) -> Extras | None:
    """Drop what only the source understands, keep what the target understands too, add what it demands."""
    traits = fitting.traits
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
