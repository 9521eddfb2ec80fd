"""What the schema of a function admits is what the function is given, for types and values of all kinds."""

import asyncio
import dataclasses
import enum
from typing import Any, Literal, TypedDict

import jsonschema_rs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tools.signature import tool
from tools.tool_calls import call, executor, text_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    label: str = ""


class Options(TypedDict):
    deep: bool


class Filter(msgspec.Struct):
    field: str
    above: float | None = None


WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
INTEGERS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, WORDS),
    (int, INTEGERS),
    (float, FLOATS),
    (bool, st.booleans()),
    (None, st.none()),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Point, st.builds(Point, INTEGERS, WORDS)),
    (Options, st.fixed_dictionaries({"deep": st.booleans()})),
    (Filter, st.builds(Filter, WORDS, st.none() | FLOATS)),
]
Typed = tuple[Any, st.SearchStrategy[Any]]


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda each: (list[each[0]], st.lists(each[1], max_size=3))),
        inner.map(lambda each: (tuple[each[0], ...], st.lists(each[1], max_size=3).map(tuple))),
        inner.map(lambda each: (dict[str, each[0]], st.dictionaries(WORDS, each[1], max_size=3))),
        inner.map(lambda each: (each[0] | None if each[0] is not None else None, st.none() | each[1])),
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))),
    )


TYPED = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=4)


def build_tool(kind: Any) -> Any:
    """A tool that takes one value of a type, and what it was given."""
    seen: list[Any] = []

    async def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__["value"] = kind
    return tool(take), seen


@settings(max_examples=150, deadline=None)
@given(TYPED, st.data())
def test_a_typed_value_survives_the_way_through_json(typed, data):
    kind, values = typed
    value = data.draw(values)
    made, seen = build_tool(kind)
    arguments = {"value": msgspec.to_builtins(value)}
    schema = msgspec.json.decode(made.definition.parameters)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(arguments)
    result = asyncio.run(executor(made).execute(call("take", arguments)))
    assert not result.failed, text_of(result)
    assert seen == [value]
    assert type(seen[0]) is type(value)


JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(TYPED, JSON)
def test_a_tool_never_sees_what_its_schema_does_not_admit(typed, value):
    made, seen = build_tool(typed[0])
    schema = msgspec.json.decode(made.definition.parameters)
    admitted = jsonschema_rs.Draft202012Validator(schema).is_valid({"value": value})
    result = asyncio.run(executor(made).execute(call("take", {"value": value})))
    assert result.failed is not admitted
    assert bool(seen) is admitted
    assert admitted or "/value" in text_of(result)
