"""Asks and tools for the tests of the simulated model."""

from typing import Any

from dragoman.simulator.apis.conversation import Answer, Call, ModelRequest, RequestResult, RequestTool, RequestTurn
from dragoman.simulator.model import answer

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
INTEGER: dict[str, Any] = {"type": "integer"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def function(name: str, description: str = "", required: tuple[str, ...] = (), /, **properties: Any) -> RequestTool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return RequestTool(name=name, description=description, schema=schema)


WEATHER = function(
    "get_weather",
    "Get the current weather for a location.",
    ("location",),
    location=TEXT,
    unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
)
TIME = function("get_time", "Get the current time in a city", ("city",), city=TEXT)
ADD = function("add", "Add two numbers.", ("a", "b"), a=NUMBER, b=NUMBER)
MULTIPLY = function("multiply", "Multiply two numbers.", ("a", "b"), a=NUMBER, b=NUMBER)
LOOKUP = function("search", "Search the knowledge base", ("query",), query=TEXT, max_results=INTEGER)
READ = function("read_file", "Read a file from disk", ("path",), path=TEXT)
EMAIL = function(
    "send_email",
    "Send an email",
    ("to", "subject", "body"),
    to={"type": "string", "format": "email"},
    subject=TEXT,
    body=TEXT,
    urgent=BOOLEAN,
)
FLIGHT = function(
    "book_flight",
    "Book a flight between two cities",
    ("origin", "destination", "date"),
    origin=TEXT,
    destination=TEXT,
    date={"type": "string", "format": "date"},
    passengers=INTEGER,
)
SEARCH = RequestTool(name="web_search", kind="search")
TOOLS = (WEATHER, TIME, ADD, MULTIPLY)


def build_ask(prompt: str, *tools: RequestTool, **more: Any) -> ModelRequest:
    return ModelRequest(model="any", turns=(RequestTurn(role="user", text=prompt),), tools=tools, **more)


def calls(output: Answer) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in output.calls]


def calls_for(prompt: str, *tools: RequestTool, **more: Any) -> list[tuple[str, Any]]:
    return calls(answer(build_ask(prompt, *tools, **more)))


def after(asked: ModelRequest, output: Answer, *results: str, failed: bool = False, text: str = "") -> ModelRequest:
    """Return the ask of the next round: the same one, with the calls and their results."""
    given = tuple(
        RequestResult(call_id=call.id, name=call.name, text=result, failed=failed)
        for call, result in zip(output.calls, results, strict=True)
    )
    turns = (
        *asked.turns,
        RequestTurn(role="assistant", text=output.text, calls=output.calls),
        RequestTurn(role="user", text=text, results=given),
    )
    return ModelRequest(
        model=asked.model,
        turns=turns,
        tools=asked.tools,
        choice=asked.choice,
        output_schema=asked.output_schema,
        thinks=asked.thinks,
    )


def call(name: str, arguments: dict[str, Any] | str) -> Call:
    return Call(id="an id", name=name, arguments=arguments)
