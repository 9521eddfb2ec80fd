"""The definitions of tools in every dialect, and back."""

import asyncio
import dataclasses
from typing import Annotated, Literal

import msgspec
import pytest

import dragoman
from dragoman.tools import Executor, Handler, tool
from dragoman.tools.registry import Registry
from tools.tool_calls import call, handler, text_of

DIALECTS = ("chat", "responses", "messages", "gemini")
MODELS = {"chat": "gpt-5.2", "responses": "gpt-5.2", "messages": "claude-opus-5", "gemini": "gemini-3-flash"}


@dataclasses.dataclass
class Stop:
    """A place to stay at."""

    city: str
    nights: Annotated[int, "at least one"] = 1


@tool
def book(stops: list[Stop], style: Literal["train", "ship"] = "train", note: str | None = None) -> str:
    """Book a journey.

    Args:
        stops: where to stay, in order
        style: how to travel
        note: anything else
    """
    return f"{len(stops)} stops by {style}"


def plain() -> Registry:
    schema = b'{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}'
    return Registry(book, handler(str, "files__search", schema))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_renders_the_definitions_without_loss_and_parses_them_back(dialect):
    registry = plain()
    written, losses = dragoman.tools_to(dialect, registry.definitions, model=MODELS[dialect])
    assert losses == ()
    back = dragoman.tools_from(dialect, written)
    for definition, again in zip(registry.definitions, back, strict=True):
        assert (again.name, again.description) == (definition.name, definition.description)
        assert msgspec.json.decode(again.parameters) == msgspec.json.decode(definition.parameters or b"")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_definitions_of_every_dialect_can_be_registered(dialect):
    written, _ = dragoman.tools_to(dialect, plain().definitions, model=MODELS[dialect])
    registry = Registry()
    for definition in dragoman.tools_from(dialect, written):
        registry.register(Handler(definition=definition, run=sorted))
    result = asyncio.run(Executor(registry).execute(call("files__search", {"q": "x"})))
    assert text_of(result) == '["q"]'


def test_every_definition_is_one_that_can_be_offered():
    assert [error for definition in plain().definitions for error in dragoman.check_definition(definition)] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_of_every_dialect_is_run_and_its_result_rendered_in_it(dialect):
    asked = dragoman.ToolCall(id="call_1", name="book", arguments='{"stops": [{"city": "Oslo"}], "style": "ship"}')
    turn = dragoman.Message(role="assistant", parts=(asked,))
    written, _ = dragoman.messages_to(dialect, [turn], model=MODELS[dialect])
    calls = [part for message in dragoman.messages_from(dialect, written) for part in message.parts]
    results = asyncio.run(
        Executor(plain()).execute_all([part for part in calls if isinstance(part, dragoman.ToolCall)])
    )
    answer = dragoman.Message(role="user", parts=results)
    result, losses = dragoman.messages_to(dialect, [turn, answer], model=MODELS[dialect])
    assert b"1 stops by ship" in result
    # No model of Google's made this call, so none signed it.
    assert {loss.what for loss in losses} <= {"a call without a signature is sent with Google's documented placeholder"}
