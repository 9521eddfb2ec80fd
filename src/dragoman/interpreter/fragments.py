"""The vocabulary of tool calling on its own: definitions, choice, calls and results, from and to each dialect.

A fragment is read and written as part of the smallest request that holds it, by the same code as whole requests.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, Request, ToolChoice
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.traits import traits_for
from dragoman.wire import json
from dragoman.wire.lookup import lookup

Fragment = Literal["tools", "tool_choice", "messages"]


def tools_from(dialect: str, tools: bytes) -> tuple[AnyTool, ...]:
    """Read the tools of a request: the JSON of its `tools` member."""
    return _request_with(dialect_named(dialect), "tools", tools).tools


def choice_from(dialect: str, choice: bytes) -> ToolChoice | None:
    """Read a tool choice: the JSON of `tool_choice`, or of Gemini's `functionCallingConfig`."""
    return _request_with(dialect_named(dialect), "tool_choice", choice).tool_choice


def messages_from(dialect: str, messages: bytes) -> tuple[Message, ...]:
    """Read messages with their calls and results: the JSON of `messages`, `input` or `contents`."""
    return _request_with(dialect_named(dialect), "messages", messages).messages


def tools_to(dialect: str, tools: Sequence[AnyTool], model: str = "") -> tuple[bytes, tuple[Loss, ...]]:
    """Write tools for `model`, and tell what could not be said."""
    return _written(dialect, Request(model=model, messages=(), tools=tuple(tools)), "tools", b"[]")


def choice_to(
    dialect: str, choice: ToolChoice, tools: Sequence[AnyTool], model: str = ""
) -> tuple[bytes, tuple[Loss, ...]]:
    """Write a choice among `tools`; `null` where there is nothing to say.

    One call at a time is a switch of its own in Chat and Responses (`parallel_tool_calls`): it is told as a loss.
    """
    request = Request(model=model, messages=(), tools=tuple(tools), tool_choice=choice)
    return _written(dialect, request, "tool_choice", b"null")


def messages_to(dialect: str, messages: Sequence[Message], model: str = "") -> tuple[bytes, tuple[Loss, ...]]:
    """Write messages with their calls and results."""
    return _written(dialect, Request(model=model, messages=tuple(messages)), "messages", b"[]")


def _place(dialect: Dialect, fragment: Fragment) -> str:
    return dialect.pointers[fragment][0]


def _request_with(dialect: Dialect, fragment: Fragment, value: bytes) -> Request:
    if not json.is_json(value):
        raise Problem("invalid_request", "not JSON", where=_place(dialect, fragment))
    body = json.graft(b"{}", {_place(dialect, "messages"): b"[]", "/model": b'""'} | {_place(dialect, fragment): value})
    return dialect.parse_request(Call(body))


def _written(dialect: str, request: Request, fragment: Fragment, nothing: bytes) -> tuple[bytes, tuple[Loss, ...]]:
    here = dialect_named(dialect)
    traits = traits_for(dialect, request.model)
    ledger = Ledger({})
    # A fragment may stand anywhere in a conversation, so nothing is demanded of how it begins and ends.
    free = structs.replace(traits, starts_with_user=False, prefill=True, stub_tools=False)
    adapted, _ = adapt(request, Adaptation(free, ledger, ""))
    body = here.render_request(adapted, traits).body
    place = _place(here, fragment)
    found = lookup(body, place)
    if request.tool_choice is not None and request.tool_choice.parallel is False:
        for switch in here.pointers.get("tool_choice.parallel", ()):
            if not switch.startswith(f"{place}/") and lookup(body, switch) is not None:
                ledger.dropped(request.tool_choice.where, f"said beside the choice: {switch} is false")
    return (found[1] if found is not None else nothing), ledger.losses()
