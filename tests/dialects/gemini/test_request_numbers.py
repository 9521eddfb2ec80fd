"""Numbers as proto JSON takes them: as numbers or as texts, and whole ones with a fraction of zero."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import Sampling, Thinking
from dragoman.core.traits import Traits
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.request import parse_request
from dragoman.dialects.record import Call


def parse(config, **more):
    return parse_request(Call(json.dumps({"contents": [], "generationConfig": config, **more}).encode(), "m"))


@pytest.mark.parametrize("written", [77, "77", 77.0, "77.0", "7.7e1", "770E-1"])
def test_a_whole_number_may_be_a_text_or_have_a_fraction_of_zero(written):
    config = {"maxOutputTokens": written, "seed": written, "candidateCount": written}
    request = parse({**config, "thinkingConfig": {"thinkingBudget": written}})
    assert request.sampling == Sampling(max_tokens=77, seed=77)
    assert (request.thinking, request.candidates) == (Thinking(budget=77), 77)
    read = (request.sampling.max_tokens, request.sampling.seed, request.candidates, request.thinking.budget)
    assert {type(value) for value in read} == {int}


def test_any_other_number_may_be_a_text_too():
    config = {"temperature": "0.5", "topP": "1", "topK": "40", "presencePenalty": "-1.5", "frequencyPenalty": "2e-1"}
    assert parse(config).sampling == Sampling(
        temperature=0.5, top_p=1, top_k=40, presence_penalty=-1.5, frequency_penalty=0.2
    )
    assert parse({"top_k": "-1"}).sampling == Sampling(top_k=-1)


@pytest.mark.parametrize("written", ["", " 7", "7 ", "x", "NaN", "Infinity", "1e999", "9" * 5000, "0x7", "1_0"])
@pytest.mark.parametrize("name", ["maxOutputTokens", "temperature", "topP", "topK", "seed", "candidateCount"])
def test_text_that_is_not_a_number_is_rejected_with_its_pointer(written, name):
    with pytest.raises(Problem, match="not a number") as caught:
        parse({name: written})
    assert (caught.value.kind, caught.value.where) == ("invalid_request", f"/generationConfig/{name}")


@pytest.mark.parametrize("written", [7.5, "7.5"])
@pytest.mark.parametrize("name", ["maxOutputTokens", "seed", "candidateCount"])
def test_a_fraction_is_no_whole_number(written, name):
    with pytest.raises(Problem, match=r"7\.5 is not an integer") as caught:
        parse({name: written})
    assert (caught.value.kind, caught.value.where) == ("invalid_request", f"/generationConfig/{name}")


@pytest.mark.parametrize("name", ["presencePenalty", "frequencyPenalty"])
def test_a_penalty_that_is_not_a_number_is_rejected_with_its_pointer(name):
    with pytest.raises(Problem) as caught:
        parse({name: "much"})
    assert caught.value.where == f"/generationConfig/{name}"


def test_a_budget_that_is_not_a_number_is_rejected_with_its_pointer_in_the_envelope():
    inner = {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingBudget": "much"}}}
    with pytest.raises(Problem) as caught:
        parse_request(Call(json.dumps({"model": "m", "request": inner}).encode()))
    assert caught.value.where == "/request/generationConfig/thinkingConfig/thinkingBudget"


def test_a_number_is_written_as_one():
    request = parse({"maxOutputTokens": "77", "topK": "40"})
    written = json.loads(DIALECT.render_request(request, Traits(dialect="gemini")).body)
    assert written["generationConfig"] == {"maxOutputTokens": 77, "topK": 40}
