"""A program that type checkers read: `assert_type` holds in pyright and in mypy."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, TypedDict, assert_type

import msgspec
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from dragoman import Agent, AgentConversation, ModelEndpoint, RunContext, RunResult, tool


@dataclass
class Report:
    city: str


class ReportDict(TypedDict):
    city: str


class ReportStruct(msgspec.Struct):
    city: str


class ReportModel(BaseModel):
    city: str


class Database:
    rows: dict[str, str]


@tool
def look_up(context: RunContext[Database], key: str) -> str:
    """Look something up."""
    return assert_type(context.deps.rows, dict[str, str])[key]


@tool(timeout=5)
async def count(words: list[str]) -> int:
    """Count words."""
    return len(words)


async def check() -> None:
    assert_type(Agent("m").run_sync("Hello"), RunResult[str])
    assert_type(Agent("m", tools=[look_up, count]).run_sync("Hello").output, str)
    assert_type(Agent("m", output_type=Report).run_sync("Hello").output, Report)
    assert_type(Agent("m", output_type=ReportDict).run_sync("Hello").output, ReportDict)
    assert_type(Agent("m", output_type=ReportStruct).run_sync("Hello").output, ReportStruct)
    assert_type(
        Agent(ModelEndpoint(base_url="u", model="m"), output_type=ReportModel).run_sync("H").output, ReportModel
    )
    assert_type(Agent(OpenAI(), output_type=Report).run_sync("H", model="m").output, Report)
    assert_type(Agent(AsyncOpenAI()).run_sync("H", model="m").output, str)
    assert_type(Agent(Anthropic()).run_sync("H").output, str)
    assert_type(Agent("m", output_type=list[Report]).run_sync("Hello").output, list[Report])
    assert_type(Agent("m", output_type=int), Agent[int])
    assert_type(Agent("m", output_type=Report | ReportModel).run_sync("Hello").output, Report | ReportModel)
    assert_type(Agent("m", output_type=Literal["sun", "rain"]).run_sync("Hello").output, Literal["sun", "rain"])
    assert_type((await Agent("m", output_type=Report).run("Hello", deps=Database())).output, Report)
    assert_type(Agent("m", output_type=Report).conversation("trip"), AgentConversation[Report])
    assert_type((await Agent("m", output_type=Report).conversation().run("Hello")).output, Report)
    assert_type(Agent("m").stream_text("Hello"), AsyncGenerator[str])
    async for step in Agent("m", output_type=Report).stream("Hello"):
        if isinstance(step, RunResult):
            assert_type(step.output, Report)
    assert_type(look_up.name, str)
    assert_type(await count(["a"]), int)
