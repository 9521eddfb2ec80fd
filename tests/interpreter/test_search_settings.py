"""The settings of a web search at the search of another vendor."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.search_settings import NO_SETTING, merge_lists
from dragoman.interpreter.translate import translate_request

PLACE = {"type": "approximate", "city": "Rome", "region": "Lazio", "country": "IT", "timezone": "Europe/Rome"}
CLAUDE = {"type": "web_search_20250305", "name": "web_search"}
QUESTION = [{"role": "user", "content": "weather?"}]


def translate(tool, source, target, model="gpt-5.5"):
    rest = {"messages": QUESTION, "max_tokens": 99} if source == "messages" else {"input": QUESTION, "store": False}
    body = json.dumps({"model": "m", "tools": [tool], **rest}).encode()
    translation = translate_request(Call(body), source, target, model=model)
    lost = {loss.where for loss in translation.losses if loss.what == NO_SETTING} - {"/tools/0/name"}
    return json.loads(translation.call.body), lost


def test_domains_and_the_place_of_the_user_go_to_openai():
    tool = {**CLAUDE, "allowed_domains": ["a.org", "b.org/x"], "user_location": PLACE, "max_uses": 8}
    body, lost = translate(tool, "messages", "responses")
    assert body["tools"] == [
        {"type": "web_search", "filters": {"allowed_domains": ["a.org", "b.org/x"]}, "user_location": PLACE}
    ]
    assert lost == {"/tools/0/max_uses"}
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]


def test_blocked_domains_are_a_loss_at_openai():
    body, lost = translate({**CLAUDE, "blocked_domains": ["a.org", "b.org"]}, "messages", "responses")
    assert body["tools"] == [{"type": "web_search"}]
    assert lost == {"/tools/0/blocked_domains"}


def test_domains_and_the_place_of_the_user_go_to_claude():
    tool = {
        "type": "web_search",
        "filters": {"allowed_domains": ["a.org"]},
        "user_location": {**PLACE, "city": None},
        "search_context_size": "high",
        "external_web_access": True,
    }
    body, lost = translate(tool, "responses", "messages", "claude-sonnet-4-5")
    place = {name: value for name, value in PLACE.items() if name != "city"}
    assert body["tools"] == [{**CLAUDE, "allowed_domains": ["a.org"], "user_location": place}]
    assert lost == {"/tools/0/search_context_size", "/tools/0/external_web_access"}


@pytest.mark.parametrize("source", ["messages", "responses"])
def test_a_search_without_such_settings_reports_each(source):
    tool = CLAUDE if source == "messages" else {"type": "web_search"}
    body, lost = translate({**tool, "user_location": PLACE}, source, "gemini", "gemini-3-flash")
    assert body["tools"] == [{"googleSearch": {}}]
    assert lost == {"/tools/0/user_location"}


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"allowed_domains": "a.org"}, "/tools/0/allowed_domains"),
        ({"blocked_domains": [7]}, "/tools/0/blocked_domains"),
        ({"max_uses": "8"}, "/tools/0/max_uses"),
        ({"user_location": {"type": "approximate", "city": ["Rome"]}}, "/tools/0/user_location/city"),
    ],
)
def test_a_setting_of_a_wrong_type_is_rejected(settings, where):
    with pytest.raises(Problem) as caught:
        translate({**CLAUDE, **settings}, "messages", "responses")
    assert (caught.value.kind, caught.value.where) == ("invalid_request", where)


def test_a_list_is_merged_without_repetition():
    assert merge_lists(None, b'["a"]') == b'["a"]'
    assert merge_lists(b'["a","b"]', b'["b","c"]') == b'["a","b","c"]'
