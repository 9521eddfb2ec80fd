"""The model's answers: after results, within limits, with a seed."""

import re

import pytest

from dragoman.simulator.apis.conversation import ModelRequest, RequestResult, RequestToolChoice, RequestTurn
from dragoman.simulator.model import answer
from simulator.model.asked import ADD, EMAIL, TOOLS, WEATHER, after, build_ask, call, calls, function

MARK = "[dragoman simulator] "


def test_results_are_quoted():
    asked = build_ask("What's the weather in Paris and Tokyo?", *TOOLS)
    output = answer(after(asked, answer(asked), "18 °C and sunny", "24 °C and rain"))
    assert output.end == "stop"
    assert not output.calls
    assert output.text == f"{MARK}get_weather says: 18 °C and sunny\nget_weather says: 24 °C and rain"


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ('{"temperature": 18, "sky": "clear"}', '{"temperature": 18, "sky": "clear"}'),
        ("18 degrees\n", "18 degrees"),
        ("", "(nothing)"),
        ("x" * 5000, "x" * 600 + " …"),
    ],
)
def test_a_result_is_quoted_as_it_is(result, output):
    asked = build_ask("weather in Paris", WEATHER)
    assert answer(after(asked, answer(asked), result)).text == f"{MARK}get_weather says: {output}"


@pytest.mark.parametrize(
    ("result", "failed", "output"),
    [
        ("no such city", True, "get_weather failed: no such city"),
        ("", True, "get_weather failed: (nothing)"),
    ],
)
def test_a_failed_result_is_answered_with_its_message(result, failed, output):
    asked = build_ask("weather in Paris", WEATHER)
    assert answer(after(asked, answer(asked), result, failed=failed)).text == MARK + output


def test_a_result_without_a_name_is_named_after_its_call():
    turns = (
        RequestTurn(role="user", text="weather in Paris"),
        RequestTurn(role="assistant", calls=(call("get_weather", {"location": "Paris"}),)),
        RequestTurn(role="user", results=(RequestResult(call_id="an id", name="", text="sunny"),)),
    )
    assert answer(ModelRequest(model="any", turns=turns, tools=TOOLS)).text == f"{MARK}get_weather says: sunny"


def test_with_parallel_off_the_next_call_follows_each_result():
    asked = build_ask("weather in Paris, Tokyo and Rome", *TOOLS, choice=RequestToolChoice(parallel=False))
    places: list[str] = []
    for _ in range(3):
        output = answer(asked)
        [(_, arguments)] = calls(output)
        places.append(arguments["location"])
        asked = after(asked, output, f"fine in {places[-1]}")
    assert places == ["Paris", "Tokyo", "Rome"]
    assert answer(asked).text.count("fine in") == 3


def test_a_call_that_another_model_made_counts_as_made():
    turns = (
        RequestTurn(role="user", text="weather in Paris"),
        RequestTurn(role="assistant", calls=(call("get_weather", {"location": "Paris, France"}),)),
        RequestTurn(role="user", results=(RequestResult(call_id="an id", name="get_weather", text="sunny"),)),
    )
    assert not answer(ModelRequest(model="any", turns=turns, tools=TOOLS)).calls


def test_text_sent_with_results_does_not_start_a_new_task():
    asked = build_ask("Get the file", function("get_file", "Get the file"))
    output = answer(asked)
    with_text = after(asked, output, "see below", text="This is the file:")
    assert not answer(with_text).calls
    bare = after(asked, output, "see below")
    beside = ModelRequest(
        model="any", turns=(*bare.turns, RequestTurn(role="user", text="This is the file:")), tools=asked.tools
    )
    assert not answer(beside).calls


def test_a_prompt_sent_with_results_is_called():
    asked = build_ask("weather in Paris", *TOOLS)
    output = answer(after(asked, answer(asked), "sunny", text="And now add 2 and 3."))
    assert calls(output) == [("add", {"a": 2, "b": 3})]


def test_a_later_call_takes_what_an_earlier_one_found():
    find = function("find_user", "Find a user", ("name",), name={"type": "string"})
    block = function("block_account", "Block an account", ("account_id",), account_id={"type": "integer"})
    asked = build_ask(
        "Find the user Ada, then block the account", find, block, choice=RequestToolChoice(parallel=False)
    )
    output = answer(asked)
    assert calls(output) == [("find_user", {"name": "Ada"})]
    assert calls(answer(after(asked, output, '{"account_id": 77}'))) == [("block_account", {"account_id": 77})]


def test_the_same_ask_and_seed_give_the_same_answer_and_another_seed_another():
    asked = build_ask("Tell me a story", thinks=True)
    assert answer(asked, 3) == answer(asked, 3)
    assert len({answer(asked, seed).text for seed in range(3)}) == 3


