"""Turns: how a fitted history is merged, split, bounded and named for each target."""

import pytest
from msgspec import structs

from dragoman.core.parts import Inline, Media, Opaque, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.history import arrange_turns
from dragoman.interpreter.ids import alias_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.turns import CONTINUE, CONTINUED, EMPTY, SKIP_SIGNATURE
from interpreter.workbench import build_message, exactly, loss_pointers

CHAT = traits_for("chat", "gpt-4.1")
RESPONSES = traits_for("responses", "gpt-5.6")
CLAUDE = traits_for("messages", "claude-sonnet-5")
CLAUDE_4_8 = traits_for("messages", "claude-opus-4-8")
CLAUDE_4_5 = traits_for("messages", "claude-opus-4-5")
GEMINI = traits_for("gemini", "gemini-3.8-pro")
GEMINI_3 = traits_for("gemini", "gemini-3-pro")
GEMINI_2_5 = traits_for("gemini", "gemini-2.5-pro")
IMAGE = Media(kind="image", media_type="image/png", source=Inline("AA"))
THOUGHT = Reasoning(texts=("hm",))


def call(call_id="a", name="f", **more):
    return ToolCall(id=call_id, name=name, arguments="{}", where=f"/calls/{call_id}", **more)


def result(call_id="a", name="", **more):
    return ToolResult(call_id=call_id, name=name, content=(Text(text="ok"),), where=f"/results/{call_id}", **more)


class Unpaired(Adaptation):
    """Pairing has tests of its own: here calls and results may lack their counterparts."""

    def pair(self, messages):
        return messages


def turns(traits, *messages):
    ledger = Ledger({"result.name": ("/name",)})
    placed = [structs.replace(message, where=message.where or f"/m/{index}") for index, message in enumerate(messages)]
    return arrange_turns(placed, Unpaired(traits, ledger, "")), loss_pointers(ledger)


HI, YES, SO = build_message("user", "hi"), build_message("assistant", "yes"), build_message("user", "so")
RULE = build_message("system", "rule")


@pytest.mark.parametrize("traits", [CHAT, RESPONSES, CLAUDE, CLAUDE_4_8, GEMINI, GEMINI_2_5])
@pytest.mark.parametrize("history", [(HI,), (RULE, HI), (HI, YES, SO), (RULE, HI, YES, SO)])
def test_plain_turns_stay_as_they_are_everywhere(traits, history):
    assert turns(traits, *history) == (history, [])


@pytest.mark.parametrize(
    ("traits", "history", "after"),
    [
        (CLAUDE, (HI, SO, YES, HI), (build_message("user", "hi", "so"), YES, HI)),
        (CLAUDE, (HI, YES, YES, HI), (HI, build_message("assistant", "yes", "yes"), HI)),
        (CLAUDE, (RULE, RULE, HI), (build_message("system", "rule", "rule"), HI)),
        (CLAUDE, (HI, YES, HI, SO), (HI, YES, build_message("user", "hi", "so"))),
        (CHAT, (HI, SO, YES, YES, HI), (HI, SO, build_message("assistant", "yes", "yes"), HI)),
        (CHAT, (RULE, RULE, HI), (RULE, RULE, HI)),
        (RESPONSES, (HI, SO, YES, YES, HI), (HI, SO, YES, YES, HI)),
    ],
)
def test_neighbours_of_one_role_are_merged_where_turns_alternate(traits, history, after):
    assert turns(traits, *history) == (after, [])


def test_a_merged_turn_has_the_first_ones_name_and_place():
    first = Message(role="user", parts=(Text(text="hi"),), name="ann", where="/m/0")
    (merged,), _ = turns(CLAUDE, first, SO)
    assert exactly(merged) == exactly(
        Message(role="user", parts=(Text(text="hi"), Text(text="so")), name="ann", where="/m/0")
    )


LATER = build_message("system", "rule", IMAGE, where="/later")


@pytest.mark.parametrize("traits", [CLAUDE, GEMINI, GEMINI_2_5])
def test_a_later_system_message_becomes_a_user_message_where_it_is_not_supported(traits):
    output = build_message("user", "hi", "<system>\nrule\n</system>", IMAGE)
    assert turns(traits, RULE, HI, LATER) == ((RULE, output), [("approximated", "/later")])


@pytest.mark.parametrize("history", [(RULE, HI, LATER), (HI, YES, LATER, SO), (HI, LATER, SO)])
def test_a_later_system_message_stays_where_there_is(history):
    assert turns(CHAT, *history) == (history, [])


