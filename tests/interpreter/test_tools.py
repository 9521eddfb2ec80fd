"""Tool definitions as each target takes them."""

import json

import pytest
from msgspec import structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.tools import NO_PARAMETERS, adapt_request_tools
from dragoman.interpreter.undo import Undo
from interpreter.workbench import adaptation_for, build_message, build_request, encode, exactly, loss_pointers

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = Tool(name="f", description="d", parameters=encode(SCHEMA), where="/tools/0")
TARGETS = {
    "chat": "gpt-4.1",
    "responses": "gpt-5.6",
    "messages": "claude-opus-5",
    "gemini": "gemini-3-pro",
    "gemini 2.5": "gemini-2.5-pro",
    "gemini 1.5": "gemini-1.5-pro",
}


def adaptation_to(target, **options):
    return adaptation_for(target.partition(" ")[0], TARGETS[target], **options)


def adapt_part(target, *tools, messages=(), choice=None, **options):
    """Return the tools for a target, the losses, and the undo."""
    adaptation = adaptation_to(target, **options)
    result, chosen = adapt_request_tools(build_request(*messages, tools=tools, tool_choice=choice), adaptation)
    assert chosen is None or choice is not None or messages or adaptation.validated
    return result, loss_pointers(adaptation), adaptation.build_undo()


@pytest.mark.parametrize("target", ["chat", "messages", "gemini", "gemini 2.5"])
def test_a_plain_tool_passes(target):
    result, losses, undo = adapt_part(target, TOOL)
    assert exactly(result) == exactly((TOOL,))
    assert (losses, undo) == ([], Undo())


def test_responses_gets_strict_false_for_a_tool_that_is_not_strict():
    assert adapt_part("responses", TOOL) == ((structs.replace(TOOL, strict=False),), [], Undo())


def test_gemini_1_5_gets_googles_own_schema_format():
    (tool,), losses, _ = adapt_part("gemini 1.5", TOOL)
    result = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "propertyOrdering": ["a"], "required": ["a"]}
    assert json.loads(tool.parameters) == result
    assert tool == structs.replace(TOOL, parameters=tool.parameters, openapi=True)
    assert losses == []


def test_googles_own_schema_language_is_understood():
    parameters = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]}
    (tool,), losses, _ = adapt_part("chat", structs.replace(TOOL, parameters=encode(parameters), openapi=True))
    assert tool == structs.replace(TOOL, parameters=tool.parameters)
    assert json.loads(tool.parameters) == SCHEMA
    assert losses == []


@pytest.mark.parametrize(
    ("target", "parameters"),
    [("chat", None), ("responses", NO_PARAMETERS), ("messages", NO_PARAMETERS), ("gemini", None), ("gemini 1.5", None)],
)
def test_a_tool_without_arguments_has_a_schema_where_one_is_demanded(target, parameters):
    (tool,), losses, _ = adapt_part(target, Tool(name="f", where="/t"))
    strict = False if target == "responses" else None
    assert exactly(tool) == exactly(Tool(name="f", parameters=parameters, strict=strict, where="/t"))
    assert losses == []
    assert json.loads(NO_PARAMETERS) == {"type": "object", "properties": {}}


def test_keywords_of_a_schema_without_arguments_are_losses_if_not_sent():
    annotated = {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
        "$schema": "s",
        "description": "d",
        "title": "t",
    }
    document = {"tools": [{"type": "function", "function": {"name": "f", "parameters": annotated}}]}
    tool = Tool(name="f", parameters=encode(annotated), where="/tools/0")
    result, losses, _ = adapt_part("gemini", tool, document=document)
    assert result == (Tool(name="f"),)
    place = "/tools/0/function/parameters"
    assert losses == [("dropped", f"{place}/description"), ("dropped", f"{place}/title")]
    assert adapt_part("gemini", structs.replace(tool, parameters=b"true"))[:2] == ((Tool(name="f"),), [])


@pytest.mark.parametrize(
    ("target", "renamed"), [("messages", True), ("chat", False), ("responses", False), ("gemini", False)]
)
def test_property_names_that_claude_rejects_get_aliases_that_are_restored(target, renamed):
    schema = {"type": "object", "properties": {"a b": {"type": "string"}}}
    document = {"tools": [{"function": {"parameters": schema}}]}
    (tool,), losses, undo = adapt_part(target, structs.replace(TOOL, parameters=encode(schema)), document=document)
    assert list(json.loads(tool.parameters)["properties"]) == ["a_b" if renamed else "a b"]
    assert losses == ([("approximated", "/tools/0/function/parameters/properties/a b")] if renamed else [])
    assert undo.arguments == ({"f": (ArgumentUndo(renamed={"a_b": "a b"}, converts_history=True),)} if renamed else {})


