"""Attacks that pass while other tests run, briefly: `make attack` runs all, four times as large, and asserts times too."""

import pytest

from attack.gateway import run_gateway, run_simulator
from attack.malformed import find_fault
from attack.run import ATTACKS
from attack.soak import RETRIES, Soak


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_request_hurts_another(name):
    missed = [measure for measure in ATTACKS[name](1) if not measure.is_time and not measure.is_met]
    assert not missed


@pytest.mark.slow
def test_mixed_requests_with_faults_all_get_a_fitting_answer():
    with run_simulator() as simulator, run_gateway(upstream=f'base_url = "{simulator}"', tables=RETRIES) as gateway:
        soak = Soak(gateway, requests=1500, seed=1)
        soak.run()
    assert not soak.wrong
    assert soak.outcomes["200"] > 500


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"", ""),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nab", ""),
        (b"HTTP/1.1 500 Error\r\ncontent-length: 0\r\n\r\n", "status 500"),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\nab", "no HTTP"),
        (b"garbage\r\n\r\n", "no HTTP"),
    ],
)
def test_wrong_answers_to_malformed_requests_are_found(answer, fault):
    assert find_fault(b"POST / HTTP/1.1", answer).startswith(fault)
    assert bool(find_fault(b"POST / HTTP/1.1", answer)) == bool(fault)
