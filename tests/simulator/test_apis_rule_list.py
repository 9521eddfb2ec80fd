"""docs/reference/rules.md matches the code."""

from pathlib import Path

from dragoman.simulator.apis import APIS
from simulator.rule_list import document

PATH = Path(__file__).resolve().parents[2] / "docs" / "reference" / "rules.md"


def test_the_list_of_rules_is_up_to_date():
    assert PATH.read_text(encoding="utf-8") == document(), "run `make rules`"


def test_every_rule_is_listed_once():
    text = document()
    for api in APIS.values():
        for rule in api.rules:
            assert text.count(f"| `{rule.name}` |") == 1
