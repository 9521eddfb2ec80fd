"""docs/explanation/architecture.md names files, functions and classes: they are there."""

import ast
import re

import pytest

from architecture.tree import PACKAGE, ROOT

TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", TEXT)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_file_and_name_of_the_architecture_page_is_there(file, name):
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    defined = {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not name or name in defined


def test_the_architecture_page_names_many():
    assert len(NAMED) > 50