@pytest.mark.parametrize("traits", [CLAUDE, GEMINI])
def test_several_leading_system_messages_are_not_later_ones(traits):
    assert turns(traits, RULE, build_message("system", "two"), HI) == ((build_message("system", "rule", "two"), HI), [])


GAP = build_message("user", where="/gap")
SILENCE = build_message("assistant", where="/gap")


@pytest.mark.parametrize(
    ("history", "after", "losses"),
    [
        ((HI, SILENCE, SO), (HI, build_message("assistant", EMPTY), SO), 1),
        ((HI, YES, GAP, YES, HI), (HI, YES, build_message("user", EMPTY), YES, HI), 1),
        ((HI, YES, GAP), (HI, YES, build_message("user", EMPTY)), 1),
        ((HI, SILENCE), (HI,), 0),
        ((build_message("system", where="/gap"), HI), (HI,), 0),
    ],
)
@pytest.mark.parametrize("traits", [CLAUDE, GEMINI])
def test_an_empty_turn_is_filled_where_its_neighbours_would_touch(traits, history, after, losses):
    output, reported_losses = turns(traits, *history)
    assert output == after
    assert reported_losses == [("approximated", "/gap")] * losses


def test_a_filled_turn_keeps_its_place():
    (_, filled, _), _ = turns(CLAUDE, HI, SILENCE, SO)
    assert filled.where == "/gap"


@pytest.mark.parametrize("traits", [CHAT, RESPONSES])
def test_an_empty_message_is_left_out_where_turns_need_not_alternate(traits):
    assert turns(traits, HI, SILENCE, GAP, YES) == ((HI, YES), [])


START = build_message("user", CONTINUED)
LAST = build_message("user", CONTINUE)


@pytest.mark.parametrize(
    ("traits", "history", "after", "losses"),
    [
        (CLAUDE, (YES, HI), (START, YES, HI), ["/m/0"]),
        (CLAUDE, (RULE, YES, HI), (RULE, START, YES, HI), ["/m/1"]),
        (CLAUDE, (RULE,), (RULE, START), [""]),
        (CLAUDE, (), (START,), [""]),
        (GEMINI_2_5, (YES,), (START, YES), ["/m/0"]),
        (CHAT, (YES, HI), (YES, HI), []),
        (CHAT, (), (), []),
        (RESPONSES, (RULE,), (RULE,), []),
        (CLAUDE, (HI, YES), (HI, YES, LAST), ["/m/1"]),
        (CLAUDE_4_8, (HI, YES), (HI, YES, LAST), ["/m/1"]),
        (GEMINI, (HI, YES), (HI, YES, LAST), ["/m/1"]),
        (CLAUDE_4_5, (HI, YES), (HI, YES), []),
        (GEMINI_3, (HI, YES), (HI, YES), []),
        (CHAT, (HI, YES), (HI, YES), []),
    ],
)
def test_a_history_begins_and_ends_as_the_target_demands(traits, history, after, losses):
    assert turns(traits, *history) == (after, [("approximated", where) for where in losses])


@pytest.mark.parametrize(
    ("traits", "parts", "after", "bent"),
    [
        (CHAT, (call(), "text"), ("text", call()), True),
        (CHAT, ("a", call(), "b", call("b"), IMAGE), ("a", "b", IMAGE, call(), call("b")), True),
        (CHAT, (call(), THOUGHT, call("b")), (call(), THOUGHT, call("b")), False),
        (CHAT, (call(), THOUGHT, "text"), ("text", call(), THOUGHT), True),
        (CHAT, ("text", call()), ("text", call()), False),
        (GEMINI_2_5, (call(), "text"), (call(), "text"), False),
    ],
)
def test_text_is_before_calls_where_the_target_requires_it(traits, parts, after, bent):
    history = (HI, build_message("assistant", *parts, where="/bent"), build_message("user", result(), result("b")))
    output, losses = turns(structs.replace(traits, sends_ids=True), *history)
    assert output[1] == build_message("assistant", *after)
    assert ("approximated", "/bent") in losses if bent else losses == []


