"""The syntax of faults."""

import pytest

from dragoman.simulator.faults import NAMES, Fault, UnknownFault, read_fault, split_model


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("429", Fault(name="status", status=429, written="429")),
        (" 503,retry-after=2.5 ", Fault(name="status", status=503, retry_after=2.5, written="503,retry-after=2.5")),
        ("cut,after=3", Fault(name="cut", after=3, written="cut,after=3")),
        ("reset,after=0,times=2", Fault(name="reset", after=0, times=2, written="reset,after=0,times=2")),
        ("html", Fault(name="html", status=502, written="html")),
        ("html,status=503", Fault(name="html", status=503, written="html,status=503")),
        ("slow-headers,delay=1", Fault(name="slow-headers", delay=1.0, written="slow-headers,delay=1")),
        ("cut,after=2,delay=0.5", Fault(name="cut", after=2, delay=0.5, written="cut,after=2,delay=0.5")),
    ],
)
def test_a_fault_is_read(written, fault):
    assert read_fault(written) == fault


@pytest.mark.parametrize(
    "written", ["", "200", "600", "99", "status", "burn", "cut,after=x", "cut,depth=3", "cut;after=3", "html,status=no"]
)
def test_an_unknown_fault_is_reported(written):
    with pytest.raises(UnknownFault) as caught:
        read_fault(written)
    assert written in str(caught.value) or "depth" in str(caught.value)


@pytest.mark.parametrize(
    "written", ["429,after=1", "cut,retry-after=1", "hang,delay=1", "drip,status=500", "empty,after=1"]
)
def test_an_unknown_option_of_a_fault_is_reported(written):
    with pytest.raises(UnknownFault, match="has no option"):
        read_fault(written)


@pytest.mark.parametrize("written", ["drip,delay=nan", "503,retry-after=inf", "slow-headers,delay=x"])
def test_an_invalid_time_is_reported(written):
    with pytest.raises(UnknownFault, match="not a fault"):
        read_fault(written)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "status"])
def test_every_fault_that_is_listed_is_known(name):
    assert read_fault(name).name == name


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("gpt-6-luna", ("gpt-6-luna", "")),
        ("gpt-6-luna~429,times=1", ("gpt-6-luna", "429,times=1")),
        ("a~b~cut", ("a~b", "cut")),
    ],
)
def test_a_fault_follows_the_model_name(model, parts):
    assert split_model(model) == parts
