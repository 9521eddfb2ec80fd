"""Models are routed to upstreams."""

import pytest

from dragoman.core.problems import Problem
from dragoman.gateway.router import Routes, UpstreamSet
from dragoman.upstreams.anthropic import Anthropic
from dragoman.upstreams.gemini import Gemini
from dragoman.upstreams.openai import OpenAI

UPSTREAMS = {
    "google": Gemini("google", "", "k", "test"),
    "claude": Anthropic("claude", "", "k", "test"),
    "local": OpenAI("local", "http://127.0.0.1:1/v1", "", "test"),
}


KINDS = {"google": "gemini", "claude": "anthropic", "local": "openai"}


def routes(models=None, names=tuple(UPSTREAMS)) -> Routes:
    places = {name: (lambda _, name=name: UPSTREAMS[name]) for name in names}
    return Routes(UpstreamSet(places, {name: KINDS[name] for name in names}), models or {})


def find(routed: Routes, model: str) -> list[str]:
    return [f"{target.upstream.name}/{target.model}" for target in routed.find_targets(model)]


def test_an_exact_name_wins_over_patterns_and_the_longest_pattern_over_others():
    routed = routes({"gemini-*": ["google/a"], "gemini-3-*": ["google/b-*"], "gemini-3-flash": ["claude/c"]})
    assert find(routed, "gemini-3-flash") == ["claude/c"]
    assert find(routed, "gemini-3-pro") == ["google/b-pro"]
    assert find(routed, "gemini-2.5") == ["google/a"]


def test_a_target_that_is_only_a_star_means_the_clients_own_name():
    routed = routes({"claude-*": ["claude/*", "google/via-*"], "*": ["local/*"]})
    assert find(routed, "claude-opus-4-8") == ["claude/claude-opus-4-8", "google/via-opus-4-8"]
    assert find(routed, "org/qwen3") == ["local/org/qwen3"]


def test_a_list_is_tried_in_its_order():
    assert find(routes({"fast": ["google/x", "local/y"]}), "fast") == ["google/x", "local/y"]


def test_an_upstream_can_be_named_before_the_model_which_may_have_slashes():
    assert find(routes(), "local/org/model") == ["local/org/model"]


@pytest.mark.parametrize(
    ("model", "target"),
    [("gemini-3-flash", "google/gemini-3-flash"), ("claude-opus-5", "claude/claude-opus-5"), ("gpt-6", "local/gpt-6")],
)
def test_an_unconfigured_model_goes_to_an_upstream_of_its_family(model, target):
    assert find(routes(), model) == [target]


def test_the_only_upstream_gets_unconfigured_models():
    assert find(routes(names=("local",)), "qwen3") == ["local/qwen3"]


def test_a_model_without_an_upstream_is_not_found_and_the_error_lists_the_models():
    with pytest.raises(Problem) as result:
        routes({"fast": ["google/x"]}).find_targets("qwen3")
    assert (result.value.kind, result.value.code) == ("not_found", "model_not_found")
    assert "fast" in result.value.message


def test_a_pattern_matches_around_its_star_without_overlap():
    routed = routes({"aba*aba": ["google/[*]"]}, names=("google", "claude"))
    assert find(routed, "aba-x-aba") == ["google/[-x-]"]
    with pytest.raises(Problem):
        routed.find_targets("ababa")
