"""Tools get the dependencies of the run by type."""

import asyncio
from typing import Any, Protocol, runtime_checkable

import pytest

from dragoman.core.parts import ToolCall
from dragoman.tools import Executor, Registry, RunContext, ToolDefinitionError, progress_to, tool
from dragoman.tools.context import check_dependencies, find_dependency


class Animal:
    pass


class Dog(Animal):
    pass


@runtime_checkable
class Speaks(Protocol):
    def speak(self) -> str: ...


class Cat(Animal):
    def speak(self) -> str:
        return "miaow"


DOG, CAT = Dog(), Cat()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Dog, DOG), (Animal, DOG), (Speaks, CAT), (Cat | int, CAT), (list[int], [1]), (Any, DOG), (None, None)],
)
def test_a_dependency_is_found_by_its_type(kind, expected):
    assert find_dependency(kind, (DOG, CAT, [1])) == expected


def test_an_exact_type_comes_before_a_subclass():
    animal = Animal()
    assert find_dependency(Animal, (DOG, animal)) is animal


@tool
def pet(name: str, context: RunContext[Dog]) -> str:
    """Pet a dog."""
    context.report(1, 2, "pats")
    return f"{context.call.id} {context.key} {type(context.deps).__name__} {name}"


@tool
def plain(context: RunContext) -> str:
    """Need no dependency."""
    return str(context.deps)


def test_a_tool_gets_its_dependency_and_reports_progress():
    async def run():
        reports = []
        executor = Executor(Registry(pet, plain)).of(deps=(DOG,))
        with progress_to(reports.append):
            first = await executor.execute(ToolCall(id="c1", name="pet", arguments='{"name": "Rex"}'), "key")
        second = await executor.execute(ToolCall(id="c2", name="plain", arguments=""))
        return first.content[0].text, second.content[0].text, [each.message for each in reports]

    assert asyncio.run(run()) == ("c1 key Dog Rex", "None", ["pats"])
    assert b"context" not in pet.definition.parameters


def test_a_missing_dependency_names_the_tool_the_parameter_and_the_type():
    check_dependencies(Registry(pet, plain), (DOG,))
    with pytest.raises(TypeError, match="parameter 'context' of tool 'pet' needs a Dog: pass one with deps="):
        check_dependencies(Registry(pet), (CAT,))


def test_a_type_that_cannot_be_matched_is_refused_when_the_tool_is_defined():
    class Unchecked(Protocol):
        def speak(self) -> str: ...

    def bad(context: RunContext[Unchecked]) -> str:
        return ""

    bad.__annotations__["context"] = RunContext[Unchecked]
    with pytest.raises(ToolDefinitionError, match="cannot be matched with a dependency"):
        tool(bad)
