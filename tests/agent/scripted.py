"""A model that returns scripted replies and records its requests."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from dragoman.agent import Agent, RunEnded, Step
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.response import Finish, FinishReason, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.tools import Executor, Handler, Registry
from event_grammar import check_events

Turn = Sequence[AnyPart] | Problem | Callable[[Request], Sequence[AnyPart]]


def call(name: str, arguments: Any = None, id_: str = "call_1", **more: Any) -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=json.dumps({} if arguments is None else arguments), **more)


def user_request(text: str = "go", **more: Any) -> Request:
    return Request(model="scripted", messages=(Message(role="user", parts=(Text(text=text),)),), **more)


def reply(parts: Sequence[AnyPart], number: int = 1, reason: FinishReason | None = None) -> Response:
    calls = any(isinstance(part, ToolCall) for part in parts)
    usage = Usage(input=10 * number, output=number)
    finish = Finish(reason or ("tool_calls" if calls else "stop"))
    return Response(id=f"reply_{number}", model="scripted", parts=tuple(parts), finish=finish, usage=usage)


class Scripted:
    """Says one turn after the other; the last one again and again."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = turns
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        self.requests.append(request)
        number = len(self.requests)
        turn = self._turns[min(number, len(self._turns)) - 1]
        if isinstance(turn, Problem):
            raise turn
        parts = turn(request) if callable(turn) else turn
        for event in replay(reply(parts, number)):
            await asyncio.sleep(0)
            yield event


def agent(model: Any, *handlers: Any, **settings: Any) -> Agent:
    return Agent(model, Executor(Registry(*handlers)), **settings)


def steps(made: Agent, request: Request | None = None) -> list[Step]:
    async def read() -> list[Step]:
        return [step async for step in made.steps(request or user_request())]

    return asyncio.run(read())


def run_to_end(made: Agent, request: Request | None = None) -> RunEnded:
    last = steps(made, request)[-1]
    assert isinstance(last, RunEnded)
    return last


def whole(made: Agent, request: Request | None = None) -> Response:
    """Return the one reply of a run, checked against the grammar of replies."""

    async def read() -> list[Event]:
        return [event async for event in made(request or user_request())]

    return collect(check_events(asyncio.run(read())))


def results_of(request: Request) -> list[ToolResult]:
    return [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]


def text_of(result: ToolResult) -> str:
    return "".join(part.text if isinstance(part, Text) else part.json.decode() for part in result.content)  # type: ignore[union-attr]


__all__ = [
    "Handler",
    "Scripted",
    "agent",
    "call",
    "reply",
    "results_of",
    "run_to_end",
    "steps",
    "text_of",
    "user_request",
    "whole",
]
