"""The fuzzer, briefly: `make fuzz` runs a million inputs."""

import itertools

import pytest

from fuzz import campaign
from fuzz.seeds import DIALECTS
from fuzz.targets import Target, targets


def describe_all(failures):
    return "\n".join(failure.describe() for failure in failures.values())


def test_a_few_thousand_inputs_break_nothing():
    assert describe_all(campaign.run(seed=0, numbers=range(4_000))) == ""


@pytest.mark.slow
def test_many_thousand_inputs_break_nothing():
    assert describe_all(campaign.run(seed=1, numbers=range(100_000))) == ""


def test_every_reader_dialect_and_pair_is_fuzzed():
    single = {
        f"{kind}:{name}" for kind in ("parse_request", "parse_response", "decoder", "parse_error") for name in DIALECTS
    }
    pairs = {
        f"{kind}:{source}:{target}"
        for kind in ("translate_request", "translate_response", "stream")
        for source, target in itertools.product(DIALECTS, repeat=2)
    }
    assert set(targets()) == {"sse", "json_stream"} | single | pairs


@pytest.mark.parametrize("name", targets())
def test_a_number_always_makes_the_same_input(name):
    chosen = [targets()[name]]
    assert [campaign.make(3, number, chosen)[1] for number in range(5)] == [
        campaign.make(3, number, chosen)[1] for number in range(5)
    ]


def crash(data, chance):
    if b"z" in data:
        raise KeyError(data)


def test_failures_of_one_kind_are_reported_once_with_the_shortest_input():
    target = Target("crash", lambda chance: b"x" * chance.randrange(9) + b"z", crash)
    failures = campaign.run(0, range(50), [target])
    (failure,) = failures.values()
    assert failure.count == 50
    assert failure.data == b"z"
    assert "--replay crash eg==" in failure.describe()


def test_an_input_that_takes_too_long_is_a_failure(monkeypatch):
    monkeypatch.setattr(campaign, "SECONDS", 0.05)

    def spin(data, chance):
        while True:
            pass

    (failure,) = campaign.run(0, range(1), [Target("spin", lambda chance: b"", spin)]).values()
    assert failure.what == "Hang at spin"


def test_a_reproducer_is_cut_down_while_it_fails_the_same_way(monkeypatch):
    target = Target("crash", lambda chance: b"", crash)
    monkeypatch.setattr(campaign, "targets", lambda: {"crash": target})
    failure = campaign.attempt(target, b"a" * 100 + b"z" + b"b" * 100)
    assert campaign.shrunk(failure).data == b"z"
