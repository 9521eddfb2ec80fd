"""Sampling, thinking, the answer's format and identity, as each model takes them."""

import pytest

from dragoman.core.request import Sampling, Thinking, Tool
from dragoman.interpreter.parameters import adapt_thinking
from dragoman.interpreter.request_fields import adapt_sampling
from interpreter.workbench import adaptation_for, build_request, loss_pointers

ALL = Sampling(
    temperature=1.5,
    top_p=0.5,
    top_k=3,
    max_tokens=99,
    stop=("a", "b"),
    seed=7,
    presence_penalty=0.1,
    frequency_penalty=0.2,
)
IN_CHAT = {
    "temperature": "/temperature",
    "top_p": "/top_p",
    "top_k": "/top_k",
    "max_tokens": "/max_completion_tokens",
    "stop": "/stop",
    "seed": "/seed",
    "presence_penalty": "/presence_penalty",
    "frequency_penalty": "/frequency_penalty",
}


@pytest.mark.parametrize(
    ("dialect", "model", "kept", "changed"),
    [
        ("chat", "gpt-4.1", set(IN_CHAT) - {"top_k"}, {}),
        ("chat", "gpt-5.6", {"max_tokens", "seed"}, {}),
        ("responses", "nobody", {"temperature", "top_p", "max_tokens"}, {}),
        ("responses", "gpt-5.6", {"max_tokens"}, {}),
        ("messages", "claude-opus-5", {"max_tokens", "stop"}, {}),
        ("messages", "claude-opus-4-6", {"max_tokens", "stop", "top_k"}, {"temperature": 1.0}),
        ("messages", "claude-sonnet-4", {"max_tokens", "stop", "top_k", "top_p"}, {"temperature": 1.0}),
        ("messages", "claude-opus-4-1", {"max_tokens", "stop", "top_k"}, {"temperature": 1.0}),
        ("gemini", "gemini-3.8-pro", {"max_tokens", "stop", "seed"}, {}),
        ("gemini", "gemini-2.5-pro", set(IN_CHAT), {}),
    ],
)
def test_a_model_gets_only_the_parameters_it_takes(dialect, model, kept, changed):
    adaptation = adaptation_for(dialect, model)
    assert adapt_sampling(ALL, adaptation) == Sampling(**{name: getattr(ALL, name) for name in kept}, **changed)
    dropped = [("dropped", place) for name, place in IN_CHAT.items() if name not in kept | changed.keys()]
    bent = [("approximated", IN_CHAT[name]) for name in changed]
    assert sorted(loss_pointers(adaptation)) == sorted(dropped + bent)


def test_unset_parameters_are_no_losses_and_stay_the_same_object():
    adaptation = adaptation_for("chat", "gpt-5.6")
    sampling = Sampling(max_tokens=3)
    assert adapt_sampling(sampling, adaptation) is sampling
    assert loss_pointers(adaptation) == []


@pytest.mark.parametrize(("temperature", "sent", "losses"), [(1.0, 1.0, 0), (0, 0, 0), (1.25, 1.0, 1)])
def test_a_temperature_is_clamped_to_the_models_maximum(temperature, sent, losses):
    adaptation = adaptation_for("messages", "claude-opus-4-6")
    adapted = adapt_sampling(Sampling(temperature=temperature, max_tokens=1), adaptation)
    assert adapted == Sampling(temperature=sent, max_tokens=1)
    assert loss_pointers(adaptation) == [("approximated", "/temperature")] * losses


@pytest.mark.parametrize(("count", "losses"), [(4, 0), (5, 1)])
def test_stop_sequences_are_counted(count, losses):
    adaptation = adaptation_for("chat", "gpt-4.1")
    words = tuple("abcdefg"[:count])
    assert adapt_sampling(Sampling(stop=words), adaptation) == Sampling(stop=words[:4])
    assert loss_pointers(adaptation) == [("dropped", "/stop/4")] * losses


