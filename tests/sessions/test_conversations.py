"""What was said is kept as it was, for its owner, for some hours and up to some length."""

import asyncio

import pytest
from hypothesis import given, settings
from msgspec import structs

from dragoman.core.parts import (
    Citation,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.value import Extras
from dragoman.sessions.conversations import Conversations, shortened
from dragoman.sessions.store import Store
from dragoman.sessions.urls import open_store
from dragoman.sessions.writing import read, written
from strategies import requests

EVERYTHING = (
    Text(text="a", citations=(Citation("gemini", b'{"x":1}', url="https://x.example", start=1),)),
    Reasoning(texts=("one", "two"), signature=Signature("google", "c2ln")),
    Reasoning(redacted=True, signature=Signature("anthropic", "x", item="rs_1")),
    ToolCall(id="c1", name="f", arguments='{"a": 1 }', complete=False, extras=Extras("chat", {"/x": b"[1]"})),
    ToolResult(
        call_id="c1",
        name="f",
        content=(Text(text="t"), Data(json=b'{"is": "Text"}'), Media(kind="image", media_type="", source=Inline("AA"))),
        failed=True,
    ),
    Media(kind="document", media_type="application/pdf", source=Link("https://x.example/a.pdf"), name="a.pdf"),
    Media(kind="document", media_type="text/plain", source=Plain("words")),
    Media(kind="image", media_type="image/png", source=Stored("google", "files/1")),
    Refusal(text="no"),
    Opaque(dialect="messages", raw=b'{"type":"x"}', refers="/id"),
)


@pytest.fixture
def store(tmp_path):
    made = open_store(f"sqlite:///{tmp_path}/sessions.db")
    yield made
    asyncio.run(made.close())


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def model(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


@pytest.mark.parametrize("part", EVERYTHING, ids=lambda part: type(part).__name__)
def test_a_message_is_read_as_it_was_written(part):
    message = Message(role="assistant", parts=(part, Text(text="after")), name="n")
    again = read(written(message))
    assert again == message
    assert [structs.asdict(one) for one in again.parts] == [structs.asdict(one) for one in message.parts]


@settings(max_examples=5)
@given(requests())
def test_every_message_is_read_as_it_was_written(request):
    assert tuple(read(written(message)) for message in request.messages) == request.messages


def test_what_is_no_message_is_not_taken_for_one():
    with pytest.raises(TypeError, match="Text"):
        read(b'{"is":"Text","text":"x"}')


def test_a_conversation_goes_on_where_it_was(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, longest=100)
        first = await kept.open("ann", "")
        assert first.messages == ()
        await kept.keep(first, (user("hi"), model("hello")), "m")
        second = await kept.open("ann", first.name)
        assert second.messages == (user("hi"), model("hello"))
        await kept.keep(second, (*second.messages, user("and?"), model("so")), "m")
        assert len((await kept.open("ann", first.name)).messages) == 4

    asyncio.run(scene())


def test_a_conversation_is_its_owners(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, longest=100)
        await kept.keep(await kept.open("ann", "trip"), (user("secret"), model("yes")), "m")
        assert (await kept.open("bob", "trip")).messages == ()
        assert len((await kept.open("ann", "trip")).messages) == 2

    asyncio.run(scene())


def test_a_conversation_that_nobody_went_on_with_begins_anew(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, longest=100)
        await kept.keep(await kept.open("ann", "trip"), (user("old"), model("yes")), "m")
        await store._engine.write(lambda cursor: cursor.run("UPDATE turns SET created = created - 7200"))
        opened = await kept.open("ann", "trip")
        assert opened.messages == ()
        await kept.keep(opened, (user("new"), model("no")), "m")
        assert (await kept.open("ann", "trip")).messages == (user("new"), model("no"))
        assert len((await Conversations(store, hours=0, longest=100).open("ann", "trip")).messages) == 2

    asyncio.run(scene())


def test_two_calls_that_go_on_from_the_same_turn_do_not_both_hold(store: Store):
    async def scene() -> None:
        kept = Conversations(store, hours=1, longest=100)
        one, other = await kept.open("ann", "trip"), await kept.open("ann", "trip")
        await kept.keep(one, (user("a"), model("b")), "m")
        with pytest.raises(Problem, match="ask again"):
            await kept.keep(other, (user("c"), model("d")), "m")
        assert (await kept.open("ann", "trip")).messages == (user("a"), model("b"))

    asyncio.run(scene())


def test_what_is_too_long_loses_its_beginning_and_no_result_its_call(store: Store):
    call = Message(role="assistant", parts=(ToolCall(id="1", name="f", arguments="{}"),))
    result = Message(role="user", parts=(ToolResult(call_id="1"),))
    messages = (user("a"), call, result, model("b"), user("c"), model("d"))
    assert shortened(messages, 6) == messages
    assert shortened(messages, 4) == messages[4:]
    assert shortened(messages, 1) == ()
    assert shortened(messages, 0) == messages

    async def scene() -> None:
        kept = Conversations(store, hours=1, longest=4)
        await kept.keep(await kept.open("ann", "trip"), messages, "m")
        opened = await kept.open("ann", "trip")
        assert opened.messages == messages[4:]
        await kept.keep(opened, (*opened.messages, user("e"), model("f")), "m")
        found = await store.opened("ann", "mcp:trip")
        assert found is not None
        assert len(found[1].items) == 4

    asyncio.run(scene())
