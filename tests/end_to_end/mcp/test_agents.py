"""`query` with an agent of the configuration as its model."""

import asyncio

from dragoman.simulator import Answer, Call
from end_to_end.mcp.test_tools import open_stage, text_of


def call_twice(received):
    results = [result for turn in received.request.turns for result in turn.results]
    call = Call(id=f"c{len(results)}", name="web_fetch", arguments={"url": "http://127.0.0.1:1/"})
    return Answer(text="Done.") if len(results) == 2 else Answer(calls=(call,), end="calls")


def test_an_agent_answers_with_its_own_model_instructions_and_tools(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, system_prompt="Not this.") as stage, stage.client() as client:
            result = await client.call_tool("query", {"prompt": "Who are you?", "model": "clerk", "session_id": "s"})
            assert result.structured_content["model"] == "clerk"
            again = await client.call_tool("query", {"prompt": "And?", "model": "clerk", "session_id": "s"})
            assert not again.is_error
            first, second = stage.asked()
            assert first["systemInstruction"]["parts"] == [{"text": "Be a clerk."}]
            assert "tools" not in first
            assert [content["role"] for content in second["contents"]] == ["user", "model", "user"]

    asyncio.run(scene())


def test_a_key_that_may_not_use_an_agent_cannot_query_it(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client("bob-secret") as client:
            result = await client.call_tool("query", {"prompt": "x", "model": "clerk"})
            assert result.is_error
            assert "not allowed to use the model 'clerk'" in text_of(result)

    asyncio.run(scene())


def test_the_turns_of_an_agent_are_those_of_its_limits(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, script=call_twice) as stage, stage.client() as client:
            result = await client.call_tool("query", {"prompt": "x", "model": "fetcher", "max_turns": 9})
            assert result.structured_content["stop_reason"] == "turns"
            assert len(stage.asked()) == 3

    asyncio.run(scene())
