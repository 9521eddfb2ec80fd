"""Texts of several agent turns are joined to one reply."""

import asyncio

import pytest

from dragoman.agent import TurnEnded
from dragoman.core.events import PartCited, PartDelta, PartEnded, PartStarted
from dragoman.core.parts import Citation, Reasoning, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.core.response import Finish, Response
from dragoman.gateway.agents.reply_texts import ParagraphSeparator, drop_interim_texts


def join(*turns):
    """Return the text of a reply from turns, each a list of text deltas."""
    paragraphs, result = ParagraphSeparator(), ""
    for pieces in turns:
        paragraphs.end_turn()
        events = [PartStarted(0, Text(text="")), *(PartDelta(0, piece) for piece in pieces), PartEnded(0)]
        output = [paragraphs.feed(event) for event in events]
        result += "".join(event.text for event in output if isinstance(event, PartDelta))
    return result


@pytest.mark.parametrize(
    ("turns", "result"),
    [
        ([["a", "b"], ["c", "d"], ["e"]], "ab\n\ncd\n\ne"),
        ([["a\n"], ["b"]], "a\n\nb"),
        ([["a\n", "\n"], ["b"]], "a\n\nb"),
        ([["a"], ["\nb"]], "a\n\nb"),
        ([["a"], ["\n\n\nb"]], "a\n\n\nb"),
        ([[], ["b"]], "b"),
        ([["a"], [], ["b"]], "a\n\nb"),
        ([["a"], ["", "b"]], "a\n\nb"),
        ([["a"], [""]], "a"),
    ],
)
def test_each_turn_is_a_paragraph(turns, result):
    assert join(*turns) == result


def test_two_texts_of_one_turn_stay_as_they_are_and_thoughts_are_no_text():
    paragraphs = ParagraphSeparator()
    paragraphs.end_turn()
    paragraphs.feed(PartStarted(0, Text(text="")))
    paragraphs.feed(PartDelta(0, "a"))
    paragraphs.end_turn()
    paragraphs.feed(PartStarted(0, Reasoning()))
    assert paragraphs.feed(PartDelta(0, "hm")) == PartDelta(0, "hm")
    for index in (1, 2):
        paragraphs.feed(PartStarted(index, Text(text="")))
    assert [paragraphs.feed(PartDelta(index, "b")).text for index in (1, 2)] == ["\n\nb", "b"]


def test_citation_positions_follow_an_inserted_paragraph_break():
    paragraphs = ParagraphSeparator()
    cited = Citation("responses", b'{"start_index":0}', url="https://example.org/", start=0, end=4)
    bare = Citation("messages", b"{}", url="https://example.org/")
    for text, begin in (("a", 0), ("Rain", 2)):
        paragraphs.end_turn()
        paragraphs.feed(PartStarted(0, Text(text="")))
        paragraphs.feed(PartDelta(0, text))
        events = paragraphs.feed(PartCited(0, cited)).citation
        assert (events.start, events.end, bool(events.raw)) == (begin, begin + 4, not begin)
        assert paragraphs.feed(PartCited(0, bare)).citation is bare


def test_the_rest_of_a_paused_turn_continues_the_same_text():
    paragraphs = ParagraphSeparator()
    paragraphs.feed(PartStarted(0, Text(text="")))
    paragraphs.feed(PartDelta(0, "One, "))
    paragraphs.end_turn(continues=True)
    paragraphs.feed(PartStarted(0, Text(text="")))
    assert paragraphs.feed(PartDelta(0, "two.")).text == "two."


CALL = ToolCall(id="c", name="f", arguments="{}")
RESULT = ToolResult(call_id="c", content=())


def list_released(*steps, is_stream=True):
    """Return, for each step, the texts that are sent before the next one arrives."""
    released, sent = [], []

    async def arrive():
        for step in steps:
            yield step
            released.append("".join(sent))
            sent.clear()

    async def scene():
        async for step in drop_interim_texts(arrive(), is_stream=is_stream):
            sent.append(step.text if isinstance(step, PartDelta) else "")  # noqa: PERF401  it is read meanwhile

    asyncio.run(scene())
    return released


def end_turn(*parts):
    response = Response(id="r", model="m", parts=parts, finish=Finish("stop"))
    messages = (Message(role="user", parts=(RESULT,)),) if CALL in parts else ()
    return TurnEnded(1, response, messages)


def say(*pieces, index=0):
    return [PartStarted(index, Text(text="")), *(PartDelta(index, piece) for piece in pieces), PartEnded(index)]


def test_an_answer_in_a_format_streams_as_it_arrives():
    answer = say(" ", '{"total"', ": 3}")
    assert list_released(*answer, end_turn()) == ["", "", ' {"total"', ": 3}", "", ""]
    assert list_released(*answer, end_turn(), is_stream=False)[-1] == ' {"total": 3}'


def test_a_text_that_is_not_in_the_format_waits_for_the_end_of_its_turn():
    thought = say("I add ", "{1}.")
    assert list_released(*thought, end_turn()) == ["", "", "", "", "I add {1}."]
    turns = [*thought, PartStarted(1, CALL), PartEnded(1), end_turn(CALL), *say("[3", "]"), end_turn()]
    assert "".join(list_released(*turns)) == "[3]"


def test_a_text_after_a_call_waits_for_the_end_of_its_turn():
    turn = [PartStarted(0, CALL), PartEnded(0), *say('{"a":', "1}", index=1), end_turn(CALL)]
    assert "".join(list_released(*turn)) == ""
