"""Pairing of calls and results: each repair and its losses."""

import pytest
from msgspec import structs

from dragoman.core.parts import Data, Inline, Media, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.pairing import MISSING_RESULT, pair_calls
from interpreter.workbench import build_message, exactly, loss_pointers

CHAT = traits_for("chat", "gpt-4.1")
CLAUDE = traits_for("messages", "claude-opus-5")
POINTERS = {"call.id": ("/id",), "result.name": ("/name",)}


def call(call_id, name="f", **more):
    return ToolCall(id=call_id, name=name, arguments="{}", where=f"/calls/{call_id or name}", **more)


def result(call_id, text="ok", name="", **more):
    return ToolResult(call_id=call_id, name=name, content=(Text(text=text),), where=f"/results/{text}", **more)


def repair(*messages, traits=CHAT):
    ledger = Ledger(POINTERS)
    history = list(messages)
    after = pair_calls(history, traits, ledger)
    return after, loss_pointers(ledger)


IN_ORDER = [
    [],
    [build_message("user", "hi")],
    [build_message("user", "hi"), build_message("assistant", "yes"), build_message("user", "so")],
    [build_message("assistant", "let me", call("a")), build_message("user", result("a"))],
    [
        build_message("assistant", call("a"), call("b")),
        build_message("user", result("a"), result("b"), "and"),
        build_message("assistant", "ok"),
    ],
    [
        build_message("assistant", call("a")),
        build_message("assistant", call("b")),
        build_message("user", result("a")),
        build_message("user", result("b")),
    ],
    [build_message("assistant", call("a")), build_message("assistant", "text"), build_message("user", result("a"))],
    [
        build_message("assistant", call("a")),
        build_message("user", result("a")),
        build_message("assistant", call("b")),
        build_message("user", result("b")),
    ],
]


@pytest.mark.parametrize("history", IN_ORDER)
def test_a_history_in_order_is_returned_as_it_is(history):
    ledger = Ledger(POINTERS)
    assert pair_calls(history, CHAT, ledger) is history
    assert len(ledger) == 0


LOST = "Error: " + MISSING_RESULT


@pytest.mark.parametrize(
    ("traits", "made"),
    [
        (CHAT, ToolResult(call_id="a", name="f", content=(Text(text=LOST),))),
        (CLAUDE, ToolResult(call_id="a", name="f", content=(Text(text=MISSING_RESULT),), failed=True)),
    ],
)
@pytest.mark.parametrize(
    "after",
    [[], [build_message("user", "go on")], [build_message("user", "go on"), build_message("assistant", "well")]],
)
def test_a_call_without_a_result_gets_an_error_result_right_behind_it(traits, made, after):
    assert repair(build_message("assistant", call("a")), *after, traits=traits) == (
        [build_message("assistant", call("a")), build_message("user", made), *after],
        [("approximated", "/calls/a")],
    )


def test_a_made_result_has_the_form_of_its_call():
    (_, answer), _ = repair(build_message("assistant", call("a", form="text")))
    assert answer.parts[0].form == "text"


def test_one_missing_result_of_two_is_added_in_the_order_of_the_calls():
    history, losses = repair(
        build_message("assistant", call("a"), call("b")), build_message("user", result("b"), "and")
    )
    missing = ToolResult(call_id="a", name="f", content=(Text(text=LOST),))
    assert history == [
        build_message("assistant", call("a"), call("b")),
        build_message("user", missing, result("b", name="f")),
        build_message("user", "and"),
    ]
    assert losses == [("approximated", "/calls/a")]


def test_results_are_sorted_into_the_order_of_the_calls():
    assert repair(
        build_message("assistant", call("a"), call("b")), build_message("user", result("b", "2"), result("a", "1"))
    ) == (
        [
            build_message("assistant", call("a"), call("b")),
            build_message("user", result("a", "1", name="f"), result("b", "2", name="f")),
        ],
        [],
    )


def test_a_result_after_other_text_moves_up_to_its_call():
    assert repair(
        build_message("assistant", call("a")), build_message("user", "wait"), build_message("user", result("a"))
    ) == (
        [
            build_message("assistant", call("a")),
            build_message("user", result("a", name="f")),
            build_message("user", "wait"),
        ],
        [],
    )
    assert repair(build_message("assistant", call("a")), build_message("user", "wait", result("a"))) == (
        [
            build_message("assistant", call("a")),
            build_message("user", result("a", name="f")),
            build_message("user", "wait"),
        ],
        [],
    )


