"""The README says of real programs what the tests here do with them, and other pages repeat its settings."""

import pytest

from real_clients.runs import table
from real_clients.settings import CONNECT, README, blocks

TUTORIAL = CONNECT.parents[1] / "tutorials" / "claude-code-on-gemini.md"


def settings(text: str) -> list[str]:
    """Return the lines of a block that are not comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_readme_has_the_table_of_what_is_run():
    assert table() in README.read_text(encoding="utf-8"), table()


@pytest.mark.parametrize("page", [CONNECT, TUTORIAL], ids=lambda page: page.stem)
def test_a_page_repeats_the_settings_of_the_readme(page):
    known, found = blocks(README), blocks(page)
    shared = known.keys() & found.keys()
    assert ("sh", "claude-code") in shared
    assert {key: settings(found[key]) for key in shared} == {key: settings(known[key]) for key in shared}