STRICT = structs.replace(TOOL, strict=True)
OPTIONAL = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}, "required": ["a"]}
CLOSED = {**SCHEMA, "required": list(SCHEMA["properties"]), "additionalProperties": False}
LOOSE = structs.replace(TOOL, parameters=encode(OPTIONAL), strict=True)


@pytest.mark.parametrize(
    ("target", "strict"), [("chat", True), ("responses", True), ("messages", True), ("gemini", None)]
)
def test_strict_is_sent_where_the_target_can_enforce_a_schema(target, strict):
    (tool,), losses, _ = adapt_part(target, structs.replace(STRICT, parameters=encode(CLOSED)))
    assert tool.strict is strict
    assert losses == []


def test_the_mode_is_a_loss_where_it_enforces_more_schemas_than_requested():
    tools = [structs.replace(STRICT, name=name, where=f"/tools/{at}") for at, name in enumerate("ab")]
    assert adapt_part("gemini", *tools)[1] == []
    loose = structs.replace(TOOL, name="c", where="/tools/2")
    both = [("approximated", "/tools/0/function/strict"), ("approximated", "/tools/1/function/strict")]
    assert adapt_part("gemini", *tools, loose)[1] == both
    refused = structs.replace(loose, strict=False)
    assert adapt_part("gemini", *tools, refused)[1] == [*both, ("approximated", "/tools/2/function/strict")]


@pytest.mark.parametrize(
    ("target", "strict"), [("chat", False), ("responses", False), ("messages", False), ("gemini", None)]
)
def test_strict_false_is_sent_where_the_target_has_a_field_for_it(target, strict):
    (tool,), losses, _ = adapt_part(target, structs.replace(TOOL, strict=False))
    assert (tool.strict, losses) == (strict, [])


@pytest.mark.parametrize(
    ("choice", "result"),
    [
        (None, ToolChoice(mode="auto", validated=True)),
        (ToolChoice(mode="auto"), ToolChoice(mode="auto", validated=True)),
        (ToolChoice(mode="required"), ToolChoice(mode="required")),
        (ToolChoice(mode="none"), ToolChoice(mode="none")),
    ],
)
def test_gemini_is_held_to_strict_schemas_by_the_mode(choice, result):
    adaptation = adaptation_to("gemini")
    assert adapt_request_tools(build_request(tools=(STRICT,), tool_choice=choice), adaptation)[1] == result


def test_a_strict_schema_for_claude_is_closed():
    (tool,), _, _ = adapt_part("messages", STRICT)
    assert json.loads(tool.parameters) == {**SCHEMA, "additionalProperties": False}


@pytest.mark.parametrize("source", ["messages", "chat", "responses"], ids=["foreign", "own", "kin"])
def test_a_strict_schema_of_any_dialect_requires_every_property_at_openai(source):
    (tool,), losses, undo = adapt_part("chat", LOOSE, source=source)
    assert json.loads(tool.parameters)["required"] == ["a", "n"]
    assert undo.arguments == {"f": (ArgumentUndo(optional=frozenset({"n"}), order=("a", "n"), converts_history=True),)}
    assert losses


@pytest.mark.parametrize("source", ["chat", "responses"])
def test_a_strict_schema_that_openai_accepts_is_unchanged(source):
    written = b' {"type":"object","properties":{"a":{"type":"string","minLength":3}},"required":["a"],"additionalProperties":false}'
    (tool,), losses, _ = adapt_part("chat", structs.replace(STRICT, parameters=written), source=source)
    assert (tool.parameters, tool.strict, losses) == (written, True, [])


def test_a_duplicate_tool_declaration_does_not_affect_how_arguments_are_restored():
    schema = {"type": "object", "properties": {"a b": {"type": "string"}}}
    adaptation = adaptation_to("messages")
    twins = [structs.replace(TOOL, parameters=encode(schema), where=f"/tools/{index}") for index in range(2)]
    adapt_request_tools(build_request(tools=tuple(twins)), adaptation)
    assert adaptation.arguments == {"f": (ArgumentUndo(renamed={"a_b": "a b"}, converts_history=True),)}


