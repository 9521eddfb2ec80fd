"""The settings of a web search at the search of another vendor."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.search_settings import NO_SETTING, merge_lists
from dragoman.interpreter.translate import translate_request

PLACE = {"type": "approximate", "city": "Rome", "region": "Lazio", "country": "IT", "timezone": "Europe/Rome"}
CLAUDE = {"type": "web_search_20250305", "name": "web_search"}
QUESTION = [{"role": "user", "content": "weather?"}]


def translate(tool, source, target, model="gpt-5.5"):
    rest = {"messages": QUESTION, "max_tokens": 99} if source == "messages" else {"input": QUESTION, "store": False}
    body = json.dumps({"model": "m", "tools": [tool], **rest}).encode()
    translation = translate_request(Call(body), source, target, model=model)
    lost = {loss.where for loss in translation.losses if loss.what == NO_SETTING}
    return json.loads(translation.call.body), lost


def test_domains_and_the_place_of_the_user_go_to_openai():
    tool = {**CLAUDE, "allowed_domains": ["a.org", "b.org/x"], "user_location": PLACE}
    body, lost = translate(tool, "messages", "responses")
    assert body["tools"] == [
        {"type": "web_search", "filters": {"allowed_domains": ["a.org", "b.org/x"]}, "user_location": PLACE}
    ]
    assert lost == set()
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
    assert lost == {"/tools/0/search_context_size"}


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


@pytest.mark.parametrize(
    "tool", [{"googleSearch": {"excludeDomains": ["a.org"]}}, {"google_search": {"exclude_domains": ["a.org"]}}]
)
def test_domains_that_vertex_blocks_are_blocked_by_claude(tool):
    body = {"contents": [{"role": "user", "parts": [{"text": "weather?"}]}], "tools": [tool]}
    translation = translate_request(Call(json.dumps(body).encode()), "gemini", "messages", strict=True)
    assert json.loads(translation.call.body)["tools"] == [{**CLAUDE, "blocked_domains": ["a.org"]}]


def test_only_vertex_takes_blocked_domains_so_gemini_gets_none():
    body, lost = translate({**CLAUDE, "blocked_domains": ["a.org"]}, "messages", "gemini", "gemini-3-flash")
    assert body["tools"] == [{"googleSearch": {}}]
    assert lost == {"/tools/0/blocked_domains"}


FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


def translate_whole(body, source, target, model, **options):
    return translate_request(Call(json.dumps(body).encode()), source, target, model=model, **options)


def test_the_most_uses_are_the_most_calls_at_openai_and_back():
    declared = {"model": "m", "messages": QUESTION, "max_tokens": 99, "tools": [{**CLAUDE, "max_uses": 3}]}
    sent = json.loads(translate_whole(declared, "messages", "responses", "gpt-5.5", strict=True).call.body)
    assert sent["max_tool_calls"] == 3
    tools = [{"type": "web_search"}, FUNCTION]
    declared = {"model": "m", "input": QUESTION, "store": False, "max_tool_calls": 4, "tools": tools}
    back = json.loads(translate_whole(declared, "responses", "messages", "claude-sonnet-4-5", strict=True).call.body)
    assert back["tools"][0] == {**CLAUDE, "max_uses": 4}


@pytest.mark.parametrize(
    ("source", "target", "other", "where"),
    [
        ("messages", "responses", {"type": "code_execution_20250825", "name": "code_execution"}, "/tools/0/max_uses"),
        ("responses", "messages", {"type": "code_interpreter", "container": {"type": "auto"}}, "/max_tool_calls"),
    ],
)
def test_a_limit_of_all_tools_is_not_that_of_one_of_several(source, target, other, where):
    search, rest = {**CLAUDE, "max_uses": 3}, {"messages": QUESTION, "max_tokens": 99}
    if source == "responses":
        search, rest = {"type": "web_search"}, {"input": QUESTION, "store": False, "max_tool_calls": 3}
    translation = translate_whole({"model": "m", "tools": [search, other], **rest}, source, target, "")
    assert where in {loss.where for loss in translation.losses if loss.grade == "material"}
    assert not {"max_tool_calls", "max_uses"}.intersection(json.loads(translation.call.body))


OPTIONS = {
    "search_context_size": "low",
    "user_location": {"type": "approximate", "approximate": {"city": "Rome", "country": "IT"}},
}
ROME = {"type": "approximate", "city": "Rome", "country": "IT"}


@pytest.mark.parametrize(
    ("target", "tool"),
    [
        ("responses", {"type": "web_search", "search_context_size": "low", "user_location": ROME}),
        ("messages", {**CLAUDE, "user_location": ROME}),
        ("gemini", {"googleSearch": {}}),
    ],
)
def test_the_search_of_a_chat_request_is_the_targets_search(target, tool):
    body = {"model": "m", "messages": QUESTION, "web_search_options": OPTIONS}
    translation = translate_whole(body, "chat", target, "")
    assert json.loads(translation.call.body)["tools"] == [tool]
    lost = {(loss.where, loss.grade) for loss in translation.losses if loss.what == NO_SETTING}
    assert (
        lost
        == {
            "responses": set(),
            "messages": {("/web_search_options/search_context_size", "informational")},
            "gemini": {
                ("/web_search_options/search_context_size", "informational"),
                ("/web_search_options/user_location", "material"),
            },
        }[target]
    )


@pytest.mark.parametrize(
    "model", ["gpt-4o-search-preview", "gpt-4o-mini-search-preview-2025-03-11", "gpt-5-search-api"]
)
@pytest.mark.parametrize(
    ("source", "tools", "options"),
    [
        ("messages", [{**CLAUDE, "user_location": ROME}], {"user_location": OPTIONS["user_location"]}),
        ("responses", [{"type": "web_search", "search_context_size": "low"}, FUNCTION], {"search_context_size": "low"}),
        ("gemini", [{"googleSearch": {}}], {}),
    ],
)
def test_a_search_model_of_chat_gets_the_search_as_its_options(source, tools, options, model):
    rest = {
        "messages": {"messages": QUESTION, "max_tokens": 99},
        "responses": {"input": QUESTION, "store": False},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "weather?"}]}]},
    }[source]
    body = json.loads(translate_whole({"model": "m", "tools": tools, **rest}, source, "chat", model).call.body)
    assert body["web_search_options"] == options
    assert [tool["type"] for tool in body.get("tools", ())] == ["function"] * (len(tools) - 1)
    assert "You have no web search" not in json.dumps(body)


@pytest.mark.parametrize("options", [OPTIONS, {}, {"type": "x", "user_location": None}, 7, None, []])
def test_the_search_of_a_chat_request_is_rendered_unchanged(options):
    chat = DIALECTS["chat"]
    body = {"model": "gpt-4o", "messages": QUESTION, "web_search_options": options}
    request = chat.parse_request(Call(json.dumps(body).encode()))
    rendered = json.loads(chat.render_request(request, traits_for("chat", "gpt-4o")).body)
    assert rendered == {name: value for name, value in body.items() if value is not None}


def test_a_list_is_merged_without_repetition():
    assert merge_lists(None, b'["a"]') == b'["a"]'
    assert merge_lists(b'["a","b"]', b'["b","c"]') == b'["a","b","c"]'
