"""Strict tools: strict is sent if the target can enforce the schema as it is, never by narrowing the schema."""

import json

import pytest

from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.interpreter.tools import adapt_request_tools
from interpreter.workbench import adaptation_for, build_request, encode, loss_pointers

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "additionalProperties": False,
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["next"],
            "additionalProperties": False,
        }
    },
}
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
STRICT = [("dropped", "/tools/0/function/strict")]
VALIDATED = ToolChoice(mode="auto", validated=True)


def adapt_part(schema, dialect, model, *, source="chat", choice=None, strict=True, openapi=False):
    parameters = None if schema is None else encode(schema)
    adaptation = adaptation_for(dialect, model, source=source)
    tool = Tool(name="f", parameters=parameters, strict=strict, openapi=openapi, where="/tools/0")
    (result,), _ = adapt_request_tools(build_request(tools=(tool,), tool_choice=choice), adaptation)
    return result, loss_pointers(adaptation)


def test_a_strict_schema_that_calls_itself_is_sent_to_claude_as_it_is_and_not_strict():
    result, losses = adapt_part(TREE, "messages", "claude-opus-5")
    assert (json.loads(result.parameters), result.strict) == (TREE, None)
    assert losses == STRICT


@pytest.mark.parametrize(
    "inside",
    [
        {},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ],
)
def test_no_schema_is_narrowed_to_be_strict_for_claude(inside):
    schema = {**CLOSED, "properties": {"city": inside}}
    result, losses = adapt_part(schema, "messages", "claude-opus-5")
    assert result.strict is None
    assert json.loads(result.parameters)["properties"]["city"].items() >= inside.items()
    assert losses == STRICT


def test_a_schema_that_strict_takes_stays_strict_for_claude():
    result, losses = adapt_part(CLOSED, "messages", "claude-opus-5")
    assert (json.loads(result.parameters), result.strict, losses) == (CLOSED, True, [])


def test_described_constraints_keep_a_tool_strict_for_claude():
    schema = {**CLOSED, "properties": {"city": {"type": "string", "minLength": 2}}}
    result, losses = adapt_part(schema, "messages", "claude-opus-5")
    assert result.strict is True
    assert losses == [("approximated", "/tools/0/function/parameters/properties/city/minLength")]


def test_openai_takes_a_strict_schema_that_calls_itself():
    result, losses = adapt_part(TREE, "responses", "gpt-5.6")
    assert (json.loads(result.parameters), result.strict, losses) == (TREE, True, [])


@pytest.mark.parametrize(("dialect", "model"), [("messages", "claude-opus-5"), ("responses", "gpt-5.6")])
def test_a_strict_tool_without_arguments_has_a_closed_schema(dialect, model):
    result, losses = adapt_part(None, dialect, model)
    expected = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert (json.loads(result.parameters), result.strict, losses) == (expected, True, [])


ANYWHERE = [("chat", "gpt-4.1"), ("responses", "gpt-5.6"), ("messages", "claude-opus-5")]


@pytest.mark.parametrize(("dialect", "model"), ANYWHERE)
def test_validated_calls_are_strict_where_the_schema_can_be_strict_as_it_is(dialect, model):
    result, losses = adapt_part(CLOSED, dialect, model, source="gemini", choice=VALIDATED, strict=None)
    assert (json.loads(result.parameters), result.strict, losses) == (CLOSED, True, [])


@pytest.mark.parametrize(("dialect", "model"), ANYWHERE)
def test_an_open_object_is_closed_for_validated_calls(dialect, model):
    schema = {name: value for name, value in CLOSED.items() if name != "additionalProperties"}
    result, losses = adapt_part(schema, dialect, model, source="gemini", choice=VALIDATED, strict=None)
    assert (json.loads(result.parameters), result.strict, losses) == (CLOSED, True, [])