@pytest.mark.parametrize("target", ["messages", "responses"])
def test_tools_of_one_name_in_two_namespaces_have_their_own_ways_back(target):
    twins = [
        structs.replace(TOOL, parameters=encode({"type": kind}), namespace=kind, where=f"/tools/{kind}")
        for kind in ("array", "string")
    ]
    for _ in range(2):
        adaptation = adaptation_to(target)
        adapt_request_tools(build_request(tools=tuple(twins)), adaptation)
        wrapped = {name: steps[0].wrapped_kinds for name, steps in adaptation.arguments.items()}
        assert wrapped == {"array__f": {"array"}, "string__f": {"string"}}


def test_claude_takes_twenty_strict_tools():
    tools = [structs.replace(STRICT, name=f"f{index}", where=f"/tools/{index}") for index in range(22)]
    result, losses, _ = adapt_part("messages", *tools)
    assert [tool.strict for tool in result] == [True] * 20 + [None] * 2
    assert losses == [("dropped", "/tools/20/function/strict"), ("dropped", "/tools/21/function/strict")]


def test_a_name_that_is_changed_is_undone_in_the_reply():
    tool = structs.replace(TOOL, name="a b", namespace="crm")
    assert adapt_part("chat", tool)[1:] == ([], Undo({"crm__a_b_124de160": ("crm", "a b")}))


def test_integers_are_undone_in_the_arguments_of_gemini():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    undo = ArgumentUndo(properties={"n": ArgumentUndo(integer=True)}, only_integers=True)
    assert adapt_part("gemini", structs.replace(TOOL, parameters=encode(schema)))[2] == Undo(arguments={"f": (undo,)})


def test_a_tool_with_losses_books_them_every_time():
    tools = (STRICT, structs.replace(TOOL, name="g", where="/tools/1"))
    assert (
        adapt_part("gemini", *tools)[1]
        == adapt_part("gemini", *tools)[1]
        == [("approximated", "/tools/0/function/strict")]
    )


def test_fields_and_marks_only_the_source_understands_are_dropped():
    tool = structs.replace(TOOL, extras=Extras("messages", {"/x": b"1"}), cache="1h")
    losses = [("dropped", "/tools/0/cache_control"), ("dropped", "/tools/0/x")]
    assert adapt_part("chat", tool, source="messages")[:2] == ((TOOL,), losses)


SPACED = structs.replace(TOOL, namespace="crm", namespace_description="Customers.")


@pytest.mark.parametrize(
    ("tool", "description"), [(SPACED, "Customers.\n\nd"), (structs.replace(SPACED, description=""), "Customers.")]
)
def test_a_namespace_goes_into_name_and_description_where_there_are_none(tool, description):
    result, losses, undo = adapt_part("chat", tool)
    assert result == (structs.replace(TOOL, name="crm__f", description=description),)
    assert (losses, undo) == ([], Undo({"crm__f": ("crm", "f")}))


def test_a_namespace_stays_where_there_are_some():
    result, _, undo = adapt_part("responses", structs.replace(SPACED, namespace_description=""))
    assert result == (structs.replace(TOOL, namespace="crm", strict=False),)
    assert undo == Undo()


GRAMMAR = b'{"type":"grammar","syntax":"lark","definition":"start: A"}'
SHELL = Tool(
    name="sh",
    description="d",
    form="text",
    grammar=GRAMMAR,
    where="/tools/0",
    extras=Extras("chat", {"/x": b"1"}),
    cache="",
)
FREE = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def test_a_free_form_tool_passes_where_there_are_some():
    result, losses, undo = adapt_part("responses", SHELL)
    assert exactly(result) == exactly((structs.replace(SHELL, extras=None, cache=None),))
    assert losses == [("approximated", "/tools/0"), ("dropped", "/tools/0/x")]
    assert undo == Undo()


@pytest.mark.parametrize(
    ("target", "parameters", "more"),
    [
        ("chat", FREE, {}),
        ("messages", FREE, {}),
        ("gemini", FREE, {}),
        (
            "gemini 1.5",
            {
                "type": "OBJECT",
                "properties": {"input": {"type": "STRING"}},
                "propertyOrdering": ["input"],
                "required": ["input"],
            },
            {"openapi": True},
        ),
    ],
)
@pytest.mark.parametrize("grammar", [GRAMMAR, None])
def test_a_free_form_tool_is_a_function_with_one_text_where_there_are_none(target, parameters, more, grammar):
    plain = structs.replace(SHELL, extras=None, cache=None, grammar=grammar)
    (tool,), losses, undo = adapt_part(target, plain)
    words = "d\n\nThe input must match this lark grammar:\nstart: A" if grammar else "d"
    assert json.loads(tool.parameters) == parameters
    assert exactly(tool) == exactly(
        Tool(name="sh", description=words, parameters=tool.parameters, where="/tools/0", **more)
    )
    assert losses == [("approximated", "/tools/0")]
    assert undo == Undo(custom=frozenset({"sh"}))