def test_a_refused_knob_is_not_clamped_too():
    adaptation = adaptation_for("gemini", "gemini-3.8-pro", temperature_max=1.0)
    assert adapt_sampling(Sampling(temperature=2, stop=("a",)), adaptation) == Sampling(stop=("a",))
    assert loss_pointers(adaptation) == [("dropped", "/temperature")]
    adaptation = adaptation_for("chat", "gpt-5.6", stop_max=1)
    assert adapt_sampling(Sampling(stop=("a", "b")), adaptation) == Sampling()
    assert loss_pointers(adaptation) == [("dropped", "/stop")]


@pytest.mark.parametrize(
    "sampling",
    [Sampling(temperature=0.5, max_tokens=1), Sampling(top_p=0.5, max_tokens=1)],
    ids=["temperature", "top_p"],
)
def test_temperature_or_top_p_alone_is_kept(sampling):
    adaptation = adaptation_for("messages", "claude-opus-4-6")
    assert adapt_sampling(sampling, adaptation) == sampling
    assert loss_pointers(adaptation) == []


@pytest.mark.parametrize(
    ("model", "limit"),
    [("claude-opus-5", 32_000), ("claude-opus-4-1", 8192), ("claude-3-haiku", 4096), ("claude-3-7-sonnet", 32_000)],
)
def test_claude_gets_a_default_max_tokens(model, limit):
    adaptation = adaptation_for("messages", model)
    assert adapt_sampling(Sampling(), adaptation) == Sampling(max_tokens=limit)
    assert adapt_sampling(Sampling(max_tokens=1), adaptation) == Sampling(max_tokens=1)
    assert loss_pointers(adaptation) == []


MODE, EFFORT, BUDGET, VISIBLE = (
    "/thinking/type",
    "/output_config/effort",
    "/thinking/budget_tokens",
    "/thinking/display",
)


def thought(dialect, model, thinking, **request):
    adaptation = adaptation_for(dialect, model, source="messages")
    adapted = adapt_thinking(build_request(thinking=thinking, **request), adaptation)
    assert all(kind == "approximated" for kind, _ in loss_pointers(adaptation))
    return adapted, [where for _, where in loss_pointers(adaptation)]


@pytest.mark.parametrize(
    ("budget", "effort"),
    [
        (1, "low"),
        (1024, "low"),
        (1025, "medium"),
        (8192, "medium"),
        (8193, "high"),
        (24_576, "high"),
        (24_577, "xhigh"),
    ],
)
def test_a_budget_becomes_the_nearest_effort(budget, effort):
    assert thought("responses", "nobody", Thinking(budget=budget)) == (Thinking(effort=effort), [BUDGET])


def test_a_budget_of_zero_turns_thinking_off_without_a_loss():
    assert thought("responses", "nobody", Thinking(budget=0)) == (Thinking(effort="none"), [])


@pytest.mark.parametrize(
    ("effort", "budget"),
    [("minimal", 512), ("low", 1024), ("medium", 8192), ("high", 24_576), ("xhigh", 32_768), ("max", 32_768)],
)
def test_an_effort_becomes_a_budget(effort, budget):
    assert thought("gemini", "gemini-2.5-pro", Thinking(effort=effort)) == (Thinking(budget=budget), [EFFORT])


@pytest.mark.parametrize("thinking", [Thinking(effort="max"), Thinking(budget=24_577)])
def test_a_budget_is_not_above_the_models_most(thinking):
    result, losses = thought("gemini", "gemini-2.5-flash", thinking)
    assert result == Thinking(budget=24_576)
    assert losses == [EFFORT if thinking.effort else BUDGET]


def test_a_limit_is_not_above_the_models_most():
    adaptation = adaptation_for("messages", "claude-haiku-4-5")
    assert adapt_sampling(Sampling(max_tokens=64_001), adaptation).max_tokens == 64_000
    assert loss_pointers(adaptation) == [("approximated", "/max_completion_tokens")]
    assert (
        adapt_sampling(Sampling(max_tokens=64_000), adaptation_for("messages", "claude-haiku-4-5")).max_tokens == 64_000
    )


