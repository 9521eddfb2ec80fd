"""Pydantic models and unions of classes as parameters."""

import enum
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import jsonschema_rs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
from pydantic import BaseModel, Field

from dragoman.tools import ToolDefinitionError, tool
from dragoman.tools.custom_types import build_union, hoist_definitions
from dragoman.tools.value_type import ValueType
from tools.tool_calls import run, text_of


class Place(BaseModel):
    name: str = Field(description="as on the map", min_length=2)
    inside: "Place | None" = None


class Trip(BaseModel):
    to: Place
    nights: Annotated[int, Field(ge=1)] = 1


@dataclass
class Small:
    name: str


@dataclass
class Large:
    name: str
    size: int


class Options(TypedDict):
    deep: bool


@dataclass
class Holder:
    trip: Trip


@tool
def model(trip: Trip) -> str:
    """Take a model."""
    return f"{type(trip).__name__} {trip.to.name} {trip.nights}"


@tool
def models(trips: list[Trip], by: dict[str, Place], holder: Holder, maybe: Trip | None = None) -> str:
    """Take models inside other types."""
    return f"{trips[0].to.name} {by['a'].name} {type(holder.trip).__name__} {maybe}"


@tool
def union(value: Small | Large | Options | Trip | int) -> str:
    """Take one of several classes."""
    return type(value).__name__


@tool
def optional(value: Small | Large | None = None) -> str:
    """Take one of several classes or nothing."""
    return type(value).__name__


@tool
def arrays(value: list[Small] | list[Large]) -> str:
    """Take one of two arrays."""
    return type(value[0]).__name__


@tool
def defaults(trip: Trip = Trip(to=Place(name="Oslo"))) -> str:  # noqa: B008
    """Have a model as a default."""
    return trip.to.name


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@pydantic.dataclasses.dataclass
class Even:
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number


@tool
def rare(at: Path, mixed: Mixed, url: pydantic.HttpUrl, even: Even, many: Iterable[int]) -> str:
    """Take what is not JSON."""
    return f"{at.name} {mixed.name} {url.host} {even.number} {sum(many)}"


RARE = {"at": "/a/b.txt", "mixed": "two", "url": "https://host.test/x", "even": {"number": 2}, "many": [1, 2]}
TRIP = {"to": {"name": "Bergen"}, "nights": 2}


@pytest.mark.parametrize(
    ("handler", "arguments", "expected"),
    [
        (model, {"trip": TRIP}, "Trip Bergen 2"),
        (models, {"trips": [TRIP], "by": {"a": {"name": "Ås"}}, "holder": {"trip": TRIP}}, "Bergen Ås Trip None"),
        (union, {"value": {"name": "x"}}, "Small"),
        (union, {"value": {"name": "x", "size": 3}}, "Large"),
        (union, {"value": {"deep": True}}, "dict"),
        (union, {"value": TRIP}, "Trip"),
        (union, {"value": 3}, "int"),
        (optional, {}, "NoneType"),
        (optional, {"value": None}, "NoneType"),
        (optional, {"value": {"name": "x", "size": 3}}, "Large"),
        (arrays, {"value": [{"name": "x", "size": 3}]}, "Large"),
        (defaults, {}, "Oslo"),
        (rare, RARE, "b.txt TWO host.test 2 3"),
    ],
)
def test_arguments_become_instances(handler, arguments, expected):
    assert text_of(run(handler, arguments)) == expected


@pytest.mark.parametrize(
    ("handler", "arguments", "pointers"),
    [
        (model, {"trip": {"to": {"name": "x"}, "nights": 0}}, ["/trip/to/name", "/trip/nights"]),
        (union, {"value": {"nothing": 1}}, ["/value"]),
        (rare, RARE | {"mixed": 3, "even": {"number": "x"}}, ["/mixed", "/even/number"]),
        (rare, RARE | {"even": {"number": 3}}, ["must be even"]),
        (rare, RARE | {"url": "no url"}, ["/url"]),
    ],
)
def test_invalid_arguments_are_refused_with_their_pointers(handler, arguments, pointers):
    result = run(handler, arguments)
    assert result.failed
    assert all(pointer in text_of(result) for pointer in pointers)


@pytest.mark.parametrize("handler", [model, models, union, optional, arrays, defaults])
def test_schemas_are_valid_and_have_their_definitions_at_the_root(handler):
    schema = msgspec.json.decode(handler.definition.parameters)
    jsonschema_rs.validator_for(schema)
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    assert "$defs" not in str(inner).replace("#/$defs/", "")


def test_descriptions_and_defaults_of_models_are_in_the_schema():
    schema = msgspec.json.decode(model.definition.parameters)
    assert schema["$defs"]["Place"]["properties"]["name"]["description"] == "as on the map"
    assert msgspec.json.decode(defaults.definition.parameters)["properties"]["trip"]["default"] == {
        "to": {"name": "Oslo", "inside": None},
        "nights": 1,
    }


def test_definitions_of_the_same_name_are_kept_apart():
    one, other = {"type": "string"}, {"type": "integer"}
    nested = {"anyOf": [{"$ref": "#/$defs/A", "$defs": {"A": one}}, {"$ref": "#/$defs/A", "$defs": {"A": other}}]}
    assert hoist_definitions(nested) == {
        "anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A_2"}],
        "$defs": {"A": one, "A_2": other},
    }