def test_an_odd_seed_writes_text_before_it_calls():
    asked = build_ask("weather in Paris", *TOOLS)
    assert answer(asked, 1).text == f"{MARK}I call get_weather."
    assert not answer(asked, 0).text
    forced = build_ask("weather in Paris", *TOOLS, choice=RequestToolChoice(mode="required"))
    assert not answer(forced, 1).text


def test_ids_are_hexadecimal_and_differ_within_a_conversation():
    asked = build_ask("weather in Paris and Tokyo", *TOOLS)
    first = answer(asked)
    more = (RequestTurn(role="assistant", text="a and b"), RequestTurn(role="user", text="weather in Paris and Tokyo"))
    second = answer(ModelRequest(model="any", turns=(*after(asked, first, "a", "b").turns, *more), tools=TOOLS))
    ids = [made.id for made in (*first.calls, *second.calls)]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[0-9a-f]{24}", one) for one in ids)


def test_thoughts_describe_the_next_step():
    assert "I need get_weather." in answer(build_ask("weather in Paris", *TOOLS, thinks=True)).thought
    assert "Nothing is said about to" in answer(build_ask("send an email", EMAIL, thinks=True)).thought
    assert answer(build_ask("hello", thinks=True)).thought
    assert not answer(build_ask("hello")).thought


def test_the_model_cannot_see():
    shown = RequestTurn(role="user", text="What is this?", media=("image/png", "image/png", "audio/wav"))
    assert answer(ModelRequest(model="any", turns=(shown,))).text.endswith(
        "I cannot see what you showed me (image/png, audio/wav)."
    )
    bare = RequestTurn(role="user", media=("image/png",))
    assert (
        answer(ModelRequest(model="any", turns=(bare,))).text == f"{MARK}I cannot see what you showed me (image/png)."
    )


def test_it_counts_and_writes_as_much_as_requested():
    assert answer(build_ask("Count from 3 to 6")).text == f"{MARK}3, 4, 5, 6"
    assert answer(build_ask("count down from 3 to 1")).text == f"{MARK}3, 2, 1"
    assert len(answer(build_ask("Write a story of 700 words")).text.split()) == 702


def test_a_stop_sequence_cuts_the_text_before_it():
    reply = answer(build_ask("Count from 1 to 10", stop=("9", "5", "")))
    assert (reply.text, reply.end, reply.stopped_by) == (f"{MARK}1, 2, 3, 4, ", "stop", "5")


def test_the_longer_of_two_stop_sequences_at_one_place_is_met():
    assert answer(build_ask("Count from 1 to 10", stop=("4", "4, 5"))).stopped_by == "4, 5"


def test_text_before_calls_that_meets_a_stop_sequence_ends_the_answer():
    reply = answer(build_ask("weather in Paris", WEATHER, stop=("call",)), 1)
    assert (reply.text, reply.calls, reply.end) == (f"{MARK}I ", (), "stop")


def test_the_number_of_tokens_cuts_the_text():
    reply = answer(build_ask("Count from 1 to 100", max_tokens=8))
    assert (reply.end, len(reply.text), reply.usage.output) == ("length", 32, 8)


def test_what_comes_first_ends_the_answer():
    assert answer(build_ask("Count from 1 to 100", max_tokens=8, stop=("99",))).end == "length"
    assert answer(build_ask("Count from 1 to 100", max_tokens=8, stop=("2",))).end == "stop"


def test_calls_that_do_not_fit_are_not_made():
    reply = answer(build_ask("weather in Paris", WEATHER, max_tokens=5))
    assert (reply.end, reply.calls) == ("length", ())
    assert answer(build_ask("weather in Paris", WEATHER, max_tokens=100)).end == "calls"


def test_a_thought_that_is_too_long_ends_an_answer_before_a_stop_sequence_can():
    output = answer(
        ModelRequest(model="m", turns=(), max_tokens=0, stop=('"',), output_schema={"type": None}, thinks=True)
    )
    assert (output.end, output.usage.output, output.stopped_by) == ("length", 0, "")


def test_a_thought_takes_tokens_too():
    reply = answer(build_ask("hello", thinks=True, max_tokens=4))
    assert (reply.end, reply.text, len(reply.thought)) == ("length", "", 16)
    assert reply.usage.thought == reply.usage.output == 4


@pytest.mark.parametrize("tokens", [0, -1])
def test_no_tokens_are_no_answer(tokens):
    reply = answer(build_ask("hello", thinks=True, max_tokens=tokens))
    assert (reply.end, reply.text, reply.thought) == ("length", "", "")


def test_a_conversation_without_a_prompt_is_answered():
    assert answer(ModelRequest(model="any", turns=())).text.startswith(MARK)
    assert answer(
        ModelRequest(model="any", turns=(RequestTurn(role="assistant", text="Hi"),), tools=(ADD,))
    ).text.startswith(MARK)