def test_whitespace_stop_sequences_are_not_sent_to_claude():
    adaptation = adaptation_for("messages", "claude-opus-5")
    assert adapt_sampling(Sampling(stop=("a", " \n", "b")), adaptation).stop == ("a", "b")
    assert [kind for kind, _ in loss_pointers(adaptation)] == ["dropped"]
    assert adapt_sampling(Sampling(stop=(" ",)), adaptation_for("gemini", "gemini-3-flash")).stop == (" ",)


@pytest.mark.parametrize(("given", "sent", "losses"), [(40.0, 40, 0), (39.6, 40, 1), (7, 7, 0)])
def test_candidates_are_counted_in_whole_numbers(given, sent, losses):
    adaptation = adaptation_for("messages", "claude-haiku-4-5")
    assert adapt_sampling(Sampling(top_k=given), adaptation).top_k == sent
    assert len(loss_pointers(adaptation)) == losses


@pytest.mark.parametrize(
    ("dialect", "model", "expected", "effort"),
    [
        ("chat", "gpt-5", "none", "minimal"),
        ("chat", "gpt-5", "max", "high"),
        ("chat", "gpt-5", "xhigh", "high"),
        ("chat", "gpt-5.1", "minimal", "low"),
        ("chat", "gpt-5.1", "max", "high"),
        ("chat", "gpt-5.2", "max", "xhigh"),
        ("chat", "o3", "minimal", "low"),
        ("responses", "gpt-5.6", "minimal", "low"),
        ("gemini", "gemini-3-pro", "none", "low"),
        ("gemini", "gemini-3-pro", "max", "high"),
        ("gemini", "gemini-3-flash", "none", "minimal"),
    ],
)
def test_an_effort_the_model_has_not_becomes_the_nearest_upwards_first(dialect, model, expected, effort):
    assert thought(dialect, model, Thinking(effort=expected)) == (Thinking(effort=effort), [EFFORT])


LEFT_TO_THE_MODEL = Thinking(mode="adaptive")


