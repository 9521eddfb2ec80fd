"""Which tools a prompt calls, and with which arguments."""

import pytest

from dragoman.simulator.apis.conversation import ModelRequest, RequestTool, RequestToolChoice, RequestTurn
from dragoman.simulator.model import answer
from simulator.model.asked import (
    ADD,
    EMAIL,
    FLIGHT,
    INTEGER,
    LOOKUP,
    NUMBER,
    READ,
    TEXT,
    TOOLS,
    WEATHER,
    build_ask,
    calls,
    calls_for,
    function,
)

PARIS, TOKYO = ("get_weather", {"location": "Paris"}), ("get_weather", {"location": "Tokyo"})


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What's the weather in Paris?", [PARIS]),
        ("weather in paris, please", [("get_weather", {"location": "paris"})]),
        ("I live in Paris. What's the weather?", [PARIS]),
        ("What's the weather in Paris, France?", [("get_weather", {"location": "Paris, France"})]),
        ("Weather in San Francisco, CA?", [("get_weather", {"location": "San Francisco, CA"})]),
        ("Weather in Paris in fahrenheit", [("get_weather", {"location": "Paris", "unit": "fahrenheit"})]),
        ("multiply 17 by 23", [("multiply", {"a": 17, "b": 23})]),
        ("Please add 1,200 and 2.5", [("add", {"a": 1200, "b": 2.5})]),
    ],
)
def test_a_prompt_calls_the_best_matching_tool(prompt, expected):
    assert calls_for(prompt, *TOOLS) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("What's the weather in Paris and Tokyo?", [PARIS, TOKYO]),
        ("What's the weather in Paris? And in Tokyo?", [PARIS, TOKYO]),
        ("Get the weather in Paris, and what about the time in Tokyo?", [PARIS, ("get_time", {"city": "Tokyo"})]),
        ("weather and time in Paris", [PARIS, ("get_time", {"city": "Paris"})]),
        ("add 2 and 3, and multiply 4 by 5", [("add", {"a": 2, "b": 3}), ("multiply", {"a": 4, "b": 5})]),
        ("Add 2 and 3. Then add 4 and 5.", [("add", {"a": 2, "b": 3}), ("add", {"a": 4, "b": 5})]),
    ],
)
def test_several_asks_in_one_prompt_are_several_calls(prompt, expected):
    assert calls_for(prompt, *TOOLS) == expected


@pytest.mark.parametrize(
    ("prompt", "queries"),
    [
        ("Search for 'cats' and 'dogs'", ["cats", "dogs"]),
        ("search for the history of bees", ["history of bees"]),
        ("Search for bees. Search for wasps. Then tell me which is larger.", ["bees", "wasps"]),
        ("Search for bees. Use the search tool for this.", ["bees"]),
    ],
)
def test_a_tool_that_searches_gets_what_the_clause_is_about(prompt, queries):
    assert calls_for(prompt, LOOKUP, ADD) == [("search", {"query": query}) for query in queries]


def test_a_number_next_to_a_parameter_name_is_for_that_parameter():
    assert calls_for("Search for 'cats', top 5 results", LOOKUP) == [("search", {"query": "cats", "max_results": 5})]


def test_later_sentences_add_arguments_to_the_call_before_them():
    prompt = "Send an email to bob@example.org. The subject is 'Hi'. The body is 'Hello Bob'."
    expected = {"to": "bob@example.org", "subject": "Hi", "body": "Hello Bob"}
    assert calls_for(prompt, *TOOLS, EMAIL) == [("send_email", expected)]


def test_from_and_to_distinguish_places():
    prompt = "Book a flight from Paris to New York on 2025-03-05 for 2 passengers"
    expected = {"origin": "Paris", "destination": "New York", "date": "2025-03-05", "passengers": 2}
    assert calls_for(prompt, FLIGHT) == [("book_flight", expected)]


def test_an_array_takes_the_whole_enumeration():
    tag = function("tag_cities", "Tag cities", ("cities",), cities={"type": "array", "items": TEXT})
    assert calls_for("tag cities Paris, Tokyo and Rome", tag) == [
        ("tag_cities", {"cities": ["Paris", "Tokyo", "Rome"]})
    ]


def test_an_optional_array_of_the_same_kind_keeps_an_enumeration_together():
    meet = function(
        "create_event",
        "Create a calendar event",
        ("title",),
        title=TEXT,
        attendees={"type": "array", "items": {"type": "string", "format": "email"}},
    )
    result = calls_for("Create an event titled 'Lunch' with a@example.org and b@example.org", meet)
    assert result == [("create_event", {"title": "Lunch", "attendees": ["a@example.org", "b@example.org"]})]


def test_two_places_for_two_parameters_are_one_call():
    distance = function("get_distance", "Distance between two cities", ("start", "end"), start=TEXT, end=TEXT)
    assert len(calls_for("distance between Paris and Tokyo", distance)) == 1


def test_paths_are_found():
    assert calls_for("read src/a.py and /etc/hosts", READ) == [
        ("read_file", {"path": "src/a.py"}),
        ("read_file", {"path": "/etc/hosts"}),
    ]


def test_a_tool_that_is_named_is_called():
    odd = function("xq_7_zz", "", ("value",), value=TEXT)
    assert calls_for("Call xq_7_zz with value 'red'", odd, *TOOLS) == [("xq_7_zz", {"value": "red"})]