def test_results_are_before_user_text():
    history = (HI, build_message("assistant", call()), build_message("user", "so", result(), IMAGE, where="/bent"))
    after = (HI, build_message("assistant", call()), build_message("user", result(), "so", IMAGE))
    assert turns(CLAUDE, *history) == (after, [("approximated", "/bent")])


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        (("", call()), (call(),)),
        (("", "text", ""), ("text",)),
        (("",), ("",)),
        (("text", call()), ("text", call())),
        (("", IMAGE), (IMAGE,)),
    ],
)
def test_empty_text_next_to_other_assistant_parts_is_no_loss(parts, after):
    (_, output, *_), losses = turns(CHAT, HI, build_message("assistant", *parts), build_message("user", result()))
    assert output == build_message("assistant", *after)
    assert losses == []


def test_empty_text_of_the_user_stays():
    (output,), _ = turns(CHAT, build_message("user", "", IMAGE))
    assert output == build_message("user", "", IMAGE)


def test_on_chat_each_result_is_a_message_and_user_text_another():
    history = (
        HI,
        build_message("assistant", call(), call("b")),
        build_message("user", result(), result("b"), "so", IMAGE, name="ann", where="/mixed"),
    )
    output, losses = turns(CHAT, *history)
    assert exactly(output[2:]) == exactly(
        (
            Message(role="user", parts=(result(),), where="/results/a"),
            Message(role="user", parts=(result("b"),), where="/results/b"),
            Message(role="user", parts=(Text(text="so"), IMAGE), name="ann", where="/mixed"),
        )
    )
    assert losses == []


def test_on_chat_results_without_text_add_no_user_message():
    output, _ = turns(CHAT, build_message("assistant", call(), call("b")), build_message("user", result(), result("b")))
    assert output[1:] == (build_message("user", result()), build_message("user", result("b")))


def test_on_chat_a_message_without_results_is_not_split():
    history = (
        build_message("user", "a", IMAGE),
        build_message("assistant", "b", call()),
        build_message("user", result()),
    )
    assert turns(CHAT, *history) == (history, [])


def test_on_responses_everything_but_one_user_message_is_separate_items():
    block = Opaque(dialect="responses", raw=b"{}")
    thought = Reasoning(texts=("hm",), where="/thought")
    history = (
        build_message("user", "a", IMAGE, "b", where="/first"),
        build_message("assistant", thought, "c", "d", call(), "e", block, where="/second"),
        build_message("user", result(), "f", where="/third"),
    )
    output, losses = turns(RESPONSES, *history)
    assert exactly(output) == exactly(
        (
            build_message("user", "a", IMAGE, "b", where="/first"),
            build_message("assistant", thought, where="/thought"),
            build_message("assistant", "c", where="/second"),
            build_message("assistant", "d", where="/second"),
            build_message("assistant", call(), where="/calls/a"),
            build_message("assistant", "e", where="/second"),
            build_message("assistant", block, where="/second"),
            build_message("user", result(), where="/results/a"),
            build_message("user", "f", where="/third"),
        )
    )
    assert losses == []


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        (("a", "b"), ("a\n\nb",)),
        (("a",), ("a",)),
        (("a", Text(text="b", cache="")), ("a", Text(text="b", cache=""))),
        (("a", IMAGE), ("a", IMAGE)),
    ],
)
def test_on_responses_the_instructions_are_one_string(parts, after):
    assert turns(RESPONSES, build_message("system", *parts), HI) == ((build_message("system", *after), HI), [])


def test_joined_instructions_keep_their_places_and_later_ones_are_not_joined():
    first = build_message("system", Text(text="a", where="/a"), "b", where="/s", name="n")
    second = build_message("system", "c", "d")
    output, _ = turns(RESPONSES, first, second, HI)
    assert exactly(output[0]) == exactly(build_message("system", Text(text="a\n\nb", where="/a"), where="/s", name="n"))
    assert output[1] == second


LONG = "call.with/odd signs"


@pytest.mark.parametrize(("traits", "name"), [(CHAT, ""), (RESPONSES, ""), (CLAUDE, ""), (GEMINI_3, "f")])
def test_ids_get_the_same_alias_on_call_and_result_and_gemini_gets_the_name(traits, name):
    output, losses = turns(traits, HI, build_message("assistant", call(LONG)), build_message("user", result(LONG)))
    alias = alias_id(LONG, traits)
    signature = SKIP_SIGNATURE if traits is GEMINI_3 else None
    assert output[1:] == (
        build_message("assistant", structs.replace(call(LONG), id=alias, signature=signature)),
        build_message("user", structs.replace(result(LONG), call_id=alias, name=name)),
    )
    assert losses == ([("approximated", f"/calls/{LONG}")] if signature else [])