@pytest.mark.parametrize(
    ("dialect", "model", "thinking", "adapted", "places"),
    [
        ("chat", "nobody", Thinking(effort="max"), Thinking(effort="max"), []),
        ("chat", "nobody", Thinking(mode="disabled"), Thinking(effort="none"), []),
        ("chat", "nobody", Thinking(mode="disabled", effort="high"), Thinking(effort="none"), []),
        ("chat", "nobody", LEFT_TO_THE_MODEL, None, [MODE]),
        ("chat", "nobody", Thinking(mode="enabled", budget=-1), None, [BUDGET, MODE]),
        ("responses", "gpt-5.6", Thinking(effort="low", visible=True), Thinking(effort="low", visible=True), []),
        ("responses", "gpt-5.6", Thinking(visible=False), Thinking(visible=False), []),
        ("responses", "gpt-5", Thinking(mode="disabled"), Thinking(effort="minimal"), [MODE]),
        ("responses", "gpt-5", Thinking(mode="enabled", budget=90_000), Thinking(effort="high"), [BUDGET, MODE]),
        ("gemini", "gemini-3-pro", LEFT_TO_THE_MODEL, None, []),
        ("gemini", "gemini-3-pro", Thinking(visible=True), Thinking(visible=True), []),
        ("gemini", "gemini-3-pro", Thinking(budget=9000), Thinking(effort="high"), [BUDGET]),
        ("gemini", "gemini-3-pro", Thinking(mode="disabled"), Thinking(effort="low"), [MODE]),
        ("gemini", "gemini-3-pro", Thinking(effort="high", visible=True), Thinking(effort="high", visible=True), []),
        ("gemini", "gemini-2.5-flash", LEFT_TO_THE_MODEL, Thinking(budget=-1), []),
        ("gemini", "gemini-2.5-flash", Thinking(visible=True), Thinking(visible=True), []),
        ("gemini", "gemini-2.5-flash", Thinking(mode="adaptive", visible=True), Thinking(budget=-1, visible=True), []),
        ("gemini", "gemini-2.5-flash", Thinking(mode="disabled"), Thinking(budget=0), []),
        ("gemini", "gemini-2.5-flash", Thinking(budget=77, visible=True), Thinking(budget=77, visible=True), []),
        ("gemini", "gemini-2.5-pro", Thinking(mode="disabled"), Thinking(budget=128), [MODE]),
        ("gemini", "gemini-2.5-pro", Thinking(budget=127), Thinking(budget=128), [BUDGET]),
        ("gemini", "gemini-2.5-pro", Thinking(budget=128), Thinking(budget=128), []),
        ("gemini", "gemini-2.5-pro", Thinking(budget=-1), Thinking(budget=-1), []),
        ("messages", "claude-opus-5", Thinking(effort="none"), Thinking(mode="disabled"), []),
        ("messages", "claude-opus-5", Thinking(effort="minimal"), Thinking(mode="adaptive", effort="low"), [EFFORT]),
        ("messages", "claude-opus-5", Thinking(effort="xhigh"), Thinking(mode="adaptive", effort="xhigh"), []),
        ("messages", "claude-opus-5", Thinking(budget=-1), Thinking(mode="adaptive"), []),
        ("messages", "claude-opus-5", Thinking(visible=True), Thinking(mode="adaptive", visible=True), []),
        ("messages", "claude-opus-5-5", Thinking(effort="none"), Thinking(mode="adaptive", effort="low"), [EFFORT]),
        ("messages", "claude-opus-4-5", Thinking(effort="none"), Thinking(mode="disabled"), []),
        ("messages", "claude-opus-4-5", Thinking(effort="low"), Thinking(mode="enabled", budget=1024), [EFFORT]),
        ("messages", "claude-opus-4-5", Thinking(effort="minimal"), Thinking(mode="enabled", budget=1024), [EFFORT]),
        ("messages", "claude-opus-4-5", Thinking(budget=5000), Thinking(mode="enabled", budget=5000), []),
        ("messages", "claude-opus-4-5", Thinking(budget=-1), Thinking(mode="enabled", budget=8192), [BUDGET]),
        (
            "messages",
            "claude-opus-4-5",
            Thinking(effort="high", budget=1),
            Thinking(mode="enabled", budget=1024),
            [EFFORT, BUDGET],
        ),
        ("messages", "claude-opus-4-5", LEFT_TO_THE_MODEL, Thinking(mode="enabled", budget=8192), [MODE]),
        (
            "messages",
            "claude-opus-4-5",
            Thinking(budget=1, visible=True),
            Thinking(mode="enabled", budget=1024, visible=True),
            [BUDGET],
        ),
    ],
)
def test_the_thinking_level_is_sent_in_the_models_own_field(dialect, model, thinking, adapted, places):
    assert thought(dialect, model, thinking) == (adapted, places)


@pytest.mark.parametrize(
    ("dialect", "model"), [("chat", "gpt-4.1"), ("gemini", "gemini-2.0-flash"), ("messages", "claude-3-haiku")]
)
def test_a_model_without_thinking_gets_no_thinking_settings(dialect, model):
    adaptation = adaptation_for(dialect, model, source="messages", shows_thinking=False)
    thinking = Thinking(mode="enabled", effort="low", budget=2000, visible=True)
    assert adapt_thinking(build_request(thinking=thinking), adaptation) is None
    assert loss_pointers(adaptation) == [("dropped", place) for place in sorted([MODE, EFFORT, BUDGET, VISIBLE])]
    quiet = adaptation_for(dialect, model)
    assert adapt_thinking(build_request(thinking=Thinking()), quiet) is None
    assert loss_pointers(quiet) == []


def test_visible_thinking_is_not_requested_from_a_target_that_cannot_show_it():
    adaptation = adaptation_for("chat", "nobody", source="messages")
    assert adapt_thinking(build_request(thinking=Thinking(effort="low", visible=False)), adaptation) == Thinking(
        effort="low"
    )
    assert loss_pointers(adaptation) == [("dropped", VISIBLE)]


TOOLS = {"tools": (Tool(name="f"),)}


