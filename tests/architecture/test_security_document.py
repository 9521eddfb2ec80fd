"""The files and tests that SECURITY.md names exist, and each rule names its test."""

import re

from architecture.tree import PACKAGE, ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py|[\w/]+/)`", TEXT)))


def test_every_file_that_is_named_is_there():
    assert len(NAMED) > 40
    assert not [name for name in NAMED if not any((folder / name).exists() for folder in (PACKAGE, ROOT / "tests"))]


def test_every_line_of_what_is_enforced_names_a_test():
    enforced = TEXT.partition("## What is enforced where")[2].partition("\n## ")[0]
    rows = [line for line in enforced.splitlines() if line.startswith("| ") and not line.startswith("| what |")]
    assert len(rows) > 20
    for row in rows:
        held = row.split("|")[3]
        assert "`" in held or held.strip() == "the same (thirteen hosts)", row
