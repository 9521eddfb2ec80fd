"""docs/reference/losses.md is current."""

from pathlib import Path

from laws.losses import document


def test_the_table_of_losses_is_up_to_date():
    path = Path(__file__).resolve().parents[2] / "docs" / "reference" / "losses.md"
    assert path.read_text() == document(), "run `make losses`"
