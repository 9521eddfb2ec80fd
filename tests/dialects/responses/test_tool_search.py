"""Items of a tool search that OpenAI runs: read with what they say, and written in the vendor's form."""

import json

import pytest
from openai.types.responses import ResponseToolSearchCall, ResponseToolSearchOutputItem

from dragoman.core.parts import FoundTools, Opaque, ToolSearch
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.tool_search import list_names, read_search, write_search

CALL = {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server", "status": "completed"}
TOOLS = [
    {"type": "function", "name": "a", "parameters": {}},
    {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "b"}]},
]
OUTPUT = {**CALL, "type": "tool_search_output", "id": "tso_1", "tools": TOOLS}


def read(item) -> Opaque:
    return read_search(Opaque(where="/output/0", dialect="responses", raw=json.dumps(item).encode()))


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({"paths": ["get_weather", "crm.list"]}, "get_weather crm.list"),
        ({"query": "weather"}, "weather"),
        ({"pattern": "w.*"}, "w.*"),
        ({"paths": [1, None]}, ""),
        (None, ""),
    ],
)
def test_a_search_has_its_query(arguments, query):
    found = read({**CALL, "arguments": arguments})
    assert isinstance(found, ToolSearch)
    assert (found.id, found.query) == ("1", query)


def test_a_result_has_the_names_of_its_tools():
    found = read(OUTPUT)
    assert isinstance(found, FoundTools)
    assert found.names == ("a", "ns__b")


@pytest.mark.parametrize("tools", [None, {}, [None], "a"])
def test_a_malformed_result_has_no_names(tools):
    found = read({**OUTPUT, "tools": tools})
    assert isinstance(found, FoundTools)
    assert not any(found.names)


def test_another_item_stays_opaque():
    assert type(read({"type": "web_search_call", "id": "ws_1"})) is Opaque


def test_a_tool_without_a_name_is_named_by_its_type():
    assert list_names({"type": "web_search"}) == ["web_search"]


def test_parts_of_another_vendor_are_written_as_the_sdk_types_them():
    call = write_search(ToolSearch(query="weather"), "tsc_2")
    output = write_search(FoundTools(names=("a",), tools=json.dumps(TOOLS[:1]).encode()), "tso_2")
    found = ResponseToolSearchCall.model_validate(json.loads(json.dumps(call)))
    assert (found.id, found.execution, found.arguments) == ("tsc_2", "server", {"query": "weather"})
    assert output is not None
    ResponseToolSearchOutputItem.model_validate({**output, "tools": json.loads(bytes(output["tools"]))})
    assert write_search(FoundTools(error="unavailable"), "tso_3")["status"] == "incomplete"
    assert write_search(Opaque(dialect="gemini", raw=b"{}")) is None


def test_a_search_in_a_history_belongs_to_the_assistant_and_stays_as_it_was():
    items = [{**CALL, "arguments": {"paths": ["a"]}}, OUTPUT]
    body = json.dumps({"model": "m", "input": items}).encode()
    request = DIALECT.parse_request(Call(body))
    assert [message.role for message in request.messages] == ["assistant", "assistant"]
    assert [type(message.parts[0]) for message in request.messages] == [ToolSearch, FoundTools]
    traits = DIALECT.traits[-1][1]
    assert json.loads(DIALECT.render_request(request, traits).body)["input"] == items