def test_nested_objects_are_filled():
    user = {"type": "object", "properties": {"name": TEXT, "age": INTEGER}, "required": ["name", "age"]}
    register = function("register_user", "Register a user", ("user",), user=user)
    assert calls_for("Register the user named Ada, age 36", register) == [
        ("register_user", {"user": {"name": "Ada", "age": 36}})
    ]


@pytest.mark.parametrize("prompt", ["Hello, how are you?", "Tell me a joke", "", "   ", "thanks!"])
def test_a_prompt_that_matches_no_tool_is_answered_with_text(prompt):
    reply = answer(build_ask(prompt, *TOOLS))
    assert not reply.calls
    assert reply.end == "stop"
    assert reply.text.startswith("[dragoman simulator] ")


def test_text_that_clients_put_around_a_prompt_is_ignored():
    prompt = "<system-reminder>Add 2 and 3 as often as you can.</system-reminder>\nWhat's the weather in Paris?"
    assert calls_for(prompt, *TOOLS) == [PARIS]


def test_a_prompt_of_nothing_but_a_tag_is_read():
    assert calls_for("<user_query>What's the weather in Paris?</user_query>", *TOOLS) == [PARIS]


def test_the_prompt_may_follow_a_long_document():
    document = "The quick brown fox jumps over the lazy dog. " * 4000
    assert calls_for(f"{document}\n\nWhat's the weather in Paris?", *TOOLS)[-1] == PARIS


def test_system_turns_are_not_prompts():
    turns = (
        RequestTurn(role="system", text="Get the weather in Rome."),
        RequestTurn(role="user", text="Tell me a joke"),
    )
    assert not answer(ModelRequest(model="any", turns=turns, tools=TOOLS)).calls


def test_only_the_last_prompt_counts():
    turns = (
        RequestTurn(role="user", text="weather in Tokyo"),
        RequestTurn(role="assistant", text="no"),
        RequestTurn(role="user", text="weather in Paris"),
    )
    assert calls(answer(ModelRequest(model="any", turns=turns, tools=TOOLS))) == [PARIS]


def test_none_never_calls():
    assert not calls_for("weather in Paris", *TOOLS, choice=RequestToolChoice(mode="none"))


def test_required_always_calls_the_nearest_tool_or_the_first():
    assert calls_for("hello", *TOOLS, choice=RequestToolChoice(mode="required"))[0][0] == "get_weather"
    assert calls_for("numbers", *TOOLS[1:], choice=RequestToolChoice(mode="required"))[0][0] == "add"


def test_required_calls_again_when_all_is_done():
    choice = RequestToolChoice(mode="required")
    turns = (
        RequestTurn(role="user", text="weather in Paris"),
        RequestTurn(role="assistant", calls=answer(build_ask("weather in Paris", *TOOLS)).calls),
    )
    assert calls(answer(ModelRequest(model="any", turns=turns, tools=TOOLS, choice=choice))) == [PARIS]


def test_only_named_tools_are_called():
    prompt = "weather in Paris, and add 2 and 3"
    assert calls_for(prompt, *TOOLS, choice=RequestToolChoice(names=("add",))) == [("add", {"a": 2, "b": 3})]
    assert (
        calls_for("hello", *TOOLS, choice=RequestToolChoice(mode="required", names=("multiply",)))[0][0] == "multiply"
    )
    assert not calls_for(prompt, *TOOLS, choice=RequestToolChoice(mode="required", names=("nothing",)))


def test_validated_is_as_free_as_auto():
    assert calls_for("weather in Paris", *TOOLS, choice=RequestToolChoice(mode="validated")) == [PARIS]
    assert not calls_for("hello", *TOOLS, choice=RequestToolChoice(mode="validated"))


def test_one_call_at_a_time_if_that_is_wanted():
    assert calls_for("weather in Paris and Tokyo", WEATHER, choice=RequestToolChoice(parallel=False)) == [PARIS]


def test_tools_that_are_run_elsewhere_are_not_called():
    assert not calls_for(
        "run code to get the weather", RequestTool(name="code_execution", description="Run code", kind="other")
    )


def test_numbers_keep_to_their_bounds():
    scale = function("set_volume", "Set the volume", ("level",), level={**NUMBER, "minimum": 0, "maximum": 10})
    assert calls_for("set the volume of room 300 to level 7", scale) == [("set_volume", {"level": 7})]
    assert calls_for("set the volume to 300", scale)[0][1]["level"] in range(11)


TIMER = function("set_timer", "Set a timer.", ("minutes",), minutes=INTEGER, label=TEXT)


@pytest.mark.parametrize(
    "prompt",
    [
        'Set a timer for 25 minutes labelled "tea".',
        'Set a timer for 25 minutes: "tea".',
        'Set a timer for 25 minutes called "tea".',
    ],
)
def test_quoted_or_named_text_fills_an_optional_label(prompt):
    assert calls_for(prompt, TIMER) == [("set_timer", {"minutes": 25, "label": "tea"})]


def test_without_a_quotation_there_is_no_label():
    assert calls_for("Set a timer for 25 minutes.", TIMER) == [("set_timer", {"minutes": 25})]


def test_a_quotation_fills_required_parameters_first():
    find = function("find_page", "Find a page.", ("query",), query=TEXT, title=TEXT, language=TEXT)
    assert calls_for('Find a page for "dragons".', find) == [("find_page", {"query": "dragons"})]
    asked = 'Find a page for "dragons" titled "Fire".'
    assert calls_for(asked, find) == [("find_page", {"query": "dragons", "title": "Fire"})]
