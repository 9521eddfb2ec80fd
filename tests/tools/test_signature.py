"""A typed function becomes a tool."""

import dataclasses
import enum
import functools
import math
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types
import msgspec
import pytest
from pydantic import Field

from dragoman.tools import ToolDefinitionError
from dragoman.tools.signature import FunctionTool, tool
from tools.tool_calls import run, text_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    """A place on the map."""

    x: Annotated[float, "east of the tower"]
    y: float = 0.0


class Options(TypedDict):
    deep: bool
    label: NotRequired[Annotated[str, "shown to the user"]]


class Filter(msgspec.Struct):
    field: Annotated[str, msgspec.Meta(min_length=1)]
    above: int | None = None


class Tree(msgspec.Struct):
    value: int
    left: "Tree | None" = None


class Pair(NamedTuple):
    first: int
    second: str


def schema_of(made: FunctionTool[..., Any]) -> dict[str, Any]:
    return msgspec.json.decode(made.definition.parameters or b"null")


def property_for(annotation: Any) -> Any:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    return schema_of(tool(function))["properties"]["value"]


def test_name_description_and_parameters_come_from_the_function():
    @tool
    def weather(city: str, days: int = 3) -> str:
        """Tell the weather of a city.

        Only for Europe.
        """
        return f"{city} {days}"

    assert (weather.name, weather.definition.description) == (
        "weather",
        "Tell the weather of a city.\n\nOnly for Europe.",
    )
    assert schema_of(weather) == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_tool_is_still_its_function():
    @tool
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert double(number=5) == 10


def test_name_description_and_flags_can_be_given():
    @tool(
        name="lookup",
        description="Look it up.",
        timeout=5,
        sequential=True,
        side_effects=True,
        untrusted=True,
        sends_out=True,
        max_output=100,
    )
    def function() -> None:
        """Not in the definition."""

    assert repr(function) == "<tool lookup sequential side_effects untrusted sends_out timeout=5 max_output=100>"
    assert function.definition.description == "Look it up."


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (None, {"type": "null"}),
        (date, {"type": "string", "format": "date"}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}),
        (Annotated[str, "a word"], {"type": "string", "description": "a word"}),
        (list[Annotated[str, "a word"]], {"type": "array", "items": {"type": "string", "description": "a word"}}),
    ],
)
def test_a_type_becomes_its_json_schema(annotation, schema):
    assert property_for(annotation) == schema


def test_a_tuple_of_fixed_length_has_a_schema_for_each_position():
    schema = property_for(tuple[int, str])
    assert schema["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert (schema["minItems"], schema["maxItems"]) == (2, 2)


def test_classes_are_defined_once_with_their_own_description():
    @tool
    def draw(colour: Colour, points: list[Point], options: Options, keep: Filter | None = None) -> None: ...

    defined = schema_of(draw)["$defs"]
    assert set(defined) == {"Colour", "Point", "Options", "Filter"}
    assert defined["Colour"]["enum"] == ["blue", "red"]
    assert defined["Point"]["description"] == "A place on the map."
    assert defined["Point"]["properties"]["x"] == {"type": "number", "description": "east of the tower"}
    assert defined["Options"]["required"] == ["deep"]
    assert defined["Options"]["properties"]["label"]["description"] == "shown to the user"
    assert defined["Filter"]["properties"]["field"]["minLength"] == 1


def test_descriptions_of_annotations_have_precedence_over_the_docstring():
    @tool
    def find(one: Annotated[str, "from the annotation"], two: str) -> None:
        """Find it.

        Args:
            one: from the docstring
            two: also from there
        """

    properties = schema_of(find)["properties"]
    assert properties["one"]["description"] == "from the annotation"
    assert properties["two"]["description"] == "also from there"


def test_descriptions_of_other_libraries_are_used():
    pydantic = pytest.importorskip("pydantic")
    assert property_for(Annotated[str, pydantic.Field(description="a word")])["description"] == "a word"


def test_a_default_of_none_makes_null_a_value():
    @tool
    def find(limit: int = None) -> str:  # noqa: RUF013  people write it
        return repr(limit)

    assert schema_of(find)["properties"]["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert text_of(run(find, {"limit": None})) == "None"


def test_a_default_that_is_no_json_is_pythons_own_affair():
    nothing = object()

    @tool
    def find(limit: int | str = nothing) -> bool:  # type: ignore[assignment]
        return limit is nothing

    assert "default" not in schema_of(find)["properties"]["limit"]
    assert text_of(run(find)) == "true"


def test_a_default_that_is_not_a_json_number_does_not_become_null():
    @tool
    def find(least: float = -math.inf, most: float = math.nan) -> bool:
        return least == -math.inf and math.isnan(most)

    assert schema_of(find)["properties"] == {"least": {"type": "number"}, "most": {"type": "number"}}
    assert text_of(run(find)) == "true"


def test_arguments_arrive_as_typed_values():
    seen: list[Any] = []

    @tool
    def draw(
        colour: Colour, where: Point, options: Options, *, tags: set[str], pair: Pair, day: date, tree: Tree
    ) -> None:
        seen.extend((colour, where, options, tags, pair, day, tree))

    arguments = {
        "colour": "red",
        "where": {"x": 1},
        "options": {"deep": True},
        "tags": ["a", "b"],
        "pair": [1, "one"],
        "day": "2026-01-31",
        "tree": {"value": 1, "left": {"value": 2}},
    }
    assert not run(draw, arguments).failed
    assert seen == [
        Colour.RED,
        Point(1.0),
        {"deep": True},
        {"a", "b"},
        Pair(1, "one"),
        date(2026, 1, 31),
        Tree(1, Tree(2)),
    ]


def test_a_whole_number_written_as_a_double_is_an_integer():
    @tool
    def repeat(times: int, inner: list[int]) -> str:
        return repr((times, inner))

    assert text_of(run(repeat, '{"times": 3.0, "inner": [1, 2.0]}')) == "(3, [1, 2])"


def test_faults_that_only_python_can_check_are_reported_with_their_pointer():
    @tool
    def remind(days: list[date]) -> None: ...

    result = run(remind, {"days": ["2026-01-31", "soon"]})
    assert result.failed
    assert "/days/1: Invalid RFC3339 encoded date" in text_of(result)


def test_a_dataclass_that_refuses_its_values_makes_the_arguments_invalid():
    @dataclasses.dataclass
    class Span:
        low: int
        high: int

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low must not be above high")

    def count(span: Span) -> int:
        return span.high - span.low

    count.__annotations__["span"] = Span
    assert "/span: low must not be above high" in text_of(run(tool(count), {"span": {"low": 2, "high": 1}}))


def test_positional_only_parameters_are_given_by_name_and_passed_by_place():
    @tool
    def divide(a: float, b: float, /, *, digits: int = 2) -> float:
        return round(a / b, digits)

    assert text_of(run(divide, {"a": 1, "b": 3})) == "0.33"


def test_bound_methods_partials_and_objects_that_are_called_can_be_tools():
    class Shop:
        def price(self, item: str) -> str:
            """Tell a price."""
            return f"{item}: 7"

        async def __call__(self, item: str) -> str:
            return f"sold {item}"

    def convert(amount: float, rate: float) -> float:
        return amount * rate

    assert text_of(run(tool(Shop().price), {"item": "tea"})) == "tea: 7"
    assert text_of(run(tool(name="buy")(Shop()), {"item": "tea"})) == "sold tea"
    assert text_of(run(tool(name="double")(functools.partial(convert, rate=2.0)), {"amount": 4})) == "8.0"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x, "set one with @tool(name=...)"),
        (3, "a tool is made from a function"),
        (max, "it has no signature that Python can read"),
    ],
)
def test_what_is_no_typed_function_is_refused(function, words):
    with pytest.raises(ToolDefinitionError) as refused:
        tool(function)
    assert words in str(refused.value)


