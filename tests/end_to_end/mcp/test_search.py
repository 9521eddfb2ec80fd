"""`search` of a running gateway, with the web searches of simulated vendors."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.simulator import Answer
from dragoman.simulator.apis.conversation import AnswerSource
from end_to_end.mcp.test_tools import open_stage, text_of


@pytest.mark.parametrize("model", ["gem", "claude", "resp"])
def test_a_search_finds_the_pages_that_the_models_own_search_cites(tmp_path, model):
    async def scene() -> None:
        async with open_stage(tmp_path, search_model=model) as stage, stage.client() as client:
            result = await client.call_tool("search", {"query": "What is the capital of France?"})
            found = result.structured_content
            assert found["results"] == [
                {"id": url, "title": title, "url": url}
                for url, title in (
                    ("https://example.org/search", "About this search"),
                    ("https://example.org/", "Example"),
                )
            ]
            assert json.loads(text_of(result)) == found

    asyncio.run(scene())


def test_a_search_finds_pages_that_support_no_segment_of_the_answer(tmp_path):
    def find(_received: Any) -> Answer:
        source = AnswerSource(url="https://example.org/a", title="A", quote="this is nowhere in the text")
        return Answer(
            text="Sunny.",
            query="weather",
            sources=(source, AnswerSource(url="https://example.org/b", title="", quote="")),
        )

    async def scene() -> None:
        async with open_stage(tmp_path, script=find, search_model="gem") as stage, stage.client() as client:
            result = await client.call_tool("search", {"query": "weather"})
            found = result.structured_content["results"]
            assert [(page["url"], page["title"]) for page in found] == [
                ("https://example.org/a", "A"),
                ("https://example.org/b", "https://example.org/b"),
            ]

    asyncio.run(scene())


def test_search_with_a_model_without_native_search_is_an_error_and_the_model_is_not_called(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, search_model="gpt") as stage, stage.client() as client:
            result = await client.call_tool("search", {"query": "x"})
            assert result.is_error
            assert "the model 'gpt' has no web search" in text_of(result)
            assert stage.asked() == []

    asyncio.run(scene())