@pytest.mark.parametrize(
    ("model", "thinking", "request_", "adapted", "places"),
    [
        ("gpt-5.6", None, TOOLS, Thinking(effort="none"), []),
        ("gpt-5.6", None, {}, None, []),
        ("gpt-5.1", None, TOOLS, None, []),
        ("gpt-5.6", Thinking(effort="high"), TOOLS, Thinking(effort="none"), [EFFORT]),
        ("gpt-5.6", Thinking(effort="none"), TOOLS, Thinking(effort="none"), []),
        ("gpt-5.6", Thinking(effort="high"), {}, Thinking(effort="high"), []),
        ("gpt-5.1", Thinking(effort="high"), TOOLS, Thinking(effort="high"), []),
    ],
)
def test_the_newest_gpt_takes_tools_on_chat_only_without_reasoning(model, thinking, request_, adapted, places):
    assert thought("chat", model, thinking, **request_) == (adapted, places)


@pytest.mark.parametrize(("limit", "sent", "losses"), [(15, 16, 1), (16, 16, 0)])
def test_a_limit_below_the_targets_minimum_is_raised(limit, sent, losses):
    adaptation = adaptation_for("responses", "gpt-5.6")
    assert adapt_sampling(Sampling(max_tokens=limit), adaptation) == Sampling(max_tokens=sent)
    assert loss_pointers(adaptation) == [("approximated", "/max_completion_tokens")] * losses


@pytest.mark.parametrize(
    ("model", "thinking", "kept"),
    [
        ("claude-opus-4-6", Thinking(mode="adaptive"), False),
        ("claude-opus-4-5", Thinking(mode="enabled", budget=2000), False),
        ("claude-opus-4-6", Thinking(mode="disabled"), True),
        ("claude-opus-4-6", None, True),
    ],
)
def test_claude_takes_no_temperature_while_it_thinks(model, thinking, kept):
    adaptation = adaptation_for("messages", model)
    adapted = adapt_sampling(Sampling(temperature=0.5, top_k=3, max_tokens=9), adaptation, thinking)
    assert adapted == (Sampling(temperature=0.5, top_k=3, max_tokens=9) if kept else Sampling(max_tokens=9))
    assert loss_pointers(adaptation) == ([] if kept else [("dropped", "/temperature"), ("dropped", "/top_k")])


@pytest.mark.parametrize(
    ("limit", "thinking", "adapted", "places"),
    [
        (1024, Thinking(budget=9000), Thinking(mode="disabled"), [BUDGET]),
        (1024, Thinking(effort="none"), Thinking(mode="disabled"), []),
        (2047, Thinking(budget=9000), Thinking(mode="disabled"), [BUDGET]),
        (2048, Thinking(budget=9000), Thinking(mode="enabled", budget=1024), [BUDGET]),
        (2048, Thinking(budget=9), Thinking(mode="enabled", budget=1024), [BUDGET]),
        (1025, Thinking(budget=1024), Thinking(mode="enabled", budget=1024), []),
        (5000, Thinking(budget=9000), Thinking(mode="enabled", budget=3976), [BUDGET]),
        (9000, Thinking(budget=9000), Thinking(mode="enabled", budget=7976), [BUDGET]),
        (9001, Thinking(budget=9000), Thinking(mode="enabled", budget=9000), []),
        (5000, Thinking(effort="high"), Thinking(mode="enabled", budget=3976), [EFFORT]),
    ],
)
def test_a_budget_leaves_room_for_an_answer_below_the_limit_on_both(limit, thinking, adapted, places):
    adaptation = adaptation_for("messages", "claude-opus-4-5", source="messages")
    adaptation.max_tokens = limit
    assert adapt_thinking(build_request(thinking=thinking), adaptation) == adapted
    assert loss_pointers(adaptation) == [("approximated", place) for place in places]


def test_a_token_limit_of_any_size_is_kept_if_the_model_has_no_maximum():
    adaptation = adaptation_for("chat", "gpt-4.1", document={"max_completion_tokens": 1 << 40})
    assert adapt_sampling(Sampling(max_tokens=1 << 40), adaptation, None).max_tokens == 1 << 40
    assert loss_pointers(adaptation) == []
