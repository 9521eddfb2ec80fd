"""Tools are found by words and by patterns: in names, descriptions, and names and descriptions of arguments."""

import json

import pytest

from dragoman.core.request import Tool
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.tool_index import MAX_TEXT, ToolIndex, find_words
from shelf import exchanges, needs_shelf


def make_tool(name, description="", properties=None, **members) -> Tool:
    schema = {"type": "object", "properties": properties or {}}
    return Tool(name=name, description=description, parameters=json.dumps(schema).encode(), **members)


TOOLS = [
    make_tool("getWeather", "The weather of a city.", {"city": {"type": "string", "description": "A town."}}),
    make_tool("send_email", "Send a message.", {"recipients": {"type": "array", "items": {"type": "string"}}}),
    make_tool("read_email", "Read messages of the inbox."),
    make_tool("list", "List accounts.", namespace="crm"),
    Tool(name="bare"),
]
INDEX = ToolIndex(TOOLS)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("weather", "getWeather"),
        ("what is the WEATHER like?", "getWeather"),
        ("town", "getWeather"),
        ("recipients of an email", "send_email"),
        ("inbox", "read_email"),
        ("crm accounts", "crm__list"),
        ("bare", "bare"),
    ],
)
def test_the_tool_that_fits_best_comes_first(query, first):
    assert INDEX.search(query, 5)[0] == first


@pytest.mark.parametrize("query", ["read_email, send_email", "select:read_email,send_email", "`read_email` send_email"])
def test_tools_that_a_query_names_come_first_in_its_order(query):
    assert INDEX.search(query, 5)[:2] == ("read_email", "send_email")


@pytest.mark.parametrize("query", ["", "  ", "?!", "zebra", "\x00"])
def test_a_query_that_fits_nothing_finds_nothing(query):
    assert INDEX.search(query, 5) == ()


def test_a_search_finds_no_more_than_the_limit_and_ties_are_in_the_order_of_the_tools():
    many = ToolIndex([make_tool(f"tool_{at}", "Same words.") for at in range(9)])
    assert many.search("same", 3) == ("tool_0", "tool_1", "tool_2")
    assert many.match("same", 3) == ("tool_0", "tool_1", "tool_2")


def test_a_rare_word_counts_more_than_a_common_one():
    tools = [make_tool("a", "report report report"), make_tool("b", "report zebra"), make_tool("c", "report")]
    assert ToolIndex(tools).search("report zebra", 1) == ("b",)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("email$", ("send_email", "read_email")),
        ("(?i)WEATHER|accounts", ("getWeather", "crm__list")),
        ("^crm__", ("crm__list",)),
        ("town", ("getWeather",)),
        ("zebra", ()),
    ],
)
def test_a_pattern_finds_tools_in_their_order(pattern, names):
    assert INDEX.match(pattern, 5) == names


@pytest.mark.parametrize("pattern", ["(", "a" * 201, r"(a)\1"])
def test_a_wrong_or_long_pattern_is_an_error(pattern):
    with pytest.raises(ValueError, match=r"\w"):
        INDEX.match(pattern, 5)


def test_names_are_split_into_words():
    assert find_words("getUserData_v2 für HTTP") == ["get", "user", "data", "v", "2", "für", "http"]


def test_hostile_schemas_are_read_as_far_as_they_go():
    deep: dict = {"type": "object"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"inner": deep}}
    tools = [
        Tool(name="deep", parameters=json.dumps(deep).encode()),
        Tool(name="broken", parameters=b'{"properties":[1,{"a":2}],"items":3}'),
        Tool(name="wrong", parameters=b"["),
        make_tool("huge", "x" * MAX_TEXT + " needle"),
    ]
    index = ToolIndex(tools)
    assert index.search("inner", 5) == ("deep",)
    assert index.search("broken", 5) == ("broken",)
    assert index.search("needle", 5) == ()


@needs_shelf
def test_a_recorded_search_finds_what_anthropics_found():
    count = 0
    for one in exchanges("messages"):
        content = one.get("response", {}).get("content", []) if isinstance(one.get("response"), dict) else []
        uses = [block for block in content if block.get("name", "").startswith("tool_search_tool_")]
        results = [block for block in content if block.get("type") == "tool_search_tool_result"]
        raw = json.dumps(one["request"].get("tools", [])).encode() if isinstance(one["request"], dict) else b"[]"
        for use, result in zip(uses, results, strict=False):
            wanted = [found["tool_name"] for found in result["content"].get("tool_references", [])]
            tools = [tool for tool in dialect_named("messages").read_tools(raw, "/tools") if isinstance(tool, Tool)]
            index = ToolIndex([tool for tool in tools if tool.extras is not None])
            query = use["input"]
            found = index.match(query["pattern"], 5) if "pattern" in query else index.search(query["query"], 5)
            # It also finds itself.
            wanted = [name for name in wanted if not name.startswith("tool_search_tool_")]
            if wanted and wanted[0] in {tool.name for tool in tools}:
                assert wanted[0] in found, (one["id"], query, found)
                count += 1
    assert count >= 5