def test_a_free_form_tool_without_a_description_is_described_by_its_grammar_alone():
    plain = structs.replace(SHELL, extras=None, cache=None, description="")
    (tool,), _, _ = adapt_part("messages", plain)
    assert tool.description == "The input must match this lark grammar:\nstart: A"


def test_a_free_form_tool_made_a_function_for_responses_is_not_strict():
    plain = structs.replace(SHELL, extras=None, cache=None, namespace="n")
    adaptation = adaptation_for("responses", "gpt-4.1")
    (tool,), _ = adapt_request_tools(build_request(tools=(plain,)), adaptation)
    assert (tool.strict, tool.namespace) == (False, "n")


def native(body, dialect="messages", where="/tools/0"):
    return NativeTool(dialect=dialect, raw=encode(body), where=where)


SEARCH = native({"type": "web_search_20250305", "name": "web_search", "max_uses": 3})
DOCUMENT = {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]}


@pytest.mark.parametrize(
    ("target", "raw", "expected"),
    [
        ("responses", b'{"type":"web_search"}', [("approximated", "/tools/0")]),
        ("gemini", b'{"googleSearch":{}}', [("approximated", "/tools/0"), ("dropped", "/tools/0/max_uses")]),
        ("chat", None, [("dropped", "/tools")]),
    ],
)
def test_a_vendors_tool_is_replaced_by_the_targets_own_or_dropped(target, raw, expected):
    result, losses, _ = adapt_part(target, SEARCH, source="messages", document=DOCUMENT)
    assert result == ((NativeTool(dialect=target, raw=raw),) if raw else ())
    assert losses == expected


@pytest.mark.parametrize(
    ("tool", "lost"),
    [
        ({"googleSearch": {}}, []),
        (
            {"googleSearch": {"excludeDomains": ["a"], "timeRangeFilter": {"x": 1}}},
            ["excludeDomains", "timeRangeFilter"],
        ),
        ({"googleSearchRetrieval": {}}, []),
    ],
)
def test_fields_of_a_native_tool_are_dropped_when_a_counterpart_replaces_it(tool, lost):
    _, losses, _ = adapt_part("responses", native(tool, "gemini"), source="gemini")
    (name,) = tool
    assert losses == [("approximated", "/tools/0"), *(("dropped", f"/tools/0/{name}/{setting}") for setting in lost)]


def test_a_vendors_tool_that_is_written_alike_is_no_loss():
    same = native({"googleSearch": {}}, "elsewhere")
    assert adapt_part("gemini", same)[:2] == ((NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}'),), [])


def test_gemini_2_5_accepts_search_or_functions_but_code_execution_with_both():
    search, code = native({"googleSearch": {}}, where="/tools/1"), native({"codeExecution": {}}, where="/tools/2")
    assert adapt_part("gemini 2.5", TOOL, search, code)[:2] == (
        (TOOL, NativeTool(dialect="gemini", raw=b'{"codeExecution":{}}')),
        [("dropped", "/tools/1")],
    )
    assert [tool.raw for tool in adapt_part("gemini 2.5", search)[0]] == [b'{"googleSearch":{}}']
    assert len(adapt_part("gemini", TOOL, search)[0]) == 2


CALLED = (
    build_message(
        "assistant", ToolCall(id="a", name="f", arguments="{}"), ToolCall(id="b", name="g g", arguments="{}")
    ),
    build_message("assistant", "text", ToolCall(id="c", name="f", arguments="{}")),
)


def test_tools_that_the_history_calls_are_declared_where_they_must_be_and_may_not_be_called():
    adaptation = adaptation_to("messages")
    result, choice = adapt_request_tools(build_request(*CALLED), adaptation)
    assert result == (
        Tool(name="f", parameters=NO_PARAMETERS),
        Tool(name="g_g_3a2bebf1", parameters=NO_PARAMETERS),
    )
    assert choice == ToolChoice(mode="none")
    assert loss_pointers(adaptation) == []


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_tools_that_the_history_calls_need_not_be_declared_elsewhere(target):
    assert adapt_request_tools(build_request(*CALLED), adaptation_to(target)) == ((), None)


def test_without_calls_nothing_is_declared():
    assert adapt_request_tools(build_request(build_message("user", "hi")), adaptation_to("messages")) == ((), None)
    assert adapt_request_tools(build_request(*CALLED, tools=(TOOL,)), adaptation_to("messages")) == ((TOOL,), None)