def test_a_result_after_the_next_turn_moves_up_to_its_call():
    history, losses = repair(
        build_message("assistant", call("a")),
        build_message("user", "wait"),
        build_message("assistant", "yes"),
        build_message("user", result("a")),
    )
    assert history == [
        build_message("assistant", call("a")),
        build_message("user", result("a", name="f")),
        build_message("user", "wait"),
        build_message("assistant", "yes"),
    ]
    assert losses == []


def test_of_two_results_the_later_is_kept():
    assert repair(
        build_message("assistant", call("a")),
        build_message("user", result("a", "old")),
        build_message("user", result("a", "new")),
    ) == (
        [build_message("assistant", call("a")), build_message("user", result("a", "new", name="f"))],
        [("dropped", "/results/old")],
    )


def test_results_of_calls_without_ids_are_found_by_name_then_by_order():
    first, second = generate_id("call_", 1, 1, "f"), generate_id("call_", 1, 2, "g")
    assert repair(
        build_message("assistant", call("", "f"), call("", "g")),
        build_message("user", result("", "2", "g"), result("", "1")),
    ) == (
        [
            build_message("assistant", call(first, "f"), call(second, "g")),
            build_message("user", result(first, "1", "f"), result(second, "2", "g")),
        ],
        [],
    )


def test_a_result_with_an_unknown_id_answers_only_a_call_without_one():
    generated = generate_id("call_", 1, 1, "f")
    assert repair(build_message("assistant", call("", "f")), build_message("user", result("x"))) == (
        [build_message("assistant", call(generated, "f")), build_message("user", result(generated, name="f"))],
        [],
    )
    history, losses = repair(build_message("assistant", call("a", "f")), build_message("user", result("x")))
    assert history[2] == build_message("user", "[result of tool call x]\nok")
    assert losses == [("approximated", "/calls/a"), ("approximated", "/results/ok")]


def test_a_named_result_does_not_answer_a_call_of_another_name():
    history, _ = repair(build_message("assistant", call("", "f")), build_message("user", result("", "ok", "g")))
    assert history[2] == build_message("user", "[result of tool call g]\nok")


def test_an_answered_call_is_not_answered_again_by_name():
    generated = [generate_id("call_", 1, count, "f") for count in (1, 2)]
    history, _ = repair(
        build_message("assistant", call("", "f"), call("", "f")),
        build_message("user", result("", "1", "f"), result("", "2", "f")),
    )
    assert history[1] == build_message("user", result(generated[0], "1", "f"), result(generated[1], "2", "f"))


def test_calls_of_different_turns_without_ids_get_different_ids():
    history, _ = repair(
        build_message("assistant", call("")),
        build_message("user", result("", "1")),
        build_message("assistant", call("")),
        build_message("user", result("", "2")),
    )
    assert [message.parts[0].id for message in history[::2]] == [
        generate_id("call_", 1, 1, "f"),
        generate_id("call_", 2, 2, "f"),
    ]
    assert [message.parts[0].content[0].text for message in history[1::2]] == ["1", "2"]


def test_a_reused_id_gets_a_new_id_and_its_own_result():
    again = generate_id("call_", "a", 2)
    first, second = [call("a"), structs.replace(call("a"), where="/calls/again")]
    assert repair(
        build_message("assistant", first),
        build_message("user", result("a", "1")),
        build_message("assistant", second),
        build_message("user", result("a", "2")),
    ) == (
        [
            build_message("assistant", first),
            build_message("user", result("a", "1", name="f")),
            build_message("assistant", structs.replace(second, id=again)),
            build_message("user", result(again, "2", name="f")),
        ],
        [("approximated", "/calls/again/id")],
    )


def test_a_result_without_its_call_becomes_text():
    image = Media(kind="image", media_type="image/png", source=Inline("AA"))
    block = Opaque(dialect="messages", raw=b"{}")
    content = (Text(text="one"), Data(json=b'{"n":2}'), image, block)
    orphan = ToolResult(call_id="x", content=content, where="/results/x")
    assert repair(build_message("user", orphan, "so")) == (
        [build_message("user", '[result of tool call x]\none\n{"n":2}', image, block, "so")],
        [("approximated", "/results/x")],
    )


