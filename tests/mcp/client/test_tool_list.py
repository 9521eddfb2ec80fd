"""Invalid entries in a list of tools, in both revisions of the protocol."""

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from dragoman.mcp.client.tool_list import ToolFilter

ANY = {"type": "object"}
GOOD = {"name": "good", "inputSchema": ANY, "outputSchema": ANY}


def filter_tools(version, *tools):
    sieve = ToolFilter()
    sieve.version = version
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": list(tools), "nextCursor": "2"})
    sieve.filter_message(SessionMessage(answer))
    return answer.result, sieve.rejected


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_only_invalid_tools_are_removed(version):
    result, left_out = filter_tools(version, {"name": "bad", "inputSchema": {"type": "array"}}, GOOD)
    assert result == {"tools": [GOOD], "nextCursor": "2"}
    assert left_out == {"bad": "its definition is not valid MCP: Input should be 'object' at inputSchema.type"}


def test_each_revision_has_its_own_idea_of_a_tool():
    listing = {"name": "list", "inputSchema": ANY, "outputSchema": {"type": "array"}}
    header = {"name": "odd", "inputSchema": {**ANY, "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}}
    assert [tool["name"] for tool in filter_tools("2025-11-25", listing, header)[0]["tools"]] == ["odd"]
    result, left_out = filter_tools("2026-07-28", listing, header)
    assert result["tools"] == [listing]
    assert left_out["odd"].startswith("its x-mcp-header cannot be sent: ")


def test_before_the_revision_is_known_and_in_other_answers_nothing_is_touched():
    assert filter_tools("", 7)[0]["tools"] == [7]
    sieve = ToolFilter()
    sieve.version = "2025-11-25"
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": {"listChanged": True}})
    sieve.filter_message(SessionMessage(answer))
    sieve.filter_message(ValueError("what is no message"))
    assert answer.result == {"tools": {"listChanged": True}}


def test_only_some_names_of_an_invalid_tool_list_are_kept():
    result, left_out = filter_tools("2025-11-25", *range(1000))
    assert result["tools"] == []
    assert len(left_out) == 200
