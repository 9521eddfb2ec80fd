"""Automatic cache marks: where they are in the rendered bytes, and that the bytes are otherwise the same."""

import json

import pytest

from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.request import Message, NativeTool, Request, Tool
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.messages.automatic_marks import mark_content
from dragoman.dialects.messages.renderer import render_request

MARK = {"type": "ephemeral"}
SYSTEM = Message(role="system", parts=(Text(text="s"),))
QUESTION = Message(role="user", parts=(Text(text='say "content":"x"'),))
CALL = Message(role="assistant", parts=(ToolCall(id="c", name="f", arguments='{"content":[{"a":"b"}]}'),))
RESULT = Message(role="user", parts=(ToolResult(call_id="c", content=(Text(text="r"),)),))
ANSWER = Message(role="assistant", parts=(Text(text="a"),))
TOOLS = (Tool(name="f"), Tool(name="g"))


def render(*messages, **fields):
    request = Request(model="m", messages=messages, marks_ends=True, **fields)
    return json.loads(render_request(request, Traits(dialect="messages")).body)


def write(*messages):
    """The items of messages that the prefix cache holds."""
    request = Request(model="m", messages=messages)
    body = render_request(request, Traits(dialect="messages")).body
    return body[body.index(b"[", body.index(b'"messages"')) + 1 : -2]


def find_marks(body):
    places = [("tool", tool) for tool in body.get("tools", ())]
    system = body.get("system", ())
    places += [("system", block) for block in (system if isinstance(system, list) else ())]
    for number, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else ()
        places += [(number, block) for block in blocks]
    return [(place, item.get("name", item.get("type"))) for place, item in places if "cache_control" in item]


def test_the_last_tool_the_instructions_and_the_last_two_turns_of_the_client_are_marked():
    body = render(SYSTEM, QUESTION, CALL, RESULT, tools=TOOLS)
    assert find_marks(body) == [("tool", "g"), ("system", "text"), (0, "text"), (2, "tool_result")]
    assert body["system"] == [{"type": "text", "text": "s", "cache_control": MARK}]
    assert body["messages"][0]["content"] == [{"type": "text", "text": 'say "content":"x"', "cache_control": MARK}]


def test_the_marks_move_to_the_new_end_and_stay_where_the_last_request_ended():
    body = render(SYSTEM, QUESTION, CALL, RESULT, ANSWER, QUESTION)
    assert find_marks(body) == [("system", "text"), (2, "tool_result"), (4, "text")]


def test_a_question_without_tools_and_without_an_answer_is_not_marked_but_its_instructions_are():
    assert find_marks(render(SYSTEM, QUESTION)) == [("system", "text")]
    assert find_marks(render(QUESTION)) == []
    assert find_marks(render(QUESTION, tools=TOOLS)) == [("tool", "g"), (0, "text")]


def test_an_answer_that_is_begun_leaves_one_mark_before_it():
    assert find_marks(render(QUESTION, ANSWER, QUESTION, ANSWER)) == [(2, "text")]


@pytest.mark.parametrize("cut", [1, 3])
@pytest.mark.parametrize("last", [QUESTION, RESULT])
def test_messages_from_the_prefix_cache_are_marked_as_if_they_were_rendered_now(cut, last):
    history = (QUESTION, CALL, RESULT, ANSWER, last, ANSWER, QUESTION)
    for until in (cut, 5):
        cached = render(SYSTEM, *history[until:], written=write(*history[:until]), tools=TOOLS)
        assert cached == render(SYSTEM, *history, tools=TOOLS)


def test_the_last_of_several_blocks_is_marked():
    several = Message(role="user", parts=(*RESULT.parts, Text(text="t")))
    assert find_marks(render(several, tools=TOOLS))[1:] == [(0, "text")]
    assert find_marks(render(CALL, several, written=write(several), tools=TOOLS))[1:] == [(0, "text"), (2, "text")]


def test_a_result_with_blocks_is_marked_itself():
    result = ToolResult(call_id="c", content=(Text(text="1"), Text(text="2")))
    block = render(Message(role="user", parts=(result,)), tools=TOOLS)["messages"][0]["content"][0]
    assert block["cache_control"] == MARK
    assert all("cache_control" not in item for item in block["content"])


def test_tools_that_are_rendered_already_are_marked_in_a_copy():
    written = b'[{"name":"a"},{"name":"b"}]'
    body = render(QUESTION, tools=TOOLS, written_tools=written)
    assert body["tools"] == [{"name": "a"}, {"name": "b", "cache_control": MARK}]


@pytest.mark.parametrize(
    "deferred",
    [
        NativeTool(dialect="messages", raw=b'{"type":"x","name":"y","defer_loading":true}'),
        Tool(name="y", extras=Extras("messages", {"/defer_loading": b"true"})),
    ],
)
def test_a_deferred_tool_takes_no_mark(deferred):
    assert find_marks(render(QUESTION, tools=(*TOOLS, deferred))) == [(0, "text")]
    assert find_marks(render(QUESTION, tools=(deferred, *TOOLS))) == [("tool", "g"), (0, "text")]


def test_an_empty_array_takes_no_mark():
    assert mark_content(b"[]") == b"[]"