def test_a_union_that_msgspec_supports_stays_a_union():
    assert build_union((int, str)) == int | str
    assert build_union((Literal["a"], Small, type(None))) == Literal["a"] | Small | None


@dataclass(frozen=True)
class Square:
    label: ClassVar[str] = "square"
    row: int = 0


@dataclass
class Board:
    pieces: dict[tuple[int, int], str]


def define(annotation):
    def play(board): ...

    play.__annotations__ = {"board": annotation}
    return tool(play)


@pytest.mark.parametrize(
    "annotation",
    [
        dict[tuple[int, int], str],
        dict[tuple, str],
        Mapping[frozenset[int], str],
        list[dict[list[int], str]],
        dict[Square, str],
        dict[bool, str],
        Board,
        ClassVar[int],
        ClassVar,
    ],
    ids=str,
)
def test_what_no_json_value_can_be_is_refused_by_the_name_of_the_parameter(annotation):
    with pytest.raises(ToolDefinitionError, match="tool 'play': the type of parameter 'board' is not supported: "):
        define(annotation)
    with pytest.raises(ToolDefinitionError, match=r"output_type .* is not supported: "):
        ValueType(annotation)


def test_a_class_variable_as_a_text_is_refused_by_the_name_of_the_parameter():
    with pytest.raises(ToolDefinitionError, match="the annotation of parameter 'board' cannot be resolved"):
        define("ClassVar[int]")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (int, "3", 3),
        (float, "1.5", 1.5),
        (int | str, "3", "3"),
        (Any, "a", "a"),
        (Literal[1, 2], "1", 1),
        (uuid.UUID, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
    ],
    ids=str,
)
def test_a_key_of_an_object_is_decoded_from_its_text(key, text, value):
    seen = []

    def play(board):
        seen.append(board)

    play.__annotations__ = {"board": dict[key, int]}
    run(tool(play), {"board": {text: 1}})
    assert seen == [{value: 1}]


def test_the_class_variables_of_a_class_are_no_fields():
    definitions = msgspec.json.decode(define(Square).definition.parameters)["$defs"]
    assert list(definitions["Square"]["properties"]) == ["row"]


def test_pydantic_fields_as_defaults_are_bounds_descriptions_and_defaults():
    @tool
    def book(
        nights: int = Field(ge=1, description="how long"),
        beds: int = Field(default=2, le=4),
        extras: list[str] = Field(default_factory=lambda: ["tea"]),  # noqa: B008  as users of pydantic write it
    ) -> str:
        """Book a room."""
        return f"{nights} {beds} {extras}"

    schema = msgspec.json.decode(book.definition.parameters)
    assert schema["required"] == ["nights"]
    assert schema["properties"]["nights"] == {"type": "integer", "minimum": 1, "description": "how long"}
    assert schema["properties"]["beds"] == {"type": "integer", "maximum": 4, "default": 2}
    assert text_of(run(book, {"nights": 3})) == "3 2 ['tea']"
    assert text_of(run(book, {"nights": 3, "beds": 1, "extras": []})) == "3 1 []"
    assert "/nights" in text_of(run(book, {"nights": 0}))
    assert '"nights" is a required property' in text_of(run(book, {}))


@dataclass
class Stay:
    """A stay.

    Args:
        nights: How long.
        guests: Who comes.
    """

    nights: Annotated[int, Field(ge=1)]
    guests: Annotated[list[str], Field(max_length=2)]


class Named(TypedDict):
    """A name.

    Attributes:
        name: What it is called.
    """

    name: Annotated[str, Field(min_length=2)]


def test_bounds_and_docstrings_of_classes_describe_their_fields():
    @tool
    def book(stay: Stay, named: Named) -> str:
        """Book a room."""
        return f"{stay.nights} {named['name']}"

    definitions = msgspec.json.decode(book.definition.parameters)["$defs"]
    assert definitions["Stay"]["description"] == "A stay."
    assert definitions["Stay"]["properties"]["nights"] == {"type": "integer", "minimum": 1, "description": "How long."}
    assert definitions["Stay"]["properties"]["guests"]["maxItems"] == 2
    assert definitions["Named"]["properties"]["name"]["description"] == "What it is called."
    valid = {"stay": {"nights": 2, "guests": ["a"]}, "named": {"name": "Oslo"}}
    assert text_of(run(book, valid)) == "2 Oslo"
    wrong = text_of(run(book, {"stay": {"nights": 0, "guests": ["a", "b", "c"]}, "named": {"name": "O"}}))
    assert all(place in wrong for place in ("/stay/nights", "/stay/guests", "/named/name"))


class Callback(BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    function: Callable[[], int]


def test_a_model_without_a_schema_is_refused_by_the_name_of_the_parameter():
    def call(ready: bool, back: Callback) -> str:
        """Call back."""
        return f"{ready} {back}"

    with pytest.raises(ToolDefinitionError, match="parameter 'back' is not supported: Callback has no JSON form"):
        tool(call)