def test_gemini_2_5_is_sent_no_ids_but_names():
    output, losses = turns(
        GEMINI_2_5,
        HI,
        build_message("assistant", call("a", "f"), call("b", "g")),
        build_message("user", result("a"), result("b")),
    )
    assert output[1:] == (
        build_message("assistant", structs.replace(call(), id=""), structs.replace(call("b", "g"), id="")),
        build_message(
            "user",
            structs.replace(result("a"), call_id="", name="f"),
            structs.replace(result("b"), call_id="", name="g"),
        ),
    )
    assert losses == []


@pytest.mark.parametrize(("traits", "name"), [(CHAT, ""), (GEMINI_2_5, "f")])
def test_a_result_with_another_tool_name_gets_the_name_of_its_call(traits, name):
    traits = structs.replace(traits, sends_ids=True)
    output, losses = turns(traits, HI, build_message("assistant", call()), build_message("user", result(name="other")))
    assert output[2] == build_message("user", result(name=name))
    assert losses == [("dropped", "/results/a/name")]


def test_a_result_that_names_its_tool_books_nothing():
    output, losses = turns(CHAT, HI, build_message("assistant", call()), build_message("user", result(name="f")))
    assert output[2] == build_message("user", result())
    assert losses == []


def test_the_first_call_of_each_step_gets_googles_placeholder_and_that_is_reported_once():
    own = Signature("google", "own")
    history = (
        HI,
        build_message("assistant", "so", call("a"), call("b")),
        build_message("user", result("a"), result("b")),
        build_message("assistant", call("c")),
        build_message("user", result("c")),
        build_message("assistant", call("d", signature=own), call("e")),
        build_message("user", result("d"), result("e")),
    )
    output, losses = turns(GEMINI_3, *history)
    signatures = [part.signature for message in output for part in message.parts if isinstance(part, ToolCall)]
    assert signatures == [SKIP_SIGNATURE, None, SKIP_SIGNATURE, own, None]
    assert Signature("google", "skip_thought_signature_validator") == SKIP_SIGNATURE
    assert losses == [("approximated", "/calls/a")]


def test_what_needs_no_change_is_the_same_object():
    history = [
        build_message("assistant", call(), where="/a"),
        build_message("user", result(), where="/u"),
        build_message("user", IMAGE, where="/i"),
    ]
    output = arrange_turns(history, Adaptation(CHAT, Ledger({}), ""))
    assert all(after is before for after, before in zip(output, history, strict=True))


def test_a_changed_turn_keeps_its_name_and_place():
    output, _ = turns(
        CHAT,
        Message(role="assistant", parts=(call(LONG),), name="bot", where="/a"),
        build_message("user", result(LONG)),
    )
    assert (output[0].name, output[0].where) == ("bot", "/a")


@pytest.mark.parametrize(
    "history", [(HI, YES), (YES,), (HI, HI), (RULE, RULE, HI), (build_message("user", "a", "b"),), (HI, RULE, HI)]
)
def test_turns_that_are_not_settled_are_arranged_like_any_other(history):
    calls = (build_message("assistant", call("z")), build_message("user", result("z")))
    with_calls, _ = turns(CLAUDE_4_5, *history, *calls)
    alone, _ = turns(CLAUDE_4_5, *history)
    assert with_calls[: len(alone) - 1] == alone[:-1]


def test_a_history_without_any_text_is_arranged_too():
    history = (
        build_message("user", IMAGE),
        build_message("assistant", call(LONG)),
        build_message("user", result(LONG)),
    )
    output, _ = turns(CLAUDE, *history)
    assert [output[1].parts[0].id, output[2].parts[0].call_id] == [alias_id(LONG, CLAUDE)] * 2


def test_added_placeholder_texts_are_few_and_stable():
    assert (CONTINUED, CONTINUE, EMPTY) == ("(continued)", "(continue)", "(empty)")


@pytest.mark.parametrize("history", [(), (build_message("user", "a", "b"),), (HI, build_message("assistant", ""))])
@pytest.mark.parametrize("traits", [CHAT, RESPONSES])
def test_what_openai_takes_as_it_is_stays_as_it_is(traits, history):
    assert turns(traits, *history) == (history, [])


def test_a_result_has_the_form_of_its_call():
    output, losses = turns(
        RESPONSES, HI, build_message("assistant", call(form="text")), build_message("user", result())
    )
    assert output[2] == build_message("user", result(form="text"))
    assert losses == []