def test_each_unsupported_parameter_is_rejected_by_name():
    def untyp(value): ...
    def many(*values: int): ...
    def get_named(**values: int): ...
    def unknown(value: "Nowhere"): ...  # type: ignore[name-defined]  # noqa: F821
    def strange(value: complex): ...
    def unreachable(value: int = 3, /): ...

    expected = {
        untyp: "parameter 'value' has no type: annotate it",
        many: "parameter 'values' is variadic (*args), which is not supported: use a list instead",
        get_named: "parameter 'values' is variadic (**kwargs), which is not supported: use a dict instead",
        unknown: "the annotation of parameter 'value' cannot be resolved: name 'Nowhere' is not defined",
        strange: "the type of parameter 'value' is not supported: complex has no JSON form",
        unreachable: "parameter 'value' is positional-only and has a default",
    }
    for function, words in expected.items():
        with pytest.raises(ToolDefinitionError) as refused:
            tool(function)
        assert str(refused.value).startswith(f"tool {function.__name__!r}: {words}")


def test_a_type_that_is_returned_may_be_known_to_type_checkers_only():
    @tool
    def load(path: str) -> "DataFrame":  # type: ignore[name-defined]  # noqa: F821
        return path

    assert text_of(run(load, {"path": "x"})) == "x"


def test_a_partial_function_is_described_like_the_function():
    def convert(amount: float, rate: float) -> float:
        """Convert money."""
        return amount * rate

    made = tool(name="to_euro")(functools.partial(convert, rate=2.0))
    assert made.definition.description == "Convert money."
    assert schema_of(made)["properties"]["rate"]["default"] == 2.0


def test_bounds_of_other_libraries_are_used():
    @tool
    def find(
        days: Annotated[int, Field(ge=1, le=5, description="how many")],
        name: Annotated[str, Field(min_length=2, pattern="^a")] = "aa",
        rates: list[Annotated[float, annotated_types.Gt(0)]] = [],  # noqa: B006
    ) -> str:
        return f"{days}"

    properties = schema_of(find)["properties"]
    assert properties["days"] == {"description": "how many", "type": "integer", "minimum": 1, "maximum": 5}
    assert properties["name"] == {"type": "string", "minLength": 2, "pattern": "^a", "default": "aa"}
    assert properties["rates"]["items"] == {"type": "number", "exclusiveMinimum": 0}
    assert run(find, {"days": 9}).failed


def test_bounds_that_contradict_each_other_are_refused_by_the_parameters_name():
    def find(days: Annotated[int, annotated_types.Gt(1), annotated_types.Ge(2)]) -> int:
        return days

    with pytest.raises(ToolDefinitionError, match="the bounds of parameter 'days' are not supported"):
        tool(find)
