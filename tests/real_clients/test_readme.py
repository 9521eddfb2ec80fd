"""The README says of real programs what the tests here do with them."""

from real_clients.runs import table
from real_clients.settings import README


def test_the_readme_has_the_table_of_what_is_run():
    assert table() in README.read_text(encoding="utf-8"), table()