def test_a_result_before_its_call_does_not_answer_it():
    history, losses = repair(build_message("user", result("a")), build_message("assistant", call("a")))
    assert history[0] == build_message("user", "[result of tool call a]\nok")
    assert history[2].parts[0].content == (Text(text=LOST),)
    assert losses == [("approximated", "/calls/a"), ("approximated", "/results/ok")]


def test_a_result_takes_name_and_form_of_its_call_and_another_name_is_reported():
    history, losses = repair(
        build_message("assistant", call("a", "f", form="text"), call("b", "g")),
        build_message("user", result("b", "2", "g"), result("a", "1", "other")),
    )
    assert history[1] == build_message("user", result("a", "1", "f", form="text"), result("b", "2", "g"))
    assert losses == [("dropped", "/results/1/name")]


def test_a_run_of_assistant_messages_is_answered_behind_its_last():
    assert repair(
        build_message("assistant", call("a")),
        build_message("assistant", call("b")),
        build_message("user", result("b", "2"), result("a", "1")),
    ) == (
        [
            build_message("assistant", call("a")),
            build_message("assistant", call("b")),
            build_message("user", result("a", "1", name="f"), result("b", "2", name="f")),
        ],
        [],
    )


def test_a_result_inside_an_assistant_message_moves_after_it_or_becomes_text():
    assert repair(build_message("assistant", call("a"), result("a"), "so", result("x", "stray"))) == (
        [
            build_message("assistant", call("a"), "so", "[result of tool call x]\nstray"),
            build_message("user", result("a", name="f")),
        ],
        [("approximated", "/results/stray")],
    )


def test_a_call_outside_an_assistant_turn_becomes_text():
    assert repair(build_message("user", call("a"), "so"), build_message("assistant", "yes")) == (
        [build_message("user", "[tool call f {}]", "so"), build_message("assistant", "yes")],
        [("approximated", "/calls/a")],
    )


def test_an_empty_message_does_not_hide_that_a_result_is_missing():
    history, losses = repair(
        build_message("assistant", call("a")), build_message("user"), build_message("assistant", "yes")
    )
    assert history[1].parts[0].call_id == "a"
    assert losses == [("approximated", "/calls/a")]


def test_an_empty_message_still_separates_two_others():
    history, _ = repair(build_message("assistant", call("a")), build_message("user"), build_message("assistant", "yes"))
    assert [message.role for message in history] == ["assistant", "user", "user", "assistant"]
    assert history[2].parts == ()
    moved, _ = repair(
        build_message("assistant", call("a")), build_message("user", "wait"), build_message("user", result("a"))
    )
    assert [message.role for message in moved] == ["assistant", "user", "user"]


def test_repaired_messages_keep_names_and_places():
    assistant = Message(role="assistant", parts=(call("a"),), name="bot", where="/m/0")
    user = Message(role="user", parts=(Text(text="wait"), result("a")), name="ann", where="/m/1")
    history, _ = repair(assistant, user)
    assert exactly(history) == exactly(
        [
            assistant,
            Message(role="user", parts=(result("a", name="f"),), where="/results/ok"),
            Message(role="user", parts=(Text(text="wait"),), name="ann", where="/m/1"),
        ]
    )


def test_a_result_without_an_id_reaches_back_over_the_last_256_calls_only():
    calls = [call("", f"f{number}") for number in range(257)]
    history, _ = repair(
        build_message("assistant", *calls), build_message("user", result("", "late", "f0"), result("", "found", "f1"))
    )
    output = {part.name: part.content[0].text for part in history[1].parts}
    assert (output["f0"], output["f1"]) == (LOST, "found")


def test_a_system_message_between_call_and_result_is_moved_behind_the_result():
    assert repair(
        build_message("assistant", call("a")), build_message("system", "rule"), build_message("user", result("a"))
    ) == (
        [
            build_message("assistant", call("a")),
            build_message("user", result("a", name="f")),
            build_message("system", "rule"),
        ],
        [],
    )


def test_two_calls_of_one_id_in_one_turn_are_answered_in_order():
    again = generate_id("call_", "a", 2)
    history, _ = repair(
        build_message("assistant", call("a"), call("a")),
        build_message("user", result("a", "1"), result("a", "2")),
        build_message("user", result("a", "3")),
    )
    assert history[1] == build_message("user", result("a", "1", "f"), result(again, "3", "f"))
