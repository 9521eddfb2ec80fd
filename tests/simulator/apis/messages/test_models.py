"""What each generation of models supports."""

import pytest

from dragoman.simulator.apis.messages.models import parse_model_name
from simulator.apis.messages.bodies import (
    WEATHER,
    asks,
    assistant,
    call,
    judge,
    require_accepted,
    require_rejected,
    result,
    user,
)


@pytest.mark.parametrize(
    ("name", "family", "version"),
    [
        ("claude-sonnet-4-5-20250929", "sonnet", (4, 5)),
        ("claude-sonnet-4-20250514", "sonnet", (4, 0)),
        ("claude-haiku-4-5@20251001", "haiku", (4, 5)),
        ("anthropic/claude-haiku-4.5", "haiku", (4, 5)),
        ("claude-3-7-sonnet-latest", "sonnet", (3, 7)),
        ("claude-3-opus-20240229", "opus", (3, 0)),
        ("claude-2.1", "", (2, 1)),
        ("claude-opus-5-5", "opus", (5, 5)),
        ("claude-fable-5", "fable", (5, 0)),
        ("claude-mythos-5-1", "mythos", (5, 1)),
    ],
)
def test_a_name_is_a_family_and_a_version(name, family, version):
    model = parse_model_name(name)
    assert (model.family, model.version) == (family, version)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("claude-3-5-haiku-latest", {"disabled"}),
        ("claude-sonnet-4-5", {"enabled", "disabled"}),
        ("claude-opus-4-6", {"adaptive", "enabled", "disabled"}),
        ("claude-opus-4-7", {"adaptive", "disabled"}),
        ("claude-opus-4-8", {"adaptive", "disabled"}),
        ("claude-mythos-preview", {"adaptive", "enabled"}),
        ("claude-sonnet-5", {"adaptive", "disabled"}),
        ("claude-opus-5", {"adaptive", "disabled"}),
        ("claude-fable-5", {"adaptive"}),
        ("claude-opus-5-5", {"adaptive"}),
        ("claude-haiku-5-5", {"adaptive", "disabled"}),
        ("claude-sonnet-5-5", {"adaptive", "between_tools"}),
        ("a-model-nobody-knows", {"adaptive"}),
    ],
)
def test_a_model_takes_the_types_of_thinking_it_has(name, taken):
    for kind in ("enabled", "adaptive", "disabled", "between_tools"):
        thinking = {"type": kind, "budget_tokens": 1024} if kind == "enabled" else {"type": kind}
        found = judge(asks(model=name, thinking=thinking))
        assert getattr(found, "rule", "accepted") == ("accepted" if kind in taken else "messages.thinking-type")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("claude-haiku-4-5", ""),
        ("claude-opus-4-5", "low medium high"),
        ("claude-sonnet-4-6", "low medium high max"),
        ("claude-opus-4-7", "low medium high xhigh max"),
        ("claude-haiku-5-5", "low medium high xhigh max"),
    ],
)
def test_a_model_takes_the_efforts_it_has(name, taken):
    for effort in ("low", "medium", "high", "xhigh", "max"):
        found = judge(asks(model=name, output_config={"effort": effort}))
        assert getattr(found, "rule", "accepted") == ("accepted" if effort in taken.split() else "messages.effort")


@pytest.mark.parametrize(
    "name", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-mythos-preview", "new"]
)
def test_the_newest_models_cannot_be_forced(name):
    body = asks(model=name, tools=[WEATHER], tool_choice={"type": "any"})
    assert require_rejected(body).message == 'tool_choice: type "tool" and "any" are not supported for this model.'


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5", "claude-fable-5"]
)
def test_older_models_can_be_forced(name):
    require_accepted(asks(model=name, tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"}))


def test_an_answer_can_be_prefilled_for_models_up_to_4_5_only():
    begun = [user("Hi"), assistant("The answer is")]
    require_accepted(asks(*begun, model="claude-haiku-4-5"))
    for name in ("claude-sonnet-4-6", "claude-opus-5-5", "new"):
        assert require_rejected(asks(*begun, model=name)).rule == "messages.prefill"


def test_a_turn_that_was_paused_can_be_sent_back_to_any_model():
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}}
    require_accepted(asks(user("Hi"), assistant(search), tools=[{"type": "web_search_20260318", "name": "web_search"}]))


def test_an_assistant_message_may_come_first_where_that_was_recorded():
    first = [assistant("How can I help?"), user("Hi")]
    require_accepted(asks(*first, model="claude-sonnet-4-6"))
    assert require_rejected(asks(*first)).rule == "messages.first-turn"


def test_instructions_in_the_middle_need_a_model_and_a_place():
    instruction = {"role": "system", "content": "Answer in French."}
    require_accepted(asks(user("Hi"), instruction))
    require_accepted(asks(user("Hi"), instruction, assistant("Salut."), user("Paris?"), model="claude-opus-4-8"))
    require_accepted(asks(user("Hi"), assistant(call()), user(result()), instruction, tools=[WEATHER]))
    assert require_rejected(asks(user("Hi"), instruction, model="claude-sonnet-5")).rule == "messages.system-turn-model"
    assert require_rejected(asks(user("Hi"), instruction, user("Paris?"))).rule == "messages.system-turn-place"
    between = [user("Hi"), assistant(call()), instruction, user(result())]
    assert require_rejected(asks(*between, tools=[WEATHER])).rule == "messages.system-turn-place"


@pytest.mark.parametrize(
    ("name", "most"), [("claude-3-opus-20240229", 4096), ("claude-haiku-4-5", 64_000), ("new", 128_000)]
)
def test_an_answer_is_at_most_what_the_model_can_write(name, most):
    require_accepted(asks(model=name, max_tokens=most))
    found = require_rejected(asks(model=name, max_tokens=most + 1))
    assert (
        found.message
        == f"max_tokens: {most + 1} > {most}, which is the maximum allowed number of output tokens for {name}"
    )


def test_the_version_of_october_has_no_sampling():
    old = asks(model="claude-sonnet-4-5", temperature=1.0)
    require_accepted(old, version="2023-06-01")
    assert require_rejected(old, version="2026-10-21").message == "temperature: Extra inputs are not permitted"


def test_a_beta_member_needs_its_header():
    body = asks(context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})
    require_accepted(body)
    require_accepted(body, betas=("claude-code-20250219", "context-management-2025-06-27"))
    assert require_rejected(body, betas=()).message == "context_management: Extra inputs are not permitted"
