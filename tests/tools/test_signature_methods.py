"""Methods as tools: those of an object are, those that have none yet are refused."""

import asyncio
import json

import pytest

from dragoman import ToolCall
from dragoman.tools import Executor, Registry, ToolDefinitionError
from dragoman.tools.signature import tool


class Basket:
    """Holds things."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def add(self, item: str) -> int:
        """Put something in."""
        self.items.append(item)
        return len(self.items)

    async def count(self) -> int:
        """Count."""
        return len(self.items)

    @classmethod
    def named(cls, what: str) -> str:
        """Name."""
        return f"{cls.__name__} {what}"

    @staticmethod
    @tool
    def double(number: int) -> int:
        """Double."""
        return 2 * number


def test_methods_of_an_object_are_tools_of_their_own():
    first, second = Basket(), Basket()
    registry = Registry(tool(first.add), tool(first.count), tool(Basket.named), first.double)
    registry.register(second.add, namespace="second")
    executor = Executor(registry)

    def make_call(name, **arguments):
        made = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
        return asyncio.run(executor.execute(made)).content[0]

    assert make_call("add", item="x").json == b"1"
    assert make_call("second__add", item="y").json == b"1"
    assert (first.items, second.items) == (["x"], ["y"])
    assert make_call("count").json == b"1"
    assert make_call("named", what="z").text == "Basket z"
    assert make_call("double", number=4).json == b"8"
    assert "self" not in tool(first.add).definition.parameters.decode()


def test_a_method_without_its_object_is_refused_with_what_to_do():
    with pytest.raises(
        ToolDefinitionError, match=r"tool 'add': it is a method without an object.*tool\(thing.method\)"
    ):
        tool(Basket.add)
    with pytest.raises(ToolDefinitionError, match=r"use tool\(Class\.method\)"):
        tool(vars(Basket)["named"])
