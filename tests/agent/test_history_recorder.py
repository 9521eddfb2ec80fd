"""Runs that are written down while they happen."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.scripted import Scripted, agent, call, run_to_end, text_of, user_request
from dragoman.agent import Limits
from dragoman.agent.history import Compaction, closed
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.tools import tool


class Book:
    """Everything that was written down, in order."""

    def __init__(self):
        self.messages = ()
        self.story = []
        self.ended = None

    async def begin(self, run, request):
        self.messages = request.messages
        self.story.append("begin")

    async def add(self, run, messages):
        self.messages += messages
        self.story += [type(part).__name__ for message in messages for part in message.parts]

    async def replace(self, run, messages):
        self.messages = messages
        self.story.append("replace")

    async def end(self, ended):
        self.ended = ended
        self.story.append(f"end {ended.stop}")


@tool
def add(one: int, other: int) -> int:
    """Add."""
    return one + other


@tool
async def slow(name: str, turns: int) -> str:
    """Take some turns of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return name


@tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


def test_a_turn_is_recorded_before_its_calls_run_and_results_as_they_arrive():
    book = Book()

    @tool
    def look() -> str:
        """Look at the book."""
        return book.story[-1]

    model = Scripted([Text(text="Hm."), call("look")], [Text(text="Done.")])
    reached = run_to_end(agent(model, look, recorder=book))
    assert text_of(reached.history[2].parts[0]) == "ToolCall"
    assert book.story == ["begin", "Text", "ToolCall", "ToolResult", "Text", "end finished"]
    assert closed(book.messages) == reached.history


def test_results_that_come_out_of_order_are_one_message_in_order_when_they_are_read():
    book = Book()
    calls = [call("slow", {"name": str(n), "turns": 8 - n}, f"call_{n}") for n in range(8)]
    reached = run_to_end(agent(Scripted(calls, [Text(text="Done.")]), slow, recorder=book))
    written = [part.call_id for message in book.messages for part in message.parts if isinstance(part, ToolResult)]
    assert written != sorted(written)
    assert closed(book.messages) == reached.history


@pytest.mark.parametrize(
    "limits", [Limits(turns=1), Limits(tokens=1), Limits(seconds=0.5), Limits(calls=1), Limits(identical=0)]
)
def test_what_is_written_is_the_history_wherever_a_run_ends(limits):
    book = Book()
    calls = [
        call("hang" if limits.seconds else "add", {} if limits.seconds else {"one": 1, "other": n}, f"c{n}")
        for n in (1, 2)
    ]
    reached = run_to_end(agent(Scripted(calls), hang, add, recorder=book, limits=limits))
    assert closed(book.messages) == reached.history
    assert book.story[-1] == f"end {reached.stop}"


def test_a_shorter_history_takes_the_place_of_the_longer_one():
    book = Book()
    compaction = Compaction(summarise=lambda _: "x", context=10, keep=0)
    model = Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")])
    reached = run_to_end(agent(model, add, recorder=book, compaction=compaction))
    assert "replace" in book.story
    assert closed(book.messages) == reached.history


def test_a_run_whose_reader_leaves_is_written_down_as_cancelled():
    book = Book()

    async def leave():
        steps = agent(Scripted([call("hang")]), hang, recorder=book).steps(user_request())
        async for step in steps:
            if type(step).__name__ == "CallStarted":
                break
        await steps.aclose()

    asyncio.run(leave())
    assert book.story[-1] == "end cancelled"
    assert closed(book.messages) == book.ended.history
    assert "interrupted" in text_of(book.ended.history[-1].parts[0])


def test_a_run_that_breaks_is_written_down_as_failed():
    book = Book()

    async def broken(request):
        raise ZeroDivisionError
        yield

    assert run_to_end(agent(broken, add, recorder=book)).stop == "failed"
    assert book.story == ["begin", "end failed"]


@pytest.mark.parametrize("method", ["begin", "add", "end"])
@pytest.mark.parametrize("error", [Problem("overloaded", "the store is down"), OSError("disk full")])
def test_a_book_that_cannot_be_written_in_fails_the_run_and_leaves_its_history(method, error):
    async def broken(*_):
        raise error

    book = Book()
    setattr(book, method, broken)
    reached = run_to_end(agent(Scripted([call("add", {"one": 1, "other": 2})], [Text(text="3")]), add, recorder=book))
    assert reached.stop == "failed"
    assert reached.problem.message in ("the store is down", "the recorder failed (OSError)")
    assert closed(reached.history) == reached.history


def test_a_recorder_that_cannot_be_opened_ends_the_run_before_the_model_is_called():
    class Closed(Book):
        async def begin(self, run, request):
            raise Problem("overloaded", "the store is down")

    model = Scripted([Text(text="x")])
    reached = run_to_end(agent(model, add, recorder=Closed()))
    assert (reached.stop, reached.problem.message, model.requests) == ("failed", "the store is down", [])


def test_a_book_that_is_closed_while_calls_run_ends_the_run():
    class Closing(Book):
        async def add(self, run, messages):
            if isinstance(messages[0].parts[0], ToolResult):
                raise Problem("overloaded", "the store is down")

    calls = [call("add", {"one": 1, "other": n}, f"c{n}") for n in (1, 2)]
    reached = run_to_end(agent(Scripted(calls), add, recorder=Closing()))
    assert (reached.stop, reached.problem.message) == ("failed", "the store is down")


def test_what_a_killed_process_left_is_a_valid_history():
    output = Message(role="assistant", parts=(call("a", {}, "1"), call("b", {}, "2"), call("c", {}, "3")))
    left = (
        *user_request().messages,
        output,
        Message(role="user", parts=(ToolResult(call_id="2", content=(Text(text="x"),)),)),
    )
    results = closed(left)[-1].parts
    assert [result.call_id for result in results] == ["1", "2", "3"]
    assert [result.failed for result in results] == [True, False, True]
    assert closed(closed(left)) == closed(left)


kinds = st.lists(st.sampled_from(["user", "one call", "two calls", "result", "other result", "text"]), max_size=10)


@given(kinds)
def test_whatever_was_left_every_call_has_exactly_one_result_after_it(kinds):
    made = {
        "user": Message(role="user", parts=(Text(text="hi"),)),
        "one call": Message(role="assistant", parts=(call("a", {}, "1"),)),
        "two calls": Message(role="assistant", parts=(call("a", {}, "1"), call("a", {}, "2"))),
        "result": Message(role="user", parts=(ToolResult(call_id="1"),)),
        "other result": Message(role="user", parts=(ToolResult(call_id="2"), Text(text="and"))),
        "text": Message(role="assistant", parts=(Text(text="hm"),)),
    }
    history = closed([made[kind] for kind in kinds])
    for at, message in enumerate(history):
        expected = [part.id for part in message.parts if isinstance(part, ToolCall)]
        after = []
        for later in history[at + 1 :]:
            if later.role == "assistant":
                break
            after += [part.call_id for part in later.parts if isinstance(part, ToolResult)]
        assert set(expected) <= set(after)
    assert closed(history) == history
