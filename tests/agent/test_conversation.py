"""A conversation with an agent, without a store."""

import asyncio

from agent.scripted import Scripted, agent, call
from dragoman.agent import ApprovalAsked
from dragoman.agent.conversation import AgentConversation
from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.tools import tool


@tool
def save(name: str) -> str:
    """Save a file."""
    return f"{name} is saved"


CALL = call("save", {"name": "a"})


def test_without_a_reader_of_its_steps_a_call_that_needs_approval_is_refused_at_once():
    conversation = agent(Scripted([CALL], [Text(text="Done.")]), save, approve=lambda _: "ask").conversation()
    assert isinstance(conversation, AgentConversation)
    result = asyncio.run(conversation.run("go"))
    assert result.text == "Done."
    assert result.history[2].parts[0].failed


def test_a_reader_of_its_steps_answers_approval_requests():
    made = agent(Scripted([CALL], [Text(text="Done.")]), save, approve=lambda _: "ask")

    async def read():
        async for step in made.conversation().stream("go"):
            if isinstance(step, ApprovalAsked):
                made.answer(step.run, step.topic, "allow")
        return step

    assert not asyncio.run(read()).history[2].parts[0].failed


def test_a_prompt_that_was_not_answered_is_not_kept():
    conversation = agent(
        Scripted([Text(text="Hi.")], Problem("overloaded", "busy"), [Text(text="Yes.")])
    ).conversation()

    async def talk():
        return [await conversation.run(text) for text in ("one", "two", "three")]

    first, second, third = asyncio.run(talk())
    assert second.stop == "failed"
    assert [len(result.history) for result in (first, third)] == [2, 4]


def test_a_turn_that_failed_after_a_call_is_kept():
    conversation = agent(Scripted([CALL], Problem("overloaded", "busy"), [Text(text="Yes.")]), save).conversation()

    async def talk():
        return [await conversation.run(text) for text in ("one", "two")]

    first, second = asyncio.run(talk())
    assert first.stop == "failed"
    assert [message.role for message in second.history] == ["user", "assistant", "user", "user", "assistant"]
    assert repr(conversation) == "<AgentConversation without a name, 5 messages>"


def test_turns_that_run_at_once_are_both_kept():
    conversation = agent(Scripted([Text(text="Hi.")], [Text(text="Yes.")])).conversation()

    async def talk():
        return await asyncio.gather(conversation.run("one"), conversation.run("two"))

    results = asyncio.run(talk())
    assert [len(result.history) for result in results] == [2, 2]
    assert {message.parts[0].text for message in conversation.history} == {"one", "two", "Hi.", "Yes."}
    assert [message.role for message in conversation.history] == ["user", "assistant"] * 2
