"""Blocks of tool searches: read with what they say, and written again as they were."""

import json

import pytest
from anthropic.types import ServerToolUseBlock, ToolReferenceBlock, ToolSearchToolResultBlock

from dragoman.core.parts import FoundTools, Opaque, Text, ToolReference, ToolSearch
from dragoman.dialects.messages.tool_search import read_search, write_search

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_regex", "input": {"pattern": "w.*"}}
REFERENCES = [{"type": "tool_reference", "tool_name": "a"}, {"type": "tool_reference", "tool_name": "b"}]
FOUND = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "tool_search_tool_search_result", "tool_references": REFERENCES},
}
FAILED = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "tool_search_tool_result_error", "error_code": "unavailable"},
}


def read(block) -> Opaque:
    return read_search(Opaque(where="/content/0", dialect="messages", raw=json.dumps(block).encode()))


def test_a_search_has_its_query():
    found = read(SEARCH)
    assert found == ToolSearch(dialect="messages", raw=json.dumps(SEARCH).encode(), id="1", query="w.*", pattern=True)
    words = read({**SEARCH, "name": "tool_search_tool_bm25", "input": {"query": "weather"}})
    assert isinstance(words, ToolSearch)
    assert (words.query, words.pattern) == ("weather", False)


def test_a_result_has_the_names_or_the_error():
    found, failed = read(FOUND), read(FAILED)
    assert isinstance(found, FoundTools)
    assert (found.id, found.names, found.error) == ("1", ("a", "b"), "")
    assert isinstance(failed, FoundTools)
    assert (failed.names, failed.error) == ((), "unavailable")


def test_a_reference_has_the_name_also_as_text():
    found = read(REFERENCES[0])
    assert isinstance(found, ToolReference)
    assert (found.name, found.content) == ("a", (Text(text="The tool a can be called now."),))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "server_tool_use", "id": "s"},
        {"type": "tool_reference"},
        {"type": "tool_reference", "name": "a"},
        {"type": "search_result"},
    ],
)
def test_any_other_block_stays_opaque(block):
    assert type(read(block)) is Opaque


@pytest.mark.parametrize(
    "block",
    [
        {**SEARCH, "input": "cut"},
        {**SEARCH, "input": {"pattern": 1}},
        {**FOUND, "content": None},
        {**FOUND, "content": []},
        {**FOUND, "content": {"tool_references": "a"}},
        {**FOUND, "content": {"tool_references": [None, 1, {"tool_name": 2}]}},
    ],
)
def test_malformed_members_say_nothing(block):
    found = read(block)
    assert isinstance(found, ToolSearch | FoundTools)
    assert not getattr(found, "query", "")
    assert not getattr(found, "names", ())


@pytest.mark.parametrize(
    ("block", "model"),
    [
        (SEARCH, ServerToolUseBlock),
        ({**SEARCH, "name": "tool_search_tool_bm25", "input": {"query": "weather"}}, ServerToolUseBlock),
        (FOUND, ToolSearchToolResultBlock),
        (FAILED, ToolSearchToolResultBlock),
        (REFERENCES[0], ToolReferenceBlock),
    ],
)
def test_a_part_of_another_vendor_is_written_as_the_block_it_would_have_been(block, model):
    written = json.loads(bytes(write_search(read(block)) or b""))
    assert written == block
    model.model_validate(
        {**block, "content": {"error_message": None, **block["content"]}} if block is FAILED else block
    )


def test_other_parts_are_not_written():
    assert write_search(Opaque(dialect="gemini", raw=b"{}")) is None
