"""Claude accepts a later system message between a user message and its answer; elsewhere it becomes user text."""

import json

import pytest
from msgspec import structs

from dragoman.core.parts import Inline, Media, Text, ToolCall, ToolResult
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.history import arrange_turns
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import build_message, encode, loss_pointers

HI, YES, SO = build_message("user", "hi"), build_message("assistant", "yes"), build_message("user", "so")
LATER, MORE = build_message("system", "rule"), build_message("system", "more")
CALL = build_message("assistant", ToolCall(id="a", name="f", arguments="{}"))
RESULT = build_message("user", ToolResult(call_id="a", content=(Text(text="ok"),)))
TOLD = "<system>\nrule\n</system>"
IMAGE = Media(kind="image", media_type="image/png", source=Inline("AA"))


def turns(*messages, model="claude-opus-5"):
    ledger = Ledger({})
    placed = [structs.replace(message, where=f"/{index}") for index, message in enumerate(messages)]
    return arrange_turns(placed, Adaptation(traits_for("messages", model), ledger, "")), loss_pointers(ledger)


@pytest.mark.parametrize(
    "history",
    [
        (HI, LATER),
        (HI, LATER, YES, SO),
        (HI, CALL, RESULT, LATER),
        (HI, CALL, RESULT, LATER, YES, SO),
        (LATER, HI, LATER),
    ],
)
@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-4-8", "claude-sonnet-5-5"])
def test_between_question_and_answer_it_stays(history, model):
    assert turns(*history, model=model) == (history, [])


@pytest.mark.parametrize(
    ("history", "after", "place"),
    [
        ((HI, YES, LATER, SO), (HI, YES, build_message("user", TOLD, "so")), "/2"),
        ((HI, LATER, SO), (build_message("user", "hi", TOLD, "so"),), "/1"),
        ((HI, YES, LATER), (HI, YES, build_message("user", TOLD)), "/2"),
        ((HI, YES, LATER, YES, SO), (HI, YES, build_message("user", TOLD), YES, SO), "/2"),
        ((HI, CALL, RESULT, LATER, SO), (HI, CALL, build_message("user", *RESULT.parts, TOLD, "so")), "/3"),
    ],
)
def test_a_later_system_message_becomes_a_user_message_elsewhere(history, after, place):
    assert turns(*history) == (after, [("approximated", place)])


def test_several_in_a_row_are_one():
    assert turns(HI, LATER, MORE, YES, SO) == ((HI, build_message("system", "rule", "more"), YES, SO), [])
    result = build_message("user", "hi", TOLD, "<system>\nmore\n</system>", "so")
    assert turns(HI, LATER, MORE, SO) == ((result,), [("approximated", "/1"), ("approximated", "/2")])


def test_a_later_system_message_with_media_becomes_a_user_message_with_its_neighbours():
    shown = build_message("system", IMAGE)
    assert turns(HI, LATER, shown, YES, SO) == (
        (build_message("user", "hi", TOLD, IMAGE), YES, SO),
        [("approximated", "/1"), ("approximated", "/2")],
    )


def test_an_empty_later_system_message_does_not_separate_turns():
    assert turns(HI, build_message("system"), SO) == ((build_message("user", "hi", "so"),), [])
    assert turns(HI, build_message("system"), YES, SO) == ((HI, YES, SO), [])


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-opus-4-7"])
def test_models_without_later_system_messages_get_them_as_user_messages(model):
    assert turns(HI, LATER, YES, SO, model=model) == (
        (build_message("user", "hi", TOLD), YES, SO),
        [("approximated", "/1")],
    )


def test_the_roles_of_a_translated_request_are_in_an_order_claude_takes():
    messages = [
        {"role": role, "content": role} for role in ("user", "assistant", "system", "user", "system", "assistant")
    ]
    call = Call(encode({"model": "m", "messages": [*messages, {"role": "user", "content": "so"}]}))
    translation = translate_request(call, "chat", "messages", model="claude-opus-5")
    result = json.loads(translation.call.body)["messages"]
    assert [message["role"] for message in result] == ["user", "assistant", "user", "system", "assistant", "user"]
    assert [loss.where for loss in translation.losses] == ["/messages/2"]
