"""Conversations are stored unchanged, by owner, for some hours and up to some length."""

import asyncio

import pytest

from dragoman.core.parts import (
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.sessions.conversations import Conversations, drop_oldest
from dragoman.sessions.store import Store, open_store


@pytest.fixture
def store(tmp_path):
    made = open_store(f"sqlite:///{tmp_path}/sessions.db")
    yield made
    asyncio.run(made.close())


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def model(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


def test_a_conversation_continues_where_it_ended(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, max_messages=100)
        first = await kept.open("ann", "")
        assert first.messages == ()
        await kept.save(first, (user("hi"), model("hello")), "m")
        second = await kept.open("ann", first.name)
        assert second.messages == (user("hi"), model("hello"))
        await kept.save(second, (*second.messages, user("and?"), model("so")), "m")
        assert len((await kept.open("ann", first.name)).messages) == 4

    asyncio.run(scene())


def test_a_conversation_is_its_owners(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, max_messages=100)
        await kept.save(await kept.open("ann", "trip"), (user("secret"), model("yes")), "m")
        assert (await kept.open("bob", "trip")).messages == ()
        assert len((await kept.open("ann", "trip")).messages) == 2

    asyncio.run(scene())


def test_an_expired_conversation_starts_again(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, max_messages=100)
        await kept.save(await kept.open("ann", "trip"), (user("old"), model("yes")), "m")
        await store._engine.write(lambda cursor: cursor.execute("UPDATE turns SET created = created - 7200"))
        opened = await kept.open("ann", "trip")
        assert opened.messages == ()
        await kept.save(opened, (user("new"), model("no")), "m")
        assert (await kept.open("ann", "trip")).messages == (user("new"), model("no"))
        assert len((await Conversations(store, hours=0, max_messages=100).open("ann", "trip")).messages) == 2

    asyncio.run(scene())


def test_two_calls_that_go_on_from_the_same_turn_do_not_both_hold(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, max_messages=100)
        one, other = await kept.open("ann", "trip"), await kept.open("ann", "trip")
        await kept.save(one, (user("a"), model("b")), "m")
        with pytest.raises(Problem, match="send this call again"):
            await kept.save(other, (user("c"), model("d")), "m")
        assert (await kept.open("ann", "trip")).messages == (user("a"), model("b"))

    asyncio.run(scene())


def test_a_history_that_is_too_long_is_cut_at_its_start_and_no_result_loses_its_call(store: Store):
    call = Message(role="assistant", parts=(ToolCall(id="1", name="f", arguments="{}"),))
    result = Message(role="user", parts=(ToolResult(call_id="1"),))
    messages = (user("a"), call, result, model("b"), user("c"), model("d"))
    assert drop_oldest(messages, 6) == messages
    assert drop_oldest(messages, 4) == messages[4:]
    assert drop_oldest(messages, 1) == ()
    assert drop_oldest(messages, 0) == messages

    async def scene() -> None:
        kept = Conversations(store, hours=1, max_messages=4)
        await kept.save(await kept.open("ann", "trip"), messages, "m")
        opened = await kept.open("ann", "trip")
        assert opened.messages == messages[4:]
        await kept.save(opened, (*opened.messages, user("e"), model("f")), "m")
        found = await store.load_conversation("ann", "mcp:trip")
        assert found is not None
        assert len(found[1].items) == 4

    asyncio.run(scene())
