"""Every client on every upstream: what the SDK saw, what the upstream got, the losses, and docs/reference/matrix.md."""

import functools
from collections import Counter

import pytest

from end_to_end.expectations import check
from end_to_end.losses import build_expected, select_relevant
from end_to_end.matrix import MANNERS, UPSTREAMS, run_matrix
from end_to_end.scenarios import SCENARIOS
from end_to_end.table import KEYS, PATH, cells_of, document, mark

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture(scope="module")
def table():
    with run_matrix() as found:
        yield found


@functools.cache
def read_committed():
    return cells_of(PATH.read_text(encoding="utf-8"))


def test_the_document_shows_every_cell_and_nothing_else():
    assert len(KEYS) == (4 * 12 + 2) * 7 * 2
    assert document(read_committed()) == PATH.read_text(encoding="utf-8"), "run `make matrix`"


@pytest.mark.parametrize(("client", "upstream", "name", "manner"), KEYS)
def test_a_cell_of_the_matrix(table, client, upstream, name, manner):
    scenario, streamed = BY_NAME[name], MANNERS[manner]
    cell = table.run(client, upstream, scenario, streamed=streamed)
    check(cell, client, upstream, scenario, streamed=streamed)
    lost = select_relevant(tuple(loss for turn in cell.losses for loss in turn))
    assert sorted(lost) == sorted(build_expected(name, client, UPSTREAMS[upstream][1].NAME))
    for header, losses in zip(cell.headers, cell.losses, strict=True):
        assert_header_lists(header, losses, streamed=streamed)
    assert read_committed()[client, upstream, name, manner] == mark(client, name, lost), "run `make matrix`"


def assert_header_lists(header, losses, *, streamed):
    """The header counts and lists: of a whole reply all losses, of a stream those of its request."""
    count, material, *items = header.split("; ") if header else ["0", "material=0"]
    ascii_only = [loss.encode("ascii", "replace").decode() for loss in losses]
    assert Counter(items) <= Counter(ascii_only)
    assert int(material.removeprefix("material=")) <= int(count)
    assert int(count) <= len(losses) if streamed else int(count) == len(losses)
    of_the_request = [loss for loss in ascii_only if "client's dialect" not in loss]
    assert len(items) >= len(of_the_request)
