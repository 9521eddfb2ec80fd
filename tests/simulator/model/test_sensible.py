"""Prompts as people write them, and the calls they would expect."""

import pytest

from dragoman.simulator.model import answer
from simulator.model.asked import BOOLEAN, EMAIL, INTEGER, READ, TEXT, TIME, WEATHER, ask, called, function

EVENT = function(
    "create_event",
    "Create a calendar event",
    ("title", "start"),
    title=TEXT,
    start={"type": "string", "format": "date-time"},
    end={"type": "string", "format": "date-time"},
    location=TEXT,
)
FETCH = function("fetch_url", "Fetch the contents of a web page", ("url",), url={"type": "string", "format": "uri"})
EDIT = function(
    "Edit",
    "Performs exact string replacements in files.",
    ("file_path", "old_string", "new_string"),
    file_path=TEXT,
    old_string=TEXT,
    new_string=TEXT,
    replace_all=BOOLEAN,
)
GREP = function("Grep", "Search file contents with regular expressions", ("pattern",), pattern=TEXT)
LIGHT = function(
    "set_light",
    "Set the brightness of a room",
    ("room", "brightness"),
    room={"type": "string", "enum": ["kitchen", "living_room", "bedroom"]},
    brightness=INTEGER,
)
TIMER = function("set_timer", "Set a timer", ("duration_seconds",), duration_seconds=INTEGER)
WAIT = function("wait", "Wait some time", ("timeout_ms",), timeout_ms=INTEGER)
DISTANCE = function(
    "get_distance", "Distance between two places", ("origin", "destination"), origin=TEXT, destination=TEXT
)
ISSUE = function("create_issue", "Create an issue", ("owner", "repo", "title"), owner=TEXT, repo=TEXT, title=TEXT)
STOCK = function("get_stock_price", "Get the price of a stock", ("symbol",), symbol=TEXT)
MUSIC = function("play_music", "Play a song", ("song",), song=TEXT, artist=TEXT)
USER = function("get_user", "Look up a user", ("user_id",), user_id=INTEGER, include_orders=BOOLEAN)


@pytest.mark.parametrize(
    ("prompt", "places"),
    [
        (
            "Weather in New York City, San Francisco and Los Angeles please",
            ["New York City", "San Francisco", "Los Angeles"],
        ),
        ("東京の天気は", ["東京"]),
        ("北京天气怎么样", ["北京"]),
        ("Какая погода в Москве?", ["Москве"]),
        ("Quel temps fait-il à Lyon ?", ["Lyon"]),
    ],
)
def test_the_weather_is_asked_for_in_many_words(prompt, places):
    assert called(prompt, WEATHER, TIME) == [("get_weather", {"location": place}) for place in places]


@pytest.mark.parametrize(
    ("prompt", "seconds"),
    [
        ("Set a timer for 5 minutes", 300),
        ("Set a timer for 1 hour 30 minutes", 5400),
        ("Set a timer for two hours", 7200),
    ],
)
def test_a_time_is_told_in_the_unit_of_its_parameter(prompt, seconds):
    assert called(prompt, TIMER) == [("set_timer", {"duration_seconds": seconds})]


def test_a_time_in_milliseconds_is_told_in_those():
    assert called("wait 2 seconds", WAIT) == [("wait", {"timeout_ms": 2000})]
    assert called("wait 500 ms", WAIT) == [("wait", {"timeout_ms": 500})]


def test_a_date_and_the_time_behind_it_are_one_moment():
    for when in ("2026-03-05 at 14:30", "March 5, 2026 at 2:30 pm"):
        [(_, arguments)] = called(f"Create an event 'Project review' on {when}", EVENT)
        assert arguments == {"title": "Project review", "start": "2026-03-05T14:30:00Z"}


def test_somebody_one_meets_is_no_place():
    [(_, arguments)] = called("Create an event 'Lunch' with Maria on 2026-03-05", EVENT)
    assert "location" not in arguments


@pytest.mark.parametrize(
    ("prompt", "tools", "calls"),
    [
        (
            "Please fetch https://example.com/a?b=c#d",
            (FETCH, WEATHER),
            [("fetch_url", {"url": "https://example.com/a?b=c#d"})],
        ),
        (
            'In README.md replace "foo" with "bar"',
            (EDIT, READ, GREP),
            [("Edit", {"file_path": "README.md", "old_string": "foo", "new_string": "bar"})],
        ),
        (
            'In README.md replace all "foo" with "bar"',
            (EDIT, READ, GREP),
            [("Edit", {"file_path": "README.md", "old_string": "foo", "new_string": "bar", "replace_all": True})],
        ),
        ("Search for the pattern `def main` in src/", (EDIT, READ, GREP), [("Grep", {"pattern": "def main"})]),
        ("Dim the bedroom to 20", (LIGHT, TIMER), [("set_light", {"room": "bedroom", "brightness": 20})]),
        (
            "How far is it from Berlin to Munich?",
            (DISTANCE, TIME),
            [("get_distance", {"origin": "Berlin", "destination": "Munich"})],
        ),
        (
            "Distance between the Louvre and Notre-Dame",
            (DISTANCE, TIME),
            [("get_distance", {"origin": "Louvre", "destination": "Notre-Dame"})],
        ),
        (
            'Create an issue in octo/hello titled "Crash on start"',
            (ISSUE,),
            [("create_issue", {"owner": "octo", "repo": "hello", "title": "Crash on start"})],
        ),
        (
            "Price of AAPL and MSFT?",
            (STOCK,),
            [("get_stock_price", {"symbol": "AAPL"}), ("get_stock_price", {"symbol": "MSFT"})],
        ),
        (
            "Play Bohemian Rhapsody by Queen",
            (MUSIC,),
            [("play_music", {"song": "Bohemian Rhapsody", "artist": "Queen"})],
        ),
        ("Get user 42 with orders", (USER,), [("get_user", {"user_id": 42, "include_orders": True})]),
        (
            "Send an email to bob@x.org with subject 'Hi' saying I will be late",
            (EMAIL,),
            [("send_email", {"to": "bob@x.org", "subject": "Hi", "body": "I will be late"})],
        ),
    ],
)
def test_a_call_is_what_one_would_expect(prompt, tools, calls):
    assert called(prompt, *tools) == calls


def test_of_two_words_of_a_list_the_first_that_is_said_counts():
    [(_, arguments)] = called("Dim the bedroom to 20 and the kitchen to 80", LIGHT)
    assert arguments == {"room": "bedroom", "brightness": 20}


def test_what_may_go_on_for_ever_ends_soon():
    user = {
        "type": "object",
        "properties": {"id": INTEGER, "child": {"anyOf": [{"$ref": "#/$defs/user"}, {"type": "null"}]}},
        "required": ["id", "child"],
    }
    said = answer(ask("Give me the user", output_schema={"$ref": "#/$defs/user", "$defs": {"user": user}})).text
    assert said.count('"child"') == 2
    assert said.endswith('"child":null}}')
