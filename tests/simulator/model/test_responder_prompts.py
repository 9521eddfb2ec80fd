"""Prompts as people write them, and the calls they would expect."""

import pytest

from dragoman.simulator.model import answer
from simulator.model.asked import BOOLEAN, EMAIL, INTEGER, READ, TEXT, TIME, WEATHER, build_ask, calls_for, function

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
        ('What is the weather in "東京"?', ["東京"]),
        ("weather in new york", ["new york"]),
    ],
)
def test_a_weather_prompt_may_have_many_wordings(prompt, places):
    assert calls_for(prompt, WEATHER, TIME) == [("get_weather", {"location": place}) for place in places]


def test_a_person_is_not_a_place():
    [(_, arguments)] = calls_for("Create an event 'Lunch' with Maria on 2026-03-05", EVENT)
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
            'Edit README.md: replace "foo" with "bar"',
            (EDIT, READ, GREP),
            [("Edit", {"file_path": "README.md", "old_string": "foo", "new_string": "bar"})],
        ),
        ("Search for the pattern `def main` in src/", (EDIT, READ, GREP), [("Grep", {"pattern": "def main"})]),
        (
            "Set the brightness of the bedroom to 20",
            (LIGHT, TIMER),
            [("set_light", {"room": "bedroom", "brightness": 20})],
        ),
        (
            "What is the distance from Berlin to Munich?",
            (DISTANCE, TIME),
            [("get_distance", {"origin": "Berlin", "destination": "Munich"})],
        ),
        (
            "Distance between the Louvre and Notre-Dame",
            (DISTANCE, TIME),
            [("get_distance", {"origin": "Louvre", "destination": "Notre-Dame"})],
        ),
        (
            'Create an issue with title "Crash on start" for owner "octo" and repo "hello"',
            (ISSUE,),
            [("create_issue", {"owner": "octo", "repo": "hello", "title": "Crash on start"})],
        ),
        (
            "Price of AAPL and MSFT?",
            (STOCK,),
            [("get_stock_price", {"symbol": "AAPL"}), ("get_stock_price", {"symbol": "MSFT"})],
        ),
        (
            "Play the song Bohemian Rhapsody of the artist Queen",
            (MUSIC,),
            [("play_music", {"song": "Bohemian Rhapsody", "artist": "Queen"})],
        ),
        ("Get user 42", (USER,), [("get_user", {"user_id": 42})]),
        (
            "Send an email to bob@x.org with subject 'Hi' and body 'I will be late'",
            (EMAIL,),
            [("send_email", {"to": "bob@x.org", "subject": "Hi", "body": "I will be late"})],
        ),
    ],
)
def test_a_call_is_what_one_would_expect(prompt, tools, calls):
    assert calls_for(prompt, *tools) == calls


def test_of_two_enum_values_the_first_in_the_prompt_counts():
    [(_, arguments)] = calls_for("Set the brightness of the bedroom to 20 and of the kitchen to 80", LIGHT)
    assert arguments == {"room": "bedroom", "brightness": 20}


def test_what_may_go_on_for_ever_ends_soon():
    user = {
        "type": "object",
        "properties": {"id": INTEGER, "child": {"anyOf": [{"$ref": "#/$defs/user"}, {"type": "null"}]}},
        "required": ["id", "child"],
    }
    reply = answer(build_ask("Give me the user", output_schema={"$ref": "#/$defs/user", "$defs": {"user": user}})).text
    assert reply.count('"child"') == 2
    assert reply.endswith('"child":null}}')