@pytest.mark.parametrize(("dialect", "model"), ANYWHERE)
def test_validated_calls_of_a_schema_that_would_change_are_reported_and_not_strict(dialect, model):
    schema = {"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}, "any": {}}}
    result, losses = adapt_part(schema, dialect, model, source="gemini", choice=VALIDATED, strict=None)
    assert not result.strict
    assert json.loads(result.parameters) == schema
    assert losses == [("approximated", "/toolConfig/functionCallingConfig")]


def test_no_more_tools_are_made_strict_than_claude_takes():
    tools = tuple(Tool(name=f"f{index}", parameters=encode(CLOSED), where=f"/tools/{index}") for index in range(21))
    adaptation = adaptation_for("messages", "claude-opus-5", source="gemini")
    result, _ = adapt_request_tools(build_request(tools=tools, tool_choice=VALIDATED), adaptation)
    assert [tool.strict for tool in result] == [True] * 20 + [None]
    assert loss_pointers(adaptation) == [("approximated", "/toolConfig/functionCallingConfig")]


def test_googles_own_schema_language_is_read_before_it_is_judged():
    schema = {**CLOSED, "properties": {"a": {"type": "STRING", "format": "enum", "enum": ["x"]}}, "required": ["a"]}
    result, losses = adapt_part(schema, "chat", "gpt-4.1", source="gemini", choice=VALIDATED, strict=None, openapi=True)
    assert (result.strict, losses) == (True, [])
    result, losses = adapt_part(schema, "chat", "gpt-4.1", source="gemini", choice=VALIDATED, strict=None)
    assert not result.strict
    result, losses = adapt_part(None, "chat", "gpt-4.1", source="gemini", choice=VALIDATED, strict=None, openapi=True)
    assert (result.strict, losses) == (True, [])


def test_validated_calls_are_reported_where_no_tool_can_be_strict():
    tools = (Tool(name="f", parameters=encode(CLOSED), where="/tools/0"),)
    adaptation = adaptation_for("messages", "claude-opus-5", source="gemini", strict_tools=False)
    result, _ = adapt_request_tools(build_request(tools=tools, tool_choice=VALIDATED), adaptation)
    assert [tool.strict for tool in result] == [None]
    assert loss_pointers(adaptation) == [("approximated", "/toolConfig/functionCallingConfig")]


def test_native_tools_stay_next_to_tools_with_validated_calls():
    native = NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}', where="/tools/1")
    tools = (Tool(name="f", parameters=encode(CLOSED), where="/tools/0"), native)
    result, _ = adapt_request_tools(
        build_request(tools=tools, tool_choice=VALIDATED), adaptation_for("messages", "claude-opus-5", source="gemini")
    )
    assert [type(tool) for tool in result] == [Tool, NativeTool]


def test_gemini_is_held_to_strict_schemas_though_the_caller_named_no_mode():
    tools = (Tool(name="f", parameters=encode(CLOSED), strict=True),)
    _, choice = adapt_request_tools(
        build_request(tools=tools, tool_choice=ToolChoice(parallel=True)), adaptation_for("gemini", "gemini-3-pro")
    )
    assert (choice.mode, choice.validated) == ("auto", True)


def test_claude_compiles_only_so_many_parameters_of_several_types():
    def tool(number: int, count: int) -> Tool:
        properties = {f"p{place}": {"type": ["string", "null"]} for place in range(count)}
        schema = CLOSED | {"properties": properties, "required": list(properties)}
        return Tool(name=f"f{number}", parameters=encode(schema), strict=True, where=f"/tools/{number}")

    adaptation = adaptation_for("messages", "claude-opus-5", source="responses")
    result, _ = adapt_request_tools(build_request(tools=(tool(0, 10), tool(1, 7), tool(2, 6))), adaptation)
    assert [one.strict for one in result] == [True, None, True]
    assert loss_pointers(adaptation) == [("dropped", "/tools/1/strict")]


def test_claude_compiles_only_so_many_parameters_that_may_be_absent():
    def tool(number: int, count: int) -> Tool:
        properties = {f"p{place}": {"type": "string"} for place in range(count)}
        schema = CLOSED | {"properties": properties, "required": []}
        return Tool(name=f"f{number}", parameters=encode(schema), strict=True, where=f"/tools/{number}")

    adaptation = adaptation_for("messages", "claude-opus-5", source="responses")
    result, _ = adapt_request_tools(build_request(tools=(tool(0, 20), tool(1, 5), tool(2, 4))), adaptation)
    assert [one.strict for one in result] == [True, None, True]


@pytest.mark.parametrize(
    ("dialect", "model", "result"),
    [
        ("messages", "claude-opus-5", False),
        ("messages", "claude-3-5-haiku", None),
        ("chat", "gpt-4.1", False),
        ("responses", "gpt-5.6", False),
        ("gemini", "gemini-3.8-flash", None),
    ],
)
def test_strict_false_is_sent_or_is_the_default_of_the_target(dialect, model, result):
    tool, losses = adapt_part(CLOSED, dialect, model, strict=False)
    assert (tool.strict, losses) == (result, [])


def test_geminis_validated_mode_for_a_non_strict_tool_next_to_a_strict_one_is_a_loss():
    tools = tuple(
        Tool(name=f"f{at}", parameters=encode(CLOSED), strict=strict, where=f"/tools/{at}")
        for at, strict in enumerate((True, False, None))
    )
    adaptation = adaptation_for("gemini", "gemini-3.8-flash")
    _, choice = adapt_request_tools(build_request(tools=tools), adaptation)
    assert choice == VALIDATED
    assert loss_pointers(adaptation) == [("approximated", f"/tools/{at}/function/strict") for at in (0, 1)]
